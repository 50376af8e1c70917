"""Evidence that a policy was not trained on."""

from checkrein.certification.bounds import METHODS, BootstrapFQE, EpisodeScoreBound
from checkrein.certification.certificate import Certificate
from checkrein.certification.certify import certify

__all__ = ["METHODS", "BootstrapFQE", "Certificate", "EpisodeScoreBound", "certify"]
