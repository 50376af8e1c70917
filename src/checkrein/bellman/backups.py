"""Backups: how a best response looks one step ahead, and the policy that does what it assumes."""

from dataclasses import dataclass, field

import numpy as np

from checkrein.base.arrays import Array, BoolArray, FloatArray, frozen
from checkrein.base.recent import Recent
from checkrein.policies import CountMask, GreedyPolicy, PermittedMask, RegularizedPolicy, least, probabilities_of
from checkrein.policies.penalties import Penalty
from checkrein.policies.regularized import Terms, penalty_of
from checkrein.problem import Problem
from checkrein.protocols import ActionMask, Backup, Policy, QFunction


def backup_for(problem: Problem, multipliers: FloatArray, support: ActionMask) -> Backup:
    """Return the backup of objective + multipliers . constraints: hard, or soft where the policy has a price.

    support: the actions that may be chosen, but for those at which a cost of the policy is infinite
    """
    costs, worst = problem.penalty_costs, problem.scalarised_worst(multipliers)
    if costs:
        support = problem.once(("permitted", support), lambda: _permitted(problem, support))
    terms = problem.priced_penalties(multipliers)
    if len(terms) < len(costs) and problem.once(("unseen", support), lambda: _forbids_unseen(problem, support)):
        priced = [cost for _, cost in terms]  # a cost without a price still forbids, also where nothing is supported
        terms += tuple((0.0, cost) for cost in costs if all(cost is not one for one in priced))
    return Regularized(support, worst, terms) if terms else Greedy(support, worst)


def _forbids_unseen(problem: Problem, support: ActionMask) -> bool:
    """Say whether a cost of the policy is infinite for some action where no action is supported."""
    log = problem.dataset
    every = [log.next_states, log.initial_states] if log.n_states is None else [np.arange(log.n_states)]
    unseen = [states[~support.allowed(states).any(axis=1)] for states in every]
    return not all(cost.permitted(states).all() for cost in problem.penalty_costs for states in unseen)


def _permitted(problem: Problem, support: ActionMask) -> ActionMask:
    narrowed = PermittedMask(support, problem.penalty_costs)
    n_states = problem.dataset.n_states
    return narrowed if n_states is None else CountMask(frozen(narrowed.allowed(np.arange(n_states))))


@dataclass(frozen=True, eq=False)
class Greedy:
    """min_a Q(x, a) over the actions that the log supports; a state without any is worth its worst.

    (The target of FQI, Algorithm 4 of the paper, and the improvement step of LSPI, Algorithm 6.)
    """

    support: ActionMask
    worst: float
    asked: Recent[BoolArray] = field(default_factory=Recent, repr=False)

    def value(self, q: QFunction, states: Array) -> FloatArray:
        """(n,)"""  # noqa: D400, D415
        return least(q(states)[..., 0], self.asked(states, self.support.allowed), self.worst)

    def policy(self, q: QFunction) -> GreedyPolicy:
        """Return the greedy policy of a Q-function."""
        return GreedyPolicy(q, self.support)

    def besides(self, policy: Policy, states: Array) -> FloatArray:
        """(n,) the worst where no action has evidence."""
        del policy
        return np.where(self.asked(states, self.support.allowed).any(axis=1), 0.0, self.worst)


@dataclass(frozen=True, eq=False)
class Regularized:
    """min over probabilities p of sum_a p(a) Q(x, a) plus the priced costs of the policy.

    With entropy and KL divergence this is the softmin of soft Q-iteration: -T log sum_a prior(a) exp(-Q(x, a) / T),
    with one temperature T and one prior for all of them (Fox et al. 2016; Section 2.3 of the paper).
    """

    support: ActionMask
    worst: float
    terms: Terms
    asked: Recent[tuple[BoolArray, Penalty]] = field(default_factory=Recent, repr=False)

    def value(self, q: QFunction, states: Array) -> FloatArray:
        """(n,)"""  # noqa: D400, D415
        allowed, penalty = self._known(states)
        values, seen = q(states)[..., 0], np.asarray(allowed.any(axis=1))
        answer = penalty.answer(values, allowed | ~seen[:, None])
        return np.where(seen, (answer * values).sum(axis=1) + penalty.paid(answer), self.worst)

    def policy(self, q: QFunction) -> RegularizedPolicy:
        """Return who answers best."""
        return RegularizedPolicy(q, self.terms, self.support)

    def besides(self, policy: Policy, states: Array) -> FloatArray:
        """(n,) the priced costs of a policy, and the worst where no action has evidence."""
        allowed, penalty = self._known(states)
        probabilities = probabilities_of(policy, states, allowed.shape[1])
        return np.where(allowed.any(axis=1), penalty.paid(probabilities), self.worst)

    def _known(self, states: Array) -> tuple[BoolArray, Penalty]:
        return self.asked(states, lambda these: (self.support.allowed(these), penalty_of(self.terms, these)))
