"""Every estimator passes these: a new one is a line in ESTIMATORS."""

import numpy as np
import pytest

from checkrein import FQE, LSTDQ, Support, Tabular
from checkrein.evaluation import (
    Direct,
    DoublyRobust,
    ImportanceSampling,
    Magic,
    Naive,
    TabularModel,
    propensities_of,
)
from checkrein.evaluation.estimates import BY_NAME
from contracts.worlds import BEHAVIOR, MDP, MIXTURE, POLICY, SIGNS, census, problem_of, truth_of

EXACT = {"rel": 1e-9, "abs": 1e-9}
Q = FQE(Tabular(), support=Support(0, 0))  # fitted on all episodes: on a census nothing is left to chance
ESTIMATORS = {
    "naive": Naive(),
    "is": ImportanceSampling(),
    "pdis": ImportanceSampling(per_decision=True),
    "wis": ImportanceSampling(normalised=True),
    "cwpdis": ImportanceSampling(per_decision=True, normalised=True),
    "fqe": Direct(FQE(Tabular()), "fqe"),
    "lstdq": Direct(LSTDQ(Tabular()), "lstdq"),
    "model": Direct(TabularModel(), "model"),
    "dr": DoublyRobust(Q, folds=None),
    "wdr": DoublyRobust(Q, normalised=True, folds=None),
    "magic": Magic(Q, folds=None),
}


def estimate(estimator, problem, policy):
    return estimator(problem, policy, propensities_of(problem.dataset), rng=np.random.default_rng(0))


def wanted(estimator, policy):
    """What the estimator estimates: the policy's values, but for the naive one, which values behavior."""
    return truth_of(BEHAVIOR if estimator.name == "naive" else policy)


def check_values_on_a_census_are_exact(estimator):
    """All episodes that can be, each as often as it should: sample means are expectations. Three costs, two signs."""
    problem = problem_of(census())
    for policy in (POLICY, BEHAVIOR):
        assert estimate(estimator, problem, policy).values == pytest.approx(wanted(estimator, policy), **EXACT)


def check_a_mixture_follows_one_member_per_episode(estimator):
    found = estimate(estimator, problem_of(census()), MIXTURE).values
    assert found == pytest.approx(wanted(estimator, MIXTURE), **EXACT)


def check_influence_is_what_each_episode_adds(estimator):
    """Of weighted mean zero, a row per episode; doubling an episode's weight moves the value along its influence."""
    log, step = census(), 1e-4
    found = estimate(estimator, problem_of(log), POLICY)
    count = int(log.episodes.max()) + 1
    assert found.influence.shape == (count, 3)
    assert found.weights @ found.influence == pytest.approx(0, abs=1e-6)
    for episode in (0, count // 2, count - 1):
        heavier = log.weights * np.where(log.episodes == episode, 1 + step, 1.0)
        moved = estimate(estimator, problem_of(reweighed(log, heavier)), POLICY).values - found.values
        share = found.weights[episode] / found.weights.sum()
        expected = step * share * found.influence[episode]
        assert moved == pytest.approx(expected, rel=0.01, abs=1e-2 * step * share * np.abs(found.influence).max())


def reweighed(log, weights):
    starts = log.first_rows()
    return type(log).from_arrays(
        states=log.states,
        actions=log.actions,
        next_states=log.next_states,
        costs={name: log.cost(name) for name in log.cost_names},
        terminals=log.terminals,
        episodes=log.episodes,
        steps=log.steps,
        weights=weights,
        initial_states=log.states[starts],
        initial_weights=weights[starts],
        propensities=log.propensities,
        n_actions=log.n_actions,
        n_states=log.n_states,
    )


@pytest.fixture(params=ESTIMATORS.values(), ids=ESTIMATORS.keys())
def estimator(request):
    return request.param


def test_values_on_a_census_are_exact(estimator):
    check_values_on_a_census_are_exact(estimator)


def test_a_mixture_follows_one_member_per_episode(estimator):
    check_a_mixture_follows_one_member_per_episode(estimator)


def test_influence_is_what_each_episode_adds(estimator):
    check_influence_is_what_each_episode_adds(estimator)


def test_every_estimator_that_has_a_name_is_here():
    assert set(BY_NAME) == set(ESTIMATORS)
    for name, estimator in ESTIMATORS.items():
        assert estimator.name == name == BY_NAME[name](Tabular(), True).name
        assert estimator.weighs == BY_NAME[name](Tabular(), True).weighs


def test_the_census_tells_the_policies_and_the_costs_apart():
    values = np.array([truth_of(policy) for policy in (BEHAVIOR, POLICY, MIXTURE)])
    assert (np.abs(np.diff(values, axis=0)) > 0.01).all()
    assert list(MDP.costs) == ["c", "g0", "g1"]
    assert (np.sign(values) == SIGNS).all()
