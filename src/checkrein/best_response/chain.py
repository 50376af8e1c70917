"""Many multipliers, one after another, each answer starting from the one before."""

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.problem import Problem
from checkrein.protocols import BestResponse, Policy


def in_turn(
    respond: BestResponse, problem: Problem, multipliers: FloatArray, *, rng: np.random.Generator, warm: bool
) -> tuple[Policy, ...]:
    """Answer multipliers (M, m) in their order: neighbours should be next to each other.

    warm: start from the last answer; for classes whose answer does not depend on where it starts
    """
    answers: list[Policy] = []
    for each in multipliers:
        start = answers[-1] if warm and answers else None
        answers.append(respond(problem, each, rng=rng, start=start))
    return tuple(answers)
