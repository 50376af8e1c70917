"""How fast the game converges (Theorem 4.1), and what a small gap says of the constraints (Lemma C.2)."""

import math

from checkrein.base.arrays import require_counts, require_positive
from checkrein.theory.bound import Bound, require_not_negative


def exponentiated_gradient_gap(
    *, rounds: int, bound: float, n_constraints: int, constraint_range: float, rate: float | None = None
) -> float:
    """Bound the empirical duality gap after T rounds (Theorem 4.1): 2 B log(m + 1) / (rate T) + 2 rate B G^2.

    constraint_range: the largest |constraint value - limit| of any policy (a bound on values, not on one step).
    rate: by default the best one for these rounds, sqrt(log(m + 1) / T) / G: 4 B G sqrt(log(m + 1) / T) in all.
    """
    require_counts(n_constraints=n_constraints)
    require_positive(rounds=rounds, bound=bound, constraint_range=constraint_range)
    logarithm = math.log(n_constraints + 1)
    if rate is None:
        rate = math.sqrt(logarithm / rounds) / constraint_range
    require_positive(rate=rate)
    return 2 * bound * (logarithm / (rate * rounds) + rate * constraint_range**2)


def exponentiated_gradient_rate(*, gap: float, bound: float, constraint_range: float) -> float:
    """Return the rate with which that bound falls to `gap` (Theorem 4.1): gap / (4 G^2 B)."""
    require_positive(gap=gap, bound=bound, constraint_range=constraint_range)
    return gap / (4 * constraint_range**2 * bound)


def exponentiated_gradient_rounds(*, gap: float, bound: float, n_constraints: int, constraint_range: float) -> int:
    """Return the rounds after which that bound is at most `gap` (Theorem 4.1): 16 B^2 G^2 log(m + 1) / gap^2."""
    require_positive(gap=gap, bound=bound, constraint_range=constraint_range)
    require_counts(n_constraints=n_constraints)
    return math.ceil(16 * bound**2 * constraint_range**2 * math.log(n_constraints + 1) / gap**2)


def online_gradient_descent_gap(
    *, rounds: int, bound: float, n_constraints: int, constraint_range: float, rate: float | None = None
) -> float:
    """Bound the empirical duality gap after T rounds by twice Zinkevich's regret: B^2 / (rate T) + rate m G^2.

    rate: by default the best one for these rounds, B / (G sqrt(m T)): 2 B G sqrt(m / T) in all.
    """
    require_counts(n_constraints=n_constraints)
    require_positive(rounds=rounds, bound=bound, constraint_range=constraint_range)
    if rate is None:
        rate = bound / (constraint_range * math.sqrt(n_constraints * rounds))
    require_positive(rate=rate)
    return bound**2 / (rate * rounds) + rate * n_constraints * constraint_range**2


def online_gradient_descent_rate(*, gap: float, n_constraints: int, constraint_range: float) -> float:
    """Return the rate with which that bound falls to `gap`: gap / (2 m G^2)."""
    require_positive(gap=gap, n_constraints=n_constraints, constraint_range=constraint_range)
    return gap / (2 * n_constraints * constraint_range**2)


def online_gradient_descent_rounds(*, gap: float, bound: float, n_constraints: int, constraint_range: float) -> int:
    """Return the rounds after which that bound is at most `gap`: 4 B^2 m G^2 / gap^2."""
    require_positive(gap=gap, bound=bound, constraint_range=constraint_range)
    require_counts(n_constraints=n_constraints)
    return math.ceil(4 * bound**2 * n_constraints * constraint_range**2 / gap**2)


def empirical_constraint_excess(
    *, tolerance: float, bound: float, objective_bound: float, constraint_range: float
) -> Bound:
    """Bound how far the estimates exceed a limit once the gap is at most `tolerance` (Lemma C.2): 2 (C + omega) / B.

    objective_bound: the largest |objective value|; constraint_range: the largest |constraint value - limit|.
    It takes the limits to be within reach, and the best responses to be exact by the same estimates.
    """
    require_not_negative(tolerance=tolerance)
    require_positive(bound=bound, objective_bound=objective_bound, constraint_range=constraint_range)
    return Bound(2 * (objective_bound + tolerance) / bound, constraint_range, "the estimated excess over a limit")
