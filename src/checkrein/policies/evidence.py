"""The one place where "what has no evidence counts at its worst" is said.

An action outside the support is not followed: it counts as an end, at the worst value that the costs allow.
"""

from typing import NamedTuple

import numpy as np

from checkrein.base.arrays import Array, BoolArray, FloatArray
from checkrein.policies.mixture import probabilities_of
from checkrein.protocols import ActionMask, Policy


class Supported(NamedTuple):
    """What a policy does in some states, split by evidence."""

    probabilities: FloatArray  # (n, A) of actions with evidence; the others' are zero
    unsupported_mass: FloatArray  # (n,) what is left of the probability of all actions

    @classmethod
    def of(cls, policy: Policy, states: Array, mask: ActionMask, n_actions: int) -> "Supported":
        """Ask a policy and a mask for the same states."""
        return cls.split(probabilities_of(policy, states, n_actions), mask.allowed(states))

    @classmethod
    def split(cls, probabilities: FloatArray, allowed: BoolArray) -> "Supported":
        """Split probabilities (n, A)."""
        supported = probabilities * allowed
        return cls(supported, np.maximum(probabilities.sum(axis=1) - supported.sum(axis=1), 0.0))

    def at_worst(self, worst: FloatArray) -> FloatArray:
        """(n, k) what the unsupported part costs, at worst values (k,)."""
        return np.asarray(self.unsupported_mass[:, None] * worst)

    def value(self, q: FloatArray, worst: FloatArray) -> FloatArray:
        """(n, k) the value of states: Q (n, A, k) of what has evidence, the worst (k,) of the rest."""
        return np.einsum("na,nak->nk", self.probabilities, q) + self.at_worst(worst)


def least(q: FloatArray, allowed: BoolArray, worst: float) -> FloatArray:
    """(n,) the minimum of Q (n, A) over actions with evidence; the worst where no action has any."""
    values = np.where(allowed, q, np.inf).min(axis=1)
    return np.where(allowed.any(axis=1), values, worst)
