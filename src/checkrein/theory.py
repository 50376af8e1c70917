"""The paper's bounds as calculators: every assumption is an argument."""

import math

from checkrein.base.arrays import require_positive


def exponentiated_gradient_gap(
    *, rounds: int, bound: float, rate: float, n_constraints: int, constraint_range: float
) -> float:
    """Bound the empirical duality gap after T rounds (Theorem 4.1): 2 B log(m + 1) / (rate T) + 2 rate B G^2.

    constraint_range: the largest |constraint value - limit| of any policy (a bound on values, not on one step).
    """
    require_positive(rounds=rounds, bound=bound, rate=rate, constraint_range=constraint_range)
    return 2 * bound * (math.log(n_constraints + 1) / (rate * rounds) + rate * constraint_range**2)


def exponentiated_gradient_rate(*, gap: float, bound: float, constraint_range: float) -> float:
    """Return the rate with which that bound falls to `gap` (Theorem 4.1): gap / (4 G^2 B)."""
    require_positive(gap=gap, bound=bound, constraint_range=constraint_range)
    return gap / (4 * constraint_range**2 * bound)


def exponentiated_gradient_rounds(*, gap: float, bound: float, n_constraints: int, constraint_range: float) -> int:
    """Return the rounds after which that bound is at most `gap` (Theorem 4.1): 16 B^2 G^2 log(m + 1) / gap^2."""
    require_positive(gap=gap, bound=bound, constraint_range=constraint_range)
    return math.ceil(16 * bound**2 * constraint_range**2 * math.log(n_constraints + 1) / gap**2)


def online_gradient_descent_gap(
    *, rounds: int, bound: float, rate: float, n_constraints: int, constraint_range: float
) -> float:
    """Bound the empirical duality gap after T rounds by twice Zinkevich's regret: B^2 / (rate T) + rate m G^2."""
    require_positive(rounds=rounds, bound=bound, rate=rate, constraint_range=constraint_range)
    return bound**2 / (rate * rounds) + rate * n_constraints * constraint_range**2


def online_gradient_descent_rate(*, gap: float, n_constraints: int, constraint_range: float) -> float:
    """Return the rate with which that bound falls to `gap`: gap / (2 m G^2)."""
    require_positive(gap=gap, n_constraints=n_constraints, constraint_range=constraint_range)
    return gap / (2 * n_constraints * constraint_range**2)
