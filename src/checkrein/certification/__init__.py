"""Evidence that a policy was not trained on."""

from checkrein.certification.assumed import Assumptions
from checkrein.certification.bounds import METHODS, BootstrapFQE, EpisodeScoreBound, Method
from checkrein.certification.certificate import Certificate
from checkrein.certification.certify import certify
from checkrein.certification.intervals import Interval
from checkrein.certification.one_step import OneStepBound

__all__ = [
    "METHODS",
    "Assumptions",
    "BootstrapFQE",
    "Certificate",
    "EpisodeScoreBound",
    "Interval",
    "Method",
    "OneStepBound",
    "certify",
]
