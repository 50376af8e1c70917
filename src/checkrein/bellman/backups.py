"""Backups: how a best response looks one step ahead, and the policy that does what it assumes."""

from dataclasses import dataclass, field

from checkrein.base.arrays import Array, BoolArray, FloatArray
from checkrein.base.recent import Recent
from checkrein.policies import GreedyPolicy, least
from checkrein.protocols import ActionMask, QFunction


@dataclass(frozen=True, eq=False)
class Greedy:
    """min_a Q(x, a) over the actions that the log supports; a state without any is worth its worst.

    (The target of FQI, Algorithm 4 of the paper, and the improvement step of LSPI, Algorithm 6.)
    """

    support: ActionMask
    worst: float
    asked: Recent[BoolArray] = field(default_factory=Recent, repr=False)

    def value(self, q: QFunction, states: Array) -> FloatArray:
        """(n,)"""  # noqa: D400, D415
        return least(q(states)[..., 0], self.asked(states, self.support.allowed), self.worst)

    def policy(self, q: QFunction) -> GreedyPolicy:
        """Return the greedy policy of a Q-function."""
        return GreedyPolicy(q, self.support)
