"""Off-policy evaluation: what a policy would cost, from the log of another."""

from bridle.evaluation.doubly_robust import DoublyRobust
from bridle.evaluation.episodes import Episodes
from bridle.evaluation.estimate import Estimate, Estimator
from bridle.evaluation.estimates import Direct, Estimates, evaluate
from bridle.evaluation.fqe import FQE
from bridle.evaluation.importance import ImportanceSampling, Naive
from bridle.evaluation.learned_model import LearnedModel
from bridle.evaluation.lstdq import LSTDQ
from bridle.evaluation.magic import Magic
from bridle.evaluation.model_based import TabularModel
from bridle.evaluation.propensities import Propensities, propensities_of, soften

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
