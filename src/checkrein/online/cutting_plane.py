"""Cutting planes: the linear program over the policies found so far answers them with its own prices.

The same program is the master of Dantzig-Wolfe column generation; the game's stopping test does not change.
"""

from dataclasses import dataclass

import numpy as np

from checkrein.base.arrays import FloatArray, frozen, require_positive
from checkrein.base.errors import ArgumentError
from checkrein.online.balls import worst_in_simplex
from checkrein.online.centre import central_multipliers
from checkrein.online.master import best_mixture
from checkrein.protocols import Played


@dataclass(frozen=True, eq=False)
class Planes:
    """What every policy found so far says of every multiplier, and the best lower bound."""

    objectives: FloatArray  # (t,)
    violations: FloatArray  # (t, m)
    lower: float


@dataclass(frozen=True)
class CuttingPlane:
    """Ask at the centre of the multipliers that may still raise the lower bound while that finds new policies.

    When it does not, ask at the program's price: if that finds nothing new either, the gap is closed.

    bound: multipliers lie in {multipliers >= 0, sum_i scales_i * multipliers_i <= bound}; scales default to one.
    central: False asks at the price alone (plain column generation), which takes more rounds with many constraints.
    """

    bound: float
    scales: tuple[float, ...] | None = None
    central: bool = True

    def __post_init__(self) -> None:
        require_positive(bound=self.bound, **{f"scales[{i}]": s for i, s in enumerate(self.scales or ())})

    def bounds(self, n_constraints: int) -> FloatArray:
        """(m,) the largest value of each multiplier."""
        if self.scales is None:
            return np.full(n_constraints, self.bound)
        if len(self.scales) != n_constraints:
            raise ArgumentError(f"there are {len(self.scales)} scales, but {n_constraints} constraints")
        return self.bound / np.array(self.scales)

    def init(self, n_constraints: int) -> Planes:
        """Start without planes."""
        return Planes(np.zeros(0), np.zeros((0, n_constraints)), -np.inf)

    def multipliers(self, state: Planes) -> FloatArray:
        """(m,) at first zero."""
        objectives, violations = state.objectives, state.violations
        n_constraints = violations.shape[1]
        if not objectives.size:
            return frozen(np.zeros(n_constraints))
        bounds = self.bounds(n_constraints)
        centre = None
        if self.central and np.isfinite(state.lower) and not _repeats(objectives, violations):
            centre = central_multipliers(objectives, violations, bounds, state.lower)
        return best_mixture(objectives, violations, bounds).prices if centre is None else centre

    def update(self, state: Planes, played: Played) -> Planes:
        """Add the newest policy's plane."""
        objectives = np.append(state.objectives, played.objective)
        return Planes(objectives, np.vstack([state.violations, played.violation]), played.lower)

    def worst_multipliers(self, violation: FloatArray) -> FloatArray:
        """Spend all of the bound on the constraint most violated, if any is."""
        return worst_in_simplex(violation, self.bounds(violation.size))


def _repeats(objectives: FloatArray, violations: FloatArray) -> bool:
    """Say whether the newest policy has, to rounding, the values of an earlier one."""
    planes = np.column_stack([objectives, violations])
    return bool(np.isclose(planes[:-1], planes[-1], rtol=1e-9, atol=1e-12).all(axis=1).any())
