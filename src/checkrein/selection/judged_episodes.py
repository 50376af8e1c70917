"""What each episode says of a policy that was learned without it, beside what it says of behavior."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from checkrein.base.arrays import Array, BoolArray, FloatArray, IntArray
from checkrein.certification.intervals import Interval, johnson_t
from checkrein.problem import Episodes


@dataclass(frozen=True, eq=False)
class JudgedEpisodes:
    """Scores by episode, of all folds together; their means are the values that a certificate judges."""

    logs: Sequence[Episodes]  # of each fold, which holds units whole
    ways: tuple[FloatArray, ...]  # each (e, 1 + m): scores by one or more ways to weigh
    of_behavior: Sequence[FloatArray]  # of each fold: (e, 1 + m) of its episodes

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

    def differences(self, alpha: float, among: BoolArray | None = None) -> Interval:
        """Return how far each value (1 + m,) is from behavior's, by episodes `among` (e,); each end errs by alpha.

        Where episodes are weighed in more ways than one, the widest that any of them says.
        """
        chosen = np.ones(self.labels.size, bool) if among is None else among
        found = [self._differences(way, alpha, chosen) for way in self.ways]
        lower, upper = np.min([one.lower for one in found], axis=0), np.max([one.upper for one in found], axis=0)
        return found[0]._replace(lower=lower, upper=upper)

    def n_units(self, among: BoolArray) -> int:
        """How many independent units some episodes (e,) belong to."""
        return int(np.unique(self.units[among]).size)

    def _together(self, of: Callable[[Episodes], Array]) -> Array:
        return np.concatenate([of(log) for log in self.logs])

    def _differences(self, way: FloatArray, alpha: float, among: BoolArray) -> Interval:
        units = np.unique(self.units[among], return_inverse=True)[1]
        weights = np.bincount(units, self.weights[among]).astype(np.float64)
        pulls = self.weights[among, None] * (way - self.behavior)[among]
        sums = np.column_stack([np.bincount(units, column) for column in pulls.T])
        means = sums / np.where(weights > 0, weights, 1.0)[:, None]
        values = weights @ means / weights.sum()
        return johnson_t(means - values, values, weights, alpha)
