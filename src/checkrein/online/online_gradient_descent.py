"""Online gradient descent on the l2 ball (Zinkevich 2003; Algorithm 5 of the paper's appendix, lines 1 and 15)."""

from dataclasses import dataclass

import numpy as np

from checkrein.base.arrays import FloatArray, frozen, require_positive
from checkrein.online.balls import worst_in_ball
from checkrein.protocols import Played
from checkrein.theory import online_gradient_descent_rate


@dataclass(frozen=True)
class OnlineGradientDescent:
    """Step along the violation, then project onto {multipliers >= 0, their l2 norm <= bound}.

    The paper prints a step against the violation and projects onto the ball alone; multipliers of upper limits
    rise with the violation and are never negative.
    """

    bound: float
    rate: float

    def __post_init__(self) -> None:
        require_positive(bound=self.bound, rate=self.rate)

    @classmethod
    def for_gap(
        cls, gap: float, *, bound: float, constraint_range: float, n_constraints: int
    ) -> "OnlineGradientDescent":
        """Take the rate with which twice Zinkevich's regret falls to a duality gap.

        constraint_range: the largest |constraint value - limit| of any policy.
        """
        rate = online_gradient_descent_rate(gap=gap, n_constraints=n_constraints, constraint_range=constraint_range)
        return cls(bound, rate)

    def init(self, n_constraints: int) -> FloatArray:
        """(m,) zeros."""
        return frozen(np.zeros(n_constraints))

    def multipliers(self, state: FloatArray) -> FloatArray:
        """(m,)"""  # noqa: D400, D415
        return state

    def update(self, state: FloatArray, played: Played) -> FloatArray:
        """Raise the multiplier of a violated constraint, lower that of a slack one."""
        moved = np.maximum(state + self.rate * played.violation, 0.0)
        return frozen(moved * min(1.0, self.bound / max(float(np.linalg.norm(moved)), 1e-300)))

    def worst_multipliers(self, violation: FloatArray) -> FloatArray:
        """Spend the bound along the violated constraints."""
        return worst_in_ball(violation, self.bound)
