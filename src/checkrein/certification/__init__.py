"""Evidence that a policy was not trained on."""

from checkrein.certification.bounds import METHODS, Assumptions, BootstrapFQE, EpisodeScoreBound, Method
from checkrein.certification.certificate import Certificate
from checkrein.certification.certify import certify
from checkrein.certification.intervals import Interval

__all__ = [
    "METHODS",
    "Assumptions",
    "BootstrapFQE",
    "Certificate",
    "EpisodeScoreBound",
    "Interval",
    "Method",
    "certify",
]
