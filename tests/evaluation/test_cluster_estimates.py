"""Clusters: what is independent is counted, whatever the number of episodes."""

import numpy as np
import pytest

from checkrein import FQE, Support, Tabular, evaluate
from checkrein.evaluation.doubly_robust import folds_of
from checkrein.evaluation.draws import draws
from checkrein.evaluation.estimate import standard_errors
from checkrein.evaluation.estimates import BY_NAME
from checkrein.evaluation.one_step import TabularNuisances
from checkrein.evaluation.propensities import propensities_of
from checkrein.evaluation.refits import Refits
from checkrein.problem import Episodes
from problems import problem_of, random_log, random_policy, repeated, rows_of

LOG = random_log(2, episodes=80)
POLICY = random_policy(2, LOG)
TIMES = 4
COPIES = repeated(LOG, TIMES)
UNEVEN = np.random.default_rng(0).integers(0, 12, 80)[LOG.episodes]  # of 12 patients, some with more stays than others


def estimates(dataset, name):
    return evaluate(POLICY, dataset, costs=["c", "g0"], discount=0.9, estimators=[name], seed=3)


@pytest.mark.parametrize("name", BY_NAME)
def test_copies_of_episodes_in_clusters_are_worth_no_more_than_the_episodes(name):
    once, often = estimates(LOG, name).table(), estimates(COPIES, name).table()
    for column in ("value", "standard_error", "low", "high", "effective_sample_size", "largest_share"):
        np.testing.assert_allclose(once[column].to_numpy(), often[column].to_numpy(), rtol=1e-7)


def test_without_clusters_the_same_copies_look_like_evidence():
    once, often = (estimates(log, "fqe").table()["standard_error"][0] for log in (LOG, rows_of(COPIES, clusters=None)))
    assert often == pytest.approx(once / np.sqrt(TIMES), rel=0.02)


@pytest.mark.parametrize("name", BY_NAME)
def test_clusters_of_one_episode_each_change_nothing(name):
    plain = rows_of(LOG, propensities=LOG.propensities)
    alone = rows_of(LOG, propensities=LOG.propensities, clusters=LOG.episodes)
    assert estimates(plain, name).table().equals(estimates(alone, name).table())


def test_a_standard_error_is_that_of_the_ratio_of_cluster_sums():
    episodes = Episodes.of(problem_of(rows_of(LOG, clusters=UNEVEN, weights=1.0 + LOG.episodes % 3)))
    scores = np.random.default_rng(1).normal(size=(80, 2)) + episodes.unit[:, None]
    mean = episodes.mean(scores)
    pulls, shares, total = np.zeros((12, 2)), np.zeros(12), episodes.weights.sum()
    for episode in range(80):
        patient = UNEVEN[np.flatnonzero(LOG.episodes == episode)[0]]
        pulls[patient] += episodes.weights[episode] * (scores[episode] - mean) / total
        shares[patient] += episodes.weights[episode] / total
    expected = np.sqrt((pulls**2).sum(axis=0) / (1 - (shares**2).sum()))
    units = episodes.unit_means(scores - mean), episodes.unit_weights
    np.testing.assert_allclose(standard_errors(*units), expected)
    np.testing.assert_allclose(episodes.unit_weights @ episodes.unit_means(scores) / total, mean)


def test_folds_and_propensity_models_never_part_a_cluster():
    dataset = rows_of(LOG, clusters=UNEVEN)
    fold = folds_of(Episodes.of(problem_of(dataset)), 5, np.random.default_rng(0))
    for patient in range(12):
        assert np.unique(fold[np.unique(LOG.episodes[patient == UNEVEN])]).size == 1
    assert np.unique(fold).size == 5
    trees = propensities_of(repeated(random_log(0, episodes=20), 3), "trees").values.reshape(3, -1)
    np.testing.assert_array_equal(trees[0], trees[1])  # each copy was predicted without the others


def test_a_refit_draws_whole_clusters_and_its_errors_count_them():
    once, often = (
        Refits.of(problem_of(log), POLICY, Tabular())(draws(80, 50, np.random.default_rng(0))) for log in (LOG, COPIES)
    )
    np.testing.assert_allclose(once.values, often.values, rtol=1e-7)
    np.testing.assert_allclose(once.errors, often.errors, rtol=1e-6)


def test_one_step_scores_of_copies_are_those_of_the_episodes():
    support = Support(min_count=0)
    tables = TabularNuisances.of(problem_of(random_log(2, episodes=300)), support)
    policy = random_policy(2, tables.problem.dataset)
    once, often = (tables.score(problem_of(log), policy).scores for log in (LOG, COPIES))
    np.testing.assert_allclose(np.tile(once, (TIMES, 1)), often, rtol=1e-9, atol=1e-9)


def test_a_pair_counts_once_for_a_cluster_whose_episodes_all_show_it():
    once, often = (Refits.of(problem_of(log), POLICY, Tabular()).occupancy() for log in (LOG, COPIES))
    np.testing.assert_allclose(once.counts, often.counts)
    everyone = Refits.of(problem_of(rows_of(LOG, clusters=np.zeros(len(LOG), int))), POLICY, Tabular()).occupancy()
    per_episode = np.zeros((80, LOG.n_states * LOG.n_actions))
    np.add.at(per_episode, (LOG.episodes, LOG.states * LOG.n_actions + LOG.actions), LOG.next_observed)
    most = per_episode.max(axis=0)[everyone.states * LOG.n_actions + everyone.actions]
    np.testing.assert_allclose(everyone.counts, most)


def test_values_do_not_depend_on_clusters():
    plain, clustered = (
        FQE(Tabular())(problem_of(log), POLICY, rng=np.random.default_rng(0)).row
        for log in (rows_of(LOG), rows_of(LOG, clusters=UNEVEN))
    )
    np.testing.assert_array_equal(plain, clustered)
