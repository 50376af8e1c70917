"""What an error of epsilon in every regression does to values (Theorems 4.2, 4.3, 4.4), as printed.

`corrected` holds the same statements with every step of their proofs checked; docs/differences.md says what differs.
"""

import math
from dataclasses import dataclass

from checkrein.base.arrays import require_counts, require_positive
from checkrein.theory.bound import Bound, require_concentration, require_discount, require_not_negative

EVALUATION = "the error of FQE's value"
LEARNING = "the excess of FQI's policy over the best one"
OBJECTIVE = "the excess of the objective over the constrained optimum"
CONSTRAINT = "the excess over each limit"


@dataclass(frozen=True)
class EndToEnd:
    """What Theorem 4.4 says of the mixture that the game returns."""

    objective: Bound  # C(policy) - C(best policy within the limits)
    constraint: Bound  # G(policy) - limit


def fqe_error(
    *,
    epsilon: float,
    iterations: int,
    discount: float,
    value_bound: float,
    concentration: float,
    inherent_error: float = 0.0,
) -> Bound:
    """Bound |C - C_hat| of FQE (Theorem 4.2; realisable, with inherent error 0: E.2).

    sqrt(g) / (1 - g)^(3/2) * (sqrt(beta) (2 d + epsilon) + 2 g^(K/2) V / sqrt(1 - g))

    epsilon: that the rows guarantee of each of the K regressions, in the norm weighted by the log
    value_bound: V, the largest |value| (not the cost of one step)
    concentration: beta of Assumption 1
    inherent_error: d, the largest distance of T^policy f from the class for f in it, in the norm weighted by the log
    """
    _require(epsilon, iterations, discount, value_bound, concentration, inherent_error)
    start = 2 * discount ** (iterations / 2) * value_bound / math.sqrt(1 - discount)
    shift = math.sqrt(concentration) * (2 * inherent_error + epsilon)
    value = math.sqrt(discount) / (1 - discount) ** 1.5 * (shift + start)
    return Bound(value, 2 * value_bound, EVALUATION)


def fqi_error(
    *,
    epsilon: float,
    iterations: int,
    discount: float,
    value_bound: float,
    concentration: float,
    inherent_error: float = 0.0,
) -> Bound:
    """Bound C(policy) - C* of FQI's greedy policy (Theorem 4.3; realisable, with inherent error 0: F.2).

    2 g / (1 - g)^3 * (sqrt(beta) (2 d + epsilon) + 2 g^(K/2) V)

    The arguments are those of `fqe_error`; d is of the optimality operator T.
    """
    _require(epsilon, iterations, discount, value_bound, concentration, inherent_error)
    start = 2 * discount ** (iterations / 2) * value_bound
    shift = math.sqrt(concentration) * (2 * inherent_error + epsilon)
    return Bound(2 * discount / (1 - discount) ** 3 * (shift + start), 2 * value_bound, LEARNING)


def end_to_end(
    *,
    epsilon: float,
    iterations: int,
    discount: float,
    objective_bound: float,
    constraint_bound: float,
    bound: float,
    tolerance: float,
    concentration: float,
) -> EndToEnd:
    """Bound what the game's policy costs and by how much it exceeds each limit (Theorem 4.4), with V = C + B G.

    objective: omega + (4 + B) g / (1 - g)^3 * (sqrt(beta) epsilon + 2 g^(K/2) V)
    constraint: 2 (V + omega) / B + the error of FQE at V. As V >= B G this is never below 2 G: always vacuous.

    objective_bound, constraint_bound: C and G, the largest |value| of the objective and of a constraint
    bound: B, of the multipliers' sum; tolerance: omega, the gap at which the game stopped
    It takes the class to be closed under the Bellman operators (Assumption 2).
    """
    require_not_negative(tolerance=tolerance)
    joint = joint_bound(objective_bound=objective_bound, constraint_bound=constraint_bound, bound=bound)
    _require(epsilon, iterations, discount, joint, concentration, 0.0)
    shift = math.sqrt(concentration) * epsilon + 2 * discount ** (iterations / 2) * joint
    evaluation = fqe_error(
        epsilon=epsilon, iterations=iterations, discount=discount, value_bound=joint, concentration=concentration
    )
    excess = tolerance + (4 + bound) * discount / (1 - discount) ** 3 * shift
    return EndToEnd(
        Bound(excess, 2 * objective_bound, OBJECTIVE),
        Bound(2 * (joint + tolerance) / bound + evaluation.value, 2 * constraint_bound, CONSTRAINT),
    )


def joint_bound(*, objective_bound: float, constraint_bound: float, bound: float) -> float:
    """Return the largest |value| of objective + multipliers . constraints: V = C + B G."""
    require_positive(objective_bound=objective_bound, constraint_bound=constraint_bound, bound=bound)
    return objective_bound + bound * constraint_bound


def _require(
    epsilon: float, iterations: int, discount: float, value_bound: float, concentration: float, inherent_error: float
) -> None:
    require_not_negative(epsilon=epsilon, inherent_error=inherent_error)
    require_counts(iterations=iterations)
    require_discount(discount)
    require_positive(value_bound=value_bound)
    require_concentration(concentration=concentration)
