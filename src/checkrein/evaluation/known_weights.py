"""Logs of single decisions whose propensities are known: what a row weighs is then known, too, and not estimated.

Doubly robust scores with known weights are right on average whatever the tables say (Dudik, Langford & Li 2011): no
product of errors is left to correct. Rows that say nothing of a policy weigh 0.
"""

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.problem import Episodes, Problem


def known_propensities(problem: Problem) -> FloatArray | None:
    """(n,) of a log of single decisions, in the order of `Episodes`; None where any was not logged, or more follows."""
    dataset = problem.dataset
    if dataset.propensities is None or not problem.one_step or not dataset.own_starts:
        return None
    log = Episodes.of(problem)
    return np.asarray(dataset.propensities[log.rows]) if log.horizon == 1 else None
