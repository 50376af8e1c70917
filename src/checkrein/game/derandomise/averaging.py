"""The greedy policy of the members' averaged weights (the paper's Algorithm 5 returns it)."""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass

import numpy as np

from checkrein.base.arrays import FloatArray, frozen
from checkrein.base.errors import ArgumentError
from checkrein.functions import LinearQ, TabularQ
from checkrein.policies import GreedyPolicy, members_of
from checkrein.protocols import Policy


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
