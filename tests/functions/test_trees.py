from itertools import pairwise

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor

from checkrein import FQE, FQI, Tabular, Trees
from checkrein.base import storage
from checkrein.base.errors import ArgumentError
from checkrein.functions import TreesQ, trees
from problems import problem_of, random_log

RNG = np.random.default_rng(0)
N, DISCOUNT = 400, 0.5
STATES, ACTIONS, COSTS = RNG.normal(size=(N, 2)), RNG.integers(0, 2, N), RNG.normal(size=(N, 2))
NEXT = STATES[RNG.permutation(N)]
WEIGHTS = RNG.integers(1, 4, N).astype(float)


def fit(functions, targets, *, states=STATES, actions=ACTIONS, weights=WEIGHTS, n_actions=2, start=None):
    design = functions.design(states, actions, weights, n_actions=n_actions)
    return design.fit(targets, rng=np.random.default_rng(0), start=start)


def changes(functions, iterations=30):
    """How far each step of a fitted evaluation of the uniform policy moves the values of the next states."""
    design = functions.design(STATES, ACTIONS, WEIGHTS, n_actions=2)
    q, rng, values = None, np.random.default_rng(0), []
    for _ in range(iterations):
        targets = COSTS if q is None else COSTS + DISCOUNT * values[-1].mean(axis=1)
        q = design.fit(targets, rng=rng, start=q)
        values.append(q(NEXT))
    return np.array([np.abs(after - before).max() for before, after in pairwise(values)])


def test_a_step_is_learned_exactly():
    states = np.concatenate([np.linspace(-1, -0.1, 50), np.linspace(0.1, 1, 50)])[:, None]
    step = np.where(states > 0, 3.0, -2.0)
    actions, weights = np.zeros(100, dtype=int), np.ones(100)
    q = fit(Trees(20, min_leaf=1), step, states=states, actions=actions, weights=weights, n_actions=1)
    assert q(states)[:, 0] == pytest.approx(step, abs=1e-12)
    assert q(np.array([[-50.0], [50.0]])).ravel() == pytest.approx([-2, 3], abs=1e-12)


@pytest.mark.parametrize("chunk", [64, 2**16])
def test_our_descent_agrees_with_scikit_learn(chunk, monkeypatch):
    monkeypatch.setattr(trees, "CHUNK_ROWS", chunk)
    grown = []

    class Kept(ExtraTreesRegressor):
        def fit(self, *args, **kwargs):
            grown.append(super().fit(*args, **kwargs))
            return self

    monkeypatch.setattr("sklearn.ensemble.ExtraTreesRegressor", Kept)
    q, probes = fit(Trees(10), COSTS * [1, 100]), RNG.normal(size=(500, 2)) * 2
    for action, model in enumerate(grown):
        rows = action == ACTIONS
        centre, scale = trees.units((COSTS * [1, 100])[rows], WEIGHTS[rows])
        assert q(probes)[:, action] == pytest.approx(model.predict(probes) * scale + centre, rel=1e-9, abs=1e-9)


def test_a_state_on_a_threshold_goes_where_scikit_learn_sends_it():
    thresholds = RNG.normal(size=1000)
    single = trees._rounded_down(thresholds)
    for states in (single, np.nextafter(single, np.float32(np.inf)), np.nextafter(single, np.float32(-np.inf))):
        assert np.array_equal(states <= single, states.astype(float) <= thresholds)


def test_leaves_hold_the_weighted_means_of_their_rows():
    q = fit(Trees(5, min_leaf=10), COSTS)
    for action, roots in enumerate(q.forest.roots):
        rows = np.flatnonzero(action == ACTIONS)
        leaves = q.forest.leaves(STATES[rows].astype(np.float32), action)
        assert leaves.shape == (len(roots), len(rows))
        for reached in leaves:
            for leaf in np.unique(reached):
                inside = rows[reached == leaf]
                assert WEIGHTS[inside].sum() >= 10
                mean = np.average(COSTS[inside], axis=0, weights=WEIGHTS[inside])
                assert q.values[leaf] == pytest.approx(mean, rel=1e-12, abs=1e-12)


def test_a_huge_cost_elsewhere_does_not_blur_a_small_one():
    states, costs = np.arange(40.0)[:, None], np.where(np.arange(40) < 20, 1e-3, 1e12)[:, None]
    q = fit(Trees(5, min_leaf=1), costs, states=states, actions=np.zeros(40, int), weights=np.ones(40), n_actions=1)
    assert q(states)[:20, 0, 0] == pytest.approx(1e-3, rel=1e-12)


@pytest.mark.parametrize("weight", [0.01, 1.0, 1.9])
def test_rows_too_light_for_two_leaves_stay_in_one(weight):
    weights = np.full(10, weight)
    q = fit(Trees(3, min_leaf=10), COSTS[:10], states=STATES[:10], actions=np.zeros(10, int), weights=weights)
    assert len(q.forest.feature) == 3 + 1  # and the leaf of the action that was never logged
    assert q(STATES[:1])[0] == pytest.approx(np.array([COSTS[:10].mean(axis=0), [0, 0]]))


def test_a_leaf_of_just_the_least_weight_is_allowed():
    states = np.repeat([0.0, 1.0], 7)[:, None]
    q = fit(Trees(3, min_leaf=0.7), states, states=states, actions=np.zeros(14, int), weights=np.full(14, 0.1))
    assert q(states)[:, 0] == pytest.approx(states, abs=1e-12)


def test_rows_without_weight_leave_no_trace():
    kept = RNG.random(N) < 0.5
    spoiled = np.where(kept[:, None], COSTS, np.nan)
    q = fit(Trees(5), spoiled, states=np.where(kept[:, None], STATES, np.nan), weights=WEIGHTS * kept)
    alone = fit(Trees(5), COSTS[kept], states=STATES[kept], actions=ACTIONS[kept], weights=WEIGHTS[kept])
    assert np.array_equal(q(STATES), alone(STATES))


def test_an_action_never_logged_is_zero():
    q = fit(Trees(5), COSTS, n_actions=3)
    assert not q(STATES)[:, 2].any()
    assert q(STATES)[:, :2].all()


def test_growing_anew_wobbles_where_frozen_trees_converge_geometrically():
    wobbling, converging = changes(Trees(10)), changes(Trees(10, freeze_after=3))
    assert wobbling[-5:].min() > 0.01
    assert (converging[3:] <= DISCOUNT * converging[2:-1] + 1e-12).all()
    assert converging[-1] < 1e-6


def test_frozen_trees_are_looked_up_once_and_shared(monkeypatch):
    functions = Trees(5, freeze_after=2)
    design = functions.design(STATES, ACTIONS, WEIGHTS, n_actions=2)
    first = design.fit(COSTS, rng=RNG)
    second = design.fit(COSTS, rng=RNG, start=first)
    assert second.forest is not first.forest
    monkeypatch.setattr(trees.Forest, "leaves", lambda *_: pytest.fail("looked up again"))
    third = design.fit(COSTS, rng=RNG, start=second)
    assert third.forest is second.forest
    assert [q.fits for q in (first, second, third)] == [1, 2, 3]
    assert np.array_equal(third.values, second.values)


def test_trees_are_grown_ever_more_seldom_and_then_stay():
    design = Trees(2, freeze_after=5).design(STATES, ACTIONS, WEIGHTS, n_actions=2)
    fits = [design.fit(COSTS, rng=RNG)]
    for _ in range(8):
        fits.append(design.fit(COSTS, rng=RNG, start=fits[-1]))
    grown = [number for number, (before, q) in enumerate(pairwise(fits), 2) if q.forest is not before.forest]
    assert grown == [2, 4]


def test_a_frozen_leaf_without_rows_keeps_its_value():
    functions = Trees(5, freeze_after=1)
    start, left = fit(functions, COSTS), STATES[:, 0] < 0
    moved = fit(
        functions, COSTS[left] + 7, states=STATES[left], actions=ACTIONS[left], weights=WEIGHTS[left], start=start
    )
    assert moved.forest is start.forest
    kept = moved.values == start.values
    assert kept[:, 0].any()
    assert not kept.all()
    far = np.array([[3.0, 0.0]])
    assert np.abs(moved(far) - start(far)).max() < 7  # some trees have no leaf that reaches from left of 0 to there


@pytest.mark.parametrize(
    ("functions", "columns", "n_actions"),
    [(Trees(5), 2, 2), (Trees(5, freeze_after=1), 1, 2), (Trees(5, freeze_after=1), 2, 3)],
)
def test_trees_that_do_not_fit_the_design_are_grown_anew(functions, columns, n_actions):
    start = fit(Trees(5), COSTS)
    q = fit(functions, COSTS[:, :columns], n_actions=n_actions, start=start)
    assert q.forest is not start.forest
    assert q.fits == 2


def test_images_and_finite_states_are_vectors():
    images = RNG.integers(0, 255, (N, 3, 4), dtype=np.uint8)
    flat = fit(Trees(5), COSTS, states=images.reshape(N, 12).astype(float))
    assert np.array_equal(fit(Trees(5), COSTS, states=images)(images), flat(images.reshape(N, 12)))
    finite = RNG.integers(0, 50, N)
    column = fit(Trees(5), COSTS, states=finite[:, None].astype(float))
    assert np.array_equal(fit(Trees(5), COSTS, states=finite)(finite), column(finite[:, None]))


def test_saved_trees_come_back_and_can_be_refitted(tmp_path):
    functions = Trees(5, freeze_after=1)
    q = fit(functions, COSTS)
    storage.save(q, tmp_path / "q.npz")
    again = storage.load(tmp_path / "q.npz")
    assert isinstance(again, TreesQ)
    assert np.array_equal(again(NEXT), q(NEXT))
    assert np.array_equal(fit(functions, 2 * COSTS, start=again)(NEXT), fit(functions, 2 * COSTS, start=q)(NEXT))


def test_fitted_iteration_with_trees_finds_the_values_of_a_finite_problem():
    problem = problem_of(random_log(0, episodes=200), discount=0.7)
    tree, table = Trees(3, min_leaf=0.5), FQI(Tabular())(problem, np.ones(2), rng=RNG)
    policy = FQI(tree, iterations=40)(problem, np.ones(2), rng=RNG)
    assert np.array_equal(policy.actions(np.arange(6)), table.actions(np.arange(6)))
    values = FQE(tree, iterations=60)(problem, policy, rng=RNG)
    exact = FQE(Tabular())(problem, policy, rng=RNG)
    assert values.objective == pytest.approx(exact.objective, rel=1e-6)
    assert values.constraints == pytest.approx(exact.constraints, rel=1e-6)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_trees": 0}, "n_trees is 0"),
        ({"min_leaf": 0}, "min_leaf is 0"),
        ({"candidates": 0.5}, "candidates is 0.5"),
        ({"freeze_after": 0}, "freeze_after is 0"),
    ],
)
def test_parameters_outside_their_range_are_refused(wrong, message):
    with pytest.raises(ArgumentError, match=message):
        Trees(**wrong)


def test_states_that_do_not_fit_are_named():
    with pytest.raises(ArgumentError, match=r"the state in row 3 is not finite in single precision"):
        fit(Trees(2), COSTS, states=np.where(np.arange(N)[:, None] == 3, 1e300, STATES))
    with pytest.raises(ArgumentError, match="these states have 3 features, but the trees were grown on 2"):
        fit(Trees(2), COSTS)(np.zeros((4, 3)))
