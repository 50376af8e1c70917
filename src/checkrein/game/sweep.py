"""sweep_limits: the best mixture at many limits, each from all policies found for the others.

Where the policies found already close the gap, a point costs one small linear program and no best response. The ends
come first, then the middles: for one limit that is the sandwich algorithm, whose error falls with the square of the
policies (Rote 1992).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from checkrein.base.arrays import FloatArray, require_counts, require_positive, require_seed
from checkrein.base.errors import DivergenceError
from checkrein.game.columns import Columns, multiplier_bounds
from checkrein.game.feasibility import slacks
from checkrein.game.loop import Round
from checkrein.game.prices import PriceRange, ask, named_price_ranges
from checkrein.game.solution import Status, named_multipliers
from checkrein.game.solve import solve
from checkrein.policies import MixturePolicy
from checkrein.problem import Problem, Values
from checkrein.protocols import BestResponse, Evaluator, OnlineLearner, Policy

SMALL = 1e-6  # of the largest multiplier: smaller ones are told apart no longer


@dataclass(frozen=True, eq=False)
class Point:
    """The best mixture found at one choice of limits, by the evaluator's estimates.

    limits: of every constraint by name, in the user's signs, as asked for
    values: of the mixture, signed so that less is better; where no policy keeps the limits, the mixture breaks some
    multipliers: the price of each constraint by name, in the program over the policies found
    prices: how sure each price is; empty while other points are still to be found
    lower_bound: on the objective of any policy that keeps the limits
    new_rounds: best responses that this point asked for
    """

    limits: dict[str, float]
    status: Status
    values: Values
    multipliers: dict[str, float]
    prices: dict[str, PriceRange]
    gap: float
    lower_bound: float
    new_rounds: int
    policy: MixturePolicy


@dataclass(frozen=True)
class Players:
    """Who plays at every point."""

    best_response: BestResponse
    evaluator: Evaluator
    learner: OnlineLearner[Any]
    seed: int = 0

    def __post_init__(self) -> None:
        require_seed(self.seed)


def _on_one(whole: Problem, players: Players, nearest: Callable[[FloatArray], Policy | None]) -> Players:
    """Let players play on one problem whatever the limits: what they prepare for it is then prepared once.

    nearest: the policy found at the multipliers that lie nearest: a best response starts from it
    """
    alone = whole.without_objective()

    def same(problem: Problem) -> Problem:
        return alone if problem.objective is None else whole

    def best_response(
        problem: Problem, multipliers: FloatArray, *, rng: np.random.Generator, start: Policy | None = None
    ) -> Policy:
        near = nearest(multipliers) if problem.objective is not None else start
        return players.best_response(same(problem), multipliers, rng=rng, start=near or start)

    def evaluator(problem: Problem, policy: Policy, *, rng: np.random.Generator) -> Values:
        return players.evaluator(same(problem), policy, rng=rng)

    return replace(players, best_response=best_response, evaluator=evaluator)


class Sweep:
    """All that was found so far, at whatever limits."""

    def __init__(
        self,
        problem: Problem,
        players: Players,
        *,
        tolerance: float,
        max_rounds: int,
        known: Sequence[Round] = (),
        on_round: Callable[[Round], None] | None = None,
    ) -> None:
        require_positive(tolerance=tolerance)
        require_counts(max_rounds=max_rounds)
        self.problem, self.players = problem, _on_one(problem, players, self._nearest)
        self.tolerance, self.max_rounds = tolerance, max_rounds
        self.rounds = tuple(known)
        self.asked = 0  # best responses, those that only tell what is feasible among them
        self.bounds = multiplier_bounds(players.learner, problem.n_constraints)
        self._on_round = on_round

    def ask(self, multipliers: FloatArray) -> Round:
        """Find the best response to given multipliers (m,)."""
        players = self.players
        played = ask(
            self.problem,
            multipliers,
            best_response=players.best_response,
            evaluator=players.evaluator,
            learner=players.learner,
            seed=players.seed,
            known=self.rounds,
        )
        self.rounds = (*self.rounds, played)
        self._count(played)
        return played

    def at(self, problem: Problem) -> Point:
        """Return the point of the same problem with other limits, playing on where its gap is not closed."""
        before = self.asked
        if self.rounds:
            point = self.standing(problem, Status.CONVERGED)
            excess = point.values.constraints - problem.limits
            if point.gap <= self.tolerance and (excess <= slacks(problem, self.rounds)).all():
                return point
        players = self.players
        found = solve(
            problem,
            best_response=players.best_response,
            evaluator=players.evaluator,
            learner=players.learner,
            seed=players.seed,
            tolerance=self.tolerance,
            max_rounds=self.max_rounds,
            known=self.rounds,
            on_round=self._count,
        )
        if not all(played.finite for played in found.rounds):
            raise DivergenceError(found.explanation)
        self.rounds = found.rounds
        return self.standing(problem, found.status, self.asked - before)

    def standing(self, problem: Problem, status: Status, new_rounds: int = 0, *, prices: bool = False) -> Point:
        """Return the point by what was found so far, whatever it was found for; prices: say how sure they are."""
        columns, limits = Columns.of(self.rounds), problem.limits
        mixture, proof = columns.mixture(limits, self.bounds), columns.proof(limits)
        learner = self.players.learner
        ranges = named_price_ranges(problem, self.rounds, learner, mixture) if prices else {}
        kept = np.flatnonzero(mixture.weights)
        return Point(
            limits={c.name: c.limit for c in problem.constraints},
            status=status,
            values=columns.values(mixture.weights),
            multipliers=named_multipliers(problem, mixture.prices),
            prices=ranges,
            gap=max(mixture.value - proof.value, 0.0),
            lower_bound=proof.value,
            new_rounds=new_rounds,
            policy=MixturePolicy(tuple(self.rounds[i].policy for i in kept), mixture.weights[kept]),
        )

    def _count(self, played: Round) -> None:
        self.asked += 1
        if self._on_round is not None:
            self._on_round(played)

    def ends_of(self, place: int) -> tuple[float, float]:
        """Return the least that any policy reaches of a constraint's cost, and its value without limits, signed."""
        multipliers = np.zeros(self.problem.n_constraints)
        free = self._answer(multipliers)
        multipliers[place] = self.bounds[place]
        least = self._answer(multipliers)
        return float(least.values.constraints[place]), float(free.values.constraints[place])

    def _nearest(self, multipliers: FloatArray) -> Policy | None:
        """Return the policy found at the multipliers nearest to these, by their ratios: prices span many sizes."""
        if not self.rounds:
            return None
        visited = np.array([played.multipliers for played in self.rounds])
        floor = SMALL * self.bounds
        apart = np.abs(np.log(visited + floor) - np.log(multipliers + floor)).max(axis=1, initial=0.0)
        return self.rounds[int(np.argmin(apart))].policy

    def _answer(self, multipliers: FloatArray) -> Round:
        asked = (played for played in self.rounds if np.array_equal(played.multipliers, multipliers))
        return next(asked, None) or self.ask(multipliers.copy())


def sweep_limits(
    game: Sweep,
    limits: Mapping[str, Sequence[float]],
    margins: Mapping[str, float],
    on_point: Callable[[Point], None] | None = None,
) -> list[Point]:
    """Return the point of each choice of limits, the last one varying fastest, each by all policies found for any.

    limits: in the user's signs, of the constraints that are swept
    margins: how far inside its limit each constraint is aimed at
    on_point: called with each point when its gap is closed, in the order that finds most early on
    """
    axes = [_halving(len(values)) for values in limits.values()]
    grid = [dict(zip(limits, values, strict=True)) for values in product(*limits.values())]
    order = sorted(range(len(grid)), key=lambda k: sorted(_ranks(k, axes), reverse=True))
    found: dict[int, Point] = {}
    hopeless: list[FloatArray] = []
    for k in order:
        asked, aimed = _at(game.problem, grid[k], margins)
        known = any((aimed.limits <= there).all() for there in hopeless)
        found[k] = game.standing(aimed, Status.INFEASIBLE) if known else game.at(aimed)
        if found[k].status is Status.INFEASIBLE:
            hopeless.append(aimed.limits)
        if on_point is not None:
            on_point(replace(found[k], limits=asked))
    final = []
    for k, chosen in enumerate(grid):
        asked, aimed = _at(game.problem, chosen, margins)
        point = game.standing(aimed, found[k].status, found[k].new_rounds, prices=True)
        final.append(replace(point, limits=asked))
    return final


def _at(
    problem: Problem, chosen: Mapping[str, float], margins: Mapping[str, float]
) -> tuple[dict[str, float], Problem]:
    """Return all limits that are asked for, and the problem with those that are aimed at."""
    asked = {c.name: chosen.get(c.name, c.limit) for c in problem.constraints}
    aimed = [replace(c, limit=asked[c.name] - c.sign * margins.get(c.name, 0.0)) for c in problem.constraints]
    return asked, replace(problem, constraints=aimed)


def _halving(count: int) -> list[int]:
    """Return the rank of each place: the ends first, then the middles of what lies between."""
    ranks, gaps = dict.fromkeys((0, count - 1), 0), [(0, count - 1)]
    for rank in range(1, count):
        halves = []
        for low, high in gaps:
            if high - low > 1:
                middle = (low + high) // 2
                ranks[middle] = rank
                halves += [(low, middle), (middle, high)]
        gaps = halves
    return [ranks[place] for place in range(count)]


def _ranks(k: int, axes: list[list[int]]) -> list[int]:
    return [ranks[place] for ranks, place in zip(axes, np.unravel_index(k, [len(a) for a in axes]), strict=True)]
