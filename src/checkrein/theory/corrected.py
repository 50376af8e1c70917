"""The paper's generalization theorems with every step checked: the same assumptions, other constants.

beta(m) is the largest ratio of the chance to be in a pair after m steps, under any policies, to the log's share of it.
||e|| <= 2 d + epsilon is the error of each regression in the norm weighted by the log, which `sample_size` ensures.
What stays assumed: independent rows, and regressions that start from functions independent of them.
"""

import math

from checkrein.base.arrays import require_counts, require_positive
from checkrein.theory.bound import Bound, require_concentration, require_discount, require_not_negative
from checkrein.theory.generalization import CONSTRAINT, EVALUATION, LEARNING, OBJECTIVE, EndToEnd, joint_bound
from checkrein.theory.samples import Constants

CONSTANTS = Constants(covering=320 * math.e, power=2)
"""For `sample_size`: Haussler's covering number has an e that the paper lost; and costs may be divided by V first.

The lemma behind it (Gyorfi et al. 2002, Theorem 11.4) asks for a bound of at least 1. After division by V it is 1, and
the printed V^4 / epsilon^2, which depends on the unit of costs, becomes (V / epsilon)^2, which does not.
"""


def regressions(*, iterations: int, rounds: int, n_constraints: int) -> int:
    """Return how many regressions must succeed in a game: K for FQI and K (m + 1) for FQE, in each of T rounds."""
    require_counts(iterations=iterations, rounds=rounds, n_constraints=n_constraints)
    return iterations * rounds * (n_constraints + 2)


def fqe_error(
    *,
    epsilon: float,
    iterations: int,
    discount: float,
    value_bound: float,
    concentration: float,
    inherent_error: float = 0.0,
) -> Bound:
    """Bound |C - C_hat| of FQE: sqrt(beta1) (2 d + epsilon) / (1 - g) + 2 g^K V.

    concentration: beta1 = (1 - g) sum_{m >= 0} g^m beta(m), of first order (`Concentration.first_order`)

    Proof: |C - C_hat| <= sum_m g^m E|e| after m steps + g^K 2 V, where E|e| <= sqrt(beta(m)) ||e||, and the mean of the
    roots with weights (1 - g) g^m is at most the root of the mean.
    """
    _require(epsilon, iterations, discount, inherent_error)
    require_positive(value_bound=value_bound)
    require_concentration(concentration=concentration)
    shift = math.sqrt(concentration) * (2 * inherent_error + epsilon) / (1 - discount)
    return Bound(shift + 2 * discount**iterations * value_bound, 2 * value_bound, EVALUATION)


def fqi_error(
    *,
    epsilon: float,
    iterations: int,
    discount: float,
    value_bound: float,
    concentration: float,
    inherent_error: float = 0.0,
) -> Bound:
    """Bound C(policy) - C* of FQI's greedy policy: 2 sqrt(beta2) (2 d + epsilon) / (1 - g)^2 + 4 g^K V / (1 - g).

    concentration: beta2 = (1 - g)^2 sum_{m >= 0} (m + 1) g^m beta(m), of second order (`Concentration.second_order`)

    Proof: by the performance difference lemma C(policy) - C* <= sum_t g^t E[|Q* - Q_K|(x_t, policy) + the same at the
    best action]; each |Q* - Q_K| is at most sum_j g^j E|e| after j more steps of some policies + g^K 2 V; t + j = m
    occurs m + 1 times; and again the mean of roots is at most the root of the mean.
    """
    _require(epsilon, iterations, discount, inherent_error)
    require_positive(value_bound=value_bound)
    require_concentration(concentration=concentration)
    shift = 2 * math.sqrt(concentration) * (2 * inherent_error + epsilon) / (1 - discount) ** 2
    return Bound(shift + 4 * discount**iterations * value_bound / (1 - discount), 2 * value_bound, LEARNING)


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
    evaluation_concentration: float,
) -> EndToEnd:
    """Bound what the game's policy costs and by how much it exceeds each limit, E and I being FQE's and FQI's errors.

    objective: omega + I + (2 + B) E
    constraint: (2 C + omega + I + (1 + B) E) / B + E

    concentration: of second order, for FQI; evaluation_concentration: of first order, for FQE
    For `sample_size`, its regressions are those of `regressions`: all rounds at once, not one of them.

    Proof: the gap is L_max - L_min <= omega, and L_min is at most the estimated Lagrangian of some round's policy at
        its own multipliers, which is at most C(best) + I + (1 + B) E: the best policy keeps the limits. L_max is
        C_hat + B * the largest estimated excess (or 0), and C_hat >= -C.
    """
    require_not_negative(tolerance=tolerance)
    joint = joint_bound(objective_bound=objective_bound, constraint_bound=constraint_bound, bound=bound)
    evaluation = fqe_error(
        epsilon=epsilon,
        iterations=iterations,
        discount=discount,
        value_bound=max(objective_bound, constraint_bound),
        concentration=evaluation_concentration,
    ).value
    learning = fqi_error(
        epsilon=epsilon, iterations=iterations, discount=discount, value_bound=joint, concentration=concentration
    ).value
    lagrangian = tolerance + learning + (1 + bound) * evaluation
    return EndToEnd(
        Bound(lagrangian + evaluation, 2 * objective_bound, OBJECTIVE),
        Bound((2 * objective_bound + lagrangian) / bound + evaluation, 2 * constraint_bound, CONSTRAINT),
    )


def empirical_constraint_excess(
    *, tolerance: float, bound: float, objective_bound: float, constraint_range: float
) -> Bound:
    """Bound how far the estimates exceed a limit: (2 C + omega) / B, one omega less than Lemma C.2.

    Proof: C_hat + B * excess <= L_min + omega, and L_min is at most the estimated objective of any policy that keeps
        the limits.
    """
    require_not_negative(tolerance=tolerance)
    require_positive(bound=bound, objective_bound=objective_bound, constraint_range=constraint_range)
    return Bound((2 * objective_bound + tolerance) / bound, constraint_range, "the estimated excess over a limit")


def _require(epsilon: float, iterations: int, discount: float, inherent_error: float) -> None:
    require_not_negative(epsilon=epsilon, inherent_error=inherent_error)
    require_counts(iterations=iterations)
    require_discount(discount)
