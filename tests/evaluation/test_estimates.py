from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

from checkrein import FQE, LSTDQ, AtLeast, AtMost, Ensemble, MixturePolicy, Problem, Support, Tabular, Trees
from checkrein.base.errors import ArgumentError, EndlessPolicyError, ProblemError
from checkrein.evaluation import DoublyRobust, Estimates, ImportanceSampling, TabularModel, evaluate, propensities_of
from checkrein.evaluation.doubly_robust import contributions
from checkrein.evaluation.estimate import Estimate
from checkrein_studies import graph
from evaluation.references import COSTS, log_of, policy_near_uniform, problem_of, world
from evaluation.test_doubly_robust import Half, numbered_log

ALL = ["naive", "is", "pdis", "wis", "cwpdis", "fqe", "lstdq", "model", "dr", "wdr", "magic"]


def log_and_policy(episodes=60, max_steps=8):
    mdp = world()
    return log_of(mdp, episodes=episodes, seed=0, max_steps=max_steps), policy_near_uniform(mdp, 1)


def test_the_table_has_a_row_for_every_estimator_and_cost():
    dataset, policy = log_and_policy()
    found = evaluate(policy, dataset, costs=["g0", "c"], discount=0.9)
    table = found.table()
    assert table.select("estimator", "cost").rows() == [(name, cost) for name in ALL for cost in ("g0", "c")]
    assert table.filter(pl.col("value").is_nan()).is_empty()
    for name, cost, value in table.select("estimator", "cost", "value").rows():
        assert found.value(name, cost) == value


def test_intervals_are_students_t_of_the_episodes_contributions():
    dataset, policy = log_and_policy()
    row = (
        evaluate(policy, dataset, costs=["c"], discount=0.9, estimators=["pdis"], confidence=0.9)
        .table()
        .row(0, named=True)
    )
    problem = problem_of(dataset)
    zero = lambda states: np.zeros((len(states), 3, 3))  # noqa: E731
    each = contributions(problem, policy, propensities_of(dataset), zero, rng=np.random.default_rng(0))[:, 1]
    low, high = stats.t.interval(0.9, len(each) - 1, each.mean(), stats.sem(each))
    assert (row["value"], row["low"], row["high"]) == pytest.approx((each.mean(), low, high))


def test_an_objective_and_signs_come_through_contributions():
    dataset, policy = log_and_policy()
    plain = problem_of(dataset)
    signed = Problem(dataset, objective="g0", constraints=[AtLeast("c", 1.0), AtMost("g0", 2.0)], discount=0.9)
    zero = lambda states: np.zeros((len(states), 3, 3))  # noqa: E731
    one = contributions(plain, policy, propensities_of(dataset), zero, rng=np.random.default_rng(0))
    two = contributions(signed, policy, propensities_of(dataset), zero, rng=np.random.default_rng(0))
    assert two == pytest.approx(np.stack([one[:, 2], -one[:, 1], one[:, 2]], axis=1))


def test_the_model_is_fqe_for_tables_whatever_the_support():
    dataset, policy = log_and_policy(episodes=6)
    mixture = MixturePolicy((policy, policy_near_uniform(world(), 2, mildness=0.0)), [0.3, 0.7])
    for support in (Support(), Support(min_count=0), Support(min_count=3)):
        for one in (policy, mixture):
            problem, rng = problem_of(dataset), np.random.default_rng(0)
            model = TabularModel(support)(problem, one, rng=rng)
            fqe = FQE(Tabular(), support=support)(problem, one, rng=rng)
            assert model.constraints == pytest.approx(fqe.constraints)


def test_the_model_is_the_truth_where_the_log_is_exact():
    mdp = world()
    policy = policy_near_uniform(mdp, 1)
    problem = problem_of(mdp.exact_log())
    assert TabularModel()(problem, policy, rng=np.random.default_rng(0)).constraints == pytest.approx(
        [mdp.values(policy)[cost] for cost in COSTS]
    )


def test_at_discount_one_a_model_must_end():
    dataset = log_of(world(0, ending=0.0), episodes=20, seed=0, max_steps=20)
    with pytest.raises(EndlessPolicyError):
        evaluate(policy_near_uniform(world(), 1), dataset, costs=["c"], discount=1.0, estimators=["model"])


def test_what_cannot_be_computed_says_why_unless_it_was_asked_for():
    dataset, asked = numbered_log(), {"costs": ["c"], "discount": 0.5, "functions": Trees(2)}
    found = evaluate(Half(), dataset, **asked)
    assert np.isnan(found.value("lstdq", "c"))
    assert "linear in its targets" in found.table().filter(pl.col("estimator") == "lstdq")["note"][0]
    assert np.isfinite(found.value("dr", "c"))
    with pytest.raises(ArgumentError, match="linear in its targets"):
        evaluate(Half(), dataset, **asked, estimators=["lstdq"])


def test_what_an_ensemble_disagrees_on_is_told():
    asked = {"costs": ["c"], "discount": 0.5, "functions": Ensemble(Trees(2, min_leaf=1), 3)}
    table = evaluate(Half(), numbered_log(), **asked, estimators=["fqe"]).table()
    assert "members differ by" in table["note"][0]


def test_estimators_and_evaluators_of_ones_own_can_be_given():
    dataset, policy = log_and_policy()
    own = [
        ImportanceSampling(name="mine"),
        DoublyRobust(LSTDQ(Tabular()), folds=None, name="dr on all"),
        FQE(Tabular()),
    ]
    found = evaluate(policy, dataset, costs=["c"], discount=0.9, estimators=[*own, "is"])
    assert found.table()["estimator"].to_list() == ["mine", "dr on all", "fqe", "is"]
    assert found.value("mine", "c") == found.value("is", "c")


def test_a_value_does_not_depend_on_which_others_are_asked():
    dataset, policy = log_and_policy()
    every = evaluate(policy, dataset, costs=["c"], discount=0.9, seed=5)
    for name in ("dr", "magic"):
        alone = evaluate(policy, dataset, costs=["c"], discount=0.9, seed=5, estimators=[name])
        assert alone.value(name, "c") == every.value(name, "c")
    other = evaluate(policy, dataset, costs=["c"], discount=0.9, seed=6, estimators=["dr"])
    assert other.value("dr", "c") != every.value("dr", "c")


def test_disagreement_names_the_two_that_are_furthest_apart():
    dataset, policy = log_and_policy(max_steps=2)  # sums that stop at a cut-off fall short of those that go on
    found = evaluate(policy, dataset, costs=COSTS, discount=0.9).disagreement()
    assert found["cost"].to_list() == COSTS
    assert (found["ratio"] > 1).all()
    assert not {"naive", "fqe"} & {*found["estimator"], *found["other"]}


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"estimators": ["dr", "sis"]}, ArgumentError, "no estimator is called 'sis': choose from naive, is, pdis"),
        ({"estimators": "dr"}, ArgumentError, "give a list"),
        ({"estimators": ["dr", "dr"]}, ArgumentError, "two estimators are called 'dr'"),
        ({"costs": "c"}, ArgumentError, "give a list"),
        ({"costs": ["c", "c"]}, ArgumentError, "none twice"),
        ({"costs": ["harm"]}, ProblemError, "no cost is called 'harm'"),
        ({"confidence": 95}, ArgumentError, "confidence is 95"),
        ({"discount": 1.5}, ProblemError, "discount is 1.5"),
    ],
)
def test_bad_input_is_refused(changes, error, message):
    dataset, policy = log_and_policy(episodes=3)
    with pytest.raises(error, match=message):
        evaluate(policy, dataset, **({"costs": ["c"], "discount": 0.9} | changes))


def test_asking_for_what_is_not_there_says_what_is():
    dataset, policy = log_and_policy(episodes=3)
    found = evaluate(policy, dataset, costs=["c"], discount=0.9, estimators=["is"])
    with pytest.raises(ArgumentError, match="there are is"):
        found.value("dr", "c")
    with pytest.raises(ArgumentError, match="there are c"):
        found.value("is", "g0")


def test_the_graph_agrees_with_its_published_figures():
    """A smaller version of benchmarks/graph.py: the mean over many logs is near what 10 seeds gave."""
    mdp = graph.graph(10)
    policy, behavior = graph.constant_policy(mdp, 0.1246), graph.constant_policy(mdp, 0.1)
    truth, rng = mdp.values(policy)["reward"], np.random.default_rng(0)
    published = {"is": 5.6e-4, "pdis": 8.4e-4, "wis": 1.4e-3, "cwpdis": 1.4e-3, "naive": 6.1e-3}
    found = []
    for _ in range(200):
        log = graph.log(mdp, behavior, episodes=50, rng=rng)
        estimates = evaluate(policy, log, costs=["reward"], discount=graph.DISCOUNT, estimators=list(published))
        found.append([estimates.value(name, "reward") for name in published])
    errors = ((np.array(found) / truth - 1) ** 2).reshape(20, 10, -1).mean(axis=1)
    assert (errors.min(axis=0) <= [*published.values()]).all()
    assert (errors.max(axis=0) >= [*published.values()]).all()


def test_slipping_moves_the_graph_to_the_other_node_and_logs_what_was_earned():
    mdp = graph.graph(6, slip=0.25)
    policy = graph.constant_policy(mdp, 0.7)
    log = graph.log(mdp, policy, episodes=20000, rng=np.random.default_rng(0))
    assert set(log.cost("reward")) == {1.0, -1.0}
    assert log.terminals.sum() == 20000
    returns = log.returns(graph.DISCOUNT)[:, 0]
    assert abs(returns.mean() - mdp.values(policy)["reward"]) < 4 * stats.sem(returns)
    with pytest.raises(ArgumentError, match="horizon is 1"):
        graph.graph(1)


def test_a_value_that_its_cost_cannot_have_is_known_for_one():
    found = Estimates(
        ("death",),
        {name: Estimate(np.array([value])) for name, value in (("is", -323.8), ("fqe", 0.2), ("dr", np.nan))},
        0.95,
        None,
        ((0.0, 1.0),),
    )
    assert [found.possible(name, "death") for name in found.by_name] == [False, True, True]
    assert not replace(found, by_name={"dr": Estimate(np.array([1.001]))}).possible("dr", "death")
    sure = Estimate(np.array([1.001]), np.array([[0.1], [-0.1]]), np.ones(2))
    assert replace(found, by_name={"dr": sure}).possible("dr", "death")
