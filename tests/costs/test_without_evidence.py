"""A cost that is known for every action, where a policy leaves the log: never valued below the truth."""

import numpy as np
import pytest

from checkrein import FQE, AtMost, KLDivergence, Problem, StateActionCost, Tabular, TabularMDP, TabularPolicy

COST = np.array([[0.0, 0.5], [0.0, 0.5], [1.0, 1.0]])
DISCOUNT = 0.97


def departing():
    """Behavior soon ends; in state 1 it never takes the second action, after which an episode lasts long."""
    moves = np.zeros((3, 2, 3))
    moves[0, :, 1], moves[1, 1, 2], moves[2, :, 2] = 0.7, 1.0, 0.99
    mdp = TabularMDP(moves, {"c": COST}, np.array([1.0, 0.0, 0.0]), DISCOUNT)
    behavior = TabularPolicy(np.array([[0.5, 0.5], [1.0, 0.0], [0.5, 0.5]]))
    return mdp, mdp.simulate(behavior, episodes=500, max_steps=100, rng=np.random.default_rng(0))


@pytest.mark.parametrize("share", [0.01, 0.5, 1.0])
def test_episodes_longer_than_any_that_was_logged_are_allowed_for(share):
    mdp, log = departing()
    policy = TabularPolicy(np.array([[0.5, 0.5], [1 - share, share], [0.5, 0.5]]))
    problem = Problem(log, objective=None, constraints=[AtMost(StateActionCost(COST), 1.0)], discount=DISCOUNT)
    found = FQE(Tabular())(problem, policy, rng=np.random.default_rng(0)).constraints[0]
    assert found >= mdp.values(policy)["c"]


def test_a_divergence_is_as_large_as_in_a_state_that_the_log_lacks():
    mdp, log = departing()
    reference = TabularPolicy(np.array([[0.5, 0.5], [0.5, 0.5], [1e-6, 1 - 1e-6]]))
    policy = TabularPolicy(np.array([[0.5, 0.5], [0.0, 1.0], [1.0, 0.0]]))
    divergence = np.array([0.0, np.log(2), np.log(1e6)])[:, None].repeat(2, axis=1)
    truth = TabularMDP(mdp.transitions, {"kl": divergence}, mdp.initial, DISCOUNT).values(policy)["kl"]
    problem = Problem(log, objective=None, constraints=[AtMost(KLDivergence(reference), 1.0)], discount=DISCOUNT)
    assert FQE(Tabular())(problem, policy, rng=np.random.default_rng(0)).constraints[0] >= truth
