"""Limits from multipliers and multipliers from limits, against the exact linear program."""

from dataclasses import replace

import numpy as np
import pytest

from checkrein import (
    FQE,
    FQI,
    LSPI,
    LSTDQ,
    AtLeast,
    AtMost,
    CuttingPlane,
    Entropy,
    KLDivergence,
    Problem,
    Tabular,
    TabularMDP,
    TabularPolicy,
    regularized,
    regularized_grid,
)
from checkrein.base.errors import ArgumentError, ProblemError
from checkrein.game import multipliers_for
from checkrein_studies import frozen_lake
from problems import PLAYERS, binding_limits, exact_problem, random_mdp

PAIRS = {
    "FQI and FQE": PLAYERS,
    "LSPI and LSTDQ": {"best_response": LSPI(Tabular()), "evaluator": LSTDQ(Tabular())},
}
SOLVER = {"learner": CuttingPlane(100.0), "tolerance": 1e-9, "max_rounds": 100}
CASES = [(seed, m) for m in (1, 2, 3) for seed in range(4)]


def mdp_and_problem(seed, m):
    mdp = random_mdp(seed, n_constraints=m, n_states=10, discount=0.9)
    return mdp, exact_problem(mdp, binding_limits(mdp))


def least_lagrangian(mdp, multipliers):
    """The least of c + multipliers . g over all policies, by the linear program."""
    total = mdp.costs["c"] + sum(price * mdp.costs[name] for name, price in multipliers.items())
    whole = TabularMDP(mdp.transitions, {"total": total}, mdp.initial, mdp.discount)
    return whole.optimum(objective="total").values["total"]


@pytest.mark.parametrize("players", PAIRS.values(), ids=PAIRS.keys())
@pytest.mark.parametrize(("seed", "m"), CASES)
def test_a_regularised_policy_is_the_constrained_optimum_at_its_own_limits(seed, m, players):
    mdp, problem = mdp_and_problem(seed, m)
    multipliers = {f"g{i}": price for i, price in enumerate(np.random.default_rng(seed).exponential(1.0, m))}
    found = regularized(problem, multipliers, **players)
    exact = mdp.values(found.policy)
    assert found.values == pytest.approx(exact, abs=1e-8)
    limits = [AtMost(name, limit + 1e-10) for name, limit in found.limits.items()]
    optimum = mdp.optimum(objective="c", constraints=limits).values["c"]
    assert exact["c"] == pytest.approx(optimum, abs=1e-6)
    # the multipliers are a price of these limits: no policy has a lower Lagrangian than the optimum has
    charged = sum(multipliers[name] * limit for name, limit in found.limits.items())
    assert least_lagrangian(mdp, multipliers) - charged == pytest.approx(optimum, abs=1e-6)
    assert found.regularized_value == pytest.approx(least_lagrangian(mdp, multipliers), abs=1e-8)


@pytest.mark.parametrize(("seed", "m"), CASES)
def test_limits_to_multipliers_and_back(seed, m):
    mdp, problem = mdp_and_problem(seed, m)
    priced = multipliers_for(problem, **PLAYERS, **SOLVER)
    exact = mdp.optimum(objective="c", constraints=problem.constraints)
    assert priced.multipliers == pytest.approx(exact.multipliers, abs=1e-4)
    assert abs(priced.difference) < 1e-9
    for c in problem.constraints:
        low, high = priced.regularized.limit_ranges[c.name]
        assert low - 1e-6 <= c.limit <= high + 1e-6
        assert high > low or abs(c.limit - low) < 1e-4
    assert "as good as the best policy of the regularised problem" in priced.explanation


@pytest.mark.parametrize("seed", range(4))
def test_multipliers_to_limits_and_back(seed):
    """Inside the range of limits that one price has, every limit has that price and no other."""
    mdp, problem = mdp_and_problem(seed, 1)
    price = multipliers_for(problem, **PLAYERS, **SOLVER).multipliers
    low, high = regularized(problem, price, **PLAYERS).limit_ranges["g0"]
    assert high - low > 1e-3
    for share in (0.1, 0.9):
        inside = [AtMost("g0", low + share * (high - low))]
        again = multipliers_for(exact_problem(mdp, inside), **PLAYERS, **SOLVER)
        assert again.multipliers == pytest.approx(price, abs=1e-4)
        assert mdp.optimum(objective="c", constraints=inside).multipliers == pytest.approx(price, abs=1e-4)
    outside = [AtMost("g0", high + 0.01 * (high - low))]
    assert mdp.optimum(objective="c", constraints=outside).multipliers["g0"] < price["g0"] - 1e-6


def test_the_range_is_one_point_where_one_policy_alone_is_best():
    _, problem = mdp_and_problem(1, 1)
    found = regularized(problem, [0.123], **PLAYERS)
    low, high = found.limit_ranges["g0"]
    assert low == high == found.limits["g0"]
    assert found.explanation.endswith(f"the best among those with g0 at most {low:.6g}.")


def test_a_multiplier_of_zero_is_the_price_of_every_limit_that_does_not_bind():
    mdp, problem = mdp_and_problem(2, 2)
    found = regularized(problem, {"g0": 0.0, "g1": 0.5}, **PLAYERS)
    low, high = found.limit_ranges["g0"]
    assert (low, high) == (found.limits["g0"], np.inf)
    assert f"limits on g0 from {low:.6g} upwards" in found.explanation
    slack = [AtMost("g0", low + 1.0), AtMost("g1", found.limits["g1"])]
    assert mdp.optimum(objective="c", constraints=slack).values["c"] == pytest.approx(found.values["c"], abs=1e-6)


def test_lower_limits_are_in_the_users_signs():
    """Two actions in one step: `1` costs one and yields two."""
    mdp = TabularMDP(np.zeros((1, 2, 1)), {"c": [[0.0, 1.0]], "good": [[0.0, 2.0]]}, np.ones(1), 0.9)
    problem = Problem(mdp.exact_log(), objective="c", constraints=[AtLeast("good", 0.5)], discount=0.9)
    dear = regularized(problem, {"good": 0.75}, **PLAYERS)
    assert (dear.values, dear.limits) == ({"c": 1.0, "good": 2.0}, {"good": 2.0})
    assert "the best among those with good at least 2." in dear.explanation
    assert regularized(problem, [0.0], **PLAYERS).limit_ranges == {"good": (-np.inf, 0.0)}
    priced = multipliers_for(problem, **PLAYERS, **SOLVER)
    assert priced.multipliers == pytest.approx({"good": 0.5})
    assert priced.regularized.limit_ranges["good"] == pytest.approx((0.0, 2.0))


@pytest.mark.parametrize(
    "cost",
    [AtMost(KLDivergence(TabularPolicy.uniform(8, 3)), 2.0), AtLeast(Entropy(), 3.0)],
    ids=["KL", "entropy"],
)
def test_with_costs_of_the_policy_limit_and_multiplier_determine_each_other(cost):
    """Soft policies change little by little, so that each price has one limit."""
    mdp = random_mdp(1, n_constraints=1, n_states=8, n_actions=3, successors=3, discount=0.9)
    problem = Problem(mdp.exact_log(), objective="c", constraints=[AtMost("g0", 4.6), cost], discount=0.9)
    priced = multipliers_for(problem, **PLAYERS, **SOLVER | {"max_rounds": 200})
    assert min(priced.multipliers.values()) > 0.05  # both bind
    for c in problem.constraints:
        low, high = priced.regularized.limit_ranges[c.name]
        assert high - low < 1e-6
        assert c.limit == pytest.approx(low, abs=1e-4)
    at = regularized(problem, [0.3, 0.2], **PLAYERS)
    limits = [replace(c, limit=at.limits[c.name]) for c in problem.constraints]
    again = multipliers_for(replace(problem, constraints=limits), **PLAYERS, **SOLVER | {"max_rounds": 200})
    assert list(again.multipliers.values()) == pytest.approx([0.3, 0.2], abs=1e-3)


def test_without_constraints_the_policy_is_the_best_of_all():
    mdp, _ = mdp_and_problem(0, 1)
    found = regularized(exact_problem(mdp, []), [], **PLAYERS)
    assert found.values["c"] == pytest.approx(mdp.optimum(objective="c").values["c"])
    assert found.explanation == "At these multipliers the policy is, by estimate, the best of all."


def test_the_grid_answers_and_values_every_point():
    mdp, problem = mdp_and_problem(3, 2)
    axes = {"g0": np.linspace(0, 2, 11), "g1": np.linspace(0, 2, 11)}
    grid = regularized_grid(problem, axes, **PLAYERS)
    assert grid.multipliers.shape == (121, 2)
    table = grid.table()
    assert table.columns == ["multiplier of g0", "multiplier of g1", "c", "g0", "g1", "g0 met", "g1 met", "all met"]
    for row, policy in zip(table.iter_rows(named=True), grid.policies, strict=True):
        exact = mdp.values(policy)
        assert [row[name] for name in exact] == pytest.approx(list(exact.values()), abs=1e-8)
        price = {name: row[f"multiplier of {name}"] for name in axes}
        total = exact["c"] + sum(price[name] * exact[name] for name in axes)
        assert total == pytest.approx(least_lagrangian(mdp, price), abs=1e-7)
        met = [exact[c.cost] <= c.limit for c in problem.constraints]
        assert [row["g0 met"], row["g1 met"], row["all met"]] == [*met, all(met)]
    assert 0 < table["all met"].sum() < 121
    best = grid.best()
    assert best.values["c"] == table.filter(table["all met"])["c"].min()
    assert best.limit_ranges is None
    assert best.values["c"] >= mdp.optimum(objective="c", constraints=problem.constraints).values["c"] - 1e-8


def test_points_are_as_good_as_axes_and_any_best_response_will_do():
    _, problem = mdp_and_problem(3, 2)
    points = [[0.0, 0.0], [0.5, 1.0]]
    wanted = regularized_grid(problem, points, **PLAYERS).table()
    alone = {**PLAYERS, "best_response": FQI(Tabular()).__call__}
    assert regularized_grid(problem, np.array(points), **alone).table().equals(wanted)
    assert regularized_grid(problem, {"g1": [0.0], "g0": [0.0]}, **PLAYERS).table().equals(wanted[:1])


def test_where_no_point_meets_the_limits_there_is_no_best():
    mdp, _ = mdp_and_problem(3, 1)
    assert regularized_grid(exact_problem(mdp, [AtMost("g0", 0.0)]), [[0.0], [1.0]], **PLAYERS).best() is None


@pytest.mark.parametrize("response", [FQI(Tabular()), LSPI(Tabular())], ids=["FQI", "LSPI"])
def test_on_the_binding_lake_a_grid_of_121_multipliers_comes_near_the_optimum_and_does_not_reach_it(response):
    lake = frozen_lake.lake()
    limits = [AtMost("hole", frozen_lake.HOLE_LIMIT)]
    problem = Problem(lake.exact_log(), objective="goal", constraints=limits, discount=frozen_lake.DISCOUNT)
    grid = regularized_grid(problem, {"hole": np.linspace(0, 1, 121)}, best_response=response, evaluator=FQE(Tabular()))
    assert grid.meets_limits.sum() == 81
    best, optimum = grid.best(), lake.optimum(objective="goal", constraints=limits)
    assert optimum.values["goal"] == pytest.approx(-0.40762, abs=1e-5)
    assert best.values["goal"] == pytest.approx(-0.40380, abs=1e-5)
    assert best.limits["hole"] == pytest.approx(0.01841, abs=1e-5)  # no single one is best at the limit itself
    price = multipliers_for(problem, **PLAYERS, **SOLVER)
    assert price.multipliers == pytest.approx(optimum.multipliers, abs=1e-6)
    assert price.regularized.limit_ranges["hole"] == pytest.approx((0.018408, 0.041018), abs=1e-6)


@pytest.mark.parametrize(
    ("multipliers", "message"),
    [
        ({"g0": 1.0}, "given for 'g0', but the constraints are 'g0', 'g1'"),
        ({"g0": 1.0, "g1": 1.0, "h": 1.0}, "'h', but the constraints are"),
        ([1.0], r"shape \(1,\), but there are 2 constraints"),
        ([1.0, -0.5], "a multiplier is -0.5"),
        ([1.0, np.nan], "a multiplier is nan"),
    ],
)
def test_multipliers_that_are_none_are_refused(multipliers, message):
    _, problem = mdp_and_problem(0, 2)
    with pytest.raises(ArgumentError, match=message):
        regularized(problem, multipliers, **PLAYERS)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ({"g0": [1.0]}, "multipliers are given for 'g0', but the constraints are 'g0', 'g1'"),
        ({"g0": [1.0], "g1": []}, r"shape \(0,\)"),
        ([[1.0]], r"shape \(1, 1\): it must be \(points, 2\)"),
        ([[1.0, -1.0]], "a multiplier is -1.0"),
    ],
)
def test_grids_that_are_none_are_refused(points, message):
    _, problem = mdp_and_problem(0, 2)
    with pytest.raises(ArgumentError, match=message):
        regularized_grid(problem, points, **PLAYERS)


def test_limits_that_no_policy_keeps_have_no_price():
    mdp, _ = mdp_and_problem(0, 1)
    with pytest.raises(ProblemError, match="limits that no policy keeps have no price. Infeasible"):
        multipliers_for(exact_problem(mdp, [AtMost("g0", 0.0)]), **PLAYERS, **SOLVER)
