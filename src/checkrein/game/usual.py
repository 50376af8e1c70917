"""The parts that `solve` takes where none are given: closed forms, and prices by cutting planes."""

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.best_response import FQI
from checkrein.evaluation import FQE
from checkrein.functions import default_functions
from checkrein.online import CuttingPlane
from checkrein.problem import Problem

GENEROUS = 100.0  # times the price at which a constraint's usual variation outweighs the objective's
CLOSE = 1e-3  # a gap, in units of how much the objective varies between episodes
ROUNDS = 100


def usual_best_response(problem: Problem) -> FQI:
    """Return FQI with tables in finite states, else with a linear class."""
    return FQI(default_functions(problem.dataset))


def usual_evaluator(problem: Problem) -> FQE:
    """Return FQE of the same class."""
    return FQE(default_functions(problem.dataset))


def usual_learner(problem: Problem, bound: float = GENEROUS) -> CuttingPlane:
    """Return cutting planes whose bound lies far above any price that the costs' variation suggests.

    bound: times the price at which a constraint's usual variation outweighs the objective's
    """
    spread = _spread(problem)
    return CuttingPlane(bound, scales=tuple((spread[1:] / spread[0]).tolist()))


def usual_tolerance(problem: Problem) -> float:
    """Return a gap that hardly matters beside how much the objective varies."""
    return CLOSE * float(_spread(problem)[0])


def _spread(problem: Problem) -> FloatArray:
    """(1 + m,) how much the sums of episodes vary; where these are not known, the costs of rows."""
    if problem.dataset.episodes is not None:
        return problem.spread
    found = problem.row_costs.std(axis=0)
    return np.where(found > 0, found, 1.0)
