import numpy as np
import pytest
from sklearn.linear_model import Ridge

from checkrein import Linear, OneHot, Polynomial
from checkrein.base.errors import ArgumentError, DivergenceError

RNG = np.random.default_rng(0)


def test_ridge_equals_scikit_learn_per_action():
    states, actions = RNG.normal(size=(200, 3)), RNG.integers(0, 2, 200)
    targets, weights = RNG.normal(size=(200, 2)), RNG.random(200)
    features = Polynomial(1)(states)
    design = Linear(Polynomial(1), ridge=0.7).design(states, actions, weights, n_actions=2)
    weights_ = design.fit(targets, rng=RNG).weights
    for action in (0, 1):
        rows = actions == action
        model = Ridge(alpha=0.7, fit_intercept=False).fit(features[rows], targets[rows], sample_weight=weights[rows])
        assert pytest.approx(model.coef_, rel=1e-8) == weights_[action].T


def test_polynomials_list_every_monomial_once():
    assert Polynomial(2)(np.array([[2.0, 3.0]])).tolist() == [[1, 2, 3, 4, 6, 9]]
    assert OneHot(3)(np.array([2, 0])).tolist() == [[0, 0, 1], [1, 0, 0]]


def test_directions_that_the_log_does_not_show_get_no_weight():
    states = np.column_stack([np.arange(5.0), np.zeros(5)])
    design = Linear(Polynomial(1)).design(states, np.zeros(5, dtype=int), np.ones(5), n_actions=1)
    assert design.fit(np.arange(5.0)[:, None], rng=RNG).weights[0, :, 0] == pytest.approx([0, 1, 0], abs=1e-9)


def test_a_recursion_that_diverges_is_named_with_its_radius():
    """Tsitsiklis and Van Roy's two states: the next feature is twice this one, so the values double each time."""
    design = Linear(lambda x: x).design(np.array([[1.0]]), np.array([0]), np.ones(1), n_actions=1)
    dynamics = design.dynamics(np.array([[2.0]]), np.array([0.95]))
    always = lambda states: np.ones((len(states), 1))  # noqa: E731
    with pytest.raises(DivergenceError, match=r"spectral radius 1.9, at least 1.*ridge"):
        dynamics.evaluate(np.ones((1, 1)), always, require_contraction=True)
    solved = dynamics.evaluate(np.ones((1, 1)), always, require_contraction=False)
    assert solved(np.array([[1.0]]))[0, 0, 0] == pytest.approx(1 / (1 - 1.9))


def test_equations_without_a_solution_are_named():
    design = Linear(lambda x: x).design(np.array([[1.0]]), np.array([0]), np.ones(1), n_actions=1)
    dynamics = design.dynamics(np.array([[1.0]]), np.array([1.0]))
    with pytest.raises(DivergenceError, match="no unique solution"):
        dynamics.evaluate(np.ones((1, 1)), lambda states: np.ones((len(states), 1)), require_contraction=False)


@pytest.mark.parametrize(
    ("functions", "states", "message"),
    [
        (Linear(lambda x: x[:, 0]), np.zeros((4, 2)), r"the feature map made \(4,\) of 4 states"),
        (Linear(lambda x: x * np.nan), np.zeros((4, 2)), "not finite"),
        (Linear(Polynomial(1)), np.arange(4), r"Polynomial needs feature vectors.*OneHot"),
    ],
)
def test_feature_maps_that_do_not_fit_are_named(functions, states, message):
    with pytest.raises(ArgumentError, match=message):
        functions.design(states, np.zeros(4, dtype=int), np.ones(4), n_actions=1)


def test_parameters_outside_their_range_are_refused():
    with pytest.raises(ArgumentError, match="ridge is -1"):
        Linear(ridge=-1)
    with pytest.raises(ArgumentError, match="degree is -1"):
        Polynomial(-1)
