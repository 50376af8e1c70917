"""Places: where decisions are made, few enough to be listed: finite states, or the leaves of a small tree."""

from dataclasses import dataclass

import numpy as np

from checkrein.base.arrays import FloatArray, IntArray
from checkrein.data.dataset import Dataset
from checkrein.policies import MixturePolicy

TREE_DEPTH = 3
TREE_ROWS = 20_000
HALF = 0.5  # where a tree cuts a feature that is 0 or 1


@dataclass(frozen=True, eq=False)
class Places:
    """What was done and would be done in each of p places, over the rows that were looked at."""

    labels: list[str]
    rows: IntArray  # (n,) the place of each of the log's first n rows
    visits: FloatArray  # (p,)
    behavior: FloatArray  # (p, A) probability of each action
    learned: FloatArray  # (p, A)
    agreement: float  # expected share of decisions on which both agree
    tree: str | None = None  # the tree whose leaves these are, as text
    fidelity: float | None = None  # share of decisions that it reproduces

    @classmethod
    def of(cls, dataset: Dataset, policy: MixturePolicy) -> "Places":
        """Find the places of a log."""
        return _states(dataset, policy) if dataset.n_states is not None else _leaves(dataset, policy)


def _states(dataset: Dataset, policy: MixturePolicy) -> Places:
    seen, rows = np.unique(dataset.states, return_inverse=True)
    counts = _counts(dataset, rows, seen.size)
    visits = counts.sum(axis=1)
    behavior, learned = counts / np.where(visits > 0, visits, 1.0)[:, None], policy.probabilities(seen)
    labels = dataset.state_labels
    agreement = float(visits @ (behavior * learned).sum(axis=1) / visits.sum())
    return Places([labels[state] for state in seen], rows, visits, behavior, learned, agreement)


def _leaves(dataset: Dataset, policy: MixturePolicy) -> Places:
    """Fit a small tree that does mostly what the policy does."""
    from sklearn.tree import DecisionTreeClassifier, export_text  # noqa: PLC0415  # slow to import

    states = dataset.states[:TREE_ROWS]
    chances, actions = policy.probabilities(states), dataset.actions[:TREE_ROWS]
    flat = np.asarray(states).reshape(len(states), -1)
    tree = DecisionTreeClassifier(max_depth=TREE_DEPTH, min_samples_leaf=max(1, len(flat) // 100), random_state=0)
    tree.fit(flat, chances.argmax(axis=1))
    leaves, rows = np.unique(tree.apply(flat), return_inverse=True)
    counts = _counts(dataset, rows, leaves.size)
    visits = counts.sum(axis=1)
    weights = dataset.weights[:TREE_ROWS]
    learned = np.column_stack([np.bincount(rows, weights * column, leaves.size) for column in chances.T])
    names = _feature_names(dataset, flat.shape[1])
    rules = _rules(tree.tree_, names)
    each = np.where(visits > 0, visits, 1.0)[:, None]
    return Places(
        [rules[leaf] for leaf in leaves.tolist()],
        rows,
        visits,
        counts / each,
        learned / each,
        float(chances[np.arange(len(chances)), actions].mean()),
        export_text(tree, feature_names=names, class_names=[dataset.action_labels[i] for i in tree.classes_]),
        float(tree.score(flat, chances.argmax(axis=1))),
    )


def _counts(dataset: Dataset, rows: IntArray, size: int) -> FloatArray:
    """(p, A) how often each action was logged in each place."""
    n = rows.size
    pairs = rows * dataset.n_actions + dataset.actions[:n]
    found = np.bincount(pairs, dataset.weights[:n], size * dataset.n_actions)
    return np.asarray(found.reshape(size, dataset.n_actions))


def _feature_names(dataset: Dataset, width: int) -> list[str]:
    past = [] if dataset.memory is None else dataset.memory.features(dataset.action_labels)
    own = [f"x{i}" for i in range(width - len(past))]
    return [*(own if dataset.encoding is None else dataset.encoding.features), *past]


def _rules(tree: "object", names: list[str]) -> dict[int, str]:
    """Say for each leaf of a scikit-learn tree what leads there: "age > 61.5, sex=F"."""
    left, right = tree.children_left.tolist(), tree.children_right.tolist()  # type: ignore[attr-defined]
    feature, cut = tree.feature.tolist(), tree.threshold.tolist()  # type: ignore[attr-defined]
    rules: dict[int, str] = {}
    below: list[tuple[int, dict[tuple[str, str], str]]] = [(0, {})]
    while below:
        node, path = below.pop()
        if left[node] < 0:
            rules[node] = ", ".join(path.values()) or "everywhere"
            continue
        name, at = names[feature[node]], cut[node]
        is_category = "=" in name and at == HALF
        no, yes = (f"not {name}", name) if is_category else (f"{name} ≤ {at:.4g}", f"{name} > {at:.4g}")
        below.append((left[node], path | {(name, "≤"): no}))  # the last cut on one side is the narrowest
        below.append((right[node], path | {(name, ">"): yes}))
    return rules
