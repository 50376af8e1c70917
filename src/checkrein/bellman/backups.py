"""Backups: how a best response looks one step ahead, and the policy that does what it assumes."""

from dataclasses import dataclass, field

import numpy as np

from checkrein.base.arrays import Array, BoolArray, FloatArray, frozen
from checkrein.base.recent import Recent
from checkrein.policies import (
    ChoiceMask,
    CountMask,
    GreedyPolicy,
    PermittedMask,
    RegularizedPolicy,
    least,
    probabilities_of,
)
from checkrein.policies.penalties import Penalty
from checkrein.policies.regularized import Terms, penalty_of
from checkrein.problem import Problem
from checkrein.protocols import ActionMask, Backup, Permits, Policy, QFunction


def backup_for(problem: Problem, multipliers: FloatArray, support: ActionMask) -> Backup:
    """Return the backup of objective + multipliers . constraints: hard, or soft where the policy has a price.

    support: the actions that may be chosen, but for those at which a cost of the policy is infinite
    """
    worst, terms = problem.scalarised_worst(multipliers), problem.priced_penalties(multipliers)
    if not problem.penalty_costs and not problem.known_costs and problem.admissible is None:
        return Greedy(support, worst)
    permitted, choices = problem.once(("permitted", support), lambda: _permitted(problem, support), any_limits=True)
    charges = _charges(problem, multipliers, permitted)
    if terms:
        return Regularized(permitted, worst, terms, choices=choices, charges=charges)
    if charges is not None and isinstance(choices, CountMask):
        choices = _cheapest(choices, permitted, charges)
    return Greedy(permitted, worst, choices=choices, charges=charges)


def _permitted(problem: Problem, support: ActionMask) -> tuple[ActionMask, ActionMask]:
    """Return the supported actions that may be chosen at all, and what is chosen from where there is none.

    What may be is admissible, and keeps costs of the policy finite.

    (There whatever is done is valued at its worst, but what the policy itself costs is known, and must be finite.)
    """
    asked: tuple[Permits, ...] = problem.penalty_costs
    asked = asked if problem.admissible is None else (*asked, problem.admissible)
    permitted = PermittedMask(support, asked)
    choices = ChoiceMask(permitted, asked)
    n_states = problem.dataset.n_states
    if n_states is None:
        return permitted, choices
    every = np.arange(n_states)
    return CountMask(frozen(permitted.allowed(every))), CountMask(frozen(choices.allowed(every)))


def _charges(problem: Problem, multipliers: FloatArray, permitted: ActionMask) -> FloatArray | None:
    """(S, A) what actions are charged in finite states without evidence; None where there is none, or nothing known."""
    if problem.dataset.n_states is None or not problem.known_costs:
        return None
    every = np.arange(problem.dataset.n_states)
    unseen = every[~permitted.allowed(every).any(axis=1)]
    if not unseen.size:
        return None
    charges = np.zeros((every.size, problem.dataset.n_actions))
    charges[unseen] = problem.scalarised_without_evidence(multipliers, unseen)
    return frozen(charges)


def _cheapest(choices: CountMask, permitted: ActionMask, charges: FloatArray) -> CountMask:
    """Leave one choice in each state without evidence: the action whose known step costs least."""
    table = choices.table.copy()
    unseen = ~permitted.allowed(np.arange(len(table))).any(axis=1)
    best = np.where(table, charges, np.inf).argmin(axis=1)
    table[unseen] = np.arange(table.shape[1]) == best[unseen, None]
    return CountMask(frozen(table))


@dataclass(frozen=True, eq=False)
class Greedy:
    """min_a Q(x, a) over the actions that the log supports; a state without any is worth its worst.

    (The target of FQI, Algorithm 4 of the paper, and the improvement step of LSPI, Algorithm 6.)

    choices: what its policy chooses from, if not from the support alone
    charges: (S, A) what actions cost in states without evidence, where more is known than the worst
    """

    support: ActionMask
    worst: float
    asked: Recent[BoolArray] = field(default_factory=Recent, repr=False)
    choices: ActionMask | None = field(default=None, kw_only=True)
    charges: FloatArray | None = field(default=None, kw_only=True, repr=False)

    def value(self, q: QFunction, states: Array) -> FloatArray:
        """(n,)"""  # noqa: D400, D415
        allowed = self.asked(states, self.support.allowed)
        values = least(q(states)[..., 0], allowed, self.worst)
        if self.charges is None or self.choices is None:
            return values
        charged = least(self.charges[states], self.choices.allowed(states), self.worst)
        return np.where(allowed.any(axis=1), values, charged)

    def policy(self, q: QFunction) -> GreedyPolicy:
        """Return the greedy policy of a Q-function."""
        return GreedyPolicy(q, self.support if self.choices is None else self.choices)

    def besides(self, policy: Policy, states: Array) -> FloatArray:
        """(n,) the worst where no action has evidence, or what is known of it."""
        allowed = self.asked(states, self.support.allowed)
        charged: FloatArray | float = self.worst
        if self.charges is not None:
            charged = (probabilities_of(policy, states, allowed.shape[1]) * self.charges[states]).sum(axis=1)
        return np.where(allowed.any(axis=1), 0.0, charged)


@dataclass(frozen=True, eq=False)
class Regularized:
    """min over probabilities p of sum_a p(a) Q(x, a) plus the priced costs of the policy.

    With entropy and KL divergence this is the softmin of soft Q-iteration: -T log sum_a prior(a) exp(-Q(x, a) / T),
    with one temperature T and one prior for all of them (Fox et al. 2016; Section 2.3 of the paper).

    choices, charges: as of `Greedy`
    """

    support: ActionMask
    worst: float
    terms: Terms
    asked: Recent[tuple[BoolArray, Penalty]] = field(default_factory=Recent, repr=False)
    choices: ActionMask | None = field(default=None, kw_only=True)
    charges: FloatArray | None = field(default=None, kw_only=True, repr=False)

    def value(self, q: QFunction, states: Array) -> FloatArray:
        """(n,)"""  # noqa: D400, D415
        allowed, penalty = self._known(states)
        values, seen = self._charged(q)(states)[..., 0], np.asarray(allowed.any(axis=1))
        chosen = allowed | ~seen[:, None] if self.choices is None else self.choices.allowed(states)
        answer = penalty.answer(values, chosen)
        worth = (answer * values).sum(axis=1) + penalty.paid(answer)
        return worth if self.charges is not None else np.where(seen, worth, self.worst)

    def policy(self, q: QFunction) -> RegularizedPolicy:
        """Return who answers best."""
        return RegularizedPolicy(self._charged(q), self.terms, self.support if self.choices is None else self.choices)

    def besides(self, policy: Policy, states: Array) -> FloatArray:
        """(n,) the priced costs of a policy, and the worst where no action has evidence, or what is known of it."""
        allowed, penalty = self._known(states)
        probabilities = probabilities_of(policy, states, allowed.shape[1])
        paid = penalty.paid(probabilities)
        if self.charges is not None:
            return np.asarray(paid + (probabilities * self.charges[states]).sum(axis=1))
        return np.where(allowed.any(axis=1), paid, self.worst)

    def _charged(self, q: QFunction) -> QFunction:
        """Return Q, in states without evidence what actions are charged there."""
        if self.charges is None:
            return q
        charges, support = self.charges, self.support

        def charged(states: Array) -> FloatArray:
            seen = np.asarray(support.allowed(states).any(axis=1))
            return np.where(seen[:, None, None], q(states), charges[states][..., None])

        return charged

    def _known(self, states: Array) -> tuple[BoolArray, Penalty]:
        return self.asked(states, lambda these: (self.support.allowed(these), penalty_of(self.terms, these)))
