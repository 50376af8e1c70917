import numpy as np
import pytest

from checkrein import FQE, LSTDQ, Dataset, MixturePolicy, Support, Tabular
from checkrein.base.errors import ArgumentError, DataError
from checkrein.evaluation import DoublyRobust, ImportanceSampling, Magic, evaluate, propensities_of
from checkrein.evaluation.doubly_robust import contributions
from checkrein.functions.tabular import TabularQ
from evaluation.references import (
    COSTS,
    deterministic,
    exact_q,
    log_of,
    policy_near_uniform,
    problem_of,
    world,
)
from problems import rows_of

ANY = Support(min_count=0, min_probability=0)


def rng(seed=0):
    return np.random.default_rng(seed)


def estimate(estimator, dataset, policy, discount=0.9):
    return estimator(problem_of(dataset, discount), policy, propensities_of(dataset), rng=rng())


@pytest.mark.parametrize("max_steps", [4, 1000])
def test_without_a_q_it_is_per_decision_importance_sampling(max_steps):
    mdp = world()
    dataset = log_of(mdp, episodes=30, seed=0, max_steps=max_steps)
    nothing = TabularQ(np.zeros((5, 3, 3)))
    policy = MixturePolicy((policy_near_uniform(mdp, 1), policy_near_uniform(mdp, 2)), [0.4, 0.6])
    plain, weighed = DoublyRobust(nothing), DoublyRobust(nothing, normalised=True)
    pdis = ImportanceSampling(per_decision=True)
    assert estimate(plain, dataset, policy).values == pytest.approx(estimate(pdis, dataset, policy).values, rel=1e-12)
    alone = policy_near_uniform(mdp, 1)
    cwpdis = ImportanceSampling(per_decision=True, normalised=True)
    both = estimate(weighed, dataset, alone), estimate(cwpdis, dataset, alone)
    assert both[0].values == pytest.approx(both[1].values, rel=1e-12)
    assert both[0].influence == pytest.approx(both[1].influence)


@pytest.mark.parametrize("max_steps", [6, 1000])
def test_the_exact_q_of_a_deterministic_world_leaves_nothing_to_correct(max_steps):
    mdp = deterministic(world(2))
    policy = policy_near_uniform(mdp, 1)
    dataset, q = log_of(mdp, episodes=20, seed=0, max_steps=max_steps), exact_q(mdp, policy)
    each = contributions(problem_of(dataset), policy, propensities_of(dataset), q, rng=rng())
    starts = dataset.states[dataset.first_rows()]
    assert each[:, 1:] == pytest.approx(mdp.state_values(policy)[starts])
    weighed = estimate(DoublyRobust(q, normalised=True), dataset, policy)
    assert weighed.values[1:] == pytest.approx(mdp.state_values(policy)[starts].mean(axis=0))
    assert estimate(Magic(q), dataset, policy).values == pytest.approx(weighed.values)


def test_a_cut_off_is_not_an_end():
    mdp = world(3, ending=0.0)
    policy = policy_near_uniform(mdp, 1)
    dataset = log_of(mdp, episodes=4000, seed=1, max_steps=5)
    truth = [mdp.values(policy)[cost] for cost in COSTS]
    found = evaluate(policy, dataset, costs=COSTS, discount=0.9, estimators=["pdis", "fqe", "dr", "wdr"])
    for name in ("dr", "wdr"):
        assert (np.abs(found[name].values - truth) < 4 * found[name].standard_errors()).all()
    assert found["fqe"].values == pytest.approx(truth, rel=0.03)
    assert (found["pdis"].values < 0.6 * np.array(truth)).all()  # it stops where the log does
    assert "4000 of 4000 episodes were cut off" in found["pdis"].note


def test_a_row_whose_next_state_is_not_known_corrects_nothing():
    mdp = world(3, ending=0.0)
    policy = policy_near_uniform(mdp, 1)
    dataset = log_of(mdp, episodes=10, seed=1, max_steps=5)
    unknown = rows_of(dataset, next_observed=dataset.steps < 4, propensities=dataset.propensities)
    shorter = dataset.select(dataset.steps < 4)
    q = exact_q(mdp, policy)
    for estimator in (DoublyRobust(q), DoublyRobust(q, normalised=True)):
        assert estimate(estimator, unknown, policy).values == pytest.approx(estimate(estimator, shorter, policy).values)


@pytest.mark.parametrize(
    ("logs", "error"),  # of a standard deviation of so many: 1 / sqrt(2 logs), three times that and some for skewness
    [(60, 0.35), pytest.param(300, 0.15, marks=pytest.mark.slow)],
)
def test_estimates_are_unbiased_and_their_standard_errors_are_the_spread_over_logs(logs, error):
    mdp = world(5, ending=0.4)
    policy = policy_near_uniform(mdp, 1)
    names = ["is", "pdis", "wis", "cwpdis", "dr", "wdr"]
    values, errors = [], []
    for seed in range(logs):
        dataset = log_of(mdp, episodes=100, seed=seed)
        found = evaluate(policy, dataset, costs=COSTS, discount=0.9, estimators=names, seed=seed)
        values.append([found[name].values for name in names])
        errors.append([found[name].standard_errors() for name in names])
    truth = np.array([mdp.values(policy)[cost] for cost in COSTS])
    spread = np.std(values, axis=0)
    off = np.mean(values, axis=0) - truth
    for name in ("is", "pdis", "dr"):
        assert (np.abs(off[names.index(name)]) < 4 * spread[names.index(name)] / np.sqrt(logs)).all()
    assert np.sqrt(np.mean(np.square(errors), axis=0)) == pytest.approx(spread, rel=error)
    assert (spread[names.index("dr")] < spread[names.index("pdis")]).all()


def test_influences_have_mean_zero():
    mdp = world()
    dataset, policy = log_of(mdp, episodes=30, seed=0, max_steps=6), policy_near_uniform(mdp, 1)
    weighed = rows_of(dataset, weights=1.0 + dataset.episodes % 3, propensities=dataset.propensities)
    found = evaluate(policy, weighed, costs=COSTS, discount=0.9)
    for name in ("naive", "is", "pdis", "wis", "cwpdis", "dr", "wdr", "magic"):
        assert found[name].weights @ found[name].influence == pytest.approx(0, abs=1e-9)


class Numbered:
    """Fits nothing, but knows which episodes it was given: the first feature of their states."""

    def q(self, problem, policy, *, rng):
        seen = set(problem.transitions.states[:, 0])

        def q(states):
            assert not seen & set(states[:, 0])
            return np.zeros((len(states), 2, 2))

        return q


def numbered_log(episodes=13, steps=3):
    number = np.repeat(np.arange(episodes), steps)
    states = np.stack([number, np.tile(np.arange(steps), episodes)], axis=1).astype(float)
    return Dataset.from_arrays(
        states=states,
        actions=number % 2,
        next_states=states,
        costs={"c": np.ones(len(number))},
        terminals=np.zeros(len(number), dtype=bool),
        episodes=number,
        propensities=np.full(len(number), 0.5),
    )


class Half:
    def probabilities(self, states):
        return np.full((len(states), 2), 0.5)


@pytest.mark.parametrize("normalised", [False, True])
def test_no_episode_is_judged_by_a_q_that_saw_it(normalised):
    dataset = numbered_log()
    problem = problem_of(dataset, costs=["c"])
    DoublyRobust(Numbered(), normalised)(problem, Half(), propensities_of(dataset), rng=rng())
    Magic(Numbered())(problem, Half(), propensities_of(dataset), rng=rng())
    with pytest.raises(AssertionError):
        DoublyRobust(Numbered(), folds=None)(problem, Half(), propensities_of(dataset), rng=rng())


def test_any_direct_method_will_do():
    mdp = world()
    dataset, policy = log_of(mdp, episodes=60, seed=0), policy_near_uniform(mdp, 1)
    fqe = estimate(DoublyRobust(FQE(Tabular(), support=ANY)), dataset, policy)
    lstdq = estimate(DoublyRobust(LSTDQ(Tabular(), support=ANY)), dataset, policy)
    assert fqe.values == pytest.approx(lstdq.values)


def test_a_single_episode_cannot_be_cross_fitted():
    mdp = world()
    dataset = log_of(mdp, episodes=1, seed=0)
    with pytest.raises(DataError, match="folds=None"):
        estimate(DoublyRobust(FQE(Tabular())), dataset, policy_near_uniform(mdp, 1))
    with pytest.raises(ArgumentError, match="folds is 1"):
        DoublyRobust(FQE(Tabular()), folds=1)


def test_a_q_of_other_costs_is_refused():
    mdp = world()
    dataset = log_of(mdp, episodes=5, seed=0)
    with pytest.raises(ArgumentError, match="3 actions and 3 costs"):
        estimate(DoublyRobust(TabularQ(np.zeros((5, 3, 1)))), dataset, policy_near_uniform(mdp, 1))
