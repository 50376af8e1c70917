"""The one place where "what has no evidence counts at its worst" is said.

An action outside the support is not followed: it counts as an end, at the worst value that the costs allow.
"""

from typing import NamedTuple

import numpy as np

from checkrein.base.arrays import Array, BoolArray, FloatArray
from checkrein.policies.mixture import probabilities_of
from checkrein.problem import Problem
from checkrein.protocols import ActionMask, Policy


class Supported(NamedTuple):
    """What a policy does in some states, split by evidence."""

    probabilities: FloatArray  # (n, A) of actions with evidence; the others' are zero
    unsupported: FloatArray  # (n, A) the other way round

    @classmethod
    def of(cls, policy: Policy, states: Array, mask: ActionMask, n_actions: int) -> "Supported":
        """Ask a policy and a mask for the same states."""
        return cls.split(probabilities_of(policy, states, n_actions), mask.allowed(states))

    @classmethod
    def split(cls, probabilities: FloatArray, allowed: BoolArray) -> "Supported":
        """Split probabilities (n, A)."""
        return cls(probabilities * allowed, probabilities * ~allowed)

    @property
    def unsupported_mass(self) -> FloatArray:
        """(n,) how likely an action without evidence is."""
        return np.asarray(self.unsupported.sum(axis=1))

    def at_worst(self, problem: Problem, policy: Policy, states: Array) -> FloatArray:
        """(n, 1 + m) what the unsupported part costs: a step that is known, and the worst that may come of it."""
        worst = self.unsupported_mass[:, None] * problem.worst_after(policy)
        for i, steps in problem.known_steps(policy, states, where=self.unsupported_mass > 0):
            worst[:, i] += (self.unsupported * steps).sum(axis=1)
        return np.asarray(worst)

    def beside_fit(self, problem: Problem, policy: Policy, states: Array) -> FloatArray:
        """(n, 1 + m) what states cost where only sums after known steps are fitted: those steps, and `at_worst`."""
        paid = self.at_worst(problem, policy, states)
        for i, steps in problem.known_steps(policy, states):
            paid[:, i] += (self.probabilities * steps).sum(axis=1)
        return paid


def least(q: FloatArray, allowed: BoolArray, worst: float) -> FloatArray:
    """(n,) the minimum of Q (n, A) over actions with evidence; the worst where no action has any."""
    values = np.where(allowed, q, np.inf).min(axis=1)
    return np.where(allowed.any(axis=1), values, worst)
