import numpy as np
import pytest

from checkrein import (
    FQE,
    FQI,
    AtLeast,
    AtMost,
    CuttingPlane,
    ExponentiatedGradient,
    OnlineGradientDescent,
    Problem,
    Tabular,
    Values,
    rounds,
    solve,
)
from checkrein.base.errors import ArgumentError
from problems import PLAYERS, binding_limits, exact_problem, problem_of, random_log, random_mdp

MDP = random_mdp(0, n_constraints=2, n_states=15)
LIMITS = binding_limits(MDP)
PROBLEM = exact_problem(MDP, LIMITS)
BEST = MDP.optimum(objective="c", constraints=LIMITS)


def run(problem=PROBLEM, learner=None, **changes):
    choices = PLAYERS | {"learner": learner or CuttingPlane(50.0), "tolerance": 1e-6, "max_rounds": 100}
    return solve(problem, **choices | changes)


def test_a_solution_says_everything_about_itself():
    solution = run()
    assert solution.status == "converged"
    assert solution.explanation.startswith(f"Converged in {len(solution.rounds)} rounds: the duality gap is")
    assert solution.values == pytest.approx(BEST.values, abs=1e-5)
    assert solution.multipliers == pytest.approx(BEST.multipliers, abs=1e-3)
    assert solution.lower_bound <= BEST.values["c"] + 1e-9
    assert solution.weighting == "linear program"
    assert solution.policy.weights.sum() == pytest.approx(1)
    assert (solution.policy.weights > 0).all()
    assert 1 < len(solution.policy.members) <= 1 + len(LIMITS)  # a vertex mixes at most one more than constraints


def test_at_least_is_at_most_of_the_negative():
    log = PROBLEM.dataset
    mirrored = log.with_costs({"c": log.cost("c"), "g0": -log.cost("g0"), "g1": log.cost("g1")})
    constraints = [AtLeast("g0", -LIMITS[0].limit), LIMITS[1]]
    solution = run(Problem(mirrored, objective="c", constraints=constraints, discount=MDP.discount))
    assert solution.values["g0"] == pytest.approx(-BEST.values["g0"], abs=1e-5)
    assert solution.values["c"] == pytest.approx(BEST.values["c"], abs=1e-5)


def test_the_round_limit_says_what_to_do():
    solution = run(learner=ExponentiatedGradient(5.0, 0.01), max_rounds=3, tolerance=1e-9)
    assert solution.status == "round limit"
    assert len(solution.rounds) == 3
    assert "Raise max_rounds" in solution.explanation


@pytest.mark.parametrize(
    "learner", [CuttingPlane(5.0), ExponentiatedGradient(5.0, 1.0), OnlineGradientDescent(5.0, 1.0)]
)
def test_an_infeasible_problem_names_the_closest_values(learner):
    low = [AtMost(limit.cost, 0.1) for limit in LIMITS]
    problem = exact_problem(MDP, low)
    solution = run(problem, learner, max_rounds=60)
    assert solution.status == "infeasible"
    assert "The closest that any comes: g0 is" in solution.explanation
    # no mixture comes closer, in the units that the search used: check one limit at a time
    for limit in low:
        assert solution.values[limit.cost] >= MDP.optimum(objective=limit.cost).values[limit.cost] - 1e-6


def test_with_one_constraint_the_closest_value_is_its_minimum():
    problem = exact_problem(MDP, [AtMost("g0", 0.1)])
    least = MDP.optimum(objective="g0").values["g0"]
    solution = run(problem, CuttingPlane(5.0))
    assert solution.status == "infeasible"
    assert solution.values["g0"] == pytest.approx(least, rel=2e-3)
    assert MDP.values(solution.policy)["g0"] == pytest.approx(solution.values["g0"], abs=1e-9)


def test_that_no_policy_meets_the_limits_is_proven_sooner_than_how_closely_one_comes():
    problem = exact_problem(MDP, [AtMost(limit.cost, 0.1) for limit in LIMITS])
    asked = {}
    for closest in (True, False):
        calls = []

        def evaluator(problem, policy, *, rng, calls=calls):
            calls.append(policy)
            return FQE(Tabular())(problem, policy, rng=rng)

        solution = run(problem, CuttingPlane(5.0), evaluator=evaluator, closest=closest)
        assert solution.status == "infeasible"
        assert ("The closest that any comes" in solution.explanation) is closest
        asked[closest] = len(calls)
    assert asked[False] < asked[True]


def test_a_bound_below_the_price_is_told_from_an_infeasible_problem():
    solution = run(learner=CuttingPlane(0.1 * sum(BEST.multipliers.values())))
    assert solution.status == "multiplier bound active"
    assert "raise the learner's bound" in solution.explanation


class Broken:
    """An evaluator that fails from the third round on."""

    def __init__(self):
        self.calls = 0

    def __call__(self, problem, policy, *, rng):
        self.calls += 1
        values = FQE(Tabular())(problem, policy, rng=rng)
        return values if self.calls < 3 else Values(float("nan"), values.constraints)


def test_values_that_are_not_numbers_stop_the_run_and_keep_what_was_found():
    solution = run(evaluator=Broken())
    assert solution.status == "not finite"
    assert len(solution.rounds) == 2
    assert np.isfinite(list(solution.values.values())).all()
    assert "in round 3 the evaluation gave" in solution.explanation


class Noisy:
    """A best response that is often not the best."""

    def __call__(self, problem, multipliers, *, rng, start=None):
        return FQI(Tabular())(problem, multipliers * rng.uniform(0, 3) + rng.exponential(0.5), rng=rng)


@pytest.mark.parametrize(
    "learner", [CuttingPlane(5.0), ExponentiatedGradient(5.0, 0.3), OnlineGradientDescent(5.0, 0.3)]
)
@pytest.mark.parametrize("weighting", ["best", "uniform"])
def test_the_gap_is_never_negative_however_poor_the_best_responses(learner, weighting):
    choices = PLAYERS | {"best_response": Noisy(), "learner": learner, "weighting": weighting}
    game = rounds(PROBLEM, **choices)
    gaps = [next(game).gap for _ in range(40)]
    assert min(gaps) >= -1e-9


def test_the_lower_bound_holds_against_the_true_optimum_and_the_upper_from_above():
    for current in run().rounds:
        assert current.lower <= BEST.values["c"] + 1e-9
        assert current.upper >= BEST.values["c"] - 1e-9


def test_the_mixtures_values_are_those_of_its_members():
    last = run().rounds[-1]
    each = np.array([played.objective for played in run().rounds])
    assert last.mixture.objective == pytest.approx(last.member_weights @ each)


def test_uniform_weights_are_the_papers():
    solution = run(learner=ExponentiatedGradient(5.0, 0.1), weighting="uniform", max_rounds=12, tolerance=1e-9)
    assert solution.weighting == "uniform"
    assert solution.rounds[-1].member_weights == pytest.approx(np.full(12, 1 / 12))


def test_every_round_is_announced_once():
    seen = []
    solution = run(on_round=seen.append)
    assert [played.index for played in seen] == list(range(1, len(solution.rounds) + 1))


def test_what_other_limits_found_need_not_be_found_again():
    """A frontier: best responses do not depend on the limits, so those of one point serve the next."""
    first = run()
    tighter = [AtMost(c.cost, 0.97 * c.limit) for c in LIMITS]
    exact = MDP.optimum(objective="c", constraints=tighter)
    seen = []
    again = run(exact_problem(MDP, tighter), known=first.rounds, on_round=seen.append)
    assert again.status == "converged"
    assert again.values["c"] == pytest.approx(exact.values["c"], abs=1e-5)
    assert [played.index for played in seen] == list(range(len(first.rounds) + 1, len(again.rounds) + 1))
    fresh = run(exact_problem(MDP, tighter))
    assert len(seen) < len(fresh.rounds)
    assert again.lower_bound <= exact.values["c"] + 1e-9


def test_limits_that_known_policies_already_meet_need_no_new_one():
    first, seen = run(), []
    again = run(known=first.rounds, on_round=seen.append)
    assert seen == []
    assert again.values == pytest.approx(first.values)
    assert again.gap == pytest.approx(first.gap, abs=1e-9)


def test_a_log_that_shows_too_little_is_solved_within_what_it_shows():
    log = random_log(5, episodes=8)
    solution = run(problem_of(log, limits=(3.0, 3.0)))
    logged = set(zip(log.states.tolist(), log.actions.tolist(), strict=True))
    left = sorted({state for state, _ in logged})
    for member in solution.policy.members:
        assert all(
            (state, action) in logged for state, action in zip(left, member.actions(np.array(left)), strict=True)
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tolerance": 0.0}, "tolerance is 0.0"),
        ({"max_rounds": 0}, "max_rounds is 0"),
        ({"weighting": "equal"}, "weighting is 'equal'"),
    ],
)
def test_parameters_outside_their_range_are_refused(change, message):
    with pytest.raises(ArgumentError, match=message):
        run(**change)


def test_the_parts_have_defaults():
    solution = solve(PROBLEM)
    assert solution.status == "converged"
    within = 1e-3 * PROBLEM.dataset.cost("c").std()
    assert solution.gap <= within
    assert solution.values["c"] == pytest.approx(BEST.values["c"], abs=within)
