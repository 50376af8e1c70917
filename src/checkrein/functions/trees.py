"""Trees: extremely randomised trees (Ernst et al. 2005), a forest per action, one structure for all costs."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from checkrein.base.arrays import Array, FloatArray, IntArray, frozen, require_counts, require_positive
from checkrein.base.errors import ArgumentError
from checkrein.base.recent import Recent
from checkrein.base.storage import storable
from checkrein.protocols import QFunction

Vectors = NDArray[np.float32]
Nodes = NDArray[np.int32]

CHUNK_ROWS, CHUNK_VALUES = 2**16, 2**24  # what descends together: rows, and entries of their states
REMEMBERED = 2**27  # bytes of leaves that are remembered of an array of states
LEVELS = 4  # rows are taken out of the descent at their leaf, which is looked for every so many levels
ROUNDING = 1e-9  # relative: a leaf of just the least weight is heavy enough
CONSTANT = 1e-13  # a column that deviates less, relative to its mean, is constant


@dataclass(frozen=True)
class Trees:
    """The function class of averages of randomised regression trees, by squared loss.

    min_leaf: least total weight of the rows in a leaf, so that weights equal repeated rows.
    candidates: how many features a split is chosen from, None for all; each gets one random threshold.
    freeze_after: trees are grown anew in the fits 1, 2, 4, 8, ... of a fitted iteration up to this, and their leaves
        alone are refitted in between and after: the regression is then an average of its targets, and the iteration
        converges, on trees that were grown for values far ahead. None grows new trees each time.
    """

    n_trees: int = 50
    min_leaf: float = 5.0
    candidates: int | None = None
    freeze_after: int | None = None

    def __post_init__(self) -> None:
        counts = {"n_trees": self.n_trees, "candidates": self.candidates, "freeze_after": self.freeze_after}
        require_counts(**{name: count for name, count in counts.items() if count is not None})
        require_positive(min_leaf=self.min_leaf)

    def design(self, states: Array, actions: IntArray, weights: FloatArray, *, n_actions: int) -> "TreesDesign":
        """Sort the rows by action; those without weight are left out."""
        order, blocks = by_action(actions, weights, n_actions)
        vectors = _single(flattened(states)[order])
        bad = ~np.isfinite(vectors).all(axis=1)
        if bad.any():
            row = int(order[np.argmax(bad)])
            raise ArgumentError(f"the state in row {row} is not finite in single precision: rescale the states")
        return TreesDesign(self, vectors, weights[order], order, blocks)


@storable
@dataclass(frozen=True, eq=False)
class Forest:
    """The nodes of all trees: a state goes right where its feature exceeds the threshold; a leaf leads to itself."""

    feature: Nodes  # (nodes,)
    threshold: Vectors  # (nodes,) infinite at leaves
    children: Nodes  # (nodes, 2) left, right
    roots: Nodes  # (A, trees) each the first node of its tree
    n_features: int

    _recent: ClassVar[Recent[list[Nodes]] | None] = None  # of trees that stay: the leaves of states asked last

    def stay(self) -> None:
        """Remember from now on which leaves states fall into, as they will be asked again."""
        if self._recent is None:
            object.__setattr__(self, "_recent", Recent())

    def every_leaf(self, states: Array) -> list[Nodes] | None:
        """Return the leaves (trees, n) of each action of states that are asked again and again, if these are few."""
        if self._recent is None or 4 * self.roots.size * len(states) > REMEMBERED:
            return None
        return self._recent(states, self._every_leaf)

    def _every_leaf(self, states: Array) -> list[Nodes]:
        vectors = _single(flattened(states))
        return [self.leaves(vectors, action) for action in range(len(self.roots))]

    def leaves(self, vectors: Vectors, action: int) -> Nodes:
        """(trees, n) the leaf that each of the states (n, d) reaches in each tree of an action."""
        found = np.empty((self.roots.shape[1], len(vectors)), dtype=np.int32)
        for rows in _chunks(vectors):
            entries = vectors[rows].ravel()
            places = np.arange(0, len(entries), self.n_features, dtype=np.int32)
            everyone = np.arange(len(places))
            for tree, root in enumerate(self.roots[action]):
                found[tree, rows] = self._descend(entries, places, everyone, root)
        return found

    def _descend(self, entries: Vectors, places: Nodes, moving: IntArray, root: np.int32) -> Nodes:
        """(n,) the leaves under a root; `places` says where in `entries` each state begins."""
        reached = np.full(len(places), root, dtype=np.int32)
        if np.isinf(self.threshold[root]):
            return reached
        children, nodes = self.children.ravel(), reached
        while len(moving):
            for _ in range(LEVELS):
                right = entries.take(places + self.feature.take(nodes)) > self.threshold.take(nodes)
                nodes = children.take(2 * nodes + right)
            reached[moving] = nodes
            inside = np.flatnonzero(np.isfinite(self.threshold.take(nodes)))
            moving, nodes, places = moving.take(inside), nodes.take(inside), places.take(inside)
        return reached


@storable
@dataclass(frozen=True, eq=False)
class TreesQ:
    """The mean over an action's trees of the value of the leaf that a state falls into."""

    forest: Forest
    values: FloatArray  # (nodes, k), 0 inside the trees
    fits: int  # how many led here, each started from the one before

    def __call__(self, states: Array) -> FloatArray:
        """(n, A, k)"""  # noqa: D400, D415
        if states.ndim == 1 and states.dtype.kind in "iu":
            distinct, places = np.unique(states, return_inverse=True)
            return self._means(distinct)[places]
        return self._means(states)

    def _means(self, states: Array) -> FloatArray:
        flat = flattened(states)
        if flat.shape[1] != self.forest.n_features:
            raise ArgumentError(
                f"these states have {flat.shape[1]} features, but the trees were grown on {self.forest.n_features}"
            )
        n_actions, n_trees = self.forest.roots.shape
        means = np.zeros((len(flat), n_actions, self.values.shape[1]))
        known = self.forest.every_leaf(states)
        if known is not None:
            for action, leaves in enumerate(known):
                means[:, action] = sum(self.values.take(reached, axis=0) for reached in leaves) / n_trees
            return means
        for rows in _chunks(flat):
            vectors = _single(flat[rows])
            for action in range(n_actions):
                leaves = self.forest.leaves(vectors, action)
                means[rows, action] = sum(self.values.take(reached, axis=0) for reached in leaves) / n_trees
        return means


@dataclass(frozen=True, eq=False)
class TreesDesign:
    """The rows by action, and the leaves they reach in the trees that were last kept."""

    functions: Trees
    vectors: Vectors  # (n, d) ordered
    weights: FloatArray  # (n,) ordered
    order: IntArray  # (n,) rows by action, without those of no weight
    blocks: list[slice]  # of the ordered rows, one per action
    kept: list[tuple[Forest, list[Nodes]]] = field(default_factory=list)  # at most one, with (trees, n) per action

    def fit(self, targets: FloatArray, *, rng: np.random.Generator, start: QFunction | None = None) -> TreesQ:
        """Grow trees for targets (n, k), or refit the leaves of those of a `start` that has had its fits."""
        ordered, earlier = targets[self.order], start if isinstance(start, TreesQ) else None
        if earlier is not None and self._stays(earlier, targets.shape[1]):
            forest, values = earlier.forest, earlier.values.copy()
            forest.stay()
        else:
            forest = self._grow(ordered, rng)
            values = np.zeros((len(forest.feature), targets.shape[1]))
        self._refit(values, forest, ordered)
        return TreesQ(forest, frozen(values), 1 if earlier is None else earlier.fits + 1)

    def _stays(self, start: TreesQ, k: int) -> bool:
        limit, roots, number = self.functions.freeze_after, (len(self.blocks), self.functions.n_trees), start.fits + 1
        if limit is None or (number <= limit and number.bit_count() == 1):
            return False
        alike = start.forest.roots.shape == roots and start.forest.n_features == self.vectors.shape[1]
        return alike and start.values.shape[1] == k

    def _grow(self, targets: FloatArray, rng: np.random.Generator) -> Forest:
        seeds = rng.integers(2**31 - 1, size=len(self.blocks))
        parts = [
            _leaf_alone(self.functions.n_trees)
            if rows.start == rows.stop
            else _grown(self.functions, self.vectors[rows], targets[rows], self.weights[rows], int(seed))
            for rows, seed in zip(self.blocks, seeds, strict=True)
        ]
        offsets = np.cumsum([0, *(len(part.feature) for part in parts)])
        joined = (
            np.concatenate([part.feature for part in parts]),
            np.concatenate([part.threshold for part in parts]),
            np.concatenate([part.children + offset for part, offset in zip(parts, offsets, strict=False)]),
            np.concatenate([part.roots + offset for part, offset in zip(parts, offsets, strict=False)]),
        )
        feature, threshold, children, roots = joined
        return Forest(
            frozen(feature.astype(np.int32)),
            frozen(threshold),
            frozen(children.astype(np.int32)),
            frozen(roots.astype(np.int32)),
            self.vectors.shape[1],
        )

    def _refit(self, values: FloatArray, forest: Forest, targets: FloatArray) -> None:
        """Put the weighted mean of its rows' targets (n, k) into each leaf; a leaf without rows keeps its value."""
        for rows, roots, leaves in zip(self.blocks, forest.roots, self._leaves(forest), strict=True):
            weighted = (self.weights[rows, None] * targets[rows]).T
            for root, reached in zip(roots, leaves - roots[:, None], strict=True):
                total = np.bincount(reached, self.weights[rows])
                shown = np.flatnonzero(total)
                for column, part in enumerate(weighted):
                    values[root + shown, column] = np.bincount(reached, part)[shown] / total[shown]

    def _leaves(self, forest: Forest) -> Iterator[Nodes]:
        """Yield the leaves (trees, n) of each action's rows, looked up once for trees that may stay."""
        for known, leaves in self.kept:
            if known is forest:
                yield from leaves
                return
        found = (forest.leaves(self.vectors[rows], action) for action, rows in enumerate(self.blocks))
        if self.functions.freeze_after is None:
            yield from found
        else:
            self.kept[:] = [(forest, list(found))]
            yield from self.kept[0][1]


def flattened(states: Array) -> Array:
    """(n, d) one vector per state; a finite state is a vector of one number."""
    return states.reshape(len(states), prod(states.shape[1:]))


def by_action(actions: IntArray, weights: FloatArray, n_actions: int) -> tuple[IntArray, list[slice]]:
    """Return the rows that have weight, ordered by action, and the slice of each action."""
    present = np.flatnonzero(weights > 0)
    order = present[np.argsort(actions[present], kind="stable")]
    bounds = np.searchsorted(actions[order], np.arange(n_actions + 1)).tolist()
    return order, [slice(begin, end) for begin, end in pairwise(bounds)]


def units(targets: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the weighted mean and deviation of each column of targets, (k,) and (k,); a constant one has unit 1."""
    centre = np.average(targets, axis=0, weights=weights)
    scale = np.sqrt(np.average((targets - centre) ** 2, axis=0, weights=weights))
    return centre, np.where(scale > CONSTANT * np.abs(centre), scale, 1.0)


def _single(vectors: Array) -> Vectors:
    """Return states in the precision that trees are grown in."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(vectors, dtype=np.float32)


def _chunks(vectors: Array) -> Iterator[slice]:
    size = max(1, min(CHUNK_ROWS, CHUNK_VALUES // max(1, vectors.shape[1])))
    return (slice(begin, begin + size) for begin in range(0, len(vectors), size))


def _leaf_alone(n_trees: int) -> Forest:
    """Return the trees of an action that was never logged."""
    nothing = np.zeros(1, dtype=np.int32)
    return Forest(
        nothing, np.full(1, np.inf, dtype=np.float32), nothing.repeat(2)[None], nothing.repeat(n_trees)[None], 0
    )


def _grown(functions: Trees, vectors: Vectors, targets: FloatArray, weights: FloatArray, seed: int) -> Forest:
    """Grow the trees of one action, every cost in its own unit so that splits serve all alike."""
    from sklearn.ensemble import ExtraTreesRegressor  # noqa: PLC0415  # slow to import

    centre, scale = units(targets, weights)
    total, least = weights.sum(), functions.min_leaf * (1 - ROUNDING)
    model = ExtraTreesRegressor(
        functions.n_trees,
        min_weight_fraction_leaf=min(least / total, 0.5),
        min_samples_split=2 if total >= 2 * least else len(vectors) + 1,  # too light for two leaves
        max_features=1.0 if functions.candidates is None else min(functions.candidates, vectors.shape[1]),
        n_jobs=1,
        random_state=seed,
    )
    standard = (targets - centre) / scale
    model.fit(vectors, standard[:, 0] if standard.shape[1] == 1 else standard, sample_weight=weights)
    trees = [estimator.tree_ for estimator in model.estimators_]
    roots = np.cumsum([0, *(tree.node_count for tree in trees)])
    left = np.concatenate([tree.children_left for tree in trees])
    children = np.stack([left, np.concatenate([tree.children_right for tree in trees])], axis=1)
    children += roots[:-1].repeat(np.diff(roots))[:, None]
    leaf = left < 0
    children[leaf] = np.flatnonzero(leaf)[:, None]
    feature = np.where(leaf, 0, np.concatenate([tree.feature for tree in trees]))
    threshold = np.where(leaf, np.inf, np.concatenate([tree.threshold for tree in trees]))
    return Forest(feature, _rounded_down(threshold), children, roots[None, :-1], vectors.shape[1])


def _rounded_down(threshold: FloatArray) -> Vectors:
    """Return the greatest single numbers not above the thresholds: single states fall on the same side of both."""
    nearest = threshold.astype(np.float32)
    return np.where(nearest > threshold, np.nextafter(nearest, np.float32(-np.inf)), nearest)
