"""Regularized policies: the best answer to a Q-function where the policy itself has a price."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from checkrein.base.arrays import Array, BoolArray, FloatArray
from checkrein.base.brief import brief
from checkrein.base.storage import storable
from checkrein.policies.penalties import Penalty
from checkrein.policies.tabular import TabularPolicy
from checkrein.problem.admissible import AdmissibleActions
from checkrein.protocols import ActionMask, PenaltyCost, Permits, Policy, QFunction

Terms = tuple[tuple[float, PenaltyCost], ...]  # costs of the policy and their prices (below 0: the more the better)


@storable
@dataclass(frozen=True, eq=False, repr=False)
class RegularizedPolicy:
    """The probabilities that minimise Q plus the priced costs of the policy, over the actions that `support` allows.

    Where it allows none, all actions count: with a KL divergence, its reference goes on there.
    """

    q: QFunction  # one cost
    terms: Terms
    support: ActionMask | None = None

    def __repr__(self) -> str:
        return brief(self)

    def probabilities(self, states: Array) -> FloatArray:
        """(n, A)"""  # noqa: D400, D415
        values = self.q(states)[..., 0]
        allowed = np.ones(values.shape, dtype=bool) if self.support is None else self.support.allowed(states)
        choices = choices_of([cost for _, cost in self.terms], states, allowed)
        return penalty_of(self.terms, states).answer(values, choices)


@storable
@dataclass(frozen=True, eq=False)
class PermittedMask:
    """The actions of another mask that keep every cost of the policy finite."""

    support: ActionMask
    costs: tuple[Permits, ...]

    def allowed(self, states: Array) -> BoolArray:
        """(n, A)"""  # noqa: D400, D415
        allowed = self.support.allowed(states)
        return allowed & _permitted(self.costs, states, allowed.shape)


@storable
@dataclass(frozen=True, eq=False)
class ChoiceMask:
    """The actions of another mask; where it has none, those that keep every cost of the policy finite."""

    support: ActionMask
    costs: tuple[Permits, ...]

    def allowed(self, states: Array) -> BoolArray:
        """(n, A)"""  # noqa: D400, D415
        return choices_of(self.costs, states, self.support.allowed(states))


def written_out(policy: Policy, n_states: int | None) -> Policy:
    """Return a soft policy of finite states as its table, which is smaller and can go anywhere; others as they are."""
    if n_states is None or not isinstance(policy, RegularizedPolicy):
        return policy
    table = policy.probabilities(np.arange(n_states))
    return TabularPolicy(table / table.sum(axis=1, keepdims=True))


def penalty_of(terms: Terms, states: Array) -> Penalty:
    """Return the sum of priced penalties in n states: one temperature, one prior."""
    total = Penalty()
    for price, cost in terms:
        total = total.plus(cost.penalty(states).times(price))
    return total


def choices_of(costs: Sequence[Permits], states: Array, allowed: BoolArray) -> BoolArray:
    """(n, A) what may be chosen: the allowed actions, and where there is none every action that is permitted.

    Where what is admissible is not permitted, it is chosen all the same, and nothing else.
    """
    if allowed.any(axis=1).all():
        return allowed
    every = _permitted(costs, states, allowed.shape)
    lawful = _permitted([one for one in costs if isinstance(one, AdmissibleActions)], states, allowed.shape)
    every = np.where(every.any(axis=1, keepdims=True), every, lawful)
    return np.where(allowed.any(axis=1, keepdims=True), allowed, every)


def _permitted(costs: Sequence[Permits], states: Array, shape: tuple[int, ...]) -> BoolArray:
    """(n, A) the actions that keep every one of the costs finite."""
    every = np.ones(shape, dtype=bool)
    for cost in costs:
        every &= cost.permitted(states)
    return every
