"""One-step values over features, against tables, against the truth, and where the state is not enough."""

from dataclasses import replace

import numpy as np
import pytest

from checkrein import FQE, Dataset, Support, Tabular, TabularPolicy
from checkrein.evaluation import feature_one_step, feature_scores
from checkrein.evaluation.feature_one_step import FeatureNuisances, FeatureRows, come_before, expected, probabilities_at
from checkrein.evaluation.feature_scores import behavior_scores, score
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
    found = behavior_scores(nuisances, nuisances.rows)
    assert found.scores == pytest.approx(problem.dataset.returns(1.0), abs=1e-9)
    assert found.remembered is None


def test_values_stay_within_what_costs_and_horizon_allow():
    problem = logged(0, 60)
    nuisances = FeatureNuisances(problem, Polynomial(3))
    policy = TiltedPolicy(Polynomial(3), nuisances.behavior.weights, 5 * np.ones((10, 2)) * [1, -1], np.inf)
    low, high = nuisances.value_range(policy)
    assert low == pytest.approx(0)
    assert high == pytest.approx(3 * problem.dataset.costs.max(axis=0))
    found = score(nuisances, nuisances.rows, policy)
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


def test_other_episodes_say_what_a_policy_is_worth():
    problem = logged(0, 3000)
    policy = more_for_the_ill(problem)
    judging = logged(1, 3000)
    nuisances = FeatureNuisances(problem, Polynomial(2))
    rows = FeatureRows.of(judging, nuisances.features)
    scores = score(nuisances, rows, policy).scores
    errors = scores.std(axis=0) / np.sqrt(len(scores))
    assert np.abs(scores.mean(axis=0) - true_values(policy)) / errors == pytest.approx(0, abs=3.5)


def test_what_came_before_is_the_first_order_of_the_product_of_ratios():
    log = Episodes.of(logged(0, 50))
    ratios = np.random.default_rng(0).uniform(0.5, 2.0, len(log.rows))
    for small in (1e-3, 1e-4):
        near = 1 + small * (ratios - 1)
        before = np.append(1.0, log.products(near)[:-1])  # of the row before
        before[log.begins] = 1.0
        assert come_before(log, near) == pytest.approx(before, abs=3 * small**2)


class Constant:
    """A state that says nothing."""

    def __call__(self, states):
        return np.ones((len(states), 1))


def more_for_all(problem, more):
    nuisances = FeatureNuisances(problem, Polynomial(2))
    tilt = np.zeros_like(nuisances.behavior.weights)
    tilt[0] = [-more, more]
    return TiltedPolicy(nuisances.features, nuisances.behavior.weights, tilt, np.inf)


def in_errors(problem, policy, truth):
    """How far the estimate of the objective lies from the truth."""
    nuisances = FeatureNuisances(problem, Constant())
    scores = score(nuisances, nuisances.rows, policy).scores[:, 0]
    return (scores.mean() - truth) / (scores.std() / np.sqrt(len(scores)))


def test_where_the_state_is_not_enough_what_was_done_before_makes_values_right(monkeypatch):
    """Twelve steps, and features that see nothing: the density and two steps are far from enough."""
    thorough, forgetful = [], []
    truth = None
    for seed in range(4):
        problem = logged(seed, 4000, propensities=True, steps=12)
        policy = more_for_all(logged(0, 4000, steps=12), 0.3)
        truth = truth or true_values(policy, steps=12, episodes=100_000)[0]
        thorough.append(in_errors(problem, policy, truth))
        with monkeypatch.context() as patch:  # what the density says of it alone
            for module in (feature_scores, feature_one_step):
                patch.setattr(module, "come_before", lambda log, _: np.zeros(len(log.rows)))
            forgetful.append(in_errors(problem, policy, truth))
    assert np.abs(thorough).max() < 3.5
    assert np.mean(forgetful) > np.abs(np.mean(thorough)) + 1.5


def test_near_behavior_values_are_right_to_first_order_whatever_the_state_lacks():
    """Behavior itself, by all features and ratios: its score differs from its logged sums by what has mean zero."""
    problem = logged(0, 4000, hidden=0.8, steps=8)
    nuisances = FeatureNuisances(problem, Polynomial(1))
    nothing = TiltedPolicy(nuisances.features, nuisances.behavior.weights, np.zeros((3, 2)), np.inf)
    scores = score(nuisances, nuisances.rows, nothing).scores
    sums = problem.dataset.returns(1.0)
    apart = scores - sums
    assert np.abs(apart.mean(axis=0)) == pytest.approx(0, abs=3 * (apart.std(axis=0) / np.sqrt(len(sums))).max())
    assert (np.abs(apart.mean(axis=0)) < 0.3 * sums.std(axis=0) / np.sqrt(len(sums))).all()


def cut_off(problem, steps):
    """The same log, stopped after so many steps."""
    log = problem.dataset
    kept = Dataset.from_arrays(
        states=log.states[log.steps < steps],
        actions=log.actions[log.steps < steps],
        next_states=log.next_states[log.steps < steps],
        costs={name: column[log.steps < steps] for name, column in zip(log.cost_names, log.costs.T, strict=True)},
        terminals=np.zeros((log.steps < steps).sum(), bool),
        episodes=log.episodes[log.steps < steps],
        steps=log.steps[log.steps < steps],
        n_actions=log.n_actions,
    )
    return replace(problem, dataset=kept)


class Illness:
    """Quadratics of the illness alone: what follows does not depend on the time."""

    def __call__(self, states):
        return Polynomial(2)(states[:, :1])


def test_of_a_log_that_was_cut_off_behavior_is_worth_what_it_would_have_been_without():
    far = []
    for seed in range(8):
        long = replace(logged(seed, 1000, steps=60), discount=0.9)
        short = cut_off(long, 10)
        nuisances = FeatureNuisances(short, Illness())
        found = behavior_scores(nuisances, nuisances.rows).scores
        truth = replace(logged(100 + seed, 4000, steps=60), discount=0.9).dataset.returns(0.9)
        errors = np.sqrt(found.var(axis=0) / len(found) + truth.var(axis=0) / len(truth))
        far.append((found.mean(axis=0) - truth.mean(axis=0)) / errors)
    assert np.sqrt(np.mean(np.square(far))) < 1.6
    assert np.abs(far).max() < 3.5


def test_like_states_that_lead_elsewhere_later_show_in_what_is_remembered():
    def strength(hidden):
        problem = cut_off(replace(logged(3, 2000, steps=20, hidden=hidden), discount=0.9), 8)
        nuisances = FeatureNuisances(problem, Illness())
        found = behavior_scores(nuisances, nuisances.rows).remembered
        return np.abs(found.mean(axis=0) / (found.std(axis=0) / np.sqrt(len(found)))).max()

    assert strength(0.0) < 3.5
    assert strength(0.8) > 6


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
    mine, theirs = (score(nuisances, nuisances.rows, one).scores for one in (policy, stranger))
    assert mine == pytest.approx(theirs)


def test_tables_are_policies_too():
    finite = problem_of(random_log(3, episodes=100))
    nuisances = FeatureNuisances(column(finite), Hot())
    uniform = AsColumn(TabularPolicy.uniform(6, 3))
    scores = score(nuisances, nuisances.rows, uniform).scores
    assert scores.shape == (100, 3)
