"""What the log shows of each cost as an outcome of an episode: what it can be, and how many episodes have it."""

import math
from dataclasses import dataclass

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.problem.episodes import Episodes
from checkrein.problem.problem import Problem

Ends = tuple[float | None, float | None]  # the least and the largest value; None: there is no such end
ROUNDING = 1e-9  # of an episode's sum


@dataclass(frozen=True)
class Outcome:
    """One cost over the episodes of a log, signed as in the problem."""

    episodes: int
    events: int | None  # episodes where it is not 0; None: it is a cost of the policy itself
    yes_or_no: bool  # whether every episode has it once or not at all, so that its value is a share of episodes
    low: float  # the least and the largest value that it can have
    high: float

    @property
    def range(self) -> tuple[float, float]:
        """The least and the largest value."""
        return self.low, self.high


def ends_of(sign: float, ends: tuple[float, float]) -> Ends:
    """Return a range in another sign, without the ends that are infinite."""
    low, high = sorted(sign * end + 0.0 for end in ends)
    return (low if np.isfinite(low) else None), (high if np.isfinite(high) else None)


def within(value: float | None, ends: Ends | None, error: float | None = math.inf) -> float | None:
    """Return a value moved to the nearest of what is possible; None where that is farther off than its error."""
    if value is None or ends is None or not math.isfinite(value):
        return value
    low, high = ends
    nearest = value if low is None else max(value, low)
    nearest = nearest if high is None else min(nearest, high)
    return nearest if abs(nearest - value) <= (0.0 if error is None else error) else None


def outcomes_of(problem: Problem) -> tuple[Outcome, ...]:
    """Return the objective and every constraint as outcomes of the problem's own episodes."""
    return problem.once("outcomes", lambda: _outcomes(problem), any_limits=True)


def _outcomes(problem: Problem) -> tuple[Outcome, ...]:
    log = Episodes.of(problem)
    sums = log.sums(log.factors[:, None] * log.row_costs)
    low, high = (np.array(end) for end in problem.value_range())
    declared = [None, *(constraint.range for constraint in problem.constraints)]
    signs = [1.0, *(constraint.sign for constraint in problem.constraints)]
    found = []
    for place, (ends, sign) in enumerate(zip(declared, signs, strict=True)):
        if ends is not None:
            low[place], high[place] = sorted(sign * end for end in ends)
        if place in problem.policy_costs:
            found.append(Outcome(len(log), None, False, -np.inf, np.inf))  # its range is the policy's own
            continue
        found.append(_outcome(sums[:, place], log.row_costs[:, place], float(low[place]), float(high[place])))
    return tuple(found)


def _outcome(sums: FloatArray, steps: FloatArray, low: float, high: float) -> Outcome:
    """Return one cost, from its sums (e,) and rows (n,): what is yes or no in all episodes is a share of them."""
    happened = np.abs(sums) > ROUNDING
    events = int(happened.sum())
    sign = -1.0 if (sums < -ROUNDING).any() else 1.0
    yes_or_no = bool(events and (np.abs(sums[happened] - sign) <= ROUNDING).all() and np.isin(steps, (0.0, sign)).all())
    if yes_or_no:
        low, high = sorted((0.0, sign))
    return Outcome(len(sums), events, yes_or_no, low, high)
