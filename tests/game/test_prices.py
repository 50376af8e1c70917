"""Prices that are one number and prices that are a range, against exact linear programs."""

import numpy as np
import pytest

from checkrein import AtMost, CuttingPlane, ExponentiatedGradient, OnlineGradientDescent, TabularMDP, solve
from checkrein.game.columns import Columns
from checkrein.game.prices import price_ranges, settle_prices
from problems import PLAYERS, binding_limits, exact_problem, random_mdp

MDP = random_mdp(3, n_constraints=1, n_states=12)
TIGHT = {"tolerance": 1e-9, "max_rounds": 200}


def optimum(limit, mdp=MDP, name="g0"):
    return mdp.optimum(objective="c", constraints=[AtMost(name, limit)])


def a_vertex():
    """The values of a deterministic policy on the frontier, strictly between its ends."""
    limit = binding_limits(MDP)[0]
    members = solve(exact_problem(MDP, [limit]), learner=CuttingPlane(50.0), **PLAYERS, **TIGHT).policy.members
    assert len(members) == 2
    return MDP.values(members[0])["g0"]


def duals_around(limit, step=1e-4):
    """The slopes of the exact frontier to the left and to the right."""
    values = [optimum(limit + side * step).values["c"] for side in (-1, 0, 1)]
    return (values[0] - values[1]) / step, (values[1] - values[2]) / step


@pytest.mark.parametrize("seed", range(4))
def test_a_unique_price_is_the_dual_of_the_exact_program(seed):
    mdp = random_mdp(seed, n_constraints=2, n_states=12)
    limits = binding_limits(mdp)
    solution = solve(exact_problem(mdp, limits), learner=CuttingPlane(50.0), **PLAYERS, **TIGHT)
    exact = mdp.optimum(objective="c", constraints=limits).multipliers
    for name, (low, high) in solution.price_ranges.items():
        assert low <= solution.multipliers[name] <= high
        assert (low, high) == pytest.approx((exact[name], exact[name]), abs=1e-4)
    assert solution.price_notes == {}
    assert "price" not in solution.explanation


def test_an_open_gap_leaves_a_range_that_holds_the_exact_price_and_says_that_more_rounds_would_tell():
    limit = binding_limits(MDP)[0]
    learner = CuttingPlane(50.0)
    exact = optimum(limit.limit).multipliers["g0"]
    solution = solve(exact_problem(MDP, [limit]), learner=learner, **PLAYERS, tolerance=0.3, max_rounds=9)
    low, high = solution.price_ranges["g0"]
    assert low < exact < high
    assert low <= solution.multipliers["g0"] <= high
    assert solution.gap > 1e-3
    assert f"The price of g0 is only known to lie between {low:.4g} and {high:.4g}" in solution.explanation


def test_at_a_vertex_the_price_is_the_range_between_the_slopes_of_the_exact_frontier():
    limit = a_vertex()
    left, right = duals_around(limit)
    assert left > right + 0.01
    problem, learner = exact_problem(MDP, [AtMost("g0", limit)]), CuttingPlane(50.0)
    solution = solve(problem, learner=learner, **PLAYERS, **TIGHT)
    low, high = solution.price_ranges["g0"]
    assert low <= right + 1e-6
    assert high >= left - 1e-6  # an outer range, from the policies found
    assert "The price of g0 is not unique: between" in solution.explanation
    settled = settle_prices(problem, solution.rounds, learner=learner, **PLAYERS)
    (found,) = price_ranges(Columns.of(settled), problem.limits, learner)
    assert (found.low, found.high) == pytest.approx((right, left), abs=1e-5)
    assert found.wide
    assert not found.unique
    assert len(settled) > len(solution.rounds)


def test_prices_that_are_settled_ask_nothing_more():
    limit = binding_limits(MDP)[0]
    problem, learner = exact_problem(MDP, [limit]), CuttingPlane(50.0)
    solution = solve(problem, learner=learner, **PLAYERS, **TIGHT)
    assert settle_prices(problem, solution.rounds, learner=learner, **PLAYERS) == solution.rounds


def test_at_the_least_that_can_be_reached_the_bound_decides():
    least = MDP.optimum(objective="g0").values["g0"]
    problem = exact_problem(MDP, [AtMost("g0", least)])
    solution = solve(problem, learner=CuttingPlane(500.0), **PLAYERS, **TIGHT)
    low, high = solution.price_ranges["g0"]
    assert high == pytest.approx(500.0)
    assert low < 250
    assert "the largest is what the learner's bound allows" in solution.explanation


def repeated(copies):
    """The same constraint many times over, some of it a little looser."""
    costs = {"c": MDP.costs["c"]} | {f"g{i}": MDP.costs["g0"] for i in range(copies)}
    return TabularMDP(MDP.transitions, costs, MDP.initial, MDP.discount)


def test_of_a_constraint_and_its_copies_any_may_carry_the_price():
    limit = binding_limits(MDP)[0].limit
    exact = optimum(limit).multipliers["g0"]
    mdp = repeated(16)
    limits = [AtMost(f"g{i}", limit + (0.0 if i < 12 else 0.5)) for i in range(16)]
    solution = solve(exact_problem(mdp, limits), learner=CuttingPlane(50.0), **PLAYERS, **TIGHT)
    assert sum(solution.multipliers.values()) == pytest.approx(exact, abs=1e-3)
    for i in range(16):
        expected = (0.0, exact) if i < 12 else (0.0, 0.0)
        assert solution.price_ranges[f"g{i}"] == pytest.approx(expected, abs=1e-3)
    assert set(solution.price_notes) == {f"g{i}" for i in range(12)}


@pytest.mark.parametrize(
    ("learner", "reach"),
    [
        (ExponentiatedGradient(8.0, 1.0), (8.0, 8.0, 8.0)),
        (OnlineGradientDescent(8.0, 1.0), (8.0, 8.0, 8.0)),
        (CuttingPlane(8.0, scales=(1.0, 2.0, 4.0)), (8.0, 4.0, 2.0)),
    ],
)
def test_a_range_reaches_as_far_as_the_learners_own_ball(learner, reach):
    """One policy, on all limits: any multiplier is optimal."""
    columns = Columns(np.zeros(1), np.ones((1, 3)), np.zeros((1, 3)), np.zeros(1))
    found = price_ranges(columns, np.ones(3), learner)
    assert [(one.low, one.high) for one in found] == [pytest.approx((0.0, end), abs=1e-6) for end in reach]


def test_two_prices_that_add_up_share_a_round_ball_as_its_radius_allows():
    """Where only multipliers with lambda_1 = lambda_2 are optimal, an l2 ball ends them at bound / sqrt 2."""
    constraints = np.array([[1.0, -1.0], [-1.0, 1.0], [0.0, 0.0]])
    columns = Columns(np.zeros(3), constraints, np.zeros((1, 2)), np.zeros(1))
    found = price_ranges(columns, np.zeros(2), OnlineGradientDescent(10.0, 1.0))
    assert [one.high for one in found] == pytest.approx([10 / np.sqrt(2)] * 2, abs=1e-4)
    assert all(one.bounded for one in found)
    found = price_ranges(columns, np.zeros(2), CuttingPlane(10.0))
    assert [one.high for one in found] == pytest.approx([5.0] * 2, abs=1e-6)


def test_without_constraints_there_are_no_prices():
    solution = solve(exact_problem(MDP, []), learner=CuttingPlane(5.0), **PLAYERS, **TIGHT)
    assert solution.price_ranges == {}


def test_slack_of_the_size_of_rounding_does_not_make_a_limit_free():
    learner = CuttingPlane(50.0)
    solution = solve(exact_problem(MDP, binding_limits(MDP)), learner=learner, **PLAYERS, **TIGHT)
    columns = Columns.of(solution.rounds)
    ends = [MDP.values(member)["g0"] for member in solution.policy.members]
    price = solution.multipliers["g0"]
    for share in np.linspace(0.05, 0.95, 200):  # on one edge of the frontier the price is one number
        (found,) = price_ranges(columns, np.array([ends[0] + share * (ends[1] - ends[0])]), learner)
        assert (found.low, found.high) == pytest.approx((price, price), rel=1e-4)
