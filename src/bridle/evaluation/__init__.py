"""Off-policy evaluation: what a policy would cost, from the log of another."""

from bridle.evaluation.fqe import FQE
from bridle.evaluation.lstdq import LSTDQ

__all__ = ["FQE", "LSTDQ"]
