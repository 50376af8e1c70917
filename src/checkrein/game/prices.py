"""How sure a price is: all multipliers that may still be optimal, by the policies found.

Every policy found bounds the dual function from above, so a multiplier at which one of them is worth less than the
lower bound cannot be optimal. What is left is a polytope: its extent along each axis is the range of a price. An
optimal multiplier never lies outside; inside, one may not be optimal, until best responses at the ends confirm it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its parts are loaded when first used

from checkrein.base.arrays import FloatArray
from checkrein.game.columns import Columns, multiplier_bounds
from checkrein.game.loop import Round, rounds
from checkrein.online.master import EXACT, Mixture, sizes
from checkrein.problem import Problem, Question
from checkrein.protocols import BestResponse, Evaluator, OnlineLearner

EXACTLY = 1e-9  # of the objective's spread: what is optimal is so to within this
WIDE = 0.05  # the share of a price from which on its range is worth telling
NEGLIGIBLE = 1e-3  # of the objective's spread, over all of the constraint's: a smaller price is none
MAX_CUTS = 30  # of a learner's ball that is not a polytope
INSIDE = 1e-7  # the share by which multipliers may lie outside of a ball


@dataclass(frozen=True)
class PriceRange:
    """The least and the largest that a price may be.

    wide: whether the two are far enough apart to matter
    unique: whether they would be one, were the gap closed: then more rounds would tell
    bounded: whether the largest is what the learner's bound allows
    """

    low: float
    high: float
    wide: bool = False
    unique: bool = True
    bounded: bool = False

    @property
    def note(self) -> str:
        """Say what a reader must know of it; nothing, where the price is as good as one number."""
        if not self.wide:
            return ""
        if self.unique:
            return f"is only known to lie between {self.low:.4g} and {self.high:.4g}: a smaller tolerance would tell"
        ends = "the largest is what the learner's bound allows" if self.bounded else "by the policies found"
        return f"is not unique: between {self.low:.4g} and {self.high:.4g}, {ends}"


def price_ranges(
    columns: Columns, limits: FloatArray, learner: OnlineLearner[Any], mixture: Mixture | None = None
) -> list[PriceRange]:
    """Return the range of each constraint's price at these limits (m,), within the learner's ball.

    The multipliers of the best lower bound lie inside, and so do the prices of the program over all columns.

    mixture: that program's solution, where it is known
    """
    if not limits.size:
        return []
    proof = columns.proof(limits)
    region = _Region(columns, limits, learner)
    mixture = columns.mixture(limits, region.bounds) if mixture is None else mixture
    most = _slack_prices(columns, mixture, limits, region, proof.value)
    found = []
    for i, price in enumerate(proof.multipliers):
        if most[i] * region.units[i] <= NEGLIGIBLE * region.size:  # a limit that does not bind has no price to speak of
            found.append(PriceRange(0.0, max(float(most[i]), float(price))))
            continue
        low, high, bounded = region.extent(i, proof.value)
        low, high = min(low, price), max(high, price)  # what is empty by rounding is the price alone
        wide = high - low > WIDE * high and high * region.units[i] > NEGLIGIBLE * region.size
        unique = True
        if wide:  # were the gap closed, only the best of the program's multipliers would be left
            sure_low, sure_high, _ = region.extent(i, max(mixture.value, proof.value))
            unique = not sure_high - sure_low > WIDE * sure_high
        found.append(PriceRange(float(low), float(high), bool(wide), bool(unique), bounded))
    return found


def _slack_prices(
    columns: Columns, mixture: Mixture, limits: FloatArray, region: "_Region", lower: float
) -> FloatArray:
    """(m,) the most that each price may be by complementary slackness: what a mixture leaves unused must cost nothing.

    Optimal multipliers make the mixture worth `lower` at the least, so what they take off for slack is bounded. Slack
    of the size of rounding bounds nothing, even where the gap is closed.
    """
    values = columns.values(mixture.weights)
    excess = values.constraints - limits
    gap = max(values.objective - lower, 0.0) + float(region.bounds @ np.maximum(excess, 0.0))
    gap += EXACTLY * region.size
    return np.divide(gap, -excess, out=np.full(excess.size, np.inf), where=excess < 0)


def named_price_ranges(
    problem: Question, played: Sequence[Round], learner: OnlineLearner[Any], mixture: Mixture | None = None
) -> dict[str, PriceRange]:
    """Return the range of each constraint's price by its name; nothing, where values are not numbers."""
    if not all(one.finite for one in played):
        return {}
    found = price_ranges(Columns.of(played), problem.limits, learner, mixture)
    return {c.name: one for c, one in zip(problem.constraints, found, strict=True)}


def settle_prices(
    problem: Problem,
    played: Sequence[Round],
    *,
    best_response: BestResponse,
    evaluator: Evaluator,
    learner: OnlineLearner[Any],
    seed: int = 0,
    max_rounds: int = 20,
) -> tuple[Round, ...]:
    """Return a finished game with a best response at each end of every wide range, until what is left is optimal.

    max_rounds: best responses that may be asked for
    """
    settled = list(played)
    for _ in range(max_rounds):
        columns = Columns.of(settled)
        ends = _open_ends(columns, problem.limits, learner)
        if not ends:
            break
        played_at = ask(
            problem,
            ends[0],
            best_response=best_response,
            evaluator=evaluator,
            learner=learner,
            seed=seed,
            known=settled,
        )
        settled.append(played_at)
    return tuple(settled)


def ask(
    problem: Problem,
    multipliers: FloatArray,
    *,
    best_response: BestResponse,
    evaluator: Evaluator,
    learner: OnlineLearner[Any],
    seed: int,
    known: Sequence[Round] = (),
) -> Round:
    """Play one round more at these multipliers (m,), whatever the learner would play."""
    game = rounds(
        problem,
        best_response=best_response,
        evaluator=evaluator,
        learner=_Fixed(learner, multipliers),
        seed=seed,
        known=known,
    )
    return next(played for played in game if played.index > len(known))


def _open_ends(columns: Columns, limits: FloatArray, learner: OnlineLearner[Any]) -> list[FloatArray]:
    """Return the ends of wide ranges at which no best response was sought yet."""
    proof = columns.proof(limits)
    region = _Region(columns, limits, learner)
    visited = columns.visited * region.units / region.size
    ends = []
    for i, found in enumerate(price_ranges(columns, limits, learner)):
        for sign in (1.0, -1.0) if found.wide else ():
            end = region.furthest(i, sign, proof.value)
            if end is not None and not np.isclose(visited, end[0] * region.units / region.size).all(axis=1).any():
                ends.append(end[0])
    return ends


@dataclass(frozen=True)
class _Fixed:
    """A learner whose multipliers are given; its ball is another's."""

    ball: OnlineLearner[Any]
    given: FloatArray

    def init(self, n_constraints: int) -> None:
        del n_constraints

    def multipliers(self, state: None) -> FloatArray:
        del state
        return self.given

    def update(self, state: None, played: object) -> None:
        del state, played

    def worst_multipliers(self, violation: FloatArray) -> FloatArray:
        return self.ball.worst_multipliers(violation)


class _Region:
    """The multipliers of the learner's ball at which no policy found is worth less than a given value.

    The ball is known by its support function alone: it is cut out as far as is needed. Inside, everything is in units
    in which costs vary by about one.
    """

    def __init__(self, columns: Columns, limits: FloatArray, learner: OnlineLearner[Any]) -> None:
        kept = columns.distinct
        self.learner = learner
        self.bounds = multiplier_bounds(learner, limits.size)
        self.objectives, violations = columns.objectives[kept], columns.constraints[kept] - limits
        self.size, self.units = sizes(self.objectives, violations, self.bounds)
        self.planes = -violations / self.units
        self.cuts: list[FloatArray] = []
        self.heights: list[float] = []
        self._cut(1.0 / self.bounds)

    def extent(self, i: int, level: float) -> tuple[float, float, bool]:
        """Return the least and the largest of a multiplier, and whether the ball ends it; nothing: inf and -inf."""
        low, high = self.furthest(i, -1.0, level), self.furthest(i, 1.0, level)
        if low is None or high is None:
            return np.inf, -np.inf, False
        return max(float(low[0][i]), 0.0), float(high[0][i]), high[1]

    def furthest(self, i: int, sign: float, level: float) -> tuple[FloatArray, bool] | None:
        """Return the multipliers (m,) of the largest (sign 1) or least (sign -1) i-th, and whether the ball ends it."""
        highest = self.bounds * self.units / self.size
        room = (self.objectives - level) / self.size + EXACTLY
        if highest.size == 1:
            return self._interval(sign, room, highest)
        aim = -sign * np.eye(highest.size)[i]
        for _ in range(MAX_CUTS):
            found = scipy.optimize.linprog(
                aim,
                A_ub=np.vstack([self.planes, *(cut * self.size / self.units for cut in self.cuts)]),
                b_ub=np.append(room, self.heights),
                bounds=np.column_stack([np.zeros(highest.size), highest]),
                method="highs",
                options=EXACT,
            )
            if not found.success:
                return None
            multipliers = found.x * self.size / self.units
            outward = multipliers / self.bounds**2
            if multipliers @ outward <= (1 + INSIDE) * (self.learner.worst_multipliers(outward) @ outward):
                break
            self._cut(outward)
        ends = (found.ineqlin.marginals[room.size :] < 0).any() or found.upper.marginals[i] < 0
        return multipliers, bool(ends)

    def _interval(self, sign: float, room: FloatArray, highest: FloatArray) -> tuple[FloatArray, bool] | None:
        """Return the same for a single constraint, where no program is needed."""
        slopes = self.planes[:, 0]
        highs, lows = (room[side] / slopes[side] for side in (slopes > 0, slopes < 0))
        low, high = lows.max(initial=0.0), highs.min(initial=float(highest[0]))
        if low > high or (room[slopes == 0] < 0).any():
            return None
        end = np.array([high if sign > 0 else low])
        return end * self.size / self.units, bool(end >= highest)

    def _cut(self, direction: FloatArray) -> None:
        """Keep to the ball in a direction."""
        self.cuts.append(direction)
        self.heights.append(float(self.learner.worst_multipliers(direction) @ direction))
