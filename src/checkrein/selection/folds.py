"""What learning on some episodes and judging on others has in common, whatever it is for."""

from dataclasses import replace

import numpy as np

from checkrein.base.arrays import FloatArray, require_counts
from checkrein.base.errors import ArgumentError
from checkrein.evaluation.doubly_robust import folds_of
from checkrein.problem import AtMost, Episodes, Problem

FOLDS = 5  # of a cross-fitted certificate


def require_folds(problem: Problem, folds: int, confidence: float) -> None:
    """Raise unless there is something to learn from, to judge, and to be sure of."""
    require_counts(folds=folds)
    if folds < 2:
        raise ArgumentError("folds is 1: nothing would be left to learn from, pass at least 2")
    if not 0.5 < confidence < 1:
        raise ArgumentError(f"confidence is {confidence}: it must lie above 0.5 and below 1")
    if not problem.constraints:
        raise ArgumentError("without constraints there is nothing to aim at, or to certify")


def parts_of(problem: Problem, folds: int, seed: int) -> list[tuple[Problem, Problem]]:
    """Return for each fold the problem without its episodes, and the problem of them alone; clusters stay whole."""
    episodes = Episodes.of(problem)
    fold = folds_of(episodes, folds, np.random.default_rng(seed))
    return [(episodes.part(fold != one), episodes.part(fold == one)) for one in range(fold.max() + 1)]


def tightened(problem: Problem, margins: FloatArray) -> tuple[AtMost, ...]:
    """Return a problem's constraints with margins (m,) under their limits."""
    return tuple(
        replace(c, limit=float(c.limit - c.sign * margin))
        for c, margin in zip(problem.constraints, margins, strict=True)
    )
