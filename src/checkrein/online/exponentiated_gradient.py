"""Exponentiated gradient on the l1 ball (Kivinen & Warmuth 1997; Algorithm 2 of the paper, lines 1 and 15-16)."""

from dataclasses import dataclass

import numpy as np

from checkrein.base.arrays import FloatArray, frozen, require_positive
from checkrein.online.balls import worst_in_simplex
from checkrein.protocols import Played
from checkrein.theory import exponentiated_gradient_rate


@dataclass(frozen=True)
class ExponentiatedGradient:
    """Multiply each multiplier by exp(rate * violation), then scale them so that they and a spare sum to `bound`.

    The paper prints exp(-rate * violation), which lowers the multiplier of a violated constraint; the player
    who sets the multipliers maximises, so the sign here is the other one.
    """

    bound: float
    rate: float

    def __post_init__(self) -> None:
        require_positive(bound=self.bound, rate=self.rate)

    @classmethod
    def for_gap(cls, gap: float, *, bound: float, constraint_range: float) -> "ExponentiatedGradient":
        """Take the rate of the convergence theorem (4.1) for a duality gap.

        constraint_range: the largest |constraint value - limit| of any policy.
        """
        rate = exponentiated_gradient_rate(gap=gap, bound=bound, constraint_range=constraint_range)
        return cls(bound, rate)

    def init(self, n_constraints: int) -> FloatArray:
        """(m + 1,) logarithms of the unnormalised multipliers, the spare last; equal at first."""
        return frozen(np.zeros(n_constraints + 1))

    def multipliers(self, state: FloatArray) -> FloatArray:
        """(m,)"""  # noqa: D400, D415
        shares = np.exp(state - state.max())
        return frozen(self.bound * shares[:-1] / shares.sum())

    def update(self, state: FloatArray, played: Played) -> FloatArray:
        """Raise the multiplier of a violated constraint, lower that of a slack one."""
        raised = state + self.rate * np.append(played.violation, 0.0)
        return frozen(raised - raised.max())

    def worst_multipliers(self, violation: FloatArray) -> FloatArray:
        """Spend all of the bound on the constraint most violated, if any is."""
        return worst_in_simplex(violation, np.full(violation.size, self.bound))
