"""Regularisation and constraints, one from the other (the proposition of Section 2.1 of the paper).

Regularisation minimises C + multipliers . G; the constrained problem minimises C subject to G <= limits. Over mixtures:

- The best policy at given multipliers is the constrained optimum at the limits that are its own values of G.
- The constrained optimum is among the best at the price of its limits, if some policy keeps all limits with room
  (Slater's condition).

The proposition asks for positive multipliers and for a constraint that binds. Then limit and multiplier determine each
other up to ranges: in a finite MDP several policies are best at some multipliers, and mixtures of them reach every
limit between theirs; and one limit may have several prices. A multiplier of zero is the price of every limit that does
not bind: of a range without end.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from checkrein.base.arrays import FloatArray, require_seed
from checkrein.base.errors import ArgumentError, ProblemError
from checkrein.game.columns import multiplier_bounds
from checkrein.game.lagrangian import lagrangian
from checkrein.game.solution import Solution, Status, named_multipliers
from checkrein.game.solve import solve
from checkrein.online.master import best_mixture
from checkrein.problem import Problem, Values
from checkrein.protocols import BestResponse, Evaluator, OnlineLearner, Policy

T = TypeVar("T")
Multipliers = Mapping[str, float] | Sequence[float] | FloatArray
NUDGES = 1e-3, 1e-5, 1e-7  # relative changes of a multiplier that decide between policies that are equally good
JUMP = 0.01  # the share of what a policy gains at another price by which it may be worse at this one
TIED = 1e-10  # the share of C + multipliers . G by which two policies that are equally good may differ


@dataclass(frozen=True, eq=False)
class Regularized:
    """The best policy at fixed multipliers, and the limits at which it is the best that keeps them.

    values: its expected sum of each cost, by name, in the user's signs
    regularized_value: C + multipliers . G, each signed so that less is better
    limits: by constraint; among all policies that keep these, none has a better objective
    limit_ranges: by constraint, the least and the largest limit of which the multipliers are a price, together with
        limits on the others in their ranges; None where it was not asked for
    """

    policy: Policy
    multipliers: dict[str, float]
    values: dict[str, float]
    regularized_value: float
    limits: dict[str, float]
    limit_ranges: dict[str, tuple[float, float]] | None
    explanation: str


@dataclass(frozen=True, eq=False)
class Priced:
    """The multipliers at which the regularised problem is the constrained one.

    difference: between the constrained optimum's Lagrangian and the least of any policy at these multipliers;
        nothing, where the multipliers are the price
    """

    multipliers: dict[str, float]
    solution: Solution
    regularized: Regularized
    difference: float
    explanation: str


def regularized(
    problem: Problem,
    multipliers: Multipliers,
    *,
    best_response: BestResponse,
    evaluator: Evaluator,
    seed: int = 0,
    ranges: bool = True,
) -> Regularized:
    """Return the best policy at fixed multipliers, and the limits at which it is the constrained optimum.

    (Regularization => Constraint. `problem`'s own limits do not matter.) What is said of limits is as true as the best
    response is best and the evaluator exact: with tables, in the logged MDP.

    multipliers: by the name of each constraint, or (m,) in their order
    ranges: find the limits that they are a price of, by best responses to multipliers a little larger and smaller
    """
    require_seed(seed)
    price = multipliers_of(problem, multipliers)
    players = _Players(problem, best_response, evaluator, seed)
    policy, values = players.answer(price, None)
    ends = players.ends(price, policy, values) if ranges else None
    return regularized_by(problem, price, policy, values, ends)


def multipliers_for(
    problem: Problem,
    *,
    best_response: BestResponse,
    evaluator: Evaluator,
    learner: OnlineLearner[Any],
    tolerance: float = 1e-6,
    max_rounds: int = 200,
    seed: int = 0,
) -> Priced:
    """Solve a problem and return the price of its limits, with the check that it is one.

    (Constraint => Regularization.) The arguments are those of `solve`.
    """
    solution = solve(
        problem,
        best_response=best_response,
        evaluator=evaluator,
        learner=learner,
        tolerance=tolerance,
        max_rounds=max_rounds,
        seed=seed,
    )
    if solution.status is Status.INFEASIBLE:
        raise ProblemError(f"limits that no policy keeps have no price. {solution.explanation}")
    mixed = solution.rounds[-1].mixture
    found = []
    for price in _prices(problem, solution, learner):
        one = regularized(problem, price, best_response=best_response, evaluator=evaluator, seed=seed)
        dual = one.regularized_value - float(price @ problem.limits)
        optimum = float(lagrangian(np.array([mixed.objective]), (mixed.constraints - problem.limits)[None], price)[0])
        found.append((dual, optimum - dual, one))
    _, difference, best = max(found, key=lambda entry: entry[0])
    prices = ", ".join(f"{name} {value:.6g}" for name, value in best.multipliers.items()) or "there are none"
    words = (
        f"The limits have the price: {prices}. At it the constrained optimum is "
        f"{'as good as' if abs(difference) <= tolerance else f'{difference:.3g} worse than'} the best policy of the "
        f"regularised problem. {solution.explanation}"
    )
    return Priced(best.multipliers, solution, best, difference, words)


def multipliers_of(problem: Problem, multipliers: Multipliers) -> FloatArray:
    """(m,) multipliers in the order of the constraints, checked."""
    if isinstance(multipliers, Mapping):
        multipliers = in_order(problem, multipliers)
    price = np.asarray(multipliers, dtype=np.float64)
    if price.shape != (problem.n_constraints,):
        raise ArgumentError(f"multipliers have shape {price.shape}, but there are {problem.n_constraints} constraints")
    require_prices(price)
    return price


def in_order(problem: Problem, given: Mapping[str, T]) -> list[T]:
    """Return what is given by the name of each constraint, in their order."""
    names = [c.name for c in problem.constraints]
    if set(given) != set(names):
        raise ArgumentError(
            f"multipliers are given for {', '.join(map(repr, given)) or 'nothing'}, but the constraints are "
            f"{', '.join(map(repr, names)) or 'none'}: give them for each"
        )
    return [given[name] for name in names]


def require_prices(prices: FloatArray) -> None:
    """Raise unless all are finite and none is negative."""
    if not (np.isfinite(prices) & (prices >= 0)).all():
        wrong = prices[~(np.isfinite(prices) & (prices >= 0))][0]
        raise ArgumentError(f"a multiplier is {wrong}: multipliers must be finite and not negative")


def regularized_by(
    problem: Problem, price: FloatArray, policy: Policy, values: Values, ends: FloatArray | None
) -> Regularized:
    """Put in words and in the user's signs what was found; ends: (m, 2) the limits that have this price."""
    limits, ranges = {}, {}
    for i, c in enumerate(problem.constraints):
        limits[c.name] = float(c.sign * values.constraints[i]) + 0.0
        if ends is not None:
            low, high = sorted(float(c.sign * end) + 0.0 for end in ends[i])
            ranges[c.name] = low, high
    return Regularized(
        policy=policy,
        multipliers=named_multipliers(problem, price),
        values=problem.named(values),
        regularized_value=values.objective + float(price @ values.constraints),
        limits=limits,
        limit_ranges=None if ends is None else ranges,
        explanation=_explain(problem, limits, ranges),
    )


def _explain(problem: Problem, limits: dict[str, float], ranges: dict[str, tuple[float, float]]) -> str:
    kept = " and ".join(f"{c.name} {c.words} {limits[c.name]:.6g}" for c in problem.constraints)
    among = f"among those with {kept}" if kept else "of all"
    text = f"At these multipliers the policy is, by estimate, the best {among}."
    for name, (low, high) in ranges.items():
        if np.isclose(low, high, rtol=1e-6, atol=1e-9):  # but for rounding, one limit
            continue
        span = f"between {low:.6g} and {high:.6g}"
        if np.isinf(high):
            span = f"from {low:.6g} upwards"
        elif np.isinf(low):
            span = f"up to {high:.6g}"
        text += f" They are also a price of limits on {name} {span}."
    return text


class _Players(NamedTuple):
    problem: Problem
    best_response: BestResponse
    evaluator: Evaluator
    seed: int

    def answer(self, price: FloatArray, start: Policy | None) -> tuple[Policy, Values]:
        policy = self.best_response(self.problem, price, rng=np.random.default_rng(self.seed), start=start)
        return policy, self.evaluator(self.problem, policy, rng=np.random.default_rng(self.seed))

    def ends(self, price: FloatArray, policy: Policy, values: Values) -> FloatArray:
        """(m, 2) the least and the largest of each constraint among the policies that are best at this price.

        A policy that is best at a slightly higher price of a constraint, and no worse at this one, has the least of it
        among all that are best at this one. (Soft policies change with the price little by little: each is worse at
        this one, by half of what it gains at its own.)
        """
        least = values.objective + price @ values.constraints
        tied = TIED * (1 + abs(least))
        ends = np.repeat(values.constraints[:, None], 2, axis=1)
        for i, unit in enumerate(self._units(price, values)):
            for side, sign in ((0, 1.0), (1, -1.0)):
                if side == 1 and price[i] == 0:
                    ends[i, 1] = np.inf
                    continue
                for nudge in NUDGES:
                    moved = price.copy()
                    moved[i] += sign * nudge * unit
                    _, other = self.answer(moved, policy)
                    worse = other.objective + price @ other.constraints - least
                    gained = nudge * unit * abs(other.constraints[i] - values.constraints[i])
                    if worse <= min(tied, JUMP * gained):
                        ends[i] = min(ends[i, 0], other.constraints[i]), max(ends[i, 1], other.constraints[i])
                        break
        return ends

    def _units(self, price: FloatArray, values: Values) -> Iterator[float]:
        """Yield what a change of each multiplier is measured by: itself, or what makes it as large as the objective."""
        for multiplier, value in zip(price, values.constraints, strict=True):
            yield float(multiplier) or abs(values.objective / value if value else values.objective) or 1.0


def _prices(problem: Problem, solution: Solution, learner: OnlineLearner[Any]) -> Iterator[FloatArray]:
    """Yield the multipliers of the best lower bound, and the price of the linear program over the policies found."""
    yield multipliers_of(problem, solution.multipliers)
    if problem.n_constraints:
        objectives = np.array([played.values.objective for played in solution.rounds])
        violations = np.array([played.violation for played in solution.rounds])
        yield best_mixture(objectives, violations, multiplier_bounds(learner, problem.n_constraints)).prices
