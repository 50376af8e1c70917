"""A sweep over limits: each point against the exact optimum, and what it may cost."""

import numpy as np
import pytest

from checkrein import AtLeast, AtMost, CuttingPlane, Problem, Status, TabularMDP, solve
from checkrein.base.errors import ArgumentError
from checkrein.game.columns import Columns, multiplier_bounds, trade_off
from checkrein.game.sweep import Players, Sweep, _halving, sweep_limits
from problems import PLAYERS, binding_limits, exact_problem, random_mdp

TOLERANCE = 1e-4
LEARNER = CuttingPlane(50.0)


def a_sweep(problem, **changes):
    choices = {"tolerance": TOLERANCE, "max_rounds": 100} | changes
    return Sweep(problem, Players(**PLAYERS, learner=LEARNER), **choices)


def grid(problem, mdp, name, count):
    least = mdp.optimum(objective=name).values[name]
    free = mdp.optimum(objective="c").values[name]
    return np.linspace(least + 0.02 * (free - least), free, count).tolist()


@pytest.mark.parametrize("seed", range(4))
def test_every_point_of_one_limit_is_the_exact_optimum_at_little_more_than_one_solve(seed):
    mdp = random_mdp(seed, n_constraints=1, n_states=20)
    problem = exact_problem(mdp, binding_limits(mdp))
    one = solve(problem, learner=LEARNER, tolerance=TOLERANCE, max_rounds=100, **PLAYERS)
    game = a_sweep(problem)
    limits = grid(problem, mdp, "g0", 15)
    for limit, point in zip(limits, sweep_limits(game, {"g0": limits}, {}), strict=True):
        exact = mdp.optimum(objective="c", constraints=[AtMost("g0", limit)])
        assert point.status == "converged"
        assert point.limits == {"g0": limit}
        assert point.values.constraints[0] <= limit + 1e-5
        assert exact.values["c"] - 1e-7 <= point.values.objective <= exact.values["c"] + TOLERANCE
        assert point.lower_bound <= exact.values["c"] + 1e-7
        assert point.prices["g0"].low - 1e-6 <= exact.multipliers["g0"] <= point.prices["g0"].high + 1e-6
        assert point.prices["g0"].low <= point.multipliers["g0"] + 1e-9
        assert mdp.values(point.policy)["c"] == pytest.approx(point.values.objective, abs=1e-8)
    assert game.asked <= 5 * len(one.rounds)  # 15 points by themselves would take 15 times as many
    assert len(game.rounds) == game.asked


def test_a_grid_of_two_limits_is_exact_and_knows_what_cannot_be_kept():
    mdp = random_mdp(1, n_constraints=2, n_states=12)
    problem = exact_problem(mdp, binding_limits(mdp))
    limits = {name: grid(problem, mdp, name, 4) for name in ("g0", "g1")}
    limits["g0"][0] -= 1.0  # below what any policy reaches
    points = sweep_limits(a_sweep(problem), limits, {})
    assert [point.limits for point in points] == [{"g0": a, "g1": b} for a in limits["g0"] for b in limits["g1"]]
    reached = 0
    for point in points:
        constraints = [AtMost(name, limit) for name, limit in point.limits.items()]
        try:
            exact = mdp.optimum(objective="c", constraints=constraints).values["c"]
        except ValueError:
            assert point.status is Status.INFEASIBLE
            continue
        reached += 1
        assert point.values.objective == pytest.approx(exact, abs=TOLERANCE + 1e-6)
    assert 4 < reached <= 12


def test_what_lies_beyond_limits_that_cannot_be_kept_is_not_searched_for_again():
    mdp = random_mdp(1, n_constraints=1, n_states=12)
    least = mdp.optimum(objective="g0").values["g0"]
    problem = exact_problem(mdp, [AtMost("g0", least + 1)])
    game = a_sweep(problem)
    points = sweep_limits(game, {"g0": [least - 5, least - 4, least - 3, least - 2, least - 1, least + 1]}, {})
    assert [point.status for point in points] == ["infeasible"] * 5 + ["converged"]
    assert points[2].new_rounds > 0
    assert points[1].new_rounds == 0  # it comes after a looser one that could not be kept


def test_known_rounds_make_a_sweep_free():
    mdp = random_mdp(2, n_constraints=1, n_states=12)
    problem = exact_problem(mdp, binding_limits(mdp))
    limits = {"g0": grid(problem, mdp, "g0", 6)}
    first = a_sweep(problem)
    before = sweep_limits(first, limits, {})
    again = a_sweep(problem, known=first.rounds)
    after = sweep_limits(again, limits, {})
    assert again.asked == 0
    assert [p.values.objective for p in after] == pytest.approx([p.values.objective for p in before])


def test_margins_aim_inside_every_limit_and_leave_the_limits_as_they_were_asked_for():
    mdp = random_mdp(2, n_constraints=2, n_states=12)
    limits = binding_limits(mdp)
    asked = [limits[0].limit, limits[0].limit + 0.3]
    points = sweep_limits(a_sweep(exact_problem(mdp, limits)), {"g0": asked}, {"g0": 0.05, "g1": 0.02})
    for point, limit in zip(points, asked, strict=True):
        assert point.limits == {"g0": limit, "g1": limits[1].limit}
        assert (point.values.constraints <= [limit - 0.05 + 1e-6, limits[1].limit - 0.02 + 1e-6]).all()


def test_a_floor_is_swept_in_the_users_own_sign():
    mdp = random_mdp(5, n_constraints=1, n_states=12)
    mirrored = TabularMDP(mdp.transitions, {"c": mdp.costs["c"], "g0": -mdp.costs["g0"]}, mdp.initial, mdp.discount)
    limit = binding_limits(mdp)[0].limit
    limits = [limit, limit + 0.2, limit + 0.5]
    up = sweep_limits(a_sweep(exact_problem(mdp, [AtMost("g0", limit)])), {"g0": limits}, {})
    floors = [-one for one in limits]
    down = sweep_limits(a_sweep(exact_problem(mirrored, [AtLeast("g0", -limit)])), {"g0": floors}, {})
    assert [p.values.objective for p in down] == pytest.approx([p.values.objective for p in up], abs=1e-6)


def test_the_ends_are_the_least_that_can_be_reached_and_what_is_incurred_without_limits():
    mdp = random_mdp(3, n_constraints=2, n_states=12)
    game = Sweep(exact_problem(mdp, binding_limits(mdp)), Players(**PLAYERS, learner=CuttingPlane(1e4)),
                 tolerance=TOLERANCE, max_rounds=50)  # fmt: skip
    for place, name in enumerate(("g0", "g1")):
        low, high = game.ends_of(place)
        assert low == pytest.approx(mdp.optimum(objective=name).values[name], abs=1e-3)
        assert high == pytest.approx(mdp.optimum(objective="c").values[name], abs=1e-9)
    assert game.asked == 3  # the unconstrained policy serves both


@pytest.mark.parametrize("count", [1, 2, 3, 7, 30])
def test_the_ends_come_first_and_then_the_middles(count):
    ranks = _halving(count)
    assert ranks[0] == ranks[-1] == 0
    assert all(rank > 0 for rank in ranks[1:-1])
    for rank in range(max(ranks)):  # what is found by then leaves gaps half as wide as before
        there = [place for place, one in enumerate(ranks) if one <= rank]
        assert np.diff(there).max(initial=1) <= np.ceil((count - 1) / 2**rank)


def test_the_trade_off_of_finished_rounds_encloses_the_exact_frontier_and_touches_it_at_the_limit():
    mdp = random_mdp(4, n_constraints=2, n_states=12)
    limits = binding_limits(mdp)
    problem = exact_problem(mdp, limits)
    played = solve(problem, learner=LEARNER, tolerance=1e-8, max_rounds=100, **PLAYERS).rounds
    found = trade_off(Columns.of(played), problem.limits, 0, count=9)
    for limit, reached, proven in zip(*found, strict=True):
        try:
            exact = mdp.optimum(objective="c", constraints=[AtMost("g0", limit), limits[1]]).values["c"]
        except ValueError:
            assert np.isnan(reached)
            continue
        assert proven <= exact + 1e-7
        assert np.isnan(reached) or reached >= exact - 1e-7
    columns, bounds = Columns.of(played), multiplier_bounds(LEARNER, 2)
    at_limit = columns.mixture(problem.limits, bounds).value - columns.proof(problem.limits).value
    assert at_limit == pytest.approx(0.0, abs=1e-7)


def test_values_that_are_not_numbers_end_a_sweep_with_an_error():
    mdp = random_mdp(3, n_constraints=1, n_states=12)

    def broken(problem: Problem, policy, *, rng):
        values = PLAYERS["evaluator"](problem, policy, rng=rng)
        return values._replace(objective=float("nan"))

    players = Players(PLAYERS["best_response"], broken, LEARNER)
    game = Sweep(exact_problem(mdp, binding_limits(mdp)), players, tolerance=TOLERANCE, max_rounds=50)
    with pytest.raises(ArithmeticError, match="in round 1 the evaluation gave"):
        sweep_limits(game, {"g0": [10.0]}, {})


def test_arguments_are_checked():
    mdp = random_mdp(3, n_constraints=1, n_states=12)
    with pytest.raises(ArgumentError, match="tolerance is 0"):
        a_sweep(exact_problem(mdp, binding_limits(mdp)), tolerance=0)
