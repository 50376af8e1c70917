"""Ensemble: several fits that differ by chance alone, and what they disagree on."""

from dataclasses import dataclass, replace

import numpy as np

from checkrein.base.arrays import Array, FloatArray, IntArray, require_counts
from checkrein.base.errors import ArgumentError
from checkrein.base.storage import storable
from checkrein.protocols import (
    BatchedDesign,
    ConservativeDesign,
    Design,
    EnsembleQFunction,
    ExactDesign,
    FunctionClass,
    QFunction,
    WarmDesign,
)


@dataclass(frozen=True)
class Ensemble:
    """Fit a class `size` times; networks as one batched model, others one after another.

    quantile: None for their mean; 0.9, say, for a pessimistic value: what nine of ten say that it costs at the most.
    """

    functions: FunctionClass
    size: int = 5
    quantile: float | None = None

    def __post_init__(self) -> None:
        require_counts(size=self.size)
        if self.quantile is not None and not 0 <= self.quantile <= 1:
            raise ArgumentError(f"quantile is {self.quantile}: it must lie between 0 and 1, or be None for the mean")

    def design(self, states: Array, actions: IntArray, weights: FloatArray, *, n_actions: int) -> "EnsembleDesign":
        """Build what all members share."""
        design = self.functions.design(states, actions, weights, n_actions=n_actions)
        if isinstance(design, ExactDesign):
            raise ArgumentError(f"{type(self.functions).__name__} leaves nothing to chance: its members would be equal")
        return EnsembleDesign(design, self.size, self.quantile)


@storable
@dataclass(frozen=True, eq=False)
class EnsembleQ:
    """The mean of several Q-functions, or a quantile of them; one batched model counts as several."""

    parts: tuple[QFunction, ...]
    quantile: float | None = None

    def members(self, states: Array) -> FloatArray:
        """(M, n, A, k) what each says."""
        each = [q.members(states) if isinstance(q, EnsembleQFunction) else q(states)[None] for q in self.parts]
        return np.concatenate(each)

    def __call__(self, states: Array) -> FloatArray:
        """(n, A, k)"""  # noqa: D400, D415
        each = self.members(states)
        return each.mean(axis=0) if self.quantile is None else np.quantile(each, self.quantile, axis=0)


@dataclass(frozen=True, eq=False)
class EnsembleDesign:
    """One design for all members: they differ by their random numbers."""

    one: Design
    size: int
    quantile: float | None

    def fit(self, targets: FloatArray, *, rng: np.random.Generator, start: QFunction | None = None) -> EnsembleQ:
        """Regress the same targets (n, k) by every member, each from where it ended."""
        before = start.parts if isinstance(start, EnsembleQ) else ()
        if isinstance(self.one, BatchedDesign):
            q = self.one.fit_many(targets[None], models=self.size, rng=rng, start=before[0] if before else None)
            return EnsembleQ((q,), self.quantile)
        begin = before if len(before) == self.size else (None,) * self.size
        generators = rng.spawn(self.size)
        pairs = zip(generators, begin, strict=True)
        parts = tuple(self.one.fit(targets, rng=own, start=previous) for own, previous in pairs)
        return EnsembleQ(parts, self.quantile)

    @property
    def warm(self) -> bool:
        """Whether members go on from the fit of an earlier round."""
        return isinstance(self.one, WarmDesign) and self.one.warm

    def conservative(self, penalty: float) -> "EnsembleDesign":
        """Return the same with low values of actions that were not taken made dear, where the class can do that."""
        if not isinstance(self.one, ConservativeDesign):
            raise ArgumentError(f"{type(self.one).__name__} has no gradients to penalise: use Neural")
        return replace(self, one=self.one.conservative(penalty))
