"""Costs as a stranger would write them."""

from dataclasses import dataclass

import numpy as np

from checkrein import storable


@storable
@dataclass(frozen=True)
class Squared:
    """A cost of rows that is not linear in a logged one: computed before equal rows are merged."""

    column: str

    def per_row(self, transitions):
        return transitions.cost(self.column) ** 2

    def per_step(self, transitions, policy):
        return self.per_row(transitions)


@storable
@dataclass(frozen=True)
class Surprisal:
    """A cost of the policy itself: its expectation is the policy's entropy."""

    def per_step(self, transitions, policy):
        taken = policy.probabilities(transitions.states)[np.arange(len(transitions)), transitions.actions]
        return -np.log(taken)
