"""Every function class passes these."""

import numpy as np
import pytest

from bridle import Linear, OneHot, Polynomial, Tabular
from problems import random_log

N_ACTIONS = 3
FINITE = random_log(0)
RNG = np.random.default_rng(0)
CLASSES = {
    "tabular": (Tabular(), FINITE.states),
    "linear, one-hot": (Linear(OneHot(FINITE.n_states)), FINITE.states),
    "linear, polynomial": (Linear(Polynomial(2)), RNG.normal(size=(len(FINITE), 2))),
    "linear, ridge": (Linear(Polynomial(1), ridge=3.0), RNG.normal(size=(len(FINITE), 4))),
}


@pytest.fixture(params=CLASSES.values(), ids=CLASSES.keys())
def case(request):
    functions, states = request.param
    return functions, states, FINITE.actions


def fit(functions, states, actions, targets, weights=None):
    weights = np.ones(len(states)) if weights is None else weights
    design = functions.design(states, actions, weights, n_actions=N_ACTIONS)
    return design.fit(targets, rng=np.random.default_rng(0))


def test_values_have_a_column_per_action_and_cost(case):
    functions, states, actions = case
    q = fit(functions, states, actions, RNG.normal(size=(len(states), 2)))
    assert q(states[:7]).shape == (7, N_ACTIONS, 2)


def test_one_vector_fit_equals_separate_ones(case):
    functions, states, actions = case
    targets = RNG.normal(size=(len(states), 4)) * [1.0, 100.0, 1e-3, 1.0]
    together = fit(functions, states, actions, targets)(states)
    for column in range(4):
        alone = fit(functions, states, actions, targets[:, [column]])(states)
        assert together[..., column] == pytest.approx(alone[..., 0], rel=1e-9, abs=1e-12)


def test_weights_equal_repeated_rows(case):
    functions, states, actions = case
    targets, counts = RNG.normal(size=(len(states), 2)), RNG.integers(0, 4, len(states))
    repeated = np.repeat(np.arange(len(states)), counts)
    weighted = fit(functions, states, actions, targets, counts.astype(float))(states)
    rows = fit(functions, states[repeated], actions[repeated], targets[repeated])(states)
    assert weighted == pytest.approx(rows, rel=1e-8, abs=1e-10)


def test_the_order_of_rows_does_not_matter(case):
    functions, states, actions = case
    targets, order = RNG.normal(size=(len(states), 2)), RNG.permutation(len(states))
    shuffled = fit(functions, states[order], actions[order], targets[order])(states)
    assert shuffled == pytest.approx(fit(functions, states, actions, targets)(states), rel=1e-8, abs=1e-10)


def test_a_rare_cost_keeps_its_mean(case):
    """10 with probability 0.1: a robust loss would call it an outlier."""
    functions, states, actions = case
    targets = 10.0 * (RNG.random((len(states), 1)) < 0.1)
    q = fit(functions, states, actions, targets)(states)[np.arange(len(states)), actions, 0]
    assert q.mean() == pytest.approx(targets.mean(), rel=0.1)


def test_an_action_never_logged_is_no_obstacle(case):
    functions, states, actions = case
    kept = actions != 1
    q = fit(functions, states[kept], actions[kept], RNG.normal(size=(kept.sum(), 1)))
    assert np.isfinite(q(states)).all()


def test_the_fixed_point_is_where_the_fitted_iteration_stays(case):
    functions, states, actions = case
    next_states = states[RNG.permutation(len(states))]
    costs, discount = RNG.random((len(states), 2)), 0.5
    likely = np.full((len(states), N_ACTIONS), 1 / N_ACTIONS)
    design = functions.design(states, actions, np.ones(len(states)), n_actions=N_ACTIONS)
    dynamics = design.dynamics(next_states, np.full(len(states), discount))
    q = dynamics.evaluate(costs, lambda x: likely[: len(x)], require_contraction=True)
    targets = costs + discount * np.einsum("na,nak->nk", likely, q(next_states))
    again = design.fit(targets, rng=np.random.default_rng(0))
    assert again(states) == pytest.approx(q(states), rel=1e-8, abs=1e-9)
