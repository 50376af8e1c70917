"""explore: the policies that a cross-fitted certificate would try, by the episodes that they are learned from.

Nothing is judged. What comes out is optimistic: it shows what may be had at which limits, and what is worth judging.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.evaluation.estimate import standard_errors
from checkrein.policies import MixturePolicy
from checkrein.problem import Episodes, Problem
from checkrein.selection.fixed_sequence import begun, path, path_of, unlearned_folds
from checkrein.selection.judging import Scores


@dataclass(frozen=True, eq=False)
class Explored:
    """A policy, and what the episodes that it was learned from say of it."""

    rule: int  # times that the support rule was loosened before
    distance: float  # from behavior, as a share of how far the best policy at the limits goes
    margin: float  # under the limits, in standard errors
    policy: MixturePolicy
    values: FloatArray  # (1 + m,) inside signs, the objective first
    errors: FloatArray  # (1 + m,) their standard errors


def explore(
    problem: Problem,
    *,
    distances: Sequence[float] | None = None,
    margins: Sequence[float] | None = None,
    seed: int = 0,
    tell: Callable[[str], None] = lambda _: None,
) -> tuple[Explored, ...]:
    """Learn from all episodes what `learn_certified` would learn in each fold; empty where nothing meets the limits."""
    distances, margins = path_of(problem, distances, margins)
    problem = replace(problem, dataset=problem.dataset.counted_once)
    parts = unlearned_folds(problem, [(problem, problem)], seed=seed)
    parts[0].share = 1.0  # of the episodes that errors are to be expected of
    parts = begun(parts, tell)
    if not all(part.ready for part in parts):
        return ()
    found = []
    for rule, aim, policies in path(parts, distances, margins, tell):
        scores = Scores.of(parts, policies)
        units = scores.scores
        errors = np.asarray(standard_errors(units - scores.values, Episodes.of(problem).unit_weights))
        found.append(Explored(rule, *aim, scores.policy, scores.values, errors))
        if aim == (1.0, margins[-1]):
            break  # at the limits themselves: looser support rules would only be bolder
    return tuple(found)
