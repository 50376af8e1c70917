"""frontier: the trade-off as users call it, its tables, and what is certified of it."""

import numpy as np
import pytest

from checkrein import FQE, FQI, AtMost, CuttingPlane, Problem, Support, Tabular, TabularPolicy, frontier, solve
from checkrein.base.errors import ArgumentError
from checkrein.certification.certify import certify
from checkrein.selection.frontier import judge_points
from checkrein_studies import frozen_lake
from problems import PLAYERS, binding_limits, exact_problem, random_mdp

MDP = random_mdp(0, n_constraints=2, n_states=10)
LIMITS = binding_limits(MDP)
OPTIONS = PLAYERS | {"learner": CuttingPlane(50.0), "tolerance": 1e-5, "max_rounds": 100}
LOGGED = random_mdp(1, n_constraints=1, n_states=5, n_actions=2, ending=0.2)


def logged(seed, limit=4.0):
    uniform = TabularPolicy.uniform(5, 2)
    log = LOGGED.simulate(uniform, episodes=400, max_steps=60, rng=np.random.default_rng(seed))
    return Problem(log, objective="c", constraints=[AtMost("g0", limit)], discount=LOGGED.discount)


@pytest.fixture(scope="module")
def found():
    return frontier(exact_problem(MDP, LIMITS), sweep={"g0": 6}, **OPTIONS)


def test_a_number_of_limits_spans_all_that_can_be_traded(found):
    free = MDP.optimum(objective="c").values["g0"]
    limits = found.limits["g0"]
    assert len(limits) == len(found.points) == 6
    assert limits[-1] == pytest.approx(free)
    assert limits[0] == pytest.approx(MDP.optimum(objective="g0").values["g0"], abs=0.02)
    assert np.ptp(np.diff(limits)) == pytest.approx(0, abs=1e-9)


def test_the_table_has_the_exact_values_and_prices_of_every_point(found):
    table = found.table()
    for row in table.filter(table["status"] == "converged").iter_rows(named=True):
        constraints = [AtMost("g0", row["limit of g0"]), LIMITS[1]]
        exact = MDP.optimum(objective="c", constraints=constraints)
        assert row["c"] == pytest.approx(exact.values["c"], abs=1e-4)
        for name, price in exact.multipliers.items():
            assert row[f"price of {name}, least"] - 1e-6 <= price <= row[f"price of {name}, largest"] + 1e-6
    assert (table["status"] == "converged").sum() >= 4
    assert table["new_rounds"].sum() <= found.asked
    lost = table.filter(table["status"] == "infeasible")
    assert lost["c"].is_null().all()


def test_more_room_never_costs_more(found):
    table = found.table()
    values = table.filter(table["status"] == "converged")["c"].to_numpy()
    assert (np.diff(values) <= 1e-5).all()


def test_every_policy_found_is_in_the_pareto_view(found):
    policies = found.policies()
    assert 0 < len(policies) <= len(found.rounds)
    assert policies["coverage"].all()  # each was the best for the multipliers that it answered
    assert policies["non_dominated"].all()
    first = policies.filter(policies["round"] == 1)
    assert first["c"][0] == pytest.approx(MDP.optimum(objective="c").values["c"])


def test_two_limits_make_a_grid():
    grid = frontier(exact_problem(MDP, LIMITS), sweep={"g0": [LIMITS[0].limit, 9.0], "g1": 2}, **OPTIONS)
    assert len(grid.points) == 4
    assert {"limit of g0", "limit of g1"} <= set(grid.table().columns)


def test_all_points_are_certified_together_at_equal_shares_of_one_look():
    players = {"best_response": FQI(Tabular(), support=Support(5)), "evaluator": FQE(Tabular())}
    options = {**players, "learner": CuttingPlane(50.0), "tolerance": 1e-3, "max_rounds": 50}
    held_out = logged(1)
    found = frontier(logged(0), sweep={"g0": 4}, held_out=held_out, look=1, method="fqe-t", **options)
    assert found.confidence == 0.95
    for point, judged in zip(found.points, found.held_out, strict=True):
        limit = AtMost("g0", point.limits["g0"])
        options = {"constraints": [limit], "discount": held_out.discount, "method": "fqe-t"}
        alone = certify(point.policy, held_out.dataset, confidence=1 - 0.8 * 0.05 / 4, **options)
        assert judged.certificate.bounds == alone.bounds
        assert judged.certificate.verdict == alone.verdict
        assert judged.certificate.alpha == pytest.approx(0.01)
        assert judged.values[1] == pytest.approx(alone.estimates["g0"])
    table = found.table()
    assert set(table["verdict"]) <= {"pass", "inconclusive", "fail"}
    assert (table["c, standard error"] > 0).all()
    uncertified = judge_points(found, held_out, confidence=None, method="fqe-t")
    assert uncertified.table()["verdict"].is_null().all()
    assert uncertified.table()["c, held out"].to_list() == table["c, held out"].to_list()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sweep": {"g7": 5}}, "no constraint is called 'g7': there are g0, g1"),
        ({"sweep": {}}, "0 limits are to be swept: give one, or two"),
        ({"sweep": {"g0": 1}}, "1 points of g0 make no frontier"),
        ({"sweep": {"g0": []}}, "the limits of g0 are []: give one or more finite numbers"),
        ({"sweep": {"g0": [1.0, float("nan")]}}, "give one or more finite numbers"),
        ({"sweep": {"g0": 5}, "margins": {"x": 1.0}}, "no constraint is called 'x'"),
        ({"sweep": {"g0": 5}, "tolerance": -1}, "tolerance is -1"),
    ],
)
def test_what_cannot_be_swept_is_said(changes, message):
    with pytest.raises(ArgumentError, match=message.replace("[", r"\[").replace("]", r"\]")):
        frontier(exact_problem(MDP, LIMITS), **OPTIONS | changes)


def test_a_limit_that_buys_nothing_is_said():
    costs = {"c": MDP.costs["c"], "g0": MDP.costs["c"]}  # the least of one is the least of the other
    mdp = type(MDP)(MDP.transitions, costs, MDP.initial, MDP.discount)
    with pytest.raises(ArgumentError, match="there is nothing to trade"):
        frontier(exact_problem(mdp, [AtMost("g0", 9.0)]), sweep={"g0": 5}, **OPTIONS)


@pytest.mark.slow
def test_thirty_limits_of_the_binding_lake_cost_little_more_than_one_solve():
    mdp = frozen_lake.lake()
    limit = AtMost("hole", frozen_lake.HOLE_LIMIT)
    problem = Problem(mdp.exact_log(), objective="goal", constraints=[limit], discount=mdp.discount)
    options = PLAYERS | {"learner": CuttingPlane(30.0), "tolerance": 1e-4, "max_rounds": 50}
    one = solve(problem, **options)
    found = frontier(problem, sweep={"hole": 30}, **options)
    assert found.asked <= 3 * len(one.rounds) + 2  # two of them find the range
    for point in found.points:
        exact = mdp.optimum(objective="goal", constraints=[AtMost("hole", point.limits["hole"] + 1e-9)])
        assert point.values.objective == pytest.approx(exact.values["goal"], abs=1e-4)
        sure = point.prices["hole"]
        assert sure.low - 1e-4 <= exact.multipliers["hole"] <= sure.high + 1e-4 or sure.bounded
