"""Fitted iterations with known errors in every regression, on finite MDPs: what the theorems say of them must hold."""

import itertools

import numpy as np
import pytest

from checkrein import AtMost, TabularPolicy
from checkrein.theory import concentration, corrected, fqe_error, fqi_error
from checkrein.theory.concentration import Concentration
from problems import random_mdp

ITERATIONS = 12


def world(seed, discount):
    """A random MDP, its bound on values, and a log distribution with every pair in it."""
    mdp = random_mdp(seed, n_states=4, n_actions=2, successors=2, ending=0.05)
    log = np.random.default_rng(seed).dirichlet(np.full(8, 0.5)).reshape(4, 2) * 0.9 + 0.1 / 8
    cost = mdp.costs["c"]
    found = concentration(transitions=mdp.transitions, initial=mdp.initial, log_distribution=log, discount=discount)
    return mdp, cost, np.abs(cost).max() / (1 - discount), log, found


def regression_error(rng, log, epsilon):
    """An error of the given size in the norm weighted by the log: random, or all of it in one pair."""
    error = rng.normal(size=log.shape)
    if rng.random() < 0.5:
        error *= np.eye(log.size)[rng.integers(log.size)].reshape(log.shape)
    return epsilon * error / np.sqrt((log * error**2).sum())


@pytest.mark.parametrize("discount", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("seed", range(10))
def test_the_corrected_error_of_fqe_holds_for_every_policy(seed, discount):
    mdp, cost, largest, log, found = world(seed, discount)
    rng = np.random.default_rng(seed)
    for epsilon in (0.0, 0.01, 0.3):
        chosen = rng.integers(2, size=4)
        moves, states = mdp.transitions[np.arange(4), chosen], np.arange(4)
        true = np.linalg.solve(np.eye(4) - discount * moves, cost[states, chosen])
        q = rng.uniform(-largest, largest, size=cost.shape)
        for _ in range(ITERATIONS):
            q = cost + discount * mdp.transitions @ q[states, chosen] + regression_error(rng, log, epsilon)
        error = abs(mdp.initial @ (q[states, chosen] - true))
        bound = corrected.fqe_error(
            epsilon=epsilon,
            iterations=ITERATIONS,
            discount=discount,
            value_bound=largest,
            concentration=found.first_order,
        )
        assert error <= bound.value * (1 + 1e-9)


@pytest.mark.parametrize("discount", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("seed", range(10))
def test_the_corrected_error_of_fqi_holds(seed, discount):
    mdp, cost, largest, log, found = world(seed, discount)
    rng = np.random.default_rng(seed)
    best = np.zeros_like(cost)
    for _ in range(2000):
        best = cost + discount * mdp.transitions @ best.min(axis=1)
    for epsilon in (0.0, 0.01, 0.3):
        q = rng.uniform(-largest, largest, size=cost.shape)
        for _ in range(ITERATIONS):
            q = cost + discount * mdp.transitions @ q.min(axis=1) + regression_error(rng, log, epsilon)
        chosen, states = q.argmin(axis=1), np.arange(4)
        true = np.linalg.solve(np.eye(4) - discount * mdp.transitions[states, chosen], cost[states, chosen])
        excess = mdp.initial @ (true - best.min(axis=1))
        bound = corrected.fqi_error(
            epsilon=epsilon,
            iterations=ITERATIONS,
            discount=discount,
            value_bound=largest,
            concentration=found.second_order,
        )
        assert excess <= bound.value * (1 + 1e-9)


def one_state(discount, n_actions):
    """One state for ever, each action logged alike: the coefficient is the number of actions."""
    return Concentration(np.full(1, float(n_actions)), float(n_actions), discount, n_actions)


@pytest.mark.parametrize(("discount", "holds"), [(0.4, False), (0.6, True)])
def test_the_printed_error_of_fqe_fails_in_one_state_below_discount_one_half(discount, holds):
    epsilon, found = 0.01, one_state(discount, 1)
    arguments = {"epsilon": epsilon, "iterations": 1000, "discount": discount, "value_bound": 1.0}
    error = epsilon / (1 - discount)  # each regression errs by epsilon, the same way
    assert (error <= fqe_error(**arguments, concentration=found.value).value) == holds
    assert error <= corrected.fqe_error(**arguments, concentration=found.first_order).value * (1 + 1e-9)


@pytest.mark.parametrize(("discount", "holds"), [(0.3, False), (0.35, True)])
def test_the_printed_excess_of_fqi_fails_in_one_state_at_a_small_discount(discount, holds):
    epsilon, found = 0.01, one_state(discount, 2)
    arguments = {"epsilon": epsilon, "iterations": 1000, "discount": discount, "value_bound": 1.0}
    excess = 2 * epsilon / (1 - discount)  # the worse of two actions looks epsilon better, the other epsilon worse
    assert (excess <= fqi_error(**arguments, concentration=found.value).value) == holds
    assert excess <= corrected.fqi_error(**arguments, concentration=found.second_order).value * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_the_corrected_end_to_end_bounds_hold_for_a_game_with_wrong_estimates_and_poor_best_responses(seed):
    """Every policy of a small MDP is known; estimates err by up to E, best responses are up to I too dear."""
    mdp = random_mdp(seed, n_states=4, n_actions=2, successors=2)
    rng, bound, discount = np.random.default_rng(seed), 3.0, mdp.discount
    policies = [TabularPolicy(np.eye(2)[list(chosen)]) for chosen in itertools.product(range(2), repeat=4)]
    values = [mdp.values(policy) for policy in policies]
    c, g = (np.array([value[name] for value in values]) for name in ("c", "g0"))
    limit = AtMost("g0", float(np.quantile(g, 0.3)))
    best = mdp.optimum(objective="c", constraints=[limit]).values["c"]
    largest = {name: np.abs(mdp.costs[name]).max() / (1 - discount) for name in ("c", "g0")}
    given = {"epsilon": 0.01, "iterations": 10**4, "discount": discount}
    evaluation = corrected.fqe_error(value_bound=1.0, concentration=2.0, **given).value
    learning = corrected.fqi_error(value_bound=1.0, concentration=2.0, **given).value
    seen = [
        np.clip(x + rng.uniform(-1, 1, size=16) * evaluation, -top, top) for x, top in ((c, largest["c"]), (g, 1e9))
    ]
    multipliers, played = rng.uniform(0, bound, size=30), []
    for multiplier in multipliers:
        lagrangian = c + multiplier * g
        played.append(rng.choice(np.flatnonzero(lagrangian <= lagrangian.min() + learning)))
    said_c, said_g = (x[played] for x in seen)
    upper = said_c.mean() + bound * max(said_g.mean() - limit.limit, 0.0)
    gap = upper - max((said_c + m * (said_g - limit.limit)).min() for m in multipliers)
    whole = corrected.end_to_end(
        **given,
        objective_bound=largest["c"],
        constraint_bound=largest["g0"],
        bound=bound,
        tolerance=gap,
        concentration=2.0,
        evaluation_concentration=2.0,
    )
    assert c[played].mean() - best <= whole.objective.value
    assert g[played].mean() - limit.limit <= whole.constraint.value
