"""The Pareto view: which of the policies found no other beats in every cost, and which some weighting prefers."""

import numpy as np
import scipy  # its parts are loaded when first used

from checkrein.base.arrays import BoolArray, FloatArray
from checkrein.online.master import EXACT

SAME = 1e-9  # of a cost's spread: values that differ by less are one


def non_dominated(costs: FloatArray) -> BoolArray:
    """(t,) which rows of costs (t, k), of which less is better, no other row matches in all and beats in one."""
    table = _in_units(costs)
    no_worse = np.all(table[None] <= table[:, None] + SAME, axis=2)
    better = np.any(table[None] < table[:, None] - SAME, axis=2)
    return ~np.any(no_worse & better, axis=1)


def coverage_set(costs: FloatArray) -> BoolArray:
    """(t,) which rows are the best for some weights of the costs: the convex coverage set.

    Weights are not negative and sum to one. What lies between others, on the segment that they span, is in it too.
    """
    table = _in_units(costs)
    found = non_dominated(costs)
    for row in np.flatnonzero(found):
        weights = scipy.optimize.linprog(
            np.append(np.zeros(table.shape[1]), 1.0),  # how much better another row is, at the least
            A_ub=np.column_stack([table[row] - table, -np.ones(len(table))]),
            b_ub=np.zeros(len(table)),
            A_eq=np.append(np.ones(table.shape[1]), 0.0)[None],
            b_eq=[1.0],
            method="highs",
            options=EXACT,
        )
        found[row] = weights.success and weights.fun <= SAME
    return found


def _in_units(costs: FloatArray) -> FloatArray:
    spread = np.ptp(costs, axis=0)
    return (costs - costs.min(axis=0)) / np.where(spread > 0, spread, 1.0)
