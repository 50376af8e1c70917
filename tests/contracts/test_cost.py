"""Every cost passes these: a new one is a line in COSTS."""

from dataclasses import dataclass

import numpy as np
import pytest

from checkrein import (
    FQE,
    LSTDQ,
    AtLeast,
    AtMost,
    Disagreement,
    Entropy,
    KLDivergence,
    Problem,
    StateActionCost,
    Tabular,
    TabularMDP,
    TotalVariation,
    certify,
    evaluate,
)
from checkrein.base import storage
from checkrein.base.errors import ArgumentError, ProblemError
from checkrein.evaluation import DoublyRobust, ImportanceSampling, TabularModel, propensities_of
from checkrein.evaluation.doubly_robust import contributions
from checkrein.evaluation.fqe import nuisance
from checkrein.evaluation.one_step import TabularNuisances
from checkrein.evaluation.refits import Refits
from checkrein.policies import Support, members_of
from checkrein.problem import LoggedCost
from checkrein.protocols import Cost, RowCost
from contracts.own_costs import Squared, Surprisal
from contracts.worlds import DISCOUNT, MDP, MIXTURE, OTHER, POLICY, census

LOG = census()
RNG = np.random.default_rng(0)


def resolved(cost):
    """A cost as a problem on the log has it."""
    return Problem(LOG, objective=cost, constraints=[], discount=DISCOUNT).objective


def spread(per_action):
    """(S, A) the sum over actions, which every action of a state pays."""
    return np.repeat(per_action.sum(axis=1, keepdims=True), per_action.shape[1], axis=1)


COSTS = {
    "logged": (LoggedCost("g0"), lambda _: MDP.costs["g0"]),
    "of rows": (Squared("g0"), lambda _: MDP.costs["g0"] ** 2),
    "of the policy": (Surprisal(), lambda table: -np.log(table)),
    "kl divergence": (resolved(KLDivergence(OTHER)), lambda table: spread(table * np.log(table / OTHER.table))),
    "entropy": (Entropy(), lambda table: spread(-table * np.log(table))),
    "total variation": (resolved(TotalVariation(OTHER)), lambda table: spread(np.abs(table - OTHER.table) / 2)),
    "disagreement": (resolved(Disagreement(OTHER)), lambda _: 1 - OTHER.table),
    "of state and action": (resolved(StateActionCost(MDP.costs["g0"] ** 3)), lambda _: MDP.costs["g0"] ** 3),
}


def problem_with(cost, log=LOG):
    return Problem(log, objective=cost, constraints=[AtMost(cost, 1.0, name="upper"), AtLeast(cost, 1.0)], discount=0.8)


def truth_of(policy, table_of):
    """What a policy pays in the MDP itself, each member by its own cost."""
    total = 0.0
    for member, weight in members_of(policy):
        costs = {"cost": table_of(member.probabilities(np.arange(MDP.n_states)))}
        total += weight * TabularMDP(MDP.transitions, costs, MDP.initial, DISCOUNT).values(member)["cost"]
    return total


def check_it_is_one_number_for_each_row(cost):
    assert isinstance(cost, Cost)
    steps = cost.per_step(LOG, POLICY)
    assert steps.shape == (len(LOG),)
    assert np.isfinite(steps).all()


def check_every_way_to_value_it_agrees(cost, table_of, policy):
    problem, truth = problem_with(cost), truth_of(policy, table_of)
    wanted = np.array([truth, truth, -truth])
    for evaluator in (FQE(Tabular()), FQE(Tabular(), iterations=40), LSTDQ(Tabular()), TabularModel()):
        found = evaluator(problem, policy, rng=RNG)
        assert found.row == pytest.approx(wanted, rel=1e-8)
    propensities = propensities_of(LOG)
    weighing = [
        ImportanceSampling(),
        ImportanceSampling(per_decision=True),
        DoublyRobust(nuisance(Tabular()), folds=None),
    ]
    for estimator in weighing:
        assert estimator(problem, policy, propensities, rng=RNG).values == pytest.approx(wanted, rel=1e-8)


def check_it_is_scored_like_a_column_of_the_same_numbers(cost, policy):
    column = problem_with("written", LOG.with_costs({"written": cost.per_step(LOG, policy)}))
    for mine, theirs in zip(scores_of(problem_with(cost), policy), scores_of(column, policy), strict=True):
        assert mine == pytest.approx(theirs, rel=1e-9, abs=1e-12)


def scores_of(problem, policy):
    """What single episodes say of a policy: one-step, doubly robust, and their influence on a refit."""
    yield TabularNuisances.of(problem, Support()).score(problem, policy).scores
    yield contributions(problem, policy, propensities_of(LOG), nuisance(Tabular()), rng=np.random.default_rng(0))
    yield Refits.of(problem, policy, Tabular()).point()[1]


def check_it_is_certified_at_its_value(cost, table_of, policy):
    truth = truth_of(policy, table_of)
    for method in ("fqe-t", "pdis-t"):
        limit = AtMost(cost, truth + 1.0, name="it")
        found = certify(policy, LOG, constraints=[limit], discount=DISCOUNT, method=method)
        assert found.estimates["it"] == pytest.approx(truth, rel=1e-8)


@pytest.mark.parametrize("name", COSTS)
def test_a_cost_is_one_number_for_each_row(name):
    check_it_is_one_number_for_each_row(COSTS[name][0])


@pytest.mark.parametrize("policy", [POLICY, OTHER, MIXTURE], ids=["one", "another", "mixture"])
@pytest.mark.parametrize("name", COSTS)
def test_every_way_to_value_a_cost_agrees_with_the_truth(name, policy):
    check_every_way_to_value_it_agrees(*COSTS[name], policy)


@pytest.mark.parametrize("policy", [POLICY, OTHER], ids=["one", "another"])
@pytest.mark.parametrize("name", COSTS)
def test_a_cost_is_scored_like_a_column_of_the_same_numbers(name, policy):
    check_it_is_scored_like_a_column_of_the_same_numbers(COSTS[name][0], policy)


@pytest.mark.parametrize("policy", [POLICY, MIXTURE], ids=["one", "mixture"])
@pytest.mark.parametrize("name", COSTS)
def test_a_cost_is_certified_at_the_value_it_is_evaluated_at(name, policy):
    check_it_is_certified_at_its_value(*COSTS[name], policy)


@pytest.mark.parametrize("name", COSTS)
def test_a_constraint_on_it_can_be_stored(name, tmp_path):
    constraint = AtMost(COSTS[name][0], 2.0)
    storage.save(constraint, tmp_path / "constraint.npz")
    assert storage.digest(storage.load(tmp_path / "constraint.npz")) == storage.digest(constraint)


@pytest.mark.parametrize("name", COSTS)
def test_every_estimator_values_it(name):
    cost, table_of = COSTS[name]
    found = evaluate(POLICY, LOG, costs=[cost, "c"], discount=DISCOUNT, estimators=["fqe", "pdis", "model", "dr"])
    truth = truth_of(POLICY, table_of)
    for estimator, error in (("fqe", 1e-8), ("pdis", 1e-8), ("model", 1e-8), ("dr", 0.05)):
        assert found.value(estimator, AtMost(cost, 0.0).name) == pytest.approx(truth, rel=error)


def check_rows_are_merged_after_it_was_computed(cost):
    log = LOG.with_costs({"noisy": np.where(np.arange(len(LOG)) % 2, 0.0, 2.0)})
    problem = Problem(log, objective=None, constraints=[AtMost(cost, 1.0)], discount=0.8)
    wanted = log.weights @ log.cost("noisy") ** 2
    assert problem.transitions.weights @ problem.costs(POLICY)[:, 1] == pytest.approx(wanted)


def test_rows_that_are_merged_keep_the_mean_of_what_is_not_linear():
    check_rows_are_merged_after_it_was_computed(Squared("noisy"))


def test_without_evidence_a_cost_counts_at_the_worst_that_it_declares_or_shows():
    @dataclass(frozen=True)
    class Declared(Surprisal):
        def step_range(self, dataset):
            return 0.0, 7.0

    shown = -np.log(POLICY.probabilities(LOG.states)[np.arange(len(LOG)), LOG.actions].min())
    for cost, worst in ((Declared(), 7.0), (Surprisal(), shown)):
        problem = Problem(LOG, objective=None, constraints=[AtMost(cost, 1.0)], discount=0.8)
        assert problem.worst(POLICY)[1] == pytest.approx(worst / (1 - 0.8))


def test_what_is_no_cost_or_has_another_shape_is_named():
    with pytest.raises(ProblemError, match="3.0 is not a cost: give a column's name"):
        AtMost(3.0, 1.0)
    with pytest.raises(ProblemError, match=r"Surprisal is a class: give one of its values, Surprisal\(...\)"):
        AtMost(Surprisal, 1.0)

    @dataclass(frozen=True)
    class Short:
        def per_step(self, transitions, policy):
            return np.zeros(3)

    problem = Problem(LOG, objective=None, constraints=[AtMost(Short(), 1.0)], discount=0.8)
    with pytest.raises(ArgumentError, match=r"per_step of Short has shape \(3,\)"):
        FQE(Tabular())(problem, POLICY, rng=RNG)


def test_a_cost_beyond_the_range_that_it_declares_is_named_and_nothing_is_certified():
    @dataclass(frozen=True)
    class Modest(Surprisal):
        def step_range(self, dataset):
            return 0.0, 0.1

    limit = AtMost(Modest(), 100.0)
    with pytest.raises(ArgumentError, match="in row .*, but its step_range says 0 to 0.1"):
        certify(POLICY, LOG, constraints=[limit], discount=DISCOUNT)


def test_only_costs_of_rows_say_that_they_are():
    of_rows = [name for name, (cost, _) in COSTS.items() if isinstance(cost, RowCost)]
    assert of_rows == ["logged", "of rows", "disagreement", "of state and action"]
