"""regularized_grid: the best policy at each of many multipliers, as the paper's baselines are searched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl

from checkrein.base.arrays import BoolArray, FloatArray, frozen, require_seed
from checkrein.base.errors import ArgumentError
from checkrein.game.derandomise.single import MET, best_place
from checkrein.game.regularized import Regularized, in_order, regularized_by, require_prices
from checkrein.problem import Problem, Values
from checkrein.protocols import BestResponse, Evaluator, ManyResponses, Policy

Grid = Mapping[str, Sequence[float]] | Sequence[Sequence[float]] | FloatArray


@dataclass(frozen=True, eq=False)
class RegularizedGrid:
    """One-shot policies at fixed multipliers, valued: no mixture, no search beyond the grid."""

    problem: Problem
    multipliers: FloatArray  # (M, m)
    policies: tuple[Policy, ...]
    values: tuple[Values, ...]  # signed

    @property
    def meets_limits(self) -> BoolArray:
        """(M,) which policies keep every limit by estimate."""
        return np.asarray(self._met().all(axis=1))

    def table(self) -> pl.DataFrame:
        """Return a row for each point: multipliers, values in the user's signs, and which limits are met."""
        names = [c.name for c in self.problem.constraints]
        met = self._met()
        return pl.DataFrame(
            {f"multiplier of {name}": self.multipliers[:, i] for i, name in enumerate(names)}
            | _columns([self.problem.named(values) for values in self.values])
            | {f"{name} met": met[:, i] for i, name in enumerate(names)}
            | {"all met": self.meets_limits}
        )

    def best(self) -> Regularized | None:
        """Return the best policy that keeps every limit by estimate; None where none does."""
        if not self.meets_limits.any():
            return None
        at = best_place(self.problem, self.values, MET)
        return regularized_by(self.problem, self.multipliers[at], self.policies[at], self.values[at], None)

    def _met(self) -> BoolArray:
        return np.array([v.constraints - self.problem.limits <= MET for v in self.values], dtype=bool)


def regularized_grid(
    problem: Problem, multipliers: Grid, *, best_response: BestResponse, evaluator: Evaluator, seed: int = 0
) -> RegularizedGrid:
    """Answer and value every point of a grid of multipliers.

    multipliers: (M, m) points, or for the name of each constraint its values: then all combinations
    """
    require_seed(seed)
    points = _points(problem, multipliers)
    rng = np.random.default_rng(seed)
    if isinstance(best_response, ManyResponses):
        policies = best_response.responses(problem, points, rng=rng)
    else:
        policies = tuple(best_response(problem, each, rng=rng) for each in points)
    values = tuple(evaluator(problem, policy, rng=np.random.default_rng(seed)) for policy in policies)
    return RegularizedGrid(problem, frozen(points), policies, values)


def _points(problem: Problem, multipliers: Grid) -> FloatArray:
    """(M, m)"""  # noqa: D400, D415
    if isinstance(multipliers, Mapping):
        multipliers = list(product(*in_order(problem, multipliers)))
    points = np.array(multipliers, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != problem.n_constraints or not len(points):
        raise ArgumentError(
            f"the grid has shape {points.shape}: it must be (points, {problem.n_constraints}), a column per constraint"
        )
    require_prices(points)
    return points


def _columns(rows: Sequence[dict[str, float]]) -> dict[str, list[float]]:
    return {name: [row[name] for row in rows] for name in rows[0]}
