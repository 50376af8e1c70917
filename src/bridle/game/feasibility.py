"""Can the limits be met at all? The paper assumes so (Slater's condition); users want to know, and how closely."""

from collections.abc import Iterator, Sequence

import numpy as np

from bridle.arrays import FloatArray
from bridle.game.rounds import Play, Round, rounds
from bridle.online.cutting_plane import CuttingPlane
from bridle.online.master import best_mixture
from bridle.problem import Problem
from bridle.protocols import BestResponse, Evaluator

CLOSE = 1e-3  # the share of the least violation to which it is found


def meets_limits(played: Sequence[Round], slack: float) -> bool:
    """Say whether some mixture of the policies found meets all limits, to within slack."""
    violations = np.array([round_.violation for round_ in played])
    least = best_mixture(np.zeros(len(played)), violations, np.ones(violations.shape[1]))
    return bool((least.weights @ violations <= slack).all())


def closest_rounds(
    problem: Problem,
    played: Sequence[Round],
    *,
    best_response: BestResponse,
    evaluator: Evaluator,
    seed: int,
    slack: float,
    recorded: Sequence[Play],
) -> Iterator[Round]:
    """Play for the least worst violation until it is found, or until some mixture meets the limits.

    Violations are compared in units of how much the policies of the main game differ in them.
    """
    learner = CuttingPlane(1.0, scales=_scales(np.array([round_.violation for round_ in played])))
    game = rounds(
        problem,
        best_response=best_response,
        evaluator=evaluator,
        learner=learner,
        seed=seed,
        feasibility=True,
        recorded=recorded,
    )
    for current in game:
        yield current
        met = (current.mixture.constraints - problem.limits <= slack).all()
        if met or current.gap <= CLOSE * current.upper:
            return


def _scales(violations: FloatArray) -> tuple[float, ...]:
    spread = np.ptp(violations, axis=0)
    return tuple(np.where(spread > 0, spread, np.maximum(np.abs(violations[0]), 1.0)).tolist())
