"""solve: play until the gap is small enough, then say what came out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from bridle.arrays import require_positive
from bridle.errors import ArgumentError
from bridle.game.checkpoint import FEASIBILITY, MAIN, Checkpoint
from bridle.game.feasibility import closest_rounds, meets_limits
from bridle.game.rounds import Play, Round, Weighting, rounds
from bridle.game.solution import Solution, Status, explain, mixture_of, named_multipliers
from bridle.problem import Problem
from bridle.protocols import BestResponse, Evaluator, OnlineLearner

AT_BOUND = 0.9  # the share of the largest charge from which on the bound, not the rounds, is what is missing


def solve(
    problem: Problem,
    *,
    best_response: BestResponse,
    evaluator: Evaluator,
    learner: OnlineLearner[Any],
    tolerance: float,
    max_rounds: int,
    seed: int = 0,
    on_round: Callable[[Round], None] | None = None,
    checkpoint: str | Path | None = None,
    weighting: Weighting = "best",
) -> Solution:
    """Find the mixture of policies that minimises the objective within the limits, by the evaluator's estimates.

    tolerance: the duality gap to stop at; a limit counts as met to within it
    on_round: called with each round as it is played (not with those that a checkpoint already holds)
    checkpoint: a folder to record the run in; an unfinished run found there is taken up where it stopped
    weighting: "uniform" for the paper's mixture, "best" for the linear program's where it is better
    """
    require_positive(tolerance=tolerance, max_rounds=max_rounds)
    if weighting not in ("best", "uniform"):
        raise ArgumentError(f"weighting is {weighting!r}: it must be 'best' or 'uniform'")
    players: _Players = {"best_response": best_response, "evaluator": evaluator, "seed": seed}
    record = None
    if checkpoint is not None:
        record = Checkpoint(checkpoint, problem, {**players, "learner": learner, "weighting": weighting})
    watch = _Watch(record, on_round)
    game = rounds(problem, learner=learner, weighting=weighting, recorded=watch.recorded(MAIN), **players)
    played = list(watch.until(MAIN, game, lambda now: _settled(problem, now, tolerance) or now.index >= max_rounds))
    last = played[-1]
    closest: list[Round] = []
    if last.finite and not meets_limits(played, tolerance):
        recorded = watch.recorded(FEASIBILITY)
        search = closest_rounds(problem, played, slack=tolerance, recorded=recorded, **players)
        closest = list(watch.until(FEASIBILITY, search, lambda now: now.index >= max_rounds))
    status = _status(problem, last, closest[-1] if closest else None, tolerance)
    members = closest if status is Status.INFEASIBLE else played
    if status is Status.NOT_FINITE:
        members = played[:-1] or played
    final = members[-1]
    solution = Solution(
        policy=mixture_of(members),
        status=status,
        explanation=explain(status, problem, final, last, tolerance=tolerance),
        gap=last.gap,
        values=problem.named(final.mixture),
        multipliers=named_multipliers(problem, last.price),
        weighting=final.weighting,
        lower_bound=last.lower,
        rounds=tuple(played),
    )
    if record is not None:
        record.finish(solution)
    return solution


class _Players(TypedDict):
    best_response: BestResponse
    evaluator: Evaluator
    seed: int


@dataclass(frozen=True)
class _Watch:
    """Records and announces each round that was not played before."""

    record: Checkpoint | None
    on_round: Callable[[Round], None] | None

    def recorded(self, phase: str) -> Sequence[Play]:
        return () if self.record is None else self.record.recorded[phase]

    def until(self, phase: str, game: Iterator[Round], stop: Callable[[Round], bool]) -> Iterator[Round]:
        for played in game:
            if played.index > len(self.recorded(phase)):
                if self.record is not None:
                    self.record.append(phase, played)
                if self.on_round is not None:
                    self.on_round(played)
            yield played
            if stop(played) or not played.finite:
                return


def _status(problem: Problem, last: Round, closest: Round | None, tolerance: float) -> Status:
    if not last.finite:
        return Status.NOT_FINITE
    if closest is not None and closest.lower > 0 and not _met(problem, closest, tolerance):
        return Status.INFEASIBLE
    if not _settled(problem, last, tolerance):
        return Status.ROUND_LIMIT
    return Status.CONVERGED if _met(problem, last, tolerance) else Status.MULTIPLIER_BOUND


def _settled(problem: Problem, now: Round, tolerance: float) -> bool:
    """Say whether playing on is of no use: the gap is closed, and the limits are met, or the bound forbids it."""
    return now.gap <= tolerance and (_met(problem, now, tolerance) or _at_bound(problem, now))


def _at_bound(problem: Problem, now: Round) -> bool:
    """Say whether the prices already charge for the violation about as much as the learner's ball allows."""
    charged = float(now.price @ (now.mixture.constraints - problem.limits))
    return charged >= AT_BOUND * (now.upper - now.mixture.objective)


def _met(problem: Problem, current: Round, slack: float) -> bool:
    return bool(np.all(current.mixture.constraints - problem.limits <= slack))
