"""Every function class, its design and its Q-function pass these: a new one is a line in classes.py."""

import numpy as np
import pytest

from checkrein.base import storage
from contracts.classes import ACTIONS, ALIKE, CASES, N_ACTIONS, SCALES, design_of, distance, fit, logged


def check_what_the_class_can_represent_is_learned(case):
    """For every action of every state, and every cost by its own measure: not by the mean, nor by another column."""
    truth = case.truth(case.states)
    weights = np.random.default_rng(1).uniform(0.5, 2, len(ACTIONS))
    found = fit(case, logged(truth), weights=weights)(case.states)
    constant = np.average(logged(truth), axis=0, weights=weights)
    left = ((truth - found) ** 2).mean(axis=(0, 1)) / ((truth - constant) ** 2).mean(axis=(0, 1))
    assert (left <= case.unexplained).all()


def check_weights_pull(case):
    """Each row is there twice, at f + g and f - g, nine times as heavy at the former: the answer is f + 0.8 g.

    Off by at most a tenth of what a fit that ignores the weights leaves.
    """
    truth = case.truth(case.states)
    gap = truth[:, ::-1]  # what the class can represent as well
    twice = np.tile(np.arange(len(ACTIONS)), 2)
    targets = np.concatenate([logged(truth + gap), logged(truth - gap)])
    each = np.random.default_rng(2).uniform(0.5, 2, len(ACTIONS))
    found = fit(case, targets, twice, weights=np.concatenate([9 * each, each]))(case.states)
    left = (logged(found - truth - 0.8 * gap) ** 2).mean(axis=0) / (logged(0.8 * gap) ** 2).mean(axis=0)
    assert (left <= max(case.unexplained, 1e-8)).all()


def check_weights_equal_repeated_rows(case):
    rng, targets = np.random.default_rng(1), logged(case.truth(case.states))
    counts = rng.integers(0, 4, len(ACTIONS))
    repeated = np.repeat(np.arange(len(ACTIONS)), counts)
    weighted = fit(case, targets, weights=counts.astype(float))(case.states)
    assert distance(weighted, fit(case, targets[repeated], repeated)(case.states), targets) <= case.weights


def check_rows_without_weight_are_as_if_absent(case):
    """Also the last one; and every other row counts, the last of those that stay too."""
    rng = np.random.default_rng(1)
    targets, kept = rng.normal(size=(len(ACTIONS), 2)), rng.random(len(ACTIONS)) < 0.7
    kept[-1] = False
    weighted = fit(case, np.where(kept[:, None], targets, 1e6), weights=kept.astype(float))(case.states)
    assert distance(weighted, fit(case, targets[kept], kept)(case.states), targets) <= case.absent


def check_one_vector_fit_equals_separate_ones(case):
    targets = logged(case.truth(case.states))
    together = fit(case, targets)(case.states)
    for column in range(len(SCALES)):
        alone = fit(case, targets[:, [column]])(case.states)
        assert distance(together[..., [column]], alone, targets[:, [column]]) <= case.columns


def check_the_order_of_rows_does_not_matter(case):
    targets, order = logged(case.truth(case.states)), np.random.default_rng(1).permutation(len(ACTIONS))
    shuffled = fit(case, targets[order], order)(case.states)
    assert distance(shuffled, fit(case, targets)(case.states), targets) <= case.order


def check_a_rare_cost_keeps_its_mean(case):
    """10 with probability 0.1: a robust loss would call it an outlier."""
    targets = 10.0 * (np.random.default_rng(1).random((len(ACTIONS), 1)) < 0.1)
    assert logged(fit(case, targets)(case.states)).mean() == pytest.approx(targets.mean(), rel=0.1)


def check_a_fit_from_a_start_is_as_good(case):
    """The start is of other targets: where one begins must not be where one stays."""
    truth = case.truth(case.states)
    begun = fit(case, logged(-truth))
    found = fit(case, logged(truth), seed=1, start=begun)(case.states)
    left = ((truth - found) ** 2).mean(axis=(0, 1)) / (truth**2).mean(axis=(0, 1))
    assert (left <= max(case.unexplained, 1e-8)).all()


def check_values_stand_alone(q, case):
    """A column per action and cost; a state's values do not hang on its company, nor change the states."""
    before = case.states.copy()
    values = q(case.states)
    for n in (0, 1, 7):
        assert q(case.states[:n]).shape == (n, N_ACTIONS, values.shape[2])
    assert q(case.states[3:5]) == pytest.approx(values[3:5], rel=1e-4, abs=1e-6)
    assert q(case.states[::-1]) == pytest.approx(values[::-1], rel=1e-4, abs=1e-6)
    assert np.isfinite(values).all()
    assert np.array_equal(before, case.states)


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def case(request):
    return request.param


@pytest.fixture(params=[pytest.param(CASES[n], id=n, marks=[pytest.mark.slow] * (n in ALIKE)) for n in CASES])
def usual(request):
    """Every class, but in quick runs only one of those that are made alike."""
    return request.param


def test_what_the_class_can_represent_is_learned(case):
    check_what_the_class_can_represent_is_learned(case)


def test_weights_pull(case):
    check_weights_pull(case)


def test_weights_equal_repeated_rows(usual):
    check_weights_equal_repeated_rows(usual)


def test_rows_without_weight_are_as_if_absent(usual):
    check_rows_without_weight_are_as_if_absent(usual)


def test_one_vector_fit_equals_separate_ones(usual):
    check_one_vector_fit_equals_separate_ones(usual)


def test_the_order_of_rows_does_not_matter(usual):
    check_the_order_of_rows_does_not_matter(usual)


def test_a_rare_cost_keeps_its_mean(usual):
    check_a_rare_cost_keeps_its_mean(usual)


def test_a_fit_from_a_start_is_as_good(usual):
    check_a_fit_from_a_start_is_as_good(usual)


def test_an_action_never_logged_is_no_obstacle(usual):
    kept = ACTIONS != 1
    q = fit(usual, np.random.default_rng(1).normal(size=(kept.sum(), 1)), kept)
    assert np.isfinite(q(usual.states)).all()


def test_values_hang_on_the_generator_alone(usual, tmp_path):
    """And stand alone, and are the same when they were saved."""
    targets = np.random.default_rng(1).normal(size=(len(ACTIONS), 2))
    q = fit(usual, targets)
    values = q(usual.states)
    assert np.array_equal(values, fit(usual, targets)(usual.states))
    assert np.array_equal(values, fit(usual, targets, seed=1)(usual.states)) != usual.random
    check_values_stand_alone(q, usual)
    if usual.stored:
        storage.save(q, tmp_path / "q.npz")
        assert np.array_equal(storage.load(tmp_path / "q.npz")(usual.states), values)


def test_a_design_is_used_again_and_again(usual):
    """The second fit of a design owes nothing to the first, which had other targets."""
    truth, design = usual.truth(usual.states), design_of(usual)
    design.fit(logged(-truth), rng=np.random.default_rng(1))
    again = design.fit(logged(truth), rng=np.random.default_rng(0))(usual.states)
    assert np.array_equal(again, fit(usual, logged(truth))(usual.states))
