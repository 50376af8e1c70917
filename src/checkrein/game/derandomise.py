"""One policy instead of a mixture: the best single member, or the averaged weights; and what that costs."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass

import numpy as np

from checkrein.base.arrays import FloatArray, frozen
from checkrein.base.errors import ArgumentError, ProblemError
from checkrein.functions import LinearQ, TabularQ
from checkrein.game.loop import Round
from checkrein.game.solution import Solution
from checkrein.policies import GreedyPolicy, members_of
from checkrein.problem import Question
from checkrein.protocols import Policy


@dataclass(frozen=True, eq=False)
class Derandomised:
    """A single policy in place of a mixture, by the same estimates.

    index: the round that found it, from 1
    values: its expected sum of each cost, by name, in the user's signs
    price: how much more of the objective it incurs than the mixture does; negative where it breaks a limit to save it
    worst_violation: by how much the limit that it meets worst is exceeded; 0: every limit is met
    """

    policy: Policy
    index: int
    values: dict[str, float]
    price: float
    meets_limits: bool
    worst_violation: float
    explanation: str


def best_member(problem: Question, solution: Solution, *, tolerance: float = 1e-9) -> Derandomised:
    """Return the best of all policies found that meets every limit by estimate, or the one that comes closest.

    tolerance: a limit exceeded by no more than this is met
    """
    found = [played for played in solution.rounds if played.finite]
    if not found:
        raise ProblemError("no policy found has finite values: there is none to choose")
    worst = np.array([_worst_violation(problem, played) for played in found])
    objectives = np.array([played.values.objective for played in found])
    meets = worst <= tolerance
    order = np.lexsort((worst, objectives)) if meets.any() else np.lexsort((objectives, worst))
    chosen = next(int(place) for place in order if meets[place] or not meets.any())
    best = found[chosen]
    values = problem.named(best.values)
    objective = problem.objective_name
    price = 0.0 if objective is None else best.values.objective - solution.values[objective]
    return Derandomised(
        policy=best.policy,
        index=best.index,
        values=values,
        price=price,
        meets_limits=bool(meets.any()),
        worst_violation=float(max(worst[chosen], 0.0)),
        explanation=_explain(problem, solution, best, price=price, meets=bool(meets.any())),
    )


def averaged_weights(mixture: Policy) -> GreedyPolicy:
    """Act greedily on the members' average Q (the policy that the paper's OGD with LSPI returns); no bound covers it.

    The members must be greedy over one function class, with the same features and the same support.
    """
    pairs = members_of(mixture)
    greedy = [member for member, _ in pairs if isinstance(member, GreedyPolicy)]
    if len(greedy) < len(pairs):
        other = next(member for member, _ in pairs if not isinstance(member, GreedyPolicy))
        raise ArgumentError(
            f"a member is a {type(other).__name__}: only the weights of greedy policies can be averaged"
        )
    first = greedy[0]
    for place, member in enumerate(greedy):
        if not _same(member.support, first.support):
            raise ArgumentError(f"member {place} has another support than member 0: their weights cannot be averaged")
    weights = np.array([weight for _, weight in pairs])
    linear = [member.q for member in greedy if isinstance(member.q, LinearQ)]
    tables = [member.q for member in greedy if isinstance(member.q, TabularQ)]
    if len(linear) == len(greedy):
        return GreedyPolicy(_average_linear(linear, weights), first.support)
    if len(tables) == len(greedy):
        return GreedyPolicy(_average_tables(tables, weights), first.support)
    kinds = sorted({type(member.q).__name__ for member in greedy})
    raise ArgumentError(
        f"the members' Q-functions are {', '.join(kinds)}: only LinearQ, or only TabularQ, can be averaged; "
        "use best_member instead"
    )


def _average_linear(functions: Sequence[LinearQ], weights: FloatArray) -> LinearQ:
    for place, q in enumerate(functions):
        if not _same(q.features, functions[0].features) or q.weights.shape != functions[0].weights.shape:
            raise ArgumentError(
                f"member {place} has weights {q.weights.shape} on {q.features!r}, member 0 "
                f"{functions[0].weights.shape} on {functions[0].features!r}: they must have the same features"
            )
    return LinearQ(functions[0].features, frozen(np.tensordot(weights, [q.weights for q in functions], 1)))


def _average_tables(functions: Sequence[TabularQ], weights: FloatArray) -> TabularQ:
    """Average tables; beyond its end a table is 0."""
    shapes = sorted({q.table.shape[1:] for q in functions})
    if len(shapes) > 1:
        raise ArgumentError(f"the members' tables have {shapes} actions and costs: they must be alike")
    average = np.zeros((max(len(q.table) for q in functions), *shapes[0]))
    for q, weight in zip(functions, weights, strict=True):
        average[: len(q.table)] += weight * q.table
    return TabularQ(frozen(average))


def _same(one: object, other: object) -> bool:
    """Compare values part by part: what was loaded from a file equals what was saved."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    if is_dataclass(one) and type(one) is type(other):
        return all(_same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    return bool(one == other)


def _worst_violation(problem: Question, played: Round) -> float:
    return float((played.values.constraints - problem.limits).max(initial=-np.inf))


def _explain(problem: Question, solution: Solution, best: Round, *, price: float, meets: bool) -> str:
    pairs = zip(problem.constraints, best.values.constraints, strict=True)
    limits = "; ".join(f"{c.name} is {c.sign * v + 0.0:.6g}, {c.words} {c.limit:.6g} allowed" for c, v in pairs)
    stands = f"By estimate the policy of round {best.index} alone meets every limit"
    if not meets:
        stands = f"By estimate no single policy found meets every limit; that of round {best.index} comes closest"
    text = f"{stands}: {limits or 'there are none'}."
    if problem.objective_name is None:
        return text
    more = "more" if price >= 0 else "less"
    mixture = solution.values[problem.objective_name]
    its = f"Its {problem.objective} is {best.values.objective:.6g}"
    return f"{text} {its}, {abs(price):.6g} {more} than the mixture's {mixture:.6g}."
