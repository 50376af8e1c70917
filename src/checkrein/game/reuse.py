"""Another question, the policies of an earlier one: what they are worth to it, and whether they answer it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from checkrein.base.arrays import FloatArray, frozen, require_positive
from checkrein.base.errors import ArgumentError
from checkrein.game.columns import FORBIDDING
from checkrein.game.feasibility import sizes
from checkrein.game.loop import Play, replayed
from checkrein.game.solution import Solution, Status, limits_in_words
from checkrein.game.solve import limits_met, solution_of
from checkrein.online.cutting_plane import CuttingPlane
from checkrein.problem import Question, Values
from checkrein.protocols import Policy


@dataclass(frozen=True)
class Earlier:
    """Which cost of an earlier question a cost is.

    place: 0 is the objective, i + 1 constraint i
    factor: its value in units of the new question, for one of the earlier
    """

    place: int
    factor: float = 1.0

    def __post_init__(self) -> None:
        require_positive(factor=self.factor)


def carry_over(
    plays: Sequence[Play],
    costs: Sequence[Earlier | None],
    *,
    objective_weight: float = 1.0,
    evaluate: Callable[[Policy], Values] | None = None,
) -> list[Play]:
    """Return what was found for an earlier question as plays of a new one on the same data.

    A policy that is a best response to weights on costs is one to any positive multiple of them. So a play keeps its
    lower bound if the new objective had a weight and no cost with a weight was dropped; else only its policy counts.

    costs: the new question's, the objective first; None: unknown to the earlier one
    objective_weight: what the plays gave the earlier objective: 0 where they only sought to meet the limits
    evaluate: values a policy by the new question, for the costs that are unknown
    """
    if evaluate is None and None in costs:
        raise ArgumentError(f"cost {costs.index(None)} was not valued before: pass evaluate, to value policies by it")
    carried = []
    for play in plays:
        values = _values(play, costs, evaluate)
        if np.isfinite(values).all():
            weights = _weights(np.append(objective_weight, play.multipliers), costs)
            answers = play.answers and weights is not None and bool(weights[0] > 0)
            multipliers = weights[1:] / weights[0] if answers and weights is not None else np.zeros(len(costs) - 1)
            carried.append(Play(frozen(multipliers), play.policy, Values(float(values[0]), values[1:]), answers))
    return carried


def answer(question: Question, plays: Sequence[Play], *, tolerance: float) -> Solution:
    """Return the best mixture of policies found, with the gap that their lower bounds leave; no log is read.

    It is converged where the gap is at most the tolerance and the limits are met. Else more rounds are needed.
    """
    require_positive(tolerance=tolerance)
    if not plays:
        raise ArgumentError("there are no policies to answer from: solve the problem first")
    objectives = np.array([play.values.objective for play in plays])
    spread = float(np.ptp(objectives)) or float(np.abs(objectives).max()) or 1.0
    learner = CuttingPlane(FORBIDDING, scales=tuple((sizes(question, plays) / spread).tolist()))
    played = replayed(question, plays, learner=learner)
    last = played[-1]
    met = limits_met(question, played, tolerance)
    gap, against = f"the duality gap is {last.gap:.3g}", limits_in_words(question, last.mixture)
    if met and last.gap <= tolerance:
        said = f"Answered by the {len(plays)} policies known: {gap}, at most the tolerance {tolerance:.3g}; {against}."
        return solution_of(question, Status.CONVERGED, said, members=played, played=played, learner=learner)
    why = f"{gap}, above the tolerance {tolerance:.3g}" if met else "no mixture of them meets the limits"
    said = f"Not answered by the {len(plays)} policies known: {why}; {against}."
    return solution_of(question, Status.ROUND_LIMIT, said, members=played, played=played, learner=learner)


def _values(play: Play, costs: Sequence[Earlier | None], evaluate: Callable[[Policy], Values] | None) -> FloatArray:
    """(1 + m,) values of the new question: known from the old one, or evaluated."""
    old = play.values.row
    if evaluate is None or None not in costs:
        return frozen(np.array([cost.factor * old[cost.place] for cost in costs if cost is not None]))
    pairs = zip(costs, evaluate(play.policy).row, strict=True)
    return frozen(np.array([value if cost is None else cost.factor * old[cost.place] for cost, value in pairs]))


def _weights(old: FloatArray, costs: Sequence[Earlier | None]) -> FloatArray | None:
    """(1 + m,) the weights that a best response was sought at, on the new costs; None: one of them was dropped."""
    weights, placed = np.zeros(len(costs)), np.zeros(old.size, dtype=bool)
    for place, cost in enumerate(costs):
        if cost is not None and not placed[cost.place]:  # of two on one cost, the first bears its weight
            placed[cost.place] = True
            weights[place] = old[cost.place] / cost.factor
    return None if (old[~placed] > 0).any() else weights
