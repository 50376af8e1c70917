"""FrozenFeatures: an encoder that is run once per state, and a head that is fitted on what it made of them."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from checkrein.base.arrays import Array, FloatArray, IntArray, frozen, require_counts
from checkrein.base.errors import ArgumentError
from checkrein.base.recent import Recent
from checkrein.base.storage import storable
from checkrein.functions.features import mapped
from checkrein.protocols import (
    BatchedDesign,
    BatchedQ,
    ConservativeDesign,
    Design,
    Dynamics,
    EnsembleQFunction,
    ExactDesign,
    FunctionClass,
    QFunction,
    WarmDesign,
)

Encoder = Callable[[Array], FloatArray]
CHUNK = 4096  # states that are encoded at once


@dataclass(frozen=True)
class FrozenFeatures:
    """Q-functions of `head` over `encoder(states)`, (n, d): any function, or the `features` of a fitted network.

    memory: bytes of features, from which on they are kept in a temporary file that is mapped to memory
    """

    encoder: Encoder
    head: FunctionClass
    memory: int = 1 << 30

    def __post_init__(self) -> None:
        require_counts(memory=self.memory)

    def design(self, states: Array, actions: IntArray, weights: FloatArray, *, n_actions: int) -> "FrozenDesign":
        """Encode the states, once."""
        cache = Cache(self.encoder, self.memory)
        head = self.head.design(cache(states), actions, weights, n_actions=n_actions)
        if isinstance(head, ExactDesign):
            return ExactFrozenDesign(head, cache)
        return (BatchedFrozenDesign if isinstance(head, BatchedDesign) else FrozenDesign)(head, cache)


@dataclass(frozen=True, eq=False)
class Cache:
    """Features of the arrays of states that were asked last."""

    encoder: Encoder
    memory: int
    recent: Recent[FloatArray] = field(default_factory=Recent, repr=False)

    def __call__(self, states: Array) -> FloatArray:
        """(n, d)"""  # noqa: D400, D415
        return self.recent(states, self._encode)

    def _encode(self, states: Array) -> FloatArray:
        if len(states) == 0:
            return mapped(self.encoder, states, "the encoder")
        features: Array | None = None
        for begin in range(0, len(states), CHUNK):
            part = mapped(self.encoder, states[begin : begin + CHUNK], "the encoder")
            if features is None:
                features = self._room((len(states), part.shape[1]))
            features[begin : begin + CHUNK] = part
        return frozen(np.asarray(features)) if not isinstance(features, np.memmap) else features

    def _room(self, shape: tuple[int, int]) -> Any:
        if shape[0] * shape[1] * 8 <= self.memory:
            return np.empty(shape)
        with tempfile.TemporaryDirectory() as folder:  # the file lives on without a name for as long as it is mapped
            return np.memmap(Path(folder) / "features", dtype=np.float64, mode="w+", shape=shape)


@storable
@dataclass(frozen=True, eq=False)
class FrozenQ:
    """A Q-function of features, asked with states."""

    encoder: Encoder
    q: QFunction

    _cache = None  # of the design that fitted it; a loaded one encodes what it is asked

    def __call__(self, states: Array) -> FloatArray:
        """(n, A, k)"""  # noqa: D400, D415
        return self.q(self._features(states))

    def members(self, states: Array) -> FloatArray:
        """(M, n, A, k) what each of the heads says."""
        features = self._features(states)
        return self.q.members(features) if isinstance(self.q, EnsembleQFunction) else self.q(features)[None]

    def member(self, number: int) -> "FrozenQ":
        """Return one of the heads."""
        return _with_cache(FrozenQ(self.encoder, cast(BatchedQ, self.q).member(number)), self._cache)

    def _features(self, states: Array) -> FloatArray:
        return mapped(self.encoder, states, "the encoder") if self._cache is None else self._cache(states)


@dataclass(frozen=True, eq=False)
class FrozenDesign:
    """A design of the head over the features of the rows."""

    head: Design
    cache: Cache

    def fit(self, targets: FloatArray, *, rng: np.random.Generator, start: QFunction | None = None) -> FrozenQ:
        """Fit the head."""
        return self._asked(self.head.fit(targets, rng=rng, start=start.q if isinstance(start, FrozenQ) else None))

    @property
    def warm(self) -> bool:
        """Whether heads go on from the fit of an earlier round."""
        return isinstance(self.head, WarmDesign) and self.head.warm

    def _asked(self, q: QFunction) -> FrozenQ:
        return _with_cache(FrozenQ(self.cache.encoder, q), self.cache)


class BatchedFrozenDesign(FrozenDesign):
    """One whose head fits several models at once."""

    def fit_many(
        self, targets: FloatArray, *, models: int, rng: np.random.Generator, start: QFunction | None = None
    ) -> FrozenQ:
        """Fit as many heads (M or 1, n, k)."""
        before = start.q if isinstance(start, FrozenQ) else None
        return self._asked(cast(BatchedDesign, self.head).fit_many(targets, models=models, rng=rng, start=before))

    def conservative(self, penalty: float) -> "BatchedFrozenDesign":
        """Return the same with low values of actions that were not taken made dear."""
        if not isinstance(self.head, ConservativeDesign):
            raise ArgumentError(f"{type(self.head).__name__} has no gradients to penalise: use a head of Neural")
        return replace(self, head=self.head.conservative(penalty))


class ExactFrozenDesign(FrozenDesign):
    """One whose head has closed forms."""

    def dynamics(self, next_states: Array, continuation: FloatArray) -> "FrozenDynamics":
        """Encode where each row leads, once."""
        bound = cast(ExactDesign, self.head).dynamics(self.cache(next_states), continuation)
        return FrozenDynamics(self, bound, next_states)


@dataclass(frozen=True, eq=False)
class FrozenDynamics:
    """The head's dynamics; policies are still asked with states."""

    design: ExactFrozenDesign
    bound: Dynamics
    next_states: Array

    def evaluate(
        self, costs: FloatArray, probabilities: Callable[[Array], FloatArray], *, require_contraction: bool
    ) -> FrozenQ:
        """Solve for the head."""
        ahead = probabilities(self.next_states)
        q = self.bound.evaluate(costs, lambda _: ahead, require_contraction=require_contraction)
        return self.design._asked(q)


def _with_cache(q: FrozenQ, cache: Cache | None) -> FrozenQ:
    object.__setattr__(q, "_cache", cache)
    return q
