"""Greedy and softmin policies of a Q-function."""

from dataclasses import dataclass

import numpy as np

from checkrein.base.arrays import Array, FloatArray, IntArray, require_positive
from checkrein.base.brief import brief
from checkrein.base.storage import storable
from checkrein.protocols import ActionMask, QFunction

TIE = 1e-10  # actions whose values differ by less, relatively, are the same to a greedy policy: the first is taken


@storable
@dataclass(frozen=True, eq=False, repr=False)
class GreedyPolicy:
    """The action of least value, among those that `support` allows; where it allows none, the first.

    (Such a state was never left in the log: whatever is done there is valued at its worst.)
    """

    q: QFunction  # one cost
    support: ActionMask | None = None

    def __repr__(self) -> str:
        return brief(self)

    def actions(self, states: Array) -> IntArray:
        """(n,) the chosen actions; of nearly equal ones the first."""
        return self._best(self.q(states)[..., 0], states)

    def probabilities(self, states: Array) -> FloatArray:
        """(n, A) one-hot."""
        values = self.q(states)[..., 0]
        chosen = self._best(values, states)
        return np.asarray(chosen[:, None] == np.arange(values.shape[1]), dtype=np.float64)

    def _best(self, values: FloatArray, states: Array) -> IntArray:
        tie = TIE * np.abs(values).max(axis=1, keepdims=True)
        if self.support is not None:
            values = np.where(self.support.allowed(states), values, np.inf)
        return np.argmax(values <= values.min(axis=1, keepdims=True) + tie, axis=1)


@storable
@dataclass(frozen=True, eq=False, repr=False)
class SoftminPolicy:
    """Probabilities proportional to exp(-Q / temperature), among the actions that `support` allows."""

    q: QFunction  # one cost
    temperature: float
    support: ActionMask | None = None

    def __post_init__(self) -> None:
        require_positive(temperature=self.temperature)

    def __repr__(self) -> str:
        return brief(self)

    def probabilities(self, states: Array) -> FloatArray:
        """(n, A)"""  # noqa: D400, D415
        scaled = -self.q(states)[..., 0] / self.temperature
        if self.support is not None:
            allowed = self.support.allowed(states)
            scaled = np.where(allowed | ~allowed.any(axis=1, keepdims=True), scaled, -np.inf)
        exponentials = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        return exponentials / exponentials.sum(axis=1, keepdims=True)
