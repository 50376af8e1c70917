"""differences_of: where a policy departs from behavior in the logged states, as data."""

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.data.dataset import Dataset
from checkrein.policies import MixturePolicy
from checkrein.report.model import Differences, StateDifference

SHOWN_STATES = 40
TREE_DEPTH = 3
TREE_ROWS = 20_000


def differences_of(dataset: Dataset, policy: MixturePolicy) -> Differences:
    """Compare what is done in the logged states."""
    counts = np.bincount(dataset.actions, dataset.weights, dataset.n_actions)
    if dataset.n_states is None:
        rows = slice(None, TREE_ROWS)
        learned = policy.probabilities(dataset.states[rows])
        agreement = learned[np.arange(len(learned)), dataset.actions[rows]].mean()
        text, fidelity = _surrogate(dataset, dataset.states[rows], learned.argmax(axis=1))
        states: list[StateDifference] = []
        share = learned.mean(axis=0)
    else:
        states, share, agreement = _by_state(dataset, policy)
        text, fidelity = None, None
    return Differences(
        actions=list(dataset.action_labels),
        behavior_share=(counts / counts.sum()).tolist(),
        learned_share=share.tolist(),
        agreement=float(agreement),
        states=states,
        tree=text,
        tree_fidelity=fidelity,
    )


def _by_state(dataset: Dataset, policy: MixturePolicy) -> tuple[list[StateDifference], FloatArray, float]:
    pairs = dataset.states * dataset.n_actions + dataset.actions
    size = (dataset.n_states or 0) * dataset.n_actions
    table = np.bincount(pairs, dataset.weights, size).reshape(-1, dataset.n_actions)
    visits = table.sum(axis=1)
    seen = np.flatnonzero(visits)
    behavior = table[seen] / visits[seen, None]
    learned = policy.probabilities(seen)
    moved = visits[seen] * np.abs(learned - behavior).sum(axis=1)
    order = np.argsort(-moved, kind="stable")[:SHOWN_STATES]
    labels = dataset.state_labels
    states = [
        StateDifference(
            state=labels[seen[i]],
            visits=float(visits[seen[i]]),
            behavior=behavior[i].tolist(),
            learned=learned[i].tolist(),
        )
        for i in order
    ]
    weight = visits[seen] / visits.sum()
    return states, weight @ learned, float(weight @ (behavior * learned).sum(axis=1))


def _surrogate(dataset: Dataset, states: FloatArray, actions: np.ndarray) -> tuple[str, float]:
    """Return a small tree that does mostly what the policy does, as text, and how often it does."""
    from sklearn.tree import DecisionTreeClassifier, export_text  # noqa: PLC0415  # slow to import

    flat = np.asarray(states).reshape(len(states), -1)
    past = [] if dataset.memory is None else dataset.memory.features(dataset.action_labels)
    own = [f"x{i}" for i in range(flat.shape[1] - len(past))]
    names = [*(own if dataset.encoding is None else dataset.encoding.features), *past]
    tree = DecisionTreeClassifier(max_depth=TREE_DEPTH, min_samples_leaf=max(1, len(flat) // 100), random_state=0)
    tree.fit(flat, actions)
    classes = [dataset.action_labels[i] for i in tree.classes_]
    text = export_text(tree, feature_names=names, class_names=classes)
    return text, float(tree.score(flat, actions))
