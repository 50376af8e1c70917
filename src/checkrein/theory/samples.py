"""How many rows the theorems ask for, and what the rows at hand guarantee (Theorems 4.2-4.4, E.2, F.2, C.1).

All of them take the rows to be independent draws from the log's distribution, and the function that a regression starts
from to be independent of them. A log of episodes that is used again in every iteration is neither: see docs/theory.md.
"""

import math
from typing import NamedTuple

from checkrein.base.arrays import require_counts, require_positive
from checkrein.theory.bound import Bound, require_delta, require_discount

HALVINGS = 200  # of an interval: more than a float can tell apart


class Constants(NamedTuple):
    """What the printed statement and the corrected one do not share."""

    covering: float  # of the class: it has at most e (d + 1) (covering V^2 / epsilon^2)^d members that matter
    power: int  # of the bound V on values in front


PRINTED = Constants(covering=320.0, power=4)


def value_bound(*, step_cost: float, discount: float) -> float:
    """Return the largest |value| where no step costs more than `step_cost` in size: step_cost / (1 - discount)."""
    require_positive(step_cost=step_cost)
    require_discount(discount)
    return step_cost / (1 - discount)


def sample_size(
    *,
    epsilon: float,
    delta: float,
    regressions: int,
    value_bound: float,
    dimension: int,
    realisable: bool = True,
    constants: Constants = PRINTED,
) -> int:
    """Return the rows with which every regression errs by at most epsilon, with probability 1 - delta.

    epsilon: of one regression, in the norm weighted by the log; `fqe_error` and the others turn it into one of values
    regressions: that must all succeed: K for FQE or FQI of K iterations (Theorems E.2, F.2), K (m + 1) in all (C.1)
    value_bound: the largest |value|, not of one step (see `value_bound`); in C.1, of c + multipliers . g
        (`joint_bound`)
    dimension: the pseudo-dimension of the function class
    realisable: the class is closed under the Bellman operator. If not, the explicit constants of appendix E replace
        the O(.): half of delta for each of 14 e (d + 1) (640 V^2 / epsilon^2)^d exp(-n epsilon^2 / (48 * 214 V^4)) and
        exp(-3 n epsilon^2 / (416 V^2)).
    constants: as printed, or `corrected.CONSTANTS`
    """
    require_positive(epsilon=epsilon, value_bound=value_bound)
    require_delta(delta)
    require_counts(regressions=regressions, dimension=dimension)
    ratio = (value_bound / epsilon) ** 2
    split = 1 if realisable else 2  # the general case fails in two ways, and the first at half the epsilon^2
    failures = math.log(split * regressions / delta)
    cover = max(dimension * math.log(split * constants.covering * ratio), 0.0) + math.log(14 * math.e * (dimension + 1))
    rows = split * 24 * 214 * value_bound ** (constants.power - 2) * ratio * (failures + cover)
    return math.ceil(rows if realisable else max(rows, 416 / 3 * ratio * failures))


def smallest_epsilon(
    *,
    rows: int,
    delta: float,
    regressions: int,
    value_bound: float,
    dimension: int,
    realisable: bool = True,
    constants: Constants = PRINTED,
) -> Bound:
    """Return the least epsilon for which `sample_size` asks for no more than these rows, by bisection."""
    require_counts(rows=rows)

    def enough(epsilon: float) -> bool:
        return rows >= sample_size(
            epsilon=epsilon,
            delta=delta,
            regressions=regressions,
            value_bound=value_bound,
            dimension=dimension,
            realisable=realisable,
            constants=constants,
        )

    low = high = value_bound
    while not enough(high):
        high *= 2
    while enough(low):
        low /= 2
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if enough(middle) else (middle, high)
    return Bound(high, 2 * value_bound, "the error of each regression")
