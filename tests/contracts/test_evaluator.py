"""Every evaluator passes these: a new one is a line in EVALUATORS, or in OF_VECTORS if it wants features."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

import oracles
from checkrein import (
    FQE,
    LSTDQ,
    AtMost,
    Dataset,
    Ensemble,
    FrozenFeatures,
    Linear,
    Neural,
    OneHot,
    Polynomial,
    Problem,
    Regressor,
    Support,
    Tabular,
    TabularPolicy,
    Trees,
)
from checkrein.evaluation import LearnedModel, TabularModel
from contracts.worlds import MDP, MIXTURE, POLICY, SIGNS, census, cut_off_log, problem_of, truth_of, values_of
from problems import random_policy

STATES = 6  # of every finite log here
WORST = 7.0  # declared
STEADY = Support(0, 0)  # trusts the class


class Case(NamedTuple):
    """An evaluator and its error: at most this share of how far two policies' values lie apart."""

    evaluator: Any
    error: float = 1e-8


LEAVES = Regressor(DecisionTreeRegressor())
LAST_LAYER = Neural((32,), steps=60, batch=64, rate=1e-2)
EVALUATORS = {
    "fqe, tabular": Case(FQE(Tabular())),
    "fqe, iterated": Case(FQE(Tabular(), iterations=150)),
    "fqe, linear": Case(FQE(Linear(OneHot(STATES)))),
    "fqe, frozen features": Case(FQE(FrozenFeatures(OneHot(STATES), Linear(Polynomial(1), ridge=1e-9))), 1e-3),
    "fqe, trees": Case(FQE(Trees(2, min_leaf=1e-9, freeze_after=1), iterations=60), 1e-2),
    "fqe, regressor": Case(FQE(LEAVES, iterations=40), 1e-1),
    "fqe, ensemble": Case(FQE(Ensemble(Trees(1, min_leaf=1e-9), 2), iterations=40), 1e-1),
    "fqe, solved last layer": Case(FQE(LAST_LAYER, iterations=2, last_layer=1e-3), 1e-1),
    "lstdq, tabular": Case(LSTDQ(Tabular())),
    "lstdq, linear": Case(LSTDQ(Linear(OneHot(STATES)))),
    "tabular model": Case(TabularModel()),
}
MODEL = LearnedModel((32,), epochs=60, patience=60, batch=64, rate=1e-2, rollouts=600, noise=False, support=STEADY)
OF_VECTORS = {
    "fqe, linear": Case(FQE(Linear(Polynomial(1), ridge=1e-9), support=STEADY), 1e-3),
    "fqe, network": Case(FQE(LAST_LAYER, iterations=3, last_layer=1e-6, support=STEADY), 5e-2),
    "lstdq, linear": Case(LSTDQ(Linear(Polynomial(1), ridge=1e-9), support=STEADY), 1e-3),
    "learned model": Case(MODEL, 5e-2),
}


def check_values_are_those_of_the_log_itself(case):
    """Rows weigh, starts weigh, a cut-off is no end, the discount counts, and each cost is its own."""
    log, discount = cut_off_log(), 0.9
    problem, policy = problem_of(log, discount), random_policy(1, log)
    truth, another = (oracles.evaluate(log, p, discount) * SIGNS for p in (policy, random_policy(2, log)))
    assert (np.abs(values_of(case.evaluator, problem, policy) - truth) <= case.error * np.abs(another - truth)).all()


def check_a_mixture_follows_one_member_per_episode(case):
    truth = truth_of(MIXTURE)
    by_first_step = TabularPolicy(MIXTURE.probabilities(np.arange(STATES)))
    apart = np.abs(truth_of(by_first_step) - truth)
    assert (apart > 1e-3 * np.abs(truth)).all()  # else it would not matter
    found = values_of(case.evaluator, problem_of(census()), MIXTURE)
    assert (np.abs(found - truth) <= max(case.error, 1e-8) * np.abs(truth_of(POLICY) - truth)).all()


def check_what_has_no_evidence_counts_at_its_worst(case):
    """In the only logged state action 1 was never taken: it costs the most that a step did, or what the range allows.

    Every episode is one decision, so nothing is feared to follow it.
    """
    log = Dataset.from_arrays(
        states=np.zeros(20, dtype=int),
        actions=np.zeros(20, dtype=int),
        next_states=np.zeros(20, dtype=int),
        costs={"c": np.tile([0.5, 1.5], 10), "g": np.tile([2.0, 4.0], 10)},
        terminals=np.ones(20, dtype=bool),
        episodes=np.arange(20),
        n_actions=2,
        n_states=STATES,
    )
    limit = AtMost("g", 1.0, range=(0, WORST))
    problem = Problem(log, objective="c", constraints=[limit], discount=0.5)
    policy = TabularPolicy(np.tile([0.7, 0.3], (STATES, 1)))
    truth = np.array([0.7 * 1.0 + 0.3 * 1.5, 0.7 * 3.0 + 0.3 * WORST])
    assert values_of(case.evaluator, problem, policy) == pytest.approx(truth, rel=max(0.1 * case.error, 1e-8))


class Steady:
    """Takes action 1 with the same chance everywhere."""

    def __init__(self, chance):
        self.chance = chance

    def probabilities(self, states):
        return np.tile([1 - self.chance, self.chance], (len(states), 1))


def linear_system():
    """The log of x' = (0.5 x1 + a, 0.8 x2 - 0.2 x1) and costs x1 + 1, x2 and a; nothing ends, weights are uneven."""
    rng = np.random.default_rng(0)
    states, actions = rng.uniform(-1, 2, (400, 2)), rng.integers(0, 2, 400)
    moved = np.column_stack([0.5 * states[:, 0] + actions, 0.8 * states[:, 1] - 0.2 * states[:, 0]])
    return Dataset.from_arrays(
        states=states,
        actions=actions,
        next_states=moved,
        costs={"c": states[:, 0] + 1, "g0": states[:, 1], "g1": 1.0 * actions},
        terminals=np.zeros(400, dtype=bool),
        weights=rng.uniform(0.5, 2, 400),
        initial_states=np.array([[0.0, 1.0], [1.0, -0.5]]),
        initial_weights=np.array([3.0, 1.0]),
        n_actions=2,
    )


def check_values_of_a_linear_system(case):
    """Expected states follow the same recursion, so that sums of linear costs are known in closed form."""
    log, discount = linear_system(), 0.8

    def sums(chance):
        mean, total = np.array([0.25, 0.625]), np.zeros(3)
        for step in range(200):
            total += discount**step * np.array([mean[0] + 1, mean[1], chance])
            mean = np.array([0.5 * mean[0] + chance, 0.8 * mean[1] - 0.2 * mean[0]])
        return total * SIGNS

    truth, another = sums(0.3), sums(0.8)
    found = values_of(case.evaluator, problem_of(log, discount), Steady(0.3))
    assert (np.abs(found - truth) <= case.error * np.abs(another - truth)).all()


@pytest.fixture(params=EVALUATORS.values(), ids=EVALUATORS.keys())
def case(request):
    return request.param


def test_values_are_those_of_the_log_itself(case):
    check_values_are_those_of_the_log_itself(case)


def test_a_mixture_follows_one_member_per_episode(case):
    check_a_mixture_follows_one_member_per_episode(case)


def test_what_has_no_evidence_counts_at_its_worst(case):
    check_what_has_no_evidence_counts_at_its_worst(case)


@pytest.mark.parametrize("case", OF_VECTORS.values(), ids=OF_VECTORS.keys())
def test_values_of_a_linear_system_are_in_closed_form(case):
    check_values_of_a_linear_system(case)


def test_the_layered_world_is_not_trivial():
    values = MDP.values(POLICY)
    assert len({round(value, 3) for value in values.values()}) == len(values)
