"""Certificates of clusters of episodes: a log in which every episode occurs ten times proves what the log did."""

from dataclasses import replace

import numpy as np
import pytest

from certification.cases import Tilted, bandit_log, coin, coin_log, failed, harm
from checkrein import FQI, AtMost, Problem, Support, Tabular
from checkrein.base.errors import ArgumentError
from checkrein.certification import METHODS, EpisodeScoreBound, certify
from checkrein.certification.bounds import method_of
from checkrein.certification.diagnostics import diagnose, like_episodes
from checkrein.selection.margins import choose_margins
from problems import random_log, random_policy, repeated, rows_of

LOG = random_log(2, episodes=120, n_constraints=2, ending=0.4, max_steps=6)
POLICY = random_policy(2, LOG)
TIMES = 10
COPIES = repeated(LOG, TIMES)
ONE_STEP = {
    "pdis-bernstein": EpisodeScoreBound("pdis", "bernstein", largest_weight=3.0**6),
    "pdis-betting": EpisodeScoreBound("pdis", "betting", largest_weight=3.0**6),
    "dr-bernstein": EpisodeScoreBound("dr", "bernstein", largest_weight=3.0**6),
    "dr-betting": EpisodeScoreBound("dr", "betting", largest_weight=3.0**6),
}


def problem_of(dataset):
    constraints = [AtMost(name, 1.0, range=(0, 100)) for name in ("g0", "g1")]
    return Problem(dataset, objective="c", constraints=constraints, discount=0.9)


def method(name):
    return ONE_STEP.get(name, METHODS[name])


def bound(name, dataset):
    return method(name)(problem_of(dataset), POLICY, alpha=0.05, rng=np.random.default_rng(0))


@pytest.mark.parametrize("name", METHODS)
def test_every_method_bounds_copies_in_clusters_like_the_episodes_themselves(name):
    for once, often in zip(bound(name, LOG), bound(name, COPIES), strict=True):
        np.testing.assert_allclose(once, often, rtol=1e-6)
    estimated = [method(name).estimate(problem_of(log), POLICY, rng=np.random.default_rng(1)) for log in (LOG, COPIES)]
    for once, often in zip(*estimated, strict=True):
        np.testing.assert_allclose(once, often, rtol=1e-6)


@pytest.mark.parametrize("name", METHODS)
def test_without_clusters_the_same_copies_draw_every_bound_in(name):
    plain, copied = bound(name, LOG), bound(name, rows_of(COPIES, clusters=None, propensities=COPIES.propensities))
    assert (copied.upper - copied.estimates < plain.upper - plain.estimates).all()


@pytest.mark.parametrize("name", ["fqe-studentised", "dr-t"])
def test_every_check_finds_in_copies_what_it_finds_in_the_episodes(name):
    once, often = (diagnose(problem_of(log), POLICY, method(name), np.random.default_rng(0)) for log in (LOG, COPIES))
    assert len(once) == len(often)
    for one, other in zip(once, often, strict=True):
        assert one.value == pytest.approx(other.value, rel=1e-6)
        assert (one.limit, one.ok) == (other.limit, other.ok)
    assert [one.name for one in once][1:] == [other.name for other in often][1:]
    assert (once[0].name, often[0].name, often[0].words) == ("episodes", "clusters", "120 clusters judge")
    counts = [like_episodes(problem_of(log), POLICY, method(name), once) for log in (LOG, COPIES)]
    assert counts[0] == pytest.approx(counts[1])


@pytest.mark.parametrize("name", METHODS)
def test_clusters_of_one_episode_each_change_nothing(name):
    alone = rows_of(LOG, clusters=LOG.episodes, propensities=LOG.propensities)
    for one, other in zip(bound(name, LOG), bound(name, alone), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_a_certificate_of_copies_is_that_of_the_episodes_and_counts_clusters():
    log = bandit_log(400)
    policy, settings = Tilted([[0.0, 0.3]]), {"constraints": [AtMost("harm", 1.5)], "discount": 1.0}
    for name in ("dr-studentised", "fqe-t"):
        once, often = (certify(policy, one, method=name, **settings) for one in (log, repeated(log, 3)))
        assert (once.episodes, once.clusters) == (400, None)
        assert (often.episodes, often.clusters) == (1200, 400)
        assert once.verdict == often.verdict
        assert once.bounds["harm"] == pytest.approx(often.bounds["harm"], rel=1e-6)
        assert [check.ok for check in once.checks] == [check.ok for check in often.checks]


def coin_stays(patients, stays, *, spread, seed):
    """Stays of patients who differ in how much action 1 harms; one state, one step."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(patients), stays)
    chance = np.clip(0.3 + spread * rng.choice([-1, 1], patients), 0, 1)[patient]
    actions = rng.integers(0, 2, patient.size)
    log = coin_log(patient.size, costs=1.0 * actions * (rng.random(patient.size) < chance))
    return rows_of(log, actions=actions, clusters=patient, propensities=np.full(patient.size, 0.5))


def test_few_clusters_of_many_episodes_prove_nothing_and_the_reason_says_clusters():
    found = certify(coin(0.5), coin_stays(20, 50, spread=0.0, seed=0), constraints=[harm(0.5)], discount=1.0)
    assert (found.verdict, found.episodes, found.clusters) == ("inconclusive", 1000, 20)
    assert {"clusters"} <= failed(found)
    assert "20 clusters judge" in found.reason


def test_advice_counts_clusters():
    log = coin_stays(200, 4, spread=0.2, seed=0)
    truth = certify(coin(0.5), log, constraints=[harm(0.5)], discount=1.0, method="fqe-t").estimates["harm"]
    found = certify(coin(0.5), log, constraints=[harm(truth + 0.002)], discount=1.0, method="fqe-t")
    assert "clusters like these 200 would show it" in found.advice[0]


def test_finite_sample_bounds_take_clusters_of_one_size_only():
    log = coin_stays(40, 5, spread=0.2, seed=0)
    sure = EpisodeScoreBound("pdis", "betting", largest_weight=2.0)
    problem = Problem(log, objective=None, constraints=[harm(0.5, range=(0, 1))], discount=1.0)
    assert sure(problem, coin(0.5), alpha=0.05, rng=np.random.default_rng(0)).upper[0] < 0.5
    uneven = rows_of(log, clusters=np.minimum(log.clusters, 38), propensities=log.propensities)
    with pytest.raises(ArgumentError, match=r"clusters that all count the same.*from 5 to 10: use pdis-studentised"):
        sure(replace(problem, dataset=uneven), coin(0.5), alpha=0.05, rng=np.random.default_rng(0))


@pytest.mark.parametrize("name", ["fqe-studentised", "dr-studentised", "pdis-studentised"])
def test_bounds_of_patients_who_differ_err_no_more_than_they_may(name):
    """200 logs of 60 patients with 6 stays: if 5 % err, more than 17 do with chance .01; without clusters, many."""
    wrong = {True: 0, False: 0}
    for seed in range(200):
        log = coin_stays(60, 6, spread=0.3, seed=seed)
        for clustered in wrong:
            data = log if clustered else rows_of(log, propensities=log.propensities)
            problem = Problem(data, objective=None, constraints=[harm(0.5)], discount=1.0)
            asked = replace(method_of(name, problem), replicates=400)
            found = asked(problem, coin(0.5), alpha=0.05, rng=np.random.default_rng(seed))
            wrong[clustered] += int(found.upper[0] < 0.15)
    assert wrong[True] <= 17 < wrong[False]


def test_margins_chosen_on_copies_are_those_of_the_episodes():
    def learn(problem, support):
        prices = np.ones(problem.n_constraints)
        return FQI(Tabular(), support=support)(problem, prices, rng=np.random.default_rng(0))

    small = random_log(2, episodes=60)
    once, often = (
        choose_margins(problem_of(log), learn, held_out=60, supports=[Support()]) for log in (small, repeated(small, 3))
    )
    assert once.predicted == pytest.approx(often.predicted)
    assert [c.limit for c in once.constraints] == pytest.approx([c.limit for c in often.constraints])
