"""One-step values over features, against tables, against the truth, and where the state is not enough."""

from dataclasses import replace

import numpy as np
import pytest

from checkrein import FQE, Support, Tabular, TabularPolicy
from checkrein.evaluation import feature_one_step
from checkrein.evaluation.feature_one_step import FeatureNuisances, FeatureRows, expected, probabilities_at
from checkrein.evaluation.feature_scores import EVERYTHING, behavior_scores, score
from checkrein.evaluation.one_step import TabularNuisances
from checkrein.functions import OneHot, Polynomial
from checkrein.policies import TiltedPolicy
from checkrein.problem import Episodes
from numeric_worlds import behavior, logged, true_values
from problems import problem_of, random_log, random_policy


def column(problem):
    """The same log, its finite states written as a column of numbers."""
    log = problem.dataset
    states, following, starts = (
        np.asarray(s, float)[:, None] for s in (log.states, log.next_states, log.initial_states)
    )
    return replace(
        problem, dataset=replace(log, states=states, next_states=following, initial_states=starts, n_states=None)
    )


class Hot:
    """One feature for each finite state."""

    def __call__(self, states):
        return OneHot(6)(states[:, 0].astype(int))


class AsColumn:
    """A tabular policy, asked with a column of numbers."""

    def __init__(self, policy):
        self.policy = policy

    def probabilities(self, states):
        return self.policy.probabilities(states[:, 0].astype(int))


@pytest.fixture
def no_ridge(monkeypatch):
    monkeypatch.setattr(feature_one_step, "SHARED", 1e-9)
    monkeypatch.setattr(feature_one_step, "OWN", 1e-9)
    monkeypatch.setattr(feature_one_step, "LEFT", 1e-12)


@pytest.mark.usefixtures("no_ridge")
def test_with_one_feature_for_each_state_values_and_densities_are_those_of_tables():
    log = random_log(3, episodes=300)
    finite = problem_of(replace(log, propensities=np.full(len(log), 1 / 3)))
    policy = random_policy(3, log)
    nuisances = FeatureNuisances(column(finite), Hot())
    followed = nuisances.follow(AsColumn(policy))
    rows = nuisances.rows
    chances = probabilities_at(followed.policy, rows, nuisances.features)
    starts = expected(rows.features, chances, followed.weights)[rows.starts].mean(axis=0)
    values = FQE(Tabular())(finite, policy, rng=np.random.default_rng(0))
    assert starts == pytest.approx([values.objective, *values.constraints], rel=1e-4)
    tables = TabularNuisances.of(finite, Support(1)).score(finite, policy)
    weights = rows.own @ followed.density * nuisances.ratios(rows, chances) * rows.known
    assert rows.log.sums(weights).mean() == pytest.approx(tables.visits.sum(), rel=0.05)


def test_a_next_state_that_is_the_next_rows_state_is_mapped_once():
    mapped = []

    class Counting(Hot):
        def __call__(self, states):
            mapped.append(len(states))
            return super().__call__(states)

    problem = column(problem_of(random_log(4)))
    log = Episodes.of(problem)
    rows = FeatureRows.of(problem, Counting())
    assert sum(mapped) == len(log.rows) + len(log)
    assert (rows.features[rows.following] == Hot()(log.next_states)).all()


def test_behavior_is_worth_what_was_logged_where_nothing_was_cut_off():
    problem = logged(0, 300)
    nuisances = FeatureNuisances(problem, Polynomial(2))
    scores = behavior_scores(nuisances, nuisances.rows)
    assert scores == pytest.approx(problem.dataset.returns(1.0), abs=1e-9)


def test_values_stay_within_what_costs_and_horizon_allow():
    problem = logged(0, 60)
    nuisances = FeatureNuisances(problem, Polynomial(3))
    policy = TiltedPolicy(Polynomial(3), nuisances.behavior.weights, 5 * np.ones((10, 2)) * [1, -1], np.inf)
    low, high = nuisances.value_range(policy)
    assert low == pytest.approx(0)
    assert high == pytest.approx(3 * problem.dataset.costs.max(axis=0))
    found = score(nuisances, nuisances.rows, policy, lag=0)
    assert np.isfinite(found.scores).all()


def test_a_value_is_the_mean_of_the_very_q_that_is_subtracted_also_where_q_is_held_inside():
    rng = np.random.default_rng(0)
    features, weights = rng.normal(size=(50, 3)), rng.normal(size=(4, 3, 2))
    policy = rng.dirichlet(np.ones(4), size=50)
    within = (np.array([0.0, -0.1]), np.array([0.5, 0.2]))
    each = [expected(features, np.eye(4)[np.full(50, action)], weights, within) for action in range(4)]
    mean = sum(policy[:, [action]] * each[action] for action in range(4))
    assert expected(features, policy, weights, within) == pytest.approx(mean)
    assert (mean >= within[0] - 1e-9).all()
    assert (mean <= within[1] + 1e-9).all()


def more_for_the_ill(problem, more=0.0):
    """A policy near behavior that treats the ill more often; more: everybody, too."""
    nuisances = FeatureNuisances(problem, Polynomial(2))
    tilt = np.zeros_like(nuisances.behavior.weights)
    tilt[0], tilt[1] = [-more, more], [-0.8, 0.8]
    return TiltedPolicy(nuisances.features, nuisances.behavior.weights, tilt, np.inf)


@pytest.mark.parametrize(("lag", "second_order"), [(0, False), (0, True), (2, False), (EVERYTHING, False)])
def test_other_episodes_say_what_a_policy_is_worth(lag, second_order):
    problem = logged(0, 3000)
    policy = more_for_the_ill(problem)
    judging = logged(1, 3000)
    nuisances = FeatureNuisances(problem, Polynomial(2))
    rows = FeatureRows.of(judging, nuisances.features)
    scores = score(nuisances, rows, policy, lag=lag, second_order=second_order).scores
    errors = scores.std(axis=0) / np.sqrt(len(scores))
    assert np.abs(scores.mean(axis=0) - true_values(policy)) / errors == pytest.approx(0, abs=3.5)


def test_where_the_state_is_not_enough_weights_that_remember_everything_are_right_and_others_are_not():
    class Constant:
        def __call__(self, states):
            return np.ones((len(states), 1))

    far = []
    for seed in range(5):
        problem = logged(seed, 4000, hidden=0.8, propensities=True)
        policy = more_for_the_ill(problem, more=1.0)
        nuisances = FeatureNuisances(problem, Constant())
        truth = true_values(policy, hidden=0.8)[0]
        for lag in (0, EVERYTHING):
            scores = score(nuisances, nuisances.rows, policy, lag=lag).scores[:, 0]
            far.append((scores.mean() - truth) / (scores.std() / np.sqrt(len(scores))))
    forgetful, thorough = np.array(far).reshape(-1, 2).T
    assert np.abs(thorough).max() < 3.5
    assert np.abs(forgetful).mean() > 4


def test_logged_propensities_are_what_ratios_are_of():
    problem = logged(0, 200, propensities=True)
    nuisances = FeatureNuisances(problem, Polynomial(1))
    log = nuisances.rows.log
    chances = probabilities_at(nuisances.behavior, nuisances.rows, nuisances.features)
    taken = behavior(log.states)[np.arange(len(log.actions)), log.actions]
    expected_ratios = chances[np.arange(len(log.actions)), log.actions] / taken
    assert nuisances.ratios(nuisances.rows, chances) == pytest.approx(expected_ratios)


def test_a_policy_over_the_same_features_is_valued_like_one_over_states():
    problem = logged(0, 200)
    nuisances = FeatureNuisances(problem, Polynomial(2))
    policy = TiltedPolicy(nuisances.features, nuisances.behavior.weights, 0.1 * nuisances.behavior.weights, 9.0)
    stranger = replace(policy, features=Polynomial(2))
    mine, theirs = (score(nuisances, nuisances.rows, one, lag=2).scores for one in (policy, stranger))
    assert mine == pytest.approx(theirs)


def test_tables_are_policies_too():
    finite = problem_of(random_log(3, episodes=100))
    nuisances = FeatureNuisances(column(finite), Hot())
    uniform = AsColumn(TabularPolicy.uniform(6, 3))
    scores = score(nuisances, nuisances.rows, uniform, lag=0, second_order=True).scores
    assert scores.shape == (100, 3)
