"""What one question found serves another: against exact optima of random finite MDPs."""

from dataclasses import replace

import numpy as np
import pytest

from checkrein import FQE, AtMost, CuttingPlane, Problem, Tabular, TabularMDP, solve
from checkrein.base.errors import ArgumentError, CheckpointError
from checkrein.game.loop import Play
from checkrein.game.reuse import Earlier, answer, carry_over
from checkrein.game.solution import Status
from checkrein.problem import Question, Values
from problems import PLAYERS, binding_limits, exact_problem, random_mdp

MDPS = {seed: random_mdp(seed, n_constraints=2, n_states=12) for seed in range(4)}


def run(problem, **changes):
    return solve(problem, **PLAYERS | {"learner": CuttingPlane(50.0), "tolerance": 1e-8, "max_rounds": 200} | changes)


def first_run(seed):
    mdp = MDPS[seed]
    return mdp, run(exact_problem(mdp, binding_limits(mdp)))


def plays_of(solution):
    return [played.play for played in solution.rounds]


def asked(mdp, objective, constraints):
    return Problem(mdp.exact_log(), objective=objective, constraints=constraints, discount=mdp.discount)


def middling(mdp, objective, *costs):
    """Limits on costs that bind: half-way from what the objective's own optimum has to the least there is."""
    free = mdp.optimum(objective=objective).values
    return [AtMost(cost, (free[cost] + mdp.optimum(objective=cost).values[cost]) / 2) for cost in costs]


def swapped(mdp):
    return asked(mdp, "g0", [*middling(mdp, "g0", "c"), AtMost("g1", 1e3)]), [Earlier(1), Earlier(0), Earlier(2)]


def dropped(mdp):
    return asked(mdp, "c", middling(mdp, "c", "g1")), [Earlier(0), Earlier(2)]


def replaced(mdp):
    return asked(mdp, "g1", middling(mdp, "g1", "g0")), [Earlier(2), Earlier(1)]


def tighter(mdp):
    constraints = [AtMost(c.cost, 0.98 * c.limit) for c in binding_limits(mdp)]
    return asked(mdp, "c", constraints), [Earlier(0), Earlier(1), Earlier(2)]


@pytest.mark.parametrize("seed", MDPS)
@pytest.mark.parametrize("change", [tighter, swapped, dropped, replaced])
def test_another_question_has_the_same_optimum_whatever_was_known(change, seed):
    mdp, first = first_run(seed)
    problem, costs = change(mdp)
    exact = mdp.optimum(objective=problem.objective, constraints=problem.constraints).values[problem.objective]
    known = carry_over(plays_of(first), costs)
    before, again = answer(problem, known, tolerance=1e-8), run(problem, known=known)
    for found in (before, again):
        assert found.lower_bound <= exact + 1e-9
    assert again.status == "converged"
    assert again.values[problem.objective] == pytest.approx(exact, abs=1e-6)
    if before.status is Status.CONVERGED:
        assert before.values[problem.objective] == pytest.approx(exact, abs=1e-6)
    if problem.objective == "c":
        assert np.isfinite(before.lower_bound)  # the first round was played at no multipliers at all


@pytest.mark.parametrize("seed", MDPS)
@pytest.mark.parametrize("change", [swapped, dropped, replaced])
def test_a_play_that_still_answers_is_a_best_response_at_its_new_multipliers(change, seed):
    mdp, first = first_run(seed)
    problem, costs = change(mdp)
    known = carry_over(plays_of(first), costs)
    answering = [play for play in known if play.answers]
    assert answering or change is replaced
    for play in answering:
        assert (play.multipliers >= 0).all()
        pairs = zip(problem.constraints, play.multipliers, strict=True)
        mix = mdp.costs[problem.objective] + sum(m * mdp.costs[c.cost] for c, m in pairs)
        least = TabularMDP(mdp.transitions, {"mix": mix}, mdp.initial, mdp.discount).optimum(objective="mix")
        mine = play.values.objective + play.multipliers @ play.values.constraints
        assert mine == pytest.approx(least.values["mix"], rel=1e-7)


@pytest.mark.parametrize("seed", MDPS)
def test_a_constraint_more_is_valued_and_then_solved(seed):
    mdp = MDPS[seed]
    limits = binding_limits(mdp)
    first = run(exact_problem(mdp, limits[:1]))
    problem = exact_problem(mdp, limits)
    evaluator = FQE(Tabular())
    known = carry_over(
        plays_of(first),
        [Earlier(0), Earlier(1), None],
        evaluate=lambda policy: evaluator(problem, policy, rng=np.random.default_rng(0)),
    )
    for play in known:
        exact = mdp.values(play.policy)
        assert play.answers
        assert play.values.constraints == pytest.approx([exact["g0"], exact["g1"]])
        assert play.multipliers[1] == 0
    best = mdp.optimum(objective="c", constraints=limits).values["c"]
    assert answer(problem, known, tolerance=1e-8).lower_bound <= best + 1e-9
    again = run(problem, known=known)
    assert again.values["c"] == pytest.approx(best, abs=1e-6)


def test_what_was_solved_is_answered_again_without_a_log():
    mdp, first = first_run(0)
    found = answer(Question(objective="c", constraints=binding_limits(mdp)), plays_of(first), tolerance=1e-7)
    assert found.status is Status.CONVERGED
    assert found.values == pytest.approx(first.values, abs=1e-7)
    assert found.multipliers == pytest.approx(first.multipliers, abs=1e-9)
    assert "Answered by the" in found.explanation


def test_limits_beyond_what_was_found_are_left_to_the_log():
    mdp, first = first_run(0)
    tight = [AtMost(c.cost, 0.5 * c.limit) for c in binding_limits(mdp)]
    found = answer(Question(objective="c", constraints=tight), plays_of(first), tolerance=1e-7)
    assert found.status is Status.ROUND_LIMIT
    assert "no mixture of them meets the limits" in found.explanation


def test_units_scale_values_and_prices_against_each_other():
    mdp, first = first_run(1)
    problem, _ = tighter(mdp)
    plain = answer(problem, carry_over(plays_of(first), [Earlier(0), Earlier(1), Earlier(2)]), tolerance=1.0)
    limits = [AtMost("g0", 10 * problem.constraints[0].limit), problem.constraints[1]]
    scaled = carry_over(plays_of(first), [Earlier(0, 2.0), Earlier(1, 10.0), Earlier(2)])
    found = answer(Question(objective="c", constraints=limits), scaled, tolerance=1.0)
    assert found.values["c"] == pytest.approx(2 * plain.values["c"])
    assert found.values["g0"] == pytest.approx(10 * plain.values["g0"])
    assert found.lower_bound == pytest.approx(2 * plain.lower_bound)
    assert found.multipliers["g0"] == pytest.approx(plain.multipliers["g0"] / 5)


def play(multipliers, objective, constraints, **more):
    return Play(np.array(multipliers, dtype=float), None, Values(objective, np.array(constraints, dtype=float)), **more)


def test_a_weight_on_what_was_dropped_or_none_on_what_is_minimised_now_proves_nothing():
    old = [play([0.0, 0.0], 1, [2, 3]), play([0.5, 0.0], 4, [5, 6]), play([0.0, 2.0], 7, [8, 9])]
    only_first = carry_over(old, [Earlier(1), Earlier(0)])
    assert [p.answers for p in only_first] == [False, True, False]
    assert only_first[1].multipliers == pytest.approx([2.0])
    assert [p.values.objective for p in only_first] == [2, 5, 8]
    found = answer(Question(objective="g0", constraints=[AtMost("c", 9.0)]), only_first[::2], tolerance=1.0)
    assert found.lower_bound == -np.inf
    assert found.status is Status.ROUND_LIMIT


def test_a_search_for_the_least_violation_gave_the_objective_no_weight():
    old = [play([0.5, 0.25], 4, [5, 6])]
    assert not carry_over(old, [Earlier(0), Earlier(1), Earlier(2)], objective_weight=0.0)[0].answers
    moved = carry_over(old, [Earlier(1), Earlier(2)], objective_weight=0.0)[0]
    assert moved.answers
    assert moved.multipliers == pytest.approx([0.5])


def test_two_limits_on_one_cost_share_its_weight_once():
    old = [play([0.5], 1, [2])]
    carried = carry_over(old, [Earlier(0), Earlier(1), Earlier(1)])[0]
    assert carried.multipliers == pytest.approx([0.5, 0.0])
    assert carried.values.constraints == pytest.approx([2, 2])


def test_what_was_proved_by_no_best_response_stays_unproved_and_what_is_not_finite_is_left():
    old = [play([0.5], 1, [2], answers=False), play([0.5], np.nan, [2])]
    assert [p.answers for p in carry_over(old, [Earlier(0), Earlier(1)])] == [False]


def test_unknown_costs_need_an_evaluator():
    with pytest.raises(ArgumentError, match="cost 1 was not valued before"):
        carry_over([play([], 1, [])], [Earlier(0), None])
    with pytest.raises(ArgumentError, match="no policies to answer from"):
        answer(Question(objective="c", constraints=[]), [], tolerance=1.0)


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_checkpoint_records_what_was_known_first_and_resumes_to_the_same(tmp_path):
    mdp, first = first_run(2)
    problem, costs = swapped(mdp)
    known = carry_over(plays_of(first), costs)
    assert not all(play.answers for play in known)
    whole = run(problem, known=known, checkpoint=tmp_path / "whole")
    assert len(whole.rounds) > len(known) + 2
    run(problem, known=known, checkpoint=tmp_path / "parts", max_rounds=2)
    lines = (tmp_path / "parts" / "rounds.jsonl").read_text().splitlines(keepends=True)
    assert len(lines) == len(known) + 2
    (tmp_path / "parts" / "rounds.jsonl").write_text("".join(lines[: len(known) - 1]))  # killed while recording them
    seen = []
    resumed = run(problem, known=known, checkpoint=tmp_path / "parts", on_round=seen.append)
    assert resumed.values == whole.values
    assert [played.index for played in seen] == list(range(len(known) + 1, len(whole.rounds) + 1))
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def test_a_checkpoint_of_other_knowledge_is_refused(tmp_path):
    mdp, first = first_run(2)
    problem, costs = tighter(mdp)
    known = carry_over(plays_of(first), costs)
    run(problem, known=known, checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="known was"):
        run(problem, checkpoint=tmp_path)
    other = [known[0]._replace(multipliers=known[0].multipliers + 1), *known[1:]]
    with pytest.raises(CheckpointError, match="round 1 was recorded at multipliers"):
        run(problem, known=other, checkpoint=tmp_path)
    with pytest.raises(ArgumentError, match="other constraints"):
        run(replace(problem, constraints=problem.constraints[:1]), known=known)
