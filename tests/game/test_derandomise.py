from dataclasses import replace

import numpy as np
import pytest

from checkrein import (
    AtLeast,
    AtMost,
    CuttingPlane,
    GreedyPolicy,
    MixturePolicy,
    Polynomial,
    Problem,
    TabularPolicy,
    solve,
)
from checkrein.base.errors import ArgumentError, ProblemError
from checkrein.functions import LinearQ, TabularQ
from checkrein.game import averaged_weights, best_member
from checkrein.problem import Values
from deploy import exportable
from problems import PLAYERS, binding_limits, exact_problem, random_mdp

MDP = random_mdp(3, n_constraints=2, n_states=12)
PROBLEM = exact_problem(MDP, binding_limits(MDP))
SOLUTION = solve(PROBLEM, **PLAYERS, learner=CuttingPlane(30.0), tolerance=1e-7, max_rounds=60)


def with_values(rows, *, mixture, constraints=(("g0", 1.0), ("g1", 2.0)), kind=AtMost):
    """A problem and a solution whose rounds have the given (objective, constraints...)."""
    problem = Problem(
        PROBLEM.dataset, objective="c", constraints=[kind(name, limit) for name, limit in constraints], discount=0.9
    )
    pairs = zip(SOLUTION.rounds, rows, strict=False)
    found = [replace(played, values=Values(row[0], np.array(row[1:], dtype=float))) for played, row in pairs]
    assert len(found) == len(rows)
    return problem, replace(SOLUTION, rounds=tuple(found), values={"c": mixture})


def test_the_best_member_is_the_best_that_meets_the_limits_in_the_exact_mdp():
    chosen = best_member(PROBLEM, SOLUTION)
    exact = [MDP.values(played.policy) for played in SOLUTION.rounds]
    feasible = [v["c"] for v in exact if all(v[c.cost] <= c.limit + 1e-7 for c in PROBLEM.constraints)]
    assert feasible, "the example has a member that meets the limits"
    assert chosen.meets_limits
    assert chosen.worst_violation == 0
    assert MDP.values(chosen.policy)["c"] == pytest.approx(min(feasible), abs=1e-6)
    assert chosen.values == pytest.approx(MDP.values(chosen.policy), abs=1e-6)
    assert chosen.price == pytest.approx(MDP.values(chosen.policy)["c"] - MDP.values(SOLUTION.policy)["c"], abs=1e-6)
    assert chosen.price >= -1e-7  # no single policy beats the optimal mixture
    assert SOLUTION.rounds[chosen.index - 1].policy is chosen.policy


def test_members_without_weight_are_candidates_and_the_price_is_stated():
    rows = [(1.0, 5, 5), (4.0, 0.5, 1.0), (3.0, 1.0, 2.0), (2.0, 1.1, 0.0)]
    chosen = best_member(*with_values(rows, mixture=2.25))
    assert (chosen.index, chosen.meets_limits, chosen.price) == (3, True, 0.75)
    assert "round 3 alone meets every limit: g0 is 1, at most 1 allowed; g1 is 2" in chosen.explanation
    assert "c is 3, 0.75 more than the mixture's 2.25" in chosen.explanation


def test_where_none_meets_the_limits_the_closest_is_returned_and_said_so():
    rows = [(1.0, 1.5, 0), (2.0, 1.2, 2.1), (3.0, 0.9, 2.2)]
    chosen = best_member(*with_values(rows, mixture=2.5))
    assert (chosen.index, chosen.meets_limits) == (2, False)
    assert chosen.worst_violation == pytest.approx(0.2)
    assert "no single policy found meets every limit; that of round 2 comes closest" in chosen.explanation
    assert "c is 2, 0.5 less than the mixture's 2.5" in chosen.explanation


def test_lower_limits_are_shown_in_the_users_signs():
    problem, solution = with_values([(1.0, -3.0), (0.5, -1.0)], mixture=0.8, constraints=[("g0", 2.0)], kind=AtLeast)
    chosen = best_member(problem, solution)
    assert chosen.values == {"c": 1.0, "g0": 3.0}
    assert "g0 is 3, at least 2 allowed" in chosen.explanation


def test_the_tolerance_decides_what_counts_as_met():
    rows = [(1.0, 1.0 + 1e-6, 0), (2.0, 0, 0)]
    assert best_member(*with_values(rows, mixture=1.0)).index == 2
    assert best_member(*with_values(rows, mixture=1.0), tolerance=1e-5).index == 1


def test_rounds_that_are_not_finite_are_never_chosen():
    rows = [(float("nan"), 0, 0), (2.0, 0, 0), (1.0, float("inf"), 0)]
    assert best_member(*with_values(rows, mixture=1.0)).index == 2
    with pytest.raises(ProblemError, match="no policy found has finite values"):
        best_member(*with_values(rows[:1], mixture=1.0))


def test_without_constraints_the_best_is_the_cheapest():
    chosen = best_member(*with_values([(2.0,), (1.0,)], mixture=1.0, constraints=()))
    assert (chosen.index, chosen.price, chosen.meets_limits) == (2, 0.0, True)


def test_averaging_weights_averages_values():
    states = np.random.default_rng(1).normal(size=(50, exportable.D))
    functions = [exportable.linear_q(2) for _ in range(3)]
    mixture = MixturePolicy(tuple(GreedyPolicy(q) for q in functions), np.array([0.2, 0.3, 0.5]))
    average = averaged_weights(mixture)
    expected = 0.2 * functions[0](states) + 0.3 * functions[1](states) + 0.5 * functions[2](states)
    assert average.q(states) == pytest.approx(expected, rel=1e-12)


def test_tables_of_unequal_length_are_averaged_as_if_zero_beyond():
    short, long = TabularQ(np.ones((2, 2, 1))), TabularQ(np.full((3, 2, 1), 4.0))
    mixture = MixturePolicy((GreedyPolicy(short), GreedyPolicy(long)), np.array([0.5, 0.5]))
    assert averaged_weights(mixture).q.table[:, 0, 0].tolist() == [2.5, 2.5, 2.0]


def test_the_average_keeps_the_support_and_a_solutions_members_can_be_averaged():
    average = averaged_weights(SOLUTION.policy)
    states = np.arange(MDP.n_states)
    assert np.array_equal(average.support.allowed(states), SOLUTION.policy.members[0].support.allowed(states))
    assert average.probabilities(states).sum() == MDP.n_states


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ((exportable.RULES["greedy"], TabularPolicy.uniform(2, 4)), "a member is a TabularPolicy"),
        ((GreedyPolicy(exportable.table_q()), exportable.RULES["greedy"]), "LinearQ, TabularQ: only LinearQ, or only"),
        ((exportable.RULES["quadratic"], exportable.RULES["strict"]), "member 1 has another support"),
        ((GreedyPolicy(exportable.linear_q(1)), GreedyPolicy(exportable.linear_q(2))), r"member 1 has weights \(4, 10"),
        ((GreedyPolicy(TabularQ(np.ones((2, 2, 1)))), GreedyPolicy(TabularQ(np.ones((2, 3, 1))))), "must be alike"),
        (tuple(GreedyPolicy(LinearQ(features, np.ones((2, 3, 1)))) for features in (Polynomial(1), np.abs)),
         "they must have the same features"),
    ],
)  # fmt: skip
def test_what_cannot_be_averaged_is_named(members, message):
    with pytest.raises(ArgumentError, match=message):
        averaged_weights(MixturePolicy(members, np.array([0.5, 0.5])))
