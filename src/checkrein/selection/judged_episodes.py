"""What each episode says of a policy that was learned without it, beside what it says of behavior."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from checkrein.base.arrays import Array, BoolArray, FloatArray, IntArray
from checkrein.certification.intervals import Interval, johnson_t
from checkrein.evaluation.one_step import ScoresFrom
from checkrein.problem import Episodes

PAIRED = math.sqrt(2)
"""How much wider bounds are than episodes alone say, where policies of all folds are judged together.

Of two folds, each helped to learn the policy that the other judges. Where what is learned is mostly luck (actions that
are alike, a limit that all policies just break), both are lucky together, so each pair of folds counts twice, and the
variance is twice that of independent episodes. (At most, as far as policies are linear in that luck; where all would
learn the same policy it is once. No statistic of one log tells which: Luedtke & van der Laan 2016.)
"""


@dataclass(frozen=True, eq=False)
class JudgedEpisodes:
    """Scores by episode, of all folds together; their means are the values that a certificate judges."""

    logs: Sequence[Episodes]  # of each fold, which holds units whole
    scores: FloatArray  # (e, 1 + m)
    of_behavior: Sequence[FloatArray]  # of each fold: (e, 1 + m) of its episodes
    from_states: Callable[[], Sequence[ScoresFrom]] | None = None  # in finite states, of each fold

    @cached_property
    def labels(self) -> IntArray:
        """(e,) the episodes' own numbers."""
        return self._together(lambda log: log.labels)

    @cached_property
    def weights(self) -> FloatArray:
        """(e,) how much each counts."""
        return self._together(lambda log: log.weights)

    @cached_property
    def units(self) -> IntArray:
        """(e,) which independent unit each belongs to: its cluster, or itself."""
        before = np.cumsum([0, *(log.n_units for log in self.logs[:-1])])
        return np.concatenate([log.unit + first for log, first in zip(self.logs, before, strict=True)])

    @cached_property
    def behavior(self) -> FloatArray:
        """(e, 1 + m) what they say of behavior."""
        return np.concatenate(list(self.of_behavior))

    def differences(self, alpha: float) -> Interval:
        """Return how far each value (1 + m,) is from behavior's; each end errs by alpha."""
        return self._interval(self.scores - self.behavior, alpha, np.ones(self.labels.size, bool))

    def differences_by(self, alpha: float, groups: Sequence[BoolArray]) -> list[Interval]:
        """Return the same for groups of episodes (e,), each of all that begin in some states.

        In finite states all episodes correct what tables say of a group's beginnings, by how often these lead to their
        rows; elsewhere each episode's weights are its own.
        """
        if self.from_states is None:
            return [self._interval(self.scores - self.behavior, alpha, among) for among in groups]
        scored = self.from_states()
        gains = np.concatenate([one.worth for one in scored]) - self.behavior
        begun = self._together(lambda log: log.states[log.begins])
        found = []
        for among in groups:
            begin = np.zeros(scored[0].tables.initial_distribution.size, bool)
            begin[begun[among]] = True
            added = np.concatenate([one.corrections(begin) for one in scored])
            share = self.weights[among].sum() / self.weights.sum()
            mean = self.weights[among] @ gains[among] / self.weights[among].sum()
            pulls = np.where(among[:, None], gains - mean, 0.0) / share + added
            found.append(self._interval(pulls + mean, alpha, np.ones(among.size, bool)))
        return found

    def n_units(self, among: BoolArray) -> int:
        """How many independent units some episodes (e,) belong to."""
        return int(np.unique(self.units[among]).size)

    def _together(self, of: Callable[[Episodes], Array]) -> Array:
        return np.concatenate([of(log) for log in self.logs])

    def _interval(self, gains: FloatArray, alpha: float, among: BoolArray) -> Interval:
        units = np.unique(self.units[among], return_inverse=True)[1]
        weights = np.bincount(units, self.weights[among]).astype(np.float64)
        pulls = self.weights[among, None] * gains[among]
        sums = np.column_stack([np.bincount(units, column) for column in pulls.T])
        means = sums / np.where(weights > 0, weights, 1.0)[:, None]
        values = weights @ means / weights.sum()
        return johnson_t(means - values, values, weights, alpha).widened(PAIRED)
