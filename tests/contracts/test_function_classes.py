"""Every function class passes these: a new one is a line in CASES."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge

from checkrein import Ensemble, FrozenFeatures, Linear, Neural, OneHot, Polynomial, Regressor, Tabular, Trees
from checkrein.base import storage
from problems import random_log

N_ACTIONS = 3
FINITE = random_log(0, episodes=100)
ACTIONS = FINITE.actions
VECTORS = np.random.default_rng(0).normal(size=(len(FINITE), 3))
EXACT = 1e-8
SCALES = np.array([1.0, 100.0, 1e-3])


class Case(NamedTuple):
    """A class, states for it, and how far it may be off: root mean squares, relative to the targets' deviation."""

    functions: Any
    states: Any
    closed_form: bool = False  # has dynamics
    random: bool = False  # another generator gives other values
    stored: bool = True  # can be saved
    columns: float = EXACT  # all costs at once against each alone
    weights: float = EXACT  # weights against repeated rows
    order: float = EXACT  # of the rows
    worse: float = EXACT  # how much worse a fit from a start may be
    absent: float = EXACT  # rows without weight against none


FOREST = RandomForestRegressor(10, min_samples_leaf=5)
SMALL = Neural((32, 32), epochs=3, patience=2, batch=128)
BY_CHANCE = {"random": True, "weights": 0.6, "order": 0.6, "absent": 1e-3}  # rows are drawn in an order of their own
NETWORK = {**BY_CHANCE, "columns": 0.45, "worse": 0.1}
CASES = {
    "tabular": Case(Tabular(), FINITE.states, closed_form=True),
    "linear, one-hot": Case(Linear(OneHot(FINITE.n_states)), FINITE.states, closed_form=True),
    "linear, polynomial": Case(Linear(Polynomial(2)), VECTORS[:, :2], closed_form=True),
    "linear, ridge": Case(Linear(Polynomial(1), ridge=3.0), VECTORS, closed_form=True),
    "trees": Case(Trees(20), VECTORS, random=True, columns=0.4, worse=0.1),
    "trees, few candidates": Case(Trees(20, candidates=2), VECTORS, random=True, columns=0.21, worse=0.1),
    "trees, frozen": Case(Trees(20, freeze_after=1), VECTORS, random=True, columns=0.4),
    "trees, finite states": Case(Trees(20), FINITE.states),  # of few states each gets its own leaf
    "regressor, ridge": Case(Regressor(Ridge()), VECTORS),
    "regressor, forest": Case(
        Regressor(FOREST), VECTORS, random=True, stored=False, columns=0.5, weights=0.6, order=0.6, worse=0.1
    ),
    "neural": Case(SMALL, VECTORS, **NETWORK),
    "neural, finite states": Case(SMALL, FINITE.states, **NETWORK),
    "neural, images": Case(
        Neural((16,), convolutions=((4, 3, 2), (8, 2, 1)), epochs=2, patience=2, batch=128),
        np.asarray(60 * VECTORS[:, :, None, None].repeat(8, 2).repeat(8, 3) + 120).clip(0, 255).astype(np.uint8),
        **NETWORK,
    ),
    "neural, noisy updates": Case(Neural((32, 32), steps=120, batch=128), VECTORS, **NETWORK),
    "ensemble of networks": Case(Ensemble(SMALL, 3), VECTORS, **NETWORK),
    "ensemble of trees": Case(Ensemble(Trees(5), 3), VECTORS, random=True, columns=0.5, worse=0.1),
    "frozen features, linear": Case(FrozenFeatures(Polynomial(2), Linear(Polynomial(1))), VECTORS, closed_form=True),
    "frozen features, neural": Case(FrozenFeatures(Polynomial(2), SMALL), VECTORS, **NETWORK),
}


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def case(request):
    return request.param


@pytest.fixture
def rng():
    return np.random.default_rng(1)


def design_of(case, rows=slice(None), weights=None):
    weights = np.ones(len(case.states[rows])) if weights is None else weights
    return case.functions.design(case.states[rows], ACTIONS[rows], weights, n_actions=N_ACTIONS)


def fit(case, targets, rows=slice(None), weights=None, seed=0, start=None):
    return design_of(case, rows, weights).fit(targets, rng=np.random.default_rng(seed), start=start)


def smooth(states):
    """(n, 3) costs of very different size; each hangs on another coordinate, so that a tree must split for all."""
    coordinates = states.reshape(len(states), -1).astype(float)
    each = [coordinates[:, column % coordinates.shape[1]] for column in range(len(SCALES))]
    return np.stack([np.sin(x) + 0.5 * x for x in each], axis=1) * SCALES


def at_logged(case, q):
    """(n, k) the values of the logged pairs."""
    return q(case.states)[np.arange(len(ACTIONS)), ACTIONS]


def distance(values, others, targets):
    """The worst column's root mean square difference, relative to its targets' deviation."""
    return (np.sqrt(((values - others) ** 2).reshape(-1, values.shape[-1]).mean(axis=0)) / targets.std(axis=0)).max()


def test_values_have_a_column_per_action_and_cost(case, rng):
    q = fit(case, rng.normal(size=(len(ACTIONS), 2)))
    for n in (0, 1, 7):
        assert q(case.states[:n]).shape == (n, N_ACTIONS, 2)
    assert q(case.states[3:5]) == pytest.approx(q(case.states)[3:5], rel=1e-4, abs=1e-7)


def test_one_vector_fit_equals_separate_ones(case):
    targets = smooth(case.states)
    together = fit(case, targets)(case.states)
    for column in range(len(SCALES)):
        alone = fit(case, targets[:, [column]])(case.states)
        assert distance(together[..., [column]], alone, targets[:, [column]]) <= case.columns


def test_weights_equal_repeated_rows(case, rng):
    targets, counts = rng.normal(size=(len(ACTIONS), 2)), rng.integers(0, 4, len(ACTIONS))
    repeated = np.repeat(np.arange(len(ACTIONS)), counts)
    weighted = at_logged(case, fit(case, targets, weights=counts.astype(float)))
    rows = at_logged(case, fit(case, targets[repeated], repeated))
    assert distance(weighted[counts > 0], rows[counts > 0], targets) <= case.weights


def test_rows_without_weight_are_as_if_absent(case, rng):
    targets, kept = rng.normal(size=(len(ACTIONS), 2)), rng.random(len(ACTIONS)) < 0.7
    weighted = fit(case, np.where(kept[:, None], targets, 1e6), weights=kept.astype(float))(case.states)
    assert distance(weighted, fit(case, targets[kept], kept)(case.states), targets) <= case.absent


def test_the_order_of_rows_does_not_matter(case, rng):
    targets, order = rng.normal(size=(len(ACTIONS), 2)), rng.permutation(len(ACTIONS))
    shuffled = fit(case, targets[order], order)(case.states)
    assert distance(shuffled, fit(case, targets)(case.states), targets) <= case.order


def test_a_rare_cost_keeps_its_mean(case, rng):
    """10 with probability 0.1: a robust loss would call it an outlier."""
    targets = 10.0 * (rng.random((len(ACTIONS), 1)) < 0.1)
    assert at_logged(case, fit(case, targets)).mean() == pytest.approx(targets.mean(), rel=0.1)


def test_an_action_never_logged_is_no_obstacle(case, rng):
    kept = ACTIONS != 1
    q = fit(case, rng.normal(size=(kept.sum(), 1)), kept)
    assert np.isfinite(q(case.states)).all()


def test_values_hang_on_the_generator_alone(case, rng):
    targets = rng.normal(size=(len(ACTIONS), 2))
    values = fit(case, targets)(case.states)
    assert np.array_equal(values, fit(case, targets)(case.states))
    assert np.array_equal(values, fit(case, targets, seed=1)(case.states)) != case.random


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.stored])
def test_what_was_saved_gives_the_same_values(name, rng, tmp_path):
    case = CASES[name]
    q = fit(case, rng.normal(size=(len(ACTIONS), 2)))
    storage.save(q, tmp_path / "q.npz")
    assert np.array_equal(storage.load(tmp_path / "q.npz")(case.states), q(case.states))


def test_a_fit_from_a_start_is_as_good(case):
    targets = smooth(case.states)
    first = fit(case, targets)
    again = fit(case, targets, seed=1, start=first)
    errors = [distance(at_logged(case, q), targets, targets) for q in (first, again)]
    assert errors[1] <= errors[0] + case.worse


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.closed_form])
def test_the_fixed_point_is_where_the_fitted_iteration_stays(name, rng):
    case = CASES[name]
    next_states = case.states[rng.permutation(len(ACTIONS))]
    costs, discount = rng.random((len(ACTIONS), 2)), 0.5
    probabilities = np.full((len(ACTIONS), N_ACTIONS), 1 / N_ACTIONS)
    design = design_of(case)
    dynamics = design.dynamics(next_states, np.full(len(ACTIONS), discount))
    q = dynamics.evaluate(costs, lambda x: probabilities[: len(x)], require_contraction=True)
    targets = costs + discount * np.einsum("na,nak->nk", probabilities, q(next_states))
    again = design.fit(targets, rng=rng)
    assert again(case.states) == pytest.approx(q(case.states), rel=1e-8, abs=1e-9)
