"""Off-policy evaluation: what a policy would cost, from the log of another."""

from checkrein.evaluation.doubly_robust import DoublyRobust
from checkrein.evaluation.estimate import Estimate, Estimator
from checkrein.evaluation.estimates import Direct, Estimates, evaluate
from checkrein.evaluation.fqe import FQE
from checkrein.evaluation.importance import ImportanceSampling, Naive
from checkrein.evaluation.learned_model import LearnedModel
from checkrein.evaluation.lstdq import LSTDQ
from checkrein.evaluation.magic import Magic
from checkrein.evaluation.model_based import TabularModel
from checkrein.evaluation.propensities import Propensities, propensities_of, soften
from checkrein.problem import Episodes

__all__ = [
    "FQE",
    "LSTDQ",
    "Direct",
    "DoublyRobust",
    "Episodes",
    "Estimate",
    "Estimates",
    "Estimator",
    "ImportanceSampling",
    "LearnedModel",
    "Magic",
    "Naive",
    "Propensities",
    "TabularModel",
    "evaluate",
    "propensities_of",
    "soften",
]
