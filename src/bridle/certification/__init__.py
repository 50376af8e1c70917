"""Evidence that a policy was not trained on."""

from bridle.certification.certificate import Certificate
from bridle.certification.certify import certify
from bridle.certification.climb import Climb, Rung, climb
from bridle.certification.methods import METHODS, Fitted, Sampled
from bridle.certification.split import split_episodes

__all__ = ["METHODS", "Certificate", "Climb", "Fitted", "Rung", "Sampled", "certify", "climb", "split_episodes"]
