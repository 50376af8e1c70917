"""Columns: what the rounds found, without their limits; at any limits it tells the best mixture and a lower bound.

A best response does not depend on the limits, so neither do its values, nor how little any policy pays at the
multipliers that it answered: these are found once and serve every limit (the columns of Dantzig & Wolfe 1960).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.game.lagrangian import lagrangian
from checkrein.game.loop import Round
from checkrein.online.master import Mixture, best_mixture
from checkrein.problem import Values
from checkrein.protocols import OnlineLearner

POINTS = 25  # limits at which a trade-off is drawn
FORBIDDING = 1e4  # times the price at which a constraint's spread outweighs the objective's: no limit is broken for it
SLACK = 1e-6  # of a constraint's spread: what exceeds a limit by less keeps it


class Proof(NamedTuple):
    """A lower bound on the game's value, and the multipliers that prove it."""

    value: float
    multipliers: FloatArray  # (m,)


@dataclass(frozen=True, eq=False)
class Columns:
    """The values of every policy found, and what every multiplier visited proves.

    objectives: (t,); constraints, visited: (t, m)
    least: (t,) the least of objective + multipliers . constraints over all of them, at each multiplier visited; -inf
        where no best response was sought there
    """

    objectives: FloatArray
    constraints: FloatArray
    visited: FloatArray
    least: FloatArray

    @classmethod
    def of(cls, played: Sequence[Round]) -> "Columns":
        """Collect the rounds of one game, or of several by the same players on the same data."""
        objectives = np.array([one.values.objective for one in played])
        constraints = np.array([one.values.constraints for one in played])
        visited = np.array([one.multipliers for one in played])
        least = lagrangian(objectives, constraints, visited).min(axis=1)
        return cls(objectives, constraints, visited, np.where([one.answers for one in played], least, -np.inf))

    @property
    def distinct(self) -> list[int]:
        """Where each pair of values was found first: equal ones are interchangeable."""
        table = np.column_stack([self.objectives, self.constraints])
        return list({row.tobytes(): place for place, row in reversed(list(enumerate(table)))}.values())[::-1]

    def proof(self, limits: FloatArray) -> Proof:
        """Return the best lower bound at these limits (m,)."""
        bounds = self.least - self.visited @ limits
        best = int(np.argmax(bounds))
        return Proof(float(bounds[best]), self.visited[best])

    def mixture(self, limits: FloatArray, bounds: FloatArray) -> Mixture:
        """Return the best mixture of all columns at these limits (m,), its weights (t,) over all of them."""
        kept = self.distinct
        found = best_mixture(self.objectives[kept], self.constraints[kept] - limits, bounds)
        weights = np.zeros(self.objectives.size)
        weights[kept] = found.weights
        return Mixture(weights, found.prices, found.value)

    def values(self, weights: FloatArray) -> Values:
        """Return what a mixture of the columns comes to."""
        return Values(float(weights @ self.objectives), weights @ self.constraints)


class TradeOff(NamedTuple):
    """What the rounds of one game say of other limits of one constraint, at no further cost.

    limits, reached, proven: (n,) signed; the best mixture of the policies found (nan: none keeps the limits), and the
    lower bound that the multipliers visited prove of any policy: what there is to gain lies between
    """

    limits: FloatArray
    reached: FloatArray
    proven: FloatArray


def trade_off(columns: Columns, limits: FloatArray, place: int, count: int = POINTS) -> TradeOff:
    """Let one limit of (m,) vary over all that the policies found incur."""
    mine, spread = columns.constraints[:, place], np.ptp(columns.constraints, axis=0)
    free = mine[int(np.argmin(columns.objectives))]
    grid = np.linspace(min(mine.min(), limits[place]), max(free, limits[place]), count)
    units = np.where(spread > 0, spread, 1.0)
    bounds = FORBIDDING * (float(np.ptp(columns.objectives)) or 1.0) / units
    reached, proven = np.full(count, np.nan), np.full(count, np.nan)
    for k, limit in enumerate(grid):
        here = np.where(np.arange(limits.size) == place, limit, limits)
        values = columns.values(columns.mixture(here, bounds).weights)
        if (values.constraints - here <= SLACK * units).all():
            reached[k] = values.objective
        proven[k] = columns.proof(here).value
    return TradeOff(grid, reached, proven)


def multiplier_bounds(learner: OnlineLearner[object], n_constraints: int) -> FloatArray:
    """(m,) the largest value of each multiplier in the learner's ball."""
    return np.array([learner.worst_multipliers(unit) @ unit for unit in np.eye(n_constraints)])
