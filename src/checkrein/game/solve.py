"""solve: play until the gap is small enough, then say what came out."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from checkrein.base.arrays import require_counts, require_positive, require_seed
from checkrein.base.errors import ArgumentError, DivergenceError
from checkrein.game.checkpoint import FEASIBILITY, MAIN, Checkpoint, recording, settings_of
from checkrein.game.feasibility import can_meet_limits, closest_rounds, slacks
from checkrein.game.loop import Play, Round, Weighting, rounds
from checkrein.game.prices import named_price_ranges
from checkrein.game.solution import Solution, Status, explain, mixture_of, named_multipliers
from checkrein.game.usual import ROUNDS, usual_best_response, usual_evaluator, usual_learner, usual_tolerance
from checkrein.problem import Problem, Question
from checkrein.protocols import BestResponse, Evaluator, OnlineLearner

AT_BOUND = 0.9  # the share of the largest charge from which on the bound, not the rounds, is what is missing


def solve(
    problem: Problem,
    *,
    best_response: BestResponse | None = None,
    evaluator: Evaluator | None = None,
    learner: OnlineLearner[Any] | None = None,
    tolerance: float | None = None,
    max_rounds: int = ROUNDS,
    seed: int = 0,
    on_round: Callable[[Round], None] | None = None,
    checkpoint: str | Path | None = None,
    weighting: Weighting = "best",
    known: Sequence[Play | Round] = (),
    ranges: bool = True,
    closest: bool = True,
) -> Solution:
    """Find the mixture of policies that minimises the objective within the limits, by the evaluator's estimates.

    best_response, evaluator: by default FQI and FQE, with tables in finite states, else with a linear class
    learner: by default cutting planes, whose bound lies far above any price that the costs' variation suggests
    tolerance: the duality gap to stop at, in units of the objective; by default a thousandth of how much it varies
    on_round: called with each round as it is played (not with those that a checkpoint already holds)
    checkpoint: a folder to record the run in; an unfinished run found there is taken up where it stopped
    weighting: "uniform" for the paper's mixture, "best" for the linear program's where it is better
    known: rounds of another solution by the same players from the same data, with other limits: they count as played
        (`carry_over` makes those with other costs fit); a checkpoint records them first
    ranges: find the range of each price (two linear programs for each constraint)
    closest: where no policy meets the limits, find how closely any comes
    """
    best_response = usual_best_response(problem) if best_response is None else best_response
    evaluator = usual_evaluator(problem) if evaluator is None else evaluator
    learner = usual_learner(problem) if learner is None else learner
    tolerance = usual_tolerance(problem) if tolerance is None else tolerance
    require_positive(tolerance=tolerance)
    require_counts(max_rounds=max_rounds)
    require_seed(seed)
    if weighting not in ("best", "uniform"):
        raise ArgumentError(f"weighting is {weighting!r}: it must be 'best' or 'uniform'")
    players: _Players = {"best_response": best_response, "evaluator": evaluator, "seed": seed}
    if any(one.values.constraints.size != problem.n_constraints for one in known):
        raise ArgumentError(f"known rounds have other constraints than these {problem.n_constraints}: pass their own")
    choices = {**players, "learner": learner, "weighting": weighting} | ({"known": len(known)} if known else {})
    with _recording(problem, checkpoint, choices) as record:
        watch = _Watch(record, on_round, len(known))
        game = rounds(
            problem, learner=learner, weighting=weighting, recorded=watch.recorded(MAIN), known=known, **players
        )
        played, trouble = _collect(
            watch.until(MAIN, game),
            lambda found: len(found) >= len(known) and _settled(problem, found, tolerance),
            max_rounds + len(known),
        )
        nearest: list[Round] = []
        if not trouble and not can_meet_limits(problem, played):
            search = closest_rounds(problem, played, recorded=watch.recorded(FEASIBILITY), closest=closest, **players)
            most = max_rounds if closest else max_rounds + len(played)
            nearest, _ = _collect(watch.until(FEASIBILITY, search), lambda _: False, most)
        status = Status.NOT_FINITE if trouble else _status(problem, played, nearest, tolerance)
        members = nearest if status is Status.INFEASIBLE else played
        explanation = explain(
            status, problem, members[-1], played[-1], tolerance=tolerance, trouble=trouble, closest=closest
        )
        solution = solution_of(
            problem, status, explanation, members=members, played=played, learner=learner, ranges=ranges
        )
        if record is not None:
            record.finish(solution)
    return solution


def solution_of(
    problem: Question,
    status: Status,
    explanation: str,
    *,
    members: Sequence[Round],
    played: Sequence[Round],
    learner: OnlineLearner[Any],
    ranges: bool = True,
) -> Solution:
    """Return what rounds came to; members: those whose last mixture is the policy."""
    final, last = members[-1], played[-1]
    prices = named_price_ranges(problem, played, learner) if ranges else {}
    notes = {name: one.note for name, one in prices.items() if one.note and status is Status.CONVERGED}
    return Solution(
        policy=mixture_of(members),
        status=status,
        explanation=" ".join([explanation, *(f"The price of {name} {note}." for name, note in notes.items())]),
        gap=last.gap,
        values=problem.named(final.mixture),
        multipliers=named_multipliers(problem, last.price),
        weighting=final.weighting,
        lower_bound=last.lower,
        rounds=tuple(played),
        price_ranges={name: (one.low, one.high) for name, one in prices.items()},
        price_notes=notes,
    )


def _recording(
    problem: Problem, folder: str | Path | None, choices: dict[str, object]
) -> AbstractContextManager[Checkpoint | None]:
    if folder is None:
        return nullcontext()
    return recording(folder, settings_of(problem, problem.dataset.fingerprint, problem.discount, choices))


class _Players(TypedDict):
    best_response: BestResponse
    evaluator: Evaluator
    seed: int


@dataclass(frozen=True)
class _Watch:
    """Records and announces each round that was not played before."""

    record: Checkpoint | None
    on_round: Callable[[Round], None] | None
    known: int  # rounds of another game that come first

    def recorded(self, phase: str) -> Sequence[Play]:
        return () if self.record is None else self.record.recorded[phase]

    def until(self, phase: str, game: Iterator[Round]) -> Iterator[Round]:
        for played in game:
            if played.index > len(self.recorded(phase)):
                if self.record is not None:
                    self.record.append(phase, played)
                if self.on_round is not None and played.index > self.known * (phase == MAIN):
                    self.on_round(played)
            yield played


def _collect(game: Iterator[Round], settled: Callable[[list[Round]], bool], max_rounds: int) -> tuple[list[Round], str]:
    """Return the rounds played until it is settled, and what broke the game off, if something did.

    A first round that breaks down leaves nothing to return, so its error is raised.
    """
    played: list[Round] = []
    try:
        for current in game:
            if not current.finite:
                said = f"in round {current.index} the evaluation gave {current.values}"
                return (played, said) if played else ([current], said)
            played.append(current)
            if settled(played) or current.index >= max_rounds:
                break
    except DivergenceError as reason:
        if not played:
            raise
        return played, f"in round {len(played) + 1} {reason}"
    return played, ""


def _status(problem: Question, played: list[Round], closest: list[Round], tolerance: float) -> Status:
    if closest and closest[-1].lower > 0 and not limits_met(problem, closest, tolerance):
        return Status.INFEASIBLE
    if not _settled(problem, played, tolerance):
        return Status.ROUND_LIMIT
    return Status.CONVERGED if limits_met(problem, played, tolerance) else Status.MULTIPLIER_BOUND


def _settled(problem: Question, played: list[Round], tolerance: float) -> bool:
    """Say whether playing on is of no use: the gap is closed, and the limits are met, or the bound forbids it."""
    return played[-1].gap <= tolerance and (limits_met(problem, played, tolerance) or _at_bound(problem, played[-1]))


def _at_bound(problem: Question, now: Round) -> bool:
    """Say whether the prices already charge for the violation about as much as the learner's ball allows."""
    charged = float(now.price @ (now.mixture.constraints - problem.limits))
    return charged >= AT_BOUND * _charge(now)


def limits_met(problem: Question, played: list[Round], tolerance: float) -> bool:
    """Say whether the mixture meets the limits: to a tiny share of their own size, or to what the tolerance is worth.

    An average of policies closes in on a limit without ever meeting it: what it still exceeds, charged at the worst
    multipliers, is then compared with the tolerance, both in units of the objective.
    """
    now = played[-1]
    if (now.mixture.constraints - problem.limits <= slacks(problem, played)).all():
        return True
    return now.weighting == "uniform" and _charge(now) <= tolerance


def _charge(now: Round) -> float:
    """Return what the worst multipliers charge the mixture for its violation."""
    return now.upper - now.played_objective
