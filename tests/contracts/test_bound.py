"""Every method that bounds constraints passes these: a new one is a line in METHODS, or here if it needs settings."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from checkrein import AtLeast, AtMost, Dataset, Problem, TabularPolicy
from checkrein.certification.bounds import METHODS, EpisodeScoreBound
from checkrein.certification.one_step import OneStepBound

EPISODES, DISCOUNT = 400, 0.9
POLICY = TabularPolicy(np.array([[0.4, 0.6], [0.7, 0.3]]))
LARGEST = 1.4  # of 0.7 / 0.5
MEANS = {"c": np.array([[0.2, 0.4], [0.5, 0.3]]), "g0": np.array([[0.3, 0.6], [0.4, 0.7]])}
MEANS["g1"] = np.array([[0.7, 0.3], [0.5, 0.2]])
TRUTH = np.array([(POLICY.table * mean).sum(axis=1).mean() for mean in MEANS.values()]) * [1, 1, -1]
WIDER_OF_TWO = ("dr-studentised", "pdis-studentised")  # which lie less than half a standard error apart
BOUNDED = ("bernstein", "betting")  # hold at any size: never narrower than the normal limit, and often far wider
CASES = {
    name: replace(
        method, replicates=400, **({"largest_weight": LARGEST} if isinstance(method, EpisodeScoreBound) else {})
    )
    for name, method in METHODS.items()
    if name != "one-step"
} | {"one-step": OneStepBound()}


def log_of(seed, episodes=EPISODES):
    """One step from one of two states; costs lie within 0.2 of their means, so that their mean is nearly normal."""
    rng = np.random.default_rng(seed)
    states, actions = np.arange(episodes) % 2, rng.integers(0, 2, episodes)
    return Dataset.from_arrays(
        states=states,
        actions=actions,
        next_states=states,
        costs={n: mean[states, actions] + rng.uniform(-0.2, 0.2, episodes) for n, mean in MEANS.items()},
        terminals=np.ones(episodes, dtype=bool),
        episodes=np.arange(episodes),
        propensities=np.full(episodes, 0.5),
        n_actions=2,
        n_states=2,
    )


def problem_of(seed, constraints=2, episodes=EPISODES):
    limits = [AtMost("g0", 0.5, range=(0, 1)), AtLeast("g1", 0.5, range=(0, 1))]
    log = log_of(seed, episodes)
    return Problem(log, objective="c", constraints=limits[:constraints], discount=DISCOUNT)


def bound(method, problem, alpha, seed=0):
    return method(problem, POLICY, alpha=alpha, rng=np.random.default_rng(seed))


def check_estimates_are_near_the_truth(method):
    """Within four standard errors, which themselves are at most what weighing alone leaves."""
    problem = problem_of(0)
    values, errors = method.estimate(problem, POLICY, rng=np.random.default_rng(0))
    assert values.shape == errors.shape == (3,)
    assert (np.abs(values - TRUTH) <= 4 * errors).all()
    assert (errors > 0).all()
    assert (errors <= 1.1 * LARGEST * np.sqrt(0.5**2 + 0.2**2) / np.sqrt(EPISODES)).all()
    found = bound(method, problem, 0.1)
    assert found.estimates == pytest.approx(values[1:])
    assert found.standard_errors == pytest.approx(errors[1:])


def check_bounds_are_as_wide_as_alpha_asks(method):
    """The normal quantile of alpha / m, give or take 20 % for replicates and skewness; finite-sample ones wider.

    (The two costs are independent, so that no joint level is far from alpha / m.)
    """
    problem = problem_of(0)
    for alpha in (0.3, 0.02):
        found = bound(method, problem, alpha)
        expected = stats.t.ppf(1 - alpha / problem.n_constraints, EPISODES - 1)
        for width in (found.upper - found.estimates, found.estimates - found.lower):
            assert (width >= 0.8 * expected * found.standard_errors).all()
            if not method.name.endswith(BOUNDED):
                apart = 0.5 * (method.name in WIDER_OF_TWO)
                assert (width <= (1.2 * expected + apart) * found.standard_errors).all()


def check_less_error_and_fewer_episodes_ask_for_more(method):
    tight, loose = (bound(method, problem_of(0), alpha) for alpha in (0.3, 0.05))
    assert (loose.upper > tight.upper).all()
    assert (loose.lower < tight.lower).all()
    few = bound(method, problem_of(0, episodes=60), 0.1)
    many = bound(method, problem_of(0, episodes=960), 0.1)
    assert (few.upper - few.estimates > many.upper - many.estimates).all()


def check_the_truth_is_inside_as_often_as_promised(method, seeds=25, alpha=0.2):
    """Either side errs for no more seeds than alpha and three standard deviations of so many."""
    below = above = 0
    for seed in range(seeds):
        found = bound(method, problem_of(seed, constraints=1, episodes=100), alpha, seed)
        below += found.upper[0] < TRUTH[1]
        above += found.lower[0] > TRUTH[1]
    allowed = seeds * alpha + 3 * np.sqrt(seeds * alpha * (1 - alpha))
    assert below <= allowed
    assert above <= allowed


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def method(request):
    return request.param


def test_estimates_are_near_the_truth(method):
    check_estimates_are_near_the_truth(method)


def test_bounds_are_as_wide_as_alpha_asks(method):
    check_bounds_are_as_wide_as_alpha_asks(method)


def test_less_error_and_fewer_episodes_ask_for_more(method):
    check_less_error_and_fewer_episodes_ask_for_more(method)


@pytest.mark.parametrize("seeds", [25, pytest.param(300, marks=pytest.mark.slow)])
def test_the_truth_is_inside_as_often_as_promised(method, seeds):
    check_the_truth_is_inside_as_often_as_promised(method, seeds)


@pytest.mark.parametrize("name", METHODS)
def test_the_guarantee_is_one_of_three(name):
    assert METHODS[name].guarantee(problem_of(0)) in ("finite-sample", "asymptotic", "heuristic")
