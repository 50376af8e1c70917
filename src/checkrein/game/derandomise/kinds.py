"""All ways to put one policy in place of a mixture, side by side."""

from collections.abc import Callable, Iterable, Mapping
from typing import Self

import numpy as np

from checkrein.base.errors import CheckreinError
from checkrein.game.derandomise.averaging import averaged_weights
from checkrein.game.derandomise.members import best_member
from checkrein.game.derandomise.search import best_deterministic
from checkrein.game.derandomise.single import (
    AVERAGED_WEIGHTS,
    BEST_MEMBER,
    DETERMINISTIC,
    Derandomised,
    derandomised,
)
from checkrein.game.solution import Solution
from checkrein.problem import Problem
from checkrein.protocols import Evaluator


class SinglePolicies(tuple[Derandomised, ...]):
    """One policy of each kind that applies, and for each kind that does not, why: `left_out`."""

    left_out: Mapping[str, str]

    def __new__(cls, found: Iterable[Derandomised], left_out: Mapping[str, str]) -> Self:
        """Keep both."""
        made = super().__new__(cls, found)
        made.left_out = dict(left_out)
        return made

    @property
    def best(self) -> Derandomised:
        """The one of least price that keeps the limits by estimate; where none does, the one that comes closest."""
        kept = [one for one in self if one.meets_limits]
        return min(kept, key=lambda one: one.price) if kept else min(self, key=lambda one: one.worst_violation)


def single_policies(problem: Problem, solution: Solution, *, evaluator: Evaluator, seed: int = 0) -> SinglePolicies:
    """Return the best member, the best deterministic policy near the mixture and the policy of averaged weights."""

    def averaged() -> Derandomised:
        policy = averaged_weights(solution.policy)
        values = evaluator(problem, policy, rng=np.random.default_rng(seed))
        return derandomised(problem, solution, policy, values, kind=AVERAGED_WEIGHTS)

    ways: dict[str, Callable[[], Derandomised]] = {
        DETERMINISTIC: lambda: best_deterministic(problem, solution, evaluator=evaluator, seed=seed),
        AVERAGED_WEIGHTS: averaged,
    }
    found, left_out = {BEST_MEMBER: best_member(problem, solution)}, {}
    for kind, way in ways.items():
        try:
            found[kind] = way()
        except CheckreinError as reason:
            left_out[kind] = str(reason)
    return SinglePolicies(found.values(), left_out)
