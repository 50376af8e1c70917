"""frontier: the whole trade-off between the objective and one or two limits, with prices and certificates."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from checkrein.base.arrays import FloatArray
from checkrein.base.errors import ArgumentError, DivergenceError, EndlessPolicyError
from checkrein.certification.bounds import BootstrapFQE, Method, method_of
from checkrein.certification.certificate import Certificate
from checkrein.certification.certify import alpha_spent, certify
from checkrein.game.loop import Round
from checkrein.game.pareto import coverage_set, non_dominated
from checkrein.game.solution import Status
from checkrein.game.sweep import Players, Point, Sweep, sweep_limits
from checkrein.problem import Problem
from checkrein.protocols import BestResponse, Evaluator, OnlineLearner

MOST_SWEPT = 2


@dataclass(frozen=True, eq=False)
class HeldOut:
    """A point's mixture on episodes that did not choose it.

    values, standard_errors: (1 + m,) signed so that less is better; None: it could not be valued there
    certificate: against the point's own limits; None: it was not asked for, or the point keeps no limits
    """

    values: FloatArray | None
    standard_errors: FloatArray | None
    certificate: Certificate | None


@dataclass(frozen=True, eq=False)
class Frontier:
    """The best mixture at each of many limits.

    limits: of the constraints that were swept, in the user's signs
    points: the last swept limit varies fastest
    rounds: all policies found, for whatever limits
    asked: best responses that all points together took
    held_out: beside each point; empty where nothing was held out
    confidence: that no certified point is wrong, all of them together; None: none was asked for
    """

    problem: Problem
    limits: dict[str, tuple[float, ...]]
    points: tuple[Point, ...]
    rounds: tuple[Round, ...]
    asked: int
    held_out: tuple[HeldOut, ...] = ()
    confidence: float | None = None

    def table(self) -> pl.DataFrame:
        """Return a row for each point: limits, values in the user's signs, prices and their ranges, verdicts.

        Where no policy keeps the limits, there are no values.
        """
        return pl.DataFrame([self._row(k) for k in range(len(self.points))])

    def policies(self) -> pl.DataFrame:
        """Return a row for each policy found: its costs, and its place in the Pareto view.

        non_dominated: no other is as good in every cost and better in one
        coverage: it is the best for some weights of the costs, of the objective and all constraints
        """
        costs = np.array([one.values.row for one in self.rounds])
        _, first = np.unique(np.round(costs, 12), axis=0, return_index=True)
        kept = costs[np.sort(first)]
        columns = dict(zip(self.problem.value_names, (kept * self._signs).T, strict=True))
        places = {"round": np.sort(first) + 1}
        views = {"non_dominated": non_dominated(kept), "coverage": coverage_set(kept)}
        return pl.DataFrame(places | columns | views)

    @property
    def _signs(self) -> FloatArray:
        return np.array([1.0, *(c.sign for c in self.problem.constraints)])

    def _row(self, k: int) -> dict[str, Any]:
        point, names = self.points[k], self.problem.value_names
        kept = point.status is not Status.INFEASIBLE
        values = self._signs * point.values.row + 0.0
        row: dict[str, Any] = {f"limit of {name}": point.limits[name] for name in self.limits}
        row["status"] = str(point.status)
        row |= {name: float(value) if kept else None for name, value in zip(names, values, strict=True)}
        for name, price in point.multipliers.items():
            sure = point.prices[name]
            row[f"price of {name}"] = price if kept else None
            row |= {f"price of {name}, {end}": at if kept else None for end, at in _ends(sure.low, sure.high)}
        row |= {"gap": point.gap, "new_rounds": point.new_rounds, "members": len(point.policy.members)}
        return row | (self._held_out(k) if self.held_out else {})

    def _held_out(self, k: int) -> dict[str, Any]:
        judged = self.held_out[k]
        row: dict[str, Any] = {}
        for i, name in enumerate(self.problem.value_names):
            values, errors = judged.values, judged.standard_errors
            row[f"{name}, held out"] = None if values is None else float(self._signs[i] * values[i]) + 0.0
            row[f"{name}, standard error"] = None if errors is None else float(errors[i])
        return row | {"verdict": None if judged.certificate is None else judged.certificate.verdict}


def frontier(
    problem: Problem,
    *,
    sweep: Mapping[str, Sequence[float] | int],
    best_response: BestResponse,
    evaluator: Evaluator,
    learner: OnlineLearner[Any],
    tolerance: float,
    max_rounds: int,
    seed: int = 0,
    known: Sequence[Round] = (),
    margins: Mapping[str, float] | None = None,
    on_point: Callable[[Point], None] | None = None,
    on_round: Callable[[Round], None] | None = None,
    held_out: Problem | None = None,
    confidence: float | None = 0.95,
    method: str | Method | None = None,
    look: int | None = None,
) -> Frontier:
    """Solve a problem at many limits of one or two constraints; every policy found serves all points.

    sweep: constraint -> its limits, in the user's signs, or how many: from the least that any policy reaches to what
        is incurred without limits. Two constraints make a grid
    tolerance, max_rounds: of each point
    known: rounds of another solution by the same players from the same data
    margins: constraint -> how far inside its limit policies are aimed, so that they have a chance to be certified
    held_out: the same problem on other episodes: every point is valued there and, unless `confidence` is None,
        certified against its own limits, all points together: each may err with an equal share of 1 - confidence
    method, look: as in `certify`
    """
    require_sweep(problem, sweep, margins)
    players = Players(best_response, evaluator, learner, seed)
    game = Sweep(problem, players, tolerance=tolerance, max_rounds=max_rounds, known=known, on_round=on_round)
    limits = {name: _limits(game, name, asked, (margins or {}).get(name, 0.0)) for name, asked in sweep.items()}
    points = sweep_limits(game, limits, margins or {}, on_point)
    found = Frontier(problem, limits, tuple(points), game.rounds, game.asked)
    if held_out is None:
        return found
    return judge_points(found, held_out, confidence=confidence, method=method, seed=seed, look=look)


def judge_points(
    found: Frontier,
    held_out: Problem,
    *,
    confidence: float | None = 0.95,
    method: str | Method | None = None,
    seed: int = 0,
    look: int | None = None,
) -> Frontier:
    """Value every point on held-out episodes and certify it against its own limits, all points at one confidence.

    One look at the episodes: what it may err with is split evenly among the points that keep their limits.
    """
    kept = sum(point.status is not Status.INFEASIBLE for point in found.points)
    alpha = None if confidence is None else alpha_spent(1 - confidence, look) / max(kept, 1)
    chosen = method_of(method, held_out)
    if isinstance(chosen, BootstrapFQE):
        chosen = replace(chosen, most=chosen.replicates)  # a point among many may err so little that no number would do
    judged = [_judge(point, held_out, chosen, alpha, seed) for point in found.points]
    return replace(found, held_out=tuple(judged), confidence=confidence)


def _judge(point: Point, held_out: Problem, method: Method, alpha: float | None, seed: int) -> HeldOut:
    if point.status is Status.INFEASIBLE:
        return HeldOut(None, None, None)
    asked = replace(held_out, constraints=[replace(c, limit=point.limits[c.name]) for c in held_out.constraints])
    certificate = None
    if alpha is not None:
        certificate = certify(
            point.policy,
            asked.dataset,
            constraints=asked.constraints,
            discount=asked.discount,
            confidence=1 - alpha,
            method=method,
            seed=seed,
        )
    try:
        values, errors = method.estimate(held_out, point.policy, rng=np.random.default_rng(seed))
    except (DivergenceError, EndlessPolicyError):
        return HeldOut(None, None, certificate)
    return HeldOut(values, errors, certificate)


def _limits(game: Sweep, name: str, asked: Sequence[float] | int, margin: float) -> tuple[float, ...]:
    if not isinstance(asked, int):
        return tuple(sorted(float(limit) for limit in asked))
    place = [c.name for c in game.problem.constraints].index(name)
    sign = game.problem.constraints[place].sign
    low, high = game.ends_of(place)
    if not high > low:
        raise ArgumentError(
            f"{name} is {sign * high:.6g} without limits, and no policy found reaches a better value: "
            "there is nothing to trade; give its limits yourself"
        )
    return tuple(sorted(float(sign * limit) for limit in np.linspace(low, high, asked) + margin))


def require_sweep(
    problem: Problem, swept: Mapping[str, Sequence[float] | int], margins: Mapping[str, float] | None = None
) -> None:
    """Raise unless the limits to sweep, and margins, are such that `frontier` can do with them."""
    names = [c.name for c in problem.constraints]
    for name in (*swept, *(margins or {})):
        if name not in names:
            there = f"there are {', '.join(names)}" if names else "the problem has none"
            raise ArgumentError(f"no constraint is called {name!r}: {there}")
    if not 1 <= len(swept) <= MOST_SWEPT:
        raise ArgumentError(f"{len(swept)} limits are to be swept: give one, or two for a grid")
    if problem.objective is None:
        raise ArgumentError("the problem has no objective: there is nothing to trade limits for")
    for name, asked in swept.items():
        if isinstance(asked, int):
            if isinstance(asked, bool) or asked < 2:
                raise ArgumentError(f"{asked} points of {name} make no frontier: ask for at least 2")
        elif not len(asked) or not np.isfinite(np.asarray(asked, dtype=np.float64)).all():
            raise ArgumentError(f"the limits of {name} are {list(asked)}: give one or more finite numbers")


def _ends(low: float, high: float) -> tuple[tuple[str, float], tuple[str, float]]:
    return ("least", low), ("largest", high)
