"""Can the limits be met at all? The paper assumes so (Slater's condition); users want to know, and how closely."""

from collections.abc import Iterator, Sequence

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.game.loop import Play, Round, rounds
from checkrein.online.cutting_plane import CuttingPlane
from checkrein.online.master import best_mixture
from checkrein.problem import Problem, Question
from checkrein.protocols import BestResponse, Evaluator

CLOSE = 1e-3  # the share of the least violation to which it is found
SLACK = 1e-6  # a limit is met to within this share of the size of its constraint
NOISE = 1e-9  # a smaller relative spread is rounding


def sizes(problem: Question, played: Sequence[Play | Round]) -> FloatArray:
    """(m,) how large each constraint is: how much the policies found differ in it, or the limit itself."""
    values = np.array([round_.values.constraints for round_ in played])
    spread, magnitude = np.ptp(values, axis=0), np.maximum(np.abs(values).max(axis=0), np.abs(problem.limits))
    return np.where(spread > NOISE * magnitude, spread, np.where(magnitude > 0, magnitude, 1.0))


def slacks(problem: Question, played: Sequence[Round]) -> FloatArray:
    """(m,) how far above a limit still counts as on it: a tiny share of the constraint's own size."""
    return SLACK * np.maximum(sizes(problem, played), np.abs(problem.limits))


def can_meet_limits(problem: Problem, played: Sequence[Round]) -> bool:
    """Say whether some mixture of the policies found meets all limits."""
    slack = slacks(problem, played)
    if (played[-1].mixture.constraints - problem.limits <= slack).all():  # the best mixture does
        return True
    violations = np.array([round_.violation for round_ in played])
    least = best_mixture(np.zeros(len(played)), violations, 1 / sizes(problem, played))
    return bool((least.weights @ violations <= slack).all())


def closest_rounds(
    problem: Problem,
    played: Sequence[Round],
    *,
    best_response: BestResponse,
    evaluator: Evaluator,
    seed: int,
    recorded: Sequence[Play],
    closest: bool,
) -> Iterator[Round]:
    """Play for the least worst violation until it is found, or until some mixture meets the limits.

    Violations are compared in units of the constraints' own sizes.

    closest: False: what was played counts as known, and it is enough to prove that no policy meets the limits
    """
    learner = CuttingPlane(1.0, scales=tuple(sizes(problem, played).tolist()))
    slack = slacks(problem, played)
    game = rounds(
        problem,
        best_response=best_response,
        evaluator=evaluator,
        learner=learner,
        seed=seed,
        feasibility=True,
        recorded=recorded,
        known=() if closest else [one.play._replace(answers=False) for one in played],
    )
    for current in game:
        yield current
        met = (current.mixture.constraints - problem.limits <= slack).all()
        proven = current.lower > 0 and not closest
        if met or proven or current.gap <= CLOSE * current.upper:
            return
