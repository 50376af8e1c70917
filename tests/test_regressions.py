"""Small cases that once went wrong."""

import numpy as np
import pytest

from checkrein import (
    FQE,
    FQI,
    AtMost,
    CuttingPlane,
    Dataset,
    Linear,
    Polynomial,
    Problem,
    Support,
    Tabular,
    TabularPolicy,
    solve,
)
from checkrein.base.errors import ArgumentError, CheckreinError, DivergenceError
from problems import PLAYERS, random_mdp


def bandit(discount=0.9, terminal=True, **costs):
    """One state, one action per entry of each cost."""
    n = len(next(iter(costs.values())))
    log = Dataset.from_arrays(
        states=np.zeros(n, dtype=int), actions=np.arange(n), next_states=np.zeros(n, dtype=int),
        costs=costs, terminals=np.full(n, terminal), initial_states=[0],
    )  # fmt: skip
    return log, discount


def solved(log, discount, limits, *, bound=100.0, tolerance=1e-6):
    constraints = [AtMost(name, limit) for name, limit in limits.items()]
    problem = Problem(log, objective="c", constraints=constraints, discount=discount)
    return solve(problem, **PLAYERS, learner=CuttingPlane(bound), tolerance=tolerance, max_rounds=100)


def test_two_limits_that_only_conflict_together_are_infeasible():
    solution = solved(*bandit(c=[4.0, 2.0], g=[0.0, 2.0], h=[2.0, 0.0]), {"g": 0.99, "h": 0.99})
    assert solution.status == "infeasible"
    assert max(solution.values["g"], solution.values["h"]) == pytest.approx(1.0, abs=1e-2)


def test_a_constraint_that_no_policy_changes_is_no_obstacle():
    log, discount = bandit(terminal=False, c=[1.0, 2.0], g=[0.1, 0.1], h=[0.3, 0.2])
    solution = solved(log, discount, {"g": 1.0, "h": 2.5})
    assert solution.status == "converged"
    assert solution.values["c"] == pytest.approx(15.0)


def test_the_tolerance_of_the_objective_is_no_licence_to_break_a_limit():
    for g, status in (([0.9, 0.0], "converged"), ([0.9, 0.5], "infeasible")):
        solution = solved(*bandit(c=[0.0, 1e5], g=g), {"g": 0.1}, bound=1e6, tolerance=1.0)
        assert solution.status == status
        assert status == "infeasible" or solution.values["g"] <= 0.1 + 1e-6


@pytest.mark.parametrize("scale", [1e6, 1e7, 1.7e9])
def test_features_of_very_different_size_are_all_used(scale):
    rng = np.random.default_rng(0)
    states = scale * rng.random((500, 1))
    targets = 5.0 + states[:, 0] / scale
    design = Linear(Polynomial(1)).design(states, np.zeros(500, dtype=int), np.ones(500), n_actions=1)
    fitted = design.fit(targets[:, None], rng=rng)(states)[:, 0, 0]
    assert fitted == pytest.approx(targets, abs=1e-6)


def test_weights_below_one_do_not_shrink_the_support():
    rows = {"states": [0, 0, 0], "actions": [0, 0, 1], "next_states": [0, 0, 0], "terminals": [1, 1, 1]}
    for weights in ([1, 1, 1], [0.002, 0.002, 0.001]):
        log = Dataset.from_arrays(**rows, costs={"c": [2.0, 2.0, 1.0]}, initial_states=[0], weights=weights)
        assert Support().fit(log).allowed(np.array([0])).tolist() == [[True, True]]


@pytest.mark.parametrize("factor", [1e-8, 1e7])
def test_exact_optima_do_not_depend_on_the_units_of_costs(factor):
    mdp = random_mdp(0, n_states=12)
    limit = AtMost("g0", 0.5 * sum(mdp.optimum(objective=name).values["g0"] for name in ("c", "g0")))
    scaled = type(mdp)(
        mdp.transitions, {"c": mdp.costs["c"], "g0": factor * mdp.costs["g0"]}, mdp.initial, mdp.discount
    )
    one = mdp.optimum(objective="c", constraints=[limit])
    other = scaled.optimum(objective="c", constraints=[AtMost("g0", factor * limit.limit)])
    assert other.values["c"] == pytest.approx(one.values["c"], abs=1e-6)
    assert other.multipliers["g0"] * factor == pytest.approx(one.multipliers["g0"], rel=1e-5)


def test_worst_values_ignore_rows_that_do_not_count_and_survive_compression():
    rows = {"states": [0, 0, 0], "actions": [0, 0, 0], "next_states": [0, 0, 0], "terminals": [0, 1, 1]}
    log = Dataset.from_arrays(
        **rows, costs={"c": [1.0, 5.0, 1e6]}, weights=[1, 1, 0], episodes=[0, 0, 1], steps=[0, 1, 0]
    )
    worst = Problem(log, objective="c", constraints=[], discount=0.9).worst()
    assert worst == pytest.approx([50.0])
    for discount in (0.9, 1.0):
        pair = [Problem(d, objective="c", constraints=[], discount=discount).worst() for d in (log, log.compressed())]
        assert pair[0] == pytest.approx(pair[1])


def test_single_precision_columns_are_features_like_double_ones():
    rows = {"actions": [0, 1], "costs": {"c": [0, 1]}, "terminals": [1, 1], "episodes": [0, 1]}
    values = np.array([0.5, 1.5], dtype=np.float32)
    assert Dataset.from_arrays(states=values, next_states=values, **rows).n_states is None


def test_a_dataset_does_not_change_with_the_arrays_it_was_made_from():
    states, table = np.array([0, 0, 1, 1]), np.array([[1.0, 0.0]])
    log = Dataset.from_arrays(
        states=states, actions=[0, 1, 0, 1], next_states=states, costs={"c": [0, 1, 2, 3]}, terminals=[1] * 4,
        initial_states=[0],
    )  # fmt: skip
    policy = TabularPolicy(table)
    states[0], table[0] = 77, [0.0, 1.0]
    assert log.states.tolist() == [0, 0, 1, 1]
    assert policy.table.tolist() == [[1.0, 0.0]]


def test_a_next_state_of_minus_one_after_an_end_is_a_habit_not_an_error():
    rows = {"states": [0, 1], "actions": [0, 0], "costs": {"c": [0, 1]}, "initial_states": [0]}
    assert Dataset.from_arrays(**rows, next_states=[1, -1], terminals=[0, 1]).next_states.tolist() == [1, 1]
    with pytest.raises(CheckreinError, match="next_states is -1 in row 1"):
        Dataset.from_arrays(**rows, next_states=[1, -1], terminals=[0, 0])


class Diverging:
    """An evaluator that gives up in its third round."""

    def __init__(self):
        self.calls = 0

    def __call__(self, problem, policy, *, rng):
        self.calls += 1
        if self.calls == 3:
            raise DivergenceError("the radius is 1.2")
        return FQE(Tabular())(problem, policy, rng=rng)


def test_an_evaluation_that_diverges_keeps_the_rounds_before_it():
    mdp = random_mdp(0, n_states=12)
    limit = AtMost("g0", 0.5 * sum(mdp.optimum(objective=name).values["g0"] for name in ("c", "g0")))
    problem = Problem(mdp.exact_log(), objective="c", constraints=[limit], discount=mdp.discount)
    choices = PLAYERS | {"evaluator": Diverging(), "learner": CuttingPlane(50.0)}
    solution = solve(problem, **choices, tolerance=1e-9, max_rounds=50)
    assert solution.status == "not finite"
    assert len(solution.rounds) == 2
    assert "in round 3 the radius is 1.2" in solution.explanation


def test_a_feature_map_that_holds_arrays_is_welcome():
    class Waves:
        __hash__ = None

        def __call__(self, states):
            return np.column_stack([np.ones(len(states)), np.sin(states[:, 0])])

    rng = np.random.default_rng(0)
    states = rng.normal(size=(50, 1))
    log = Dataset.from_arrays(
        states=states, actions=rng.integers(0, 2, 50), next_states=states, costs={"c": rng.random(50)},
        terminals=np.ones(50), initial_states=states[:3],
    )  # fmt: skip
    problem = Problem(log, objective="c", constraints=[], discount=0.9)
    functions = Linear(Waves())
    policy = FQI(functions)(problem, np.zeros(0), rng=rng)
    assert np.isfinite(FQE(functions)(problem, policy, rng=rng).objective)


@pytest.mark.parametrize(
    "build",
    [
        lambda: FQI(Tabular(), iterations=2.5),
        lambda: CuttingPlane(None),
        lambda: Support(None),
        lambda: Dataset.from_arrays(states=[0], actions=[0], next_states=[0], costs={"c": [0]}, terminals=[1],
                                    initial_states=[0], n_actions=2.5),
        lambda: FQE(Tabular())(Problem(bandit(c=[1.0, 2.0])[0], objective="c", constraints=[], discount=0.9),
                               TabularPolicy.uniform(1, 3), rng=np.random.default_rng(0)),
    ],
)  # fmt: skip
def test_wrong_arguments_are_named(build):
    with pytest.raises(ArgumentError):
        build()
