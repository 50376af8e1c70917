"""Whether rows that the log stops at cost what like rows cost that go on.

Where the log does not say what follows a row, nothing can be fitted to it, and its own cost is left out, too. That is
right if the log stops there for reasons of its own. If it stops because of what happened, what happened is lost.
"""

from typing import NamedTuple

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.certification.given import Tables, known_of
from checkrein.problem import Episodes, Problem

TINY = 1e-12  # of a cost's size: less is rounding


class Stopping(NamedTuple):
    """What rows without a next state cost beyond like rows that go on."""

    rows: int  # that were compared
    excess: FloatArray  # (1 + m,) on average
    p: FloatArray  # (1 + m,) of each cost by itself


def stopping_of(problem: Problem) -> Stopping | None:
    """Compare them, given state and action; None where no row, or none that has its like, lacks its next state."""
    log = Episodes.of(problem)
    stops, goes_on = ~log.terminals & ~log.next_observed, ~log.terminals & log.next_observed
    known = known_of(log)
    if known is None or not stops.any() or not goes_on.any():
        return None
    costs = log.row_costs
    means, told = known.mean(goes_on, costs)
    asked = stops & told
    if not asked.any():
        return None
    errors = costs - means
    variances = known.spread(goes_on, errors) ** 2
    if isinstance(known, Tables):  # means of few rows are uncertain themselves
        variances = variances * (1 + known.total(asked) / np.maximum(known.total(goes_on), 1e-300))[:, None]
    variance, excess = variances[asked].sum(axis=0), errors[asked].sum(axis=0)
    sides = []
    for sign in (1.0, -1.0):
        largest = np.maximum(sign * errors[asked | (goes_on & told)], 0).max(axis=0)
        sides.append(_tail(sign * excess, variance, largest))
    size = np.abs(costs).max(axis=0)
    p = np.where(np.abs(excess) <= TINY * size * asked.sum(), 1.0, np.minimum(2 * np.min(sides, axis=0), 1.0))
    return Stopping(int(asked.sum()), excess / asked.sum(), p)


def _tail(total: FloatArray, variance: FloatArray, largest: FloatArray) -> FloatArray:
    """(k,) at most how likely sums of independent errors with mean zero are so large (Bennett 1962)."""
    fraction = np.divide(largest * np.maximum(total, 0), variance, out=np.zeros_like(total), where=variance > 0)
    exponent = (1 + fraction) * np.log1p(fraction) - fraction
    return np.exp(-np.divide(variance, largest**2, out=np.zeros_like(total), where=largest > 0) * exponent)
