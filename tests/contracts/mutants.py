"""Who does one thing wrong: of every contract some."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from checkrein import MixturePolicy, TabularPolicy
from checkrein.bellman.backups import Greedy, Regularized
from checkrein.policies import RegularizedPolicy
from checkrein.problem import Values
from contracts import test_cost as costs
from contracts.classes import CASES
from contracts.worlds import OTHER
from problems import rows_of


class Wrapped:
    """Something of the package, but for what a mutant does wrong."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)


class OfAnotherPolicy(costs.Surprisal):
    def per_step(self, transitions, policy):
        del policy
        return super().per_step(transitions, OTHER)


@dataclass(frozen=True)
class Merged:
    """Squares the mean of equal rows."""

    column: str

    def per_step(self, transitions, policy):
        return transitions.cost(self.column) ** 2


class Colder(Regularized):
    """Answers at half the price that it values by."""

    def policy(self, q):
        return RegularizedPolicy(q, tuple((price / 2, cost) for price, cost in self.terms), self.support)


class Hard(Regularized):
    """Values the greedy action, whatever the price."""

    def value(self, q, states):
        greedy = Greedy(self.support, self.worst)
        return greedy.value(q, states) + self.besides(greedy.policy(q), states)


class IgnoresWeights(Wrapped):
    def design(self, states, actions, weights, *, n_actions):
        return self.inner.design(states, actions, np.ones_like(weights), n_actions=n_actions)


class DropsTheLastRow(Wrapped):
    def design(self, states, actions, weights, *, n_actions):
        return DesignWithoutLast(self.inner.design(states[:-1], actions[:-1], weights[:-1], n_actions=n_actions))


class DesignWithoutLast(Wrapped):
    def fit(self, targets, *, rng, start=None):
        return self.inner.fit(targets[:-1], rng=rng, start=start)


class Refits(Wrapped):
    """A class whose fits are changed afterwards."""

    def __init__(self, inner, change):
        super().__init__(inner)
        self.change = change

    def design(self, *args, **kwargs):
        return ChangedDesign(self.inner.design(*args, **kwargs), self.change)


class ChangedDesign(Refits):
    def fit(self, targets, *, rng, start=None):
        q = self.inner.fit(targets, rng=rng, start=start)
        return lambda states: self.change(q(states))

    def dynamics(self, next_states, continuation):
        return self.inner.dynamics(next_states, self.change(continuation))


def of_class(name, mutant):
    """A case of a function class and its mutant."""
    return CASES[name], CASES[name]._replace(functions=mutant(CASES[name].functions))


@dataclass(frozen=True)
class AsksOther:
    """A best response, evaluator, estimator or bound that looks at another problem than it was given."""

    inner: Any
    change: Any

    def __call__(self, problem, *args, **kwargs):
        return self.inner(self.change(problem), *args, **kwargs)

    def __getattr__(self, name):
        return getattr(self.inner, name)


def with_log(change):
    return lambda problem: replace(problem, dataset=change(problem.dataset))


def without_discount(problem):
    return replace(problem, discount=min(1.0, problem.discount + 0.09))


def ends_where_it_was_cut_off(log):
    last = np.append(log.episodes[1:] != log.episodes[:-1], True)
    return rows_of(log, terminals=log.terminals | last)


def of_even_starts(log):
    return rows_of(log, initial_weights=np.ones(len(log.initial_states)))


def of_even_rows(log):
    return rows_of(log, weights=np.ones(len(log)))


def swaps_costs(evaluator):
    def swapped(problem, policy, *, rng):
        found = evaluator(problem, policy, rng=rng)
        return Values(found.objective, found.constraints[::-1])

    return swapped


def swaps_prices(response):
    return lambda problem, prices, **kwargs: response(problem, prices[::-1], **kwargs)


@dataclass(frozen=True)
class ByFirstStep:
    """Takes a mixture for the policy of its first step's probabilities."""

    inner: Any

    def __call__(self, problem, policy, *args, **kwargs):
        if isinstance(policy, MixturePolicy):
            policy = TabularPolicy(policy.probabilities(np.arange(problem.dataset.n_states)))
        return self.inner(problem, policy, *args, **kwargs)

    def __getattr__(self, name):
        return getattr(self.inner, name)


class IgnoresItsState(Wrapped):
    def multipliers(self, state):
        return self.inner.multipliers(self.inner.init(3))


class FlipsTheSign(Wrapped):
    def update(self, state, played):
        return self.inner.update(state, played._replace(violation=-played.violation))


class LeavesTheBall(Wrapped):
    def multipliers(self, state):
        return 1.5 * self.inner.multipliers(state) + 0.1


class WrongSide(Wrapped):
    def __call__(self, *args, **kwargs):
        found = self.inner(*args, **kwargs)
        return found._replace(lower=found.upper, upper=found.lower)


class IgnoresAlpha(Wrapped):
    def __call__(self, problem, policy, *, alpha, rng):
        return self.inner(problem, policy, alpha=0.1, rng=rng)


class ForgetsTheOtherConstraint(Wrapped):
    def __call__(self, problem, policy, *, alpha, rng):
        return self.inner(problem, policy, alpha=problem.n_constraints * alpha, rng=rng)
