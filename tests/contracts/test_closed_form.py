"""Every design that solves for its fixed point passes these (ExactDesign and Dynamics): a line in classes.py."""

import numpy as np
import pytest

from checkrein.base.errors import CheckreinError
from contracts.classes import ACTIONS, CASES, design_of
from contracts.worlds import MDP, OTHER, POLICY, census

CLOSED = {name: case for name, case in CASES.items() if case.closed_form}
DISCOUNT = 0.5


def setting(case):
    """Where each row leads, how much of that counts (nothing at some), what it costs, and how likely actions are."""
    rng = np.random.default_rng(1)
    continuation = np.where(np.arange(len(ACTIONS)) % 5 == 0, 0.0, DISCOUNT)
    next_states, costs = case.states[rng.permutation(len(ACTIONS))], rng.random((len(ACTIONS), 2))
    return next_states, continuation, costs, np.array([0.2, 0.3, 0.5])


def check_the_fixed_point_is_where_the_fitted_iteration_stays(case):
    next_states, continuation, costs, likely = setting(case)
    weights = np.random.default_rng(2).uniform(0.5, 2, len(ACTIONS))
    design = design_of(case, weights=weights)
    dynamics = design.dynamics(next_states, continuation)
    q = dynamics.evaluate(costs, lambda states: np.tile(likely, (len(states), 1)), require_contraction=True)
    ahead = np.einsum("a,nak->nk", likely, q(next_states))
    again = design.fit(costs + continuation[:, None] * ahead, rng=np.random.default_rng(0))
    assert again(case.states) == pytest.approx(q(case.states), rel=1e-8, abs=1e-9)
    assert np.ptp(q(case.states)) > 0.1


@pytest.mark.parametrize("case", CLOSED.values(), ids=CLOSED.keys())
def test_the_fixed_point_is_where_the_fitted_iteration_stays(case):
    check_the_fixed_point_is_where_the_fitted_iteration_stays(case)


@pytest.mark.parametrize("policy", [POLICY, OTHER], ids=["one", "another"])
@pytest.mark.parametrize("name", ["tabular", "linear, one-hot"])
def test_on_a_census_the_fixed_point_is_the_policys_own_q(name, policy):
    log = census()
    design = CASES[name].functions.design(log.states, log.actions, log.weights, n_actions=log.n_actions)
    dynamics = design.dynamics(log.next_states, np.where(log.terminals, 0.0, MDP.discount))
    q = dynamics.evaluate(np.asarray(log.costs), policy.probabilities, require_contraction=True)
    costs = np.stack(list(MDP.costs.values()), axis=2)
    exact = costs + MDP.discount * np.einsum("sat,tk->sak", MDP.transitions, MDP.state_values(policy))
    assert q(np.arange(MDP.n_states)) == pytest.approx(exact)


def test_an_iteration_that_would_run_away_is_refused_where_it_is_asked():
    """Each row leads to a state worth twice its own: the fixed point exists, the iteration never comes to it."""
    case = CASES["linear, polynomial"]
    steps = np.linspace(0.1, 1, len(ACTIONS))
    design = case.functions.design(steps[:, None], 0 * ACTIONS, np.ones(len(ACTIONS)), n_actions=1)
    dynamics = design.dynamics(3 * steps[:, None], np.full(len(ACTIONS), 0.99))
    with pytest.raises(CheckreinError):
        dynamics.evaluate(np.ones((len(ACTIONS), 1)), lambda x: np.ones((len(x), 1)), require_contraction=True)
