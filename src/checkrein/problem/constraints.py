"""Constraints: a cost and the limit that its expected sum must keep."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from checkrein.base.errors import ProblemError
from checkrein.base.storage import storable
from checkrein.problem.costs import name_of
from checkrein.protocols import Cost


@storable
@dataclass(frozen=True)
class AtMost:
    """The expected discounted sum of a cost must not exceed a limit.

    cost: a column's name, or a `Cost`
    name: by default the cost's own
    range: the least and the largest (discounted) sum that an episode can have, where that is known beforehand:
        what is not supported is then valued at no worse, and finite-sample bounds can be had
    """

    cost: str | Cost
    limit: float
    name: str = ""
    range: tuple[float, float] | None = None

    sign = 1.0
    words = "at most"

    def __post_init__(self) -> None:
        own = name_of(self.cost)
        if isinstance(self.limit, bool) or not isinstance(self.limit, int | float | np.number):
            raise ProblemError(f"the limit on {own!r} is {self.limit!r}: it must be a number")
        if not np.isfinite(self.limit):
            raise ProblemError(f"the limit on {own!r} is {self.limit}: it must be finite, or drop the constraint")
        object.__setattr__(self, "limit", float(self.limit))
        if self.range is not None:
            low, high = (float(end) for end in self.range)
            if not (np.isfinite([low, high]).all() and low < high):
                raise ProblemError(f"the range of {own!r} is {self.range}: give its least and its largest sum")
            object.__setattr__(self, "range", (low, high))
        object.__setattr__(self, "name", self.name or own)


@storable
@dataclass(frozen=True)
class AtLeast(AtMost):
    """The expected discounted sum of a cost (a benefit, then) must reach a limit."""

    sign = -1.0
    words = "at least"


def column_of(constraint: AtMost) -> str:
    """Return the column that a constraint is on, or say that it is on something else."""
    if not isinstance(constraint.cost, str):
        raise ProblemError(f"{constraint.name!r} is no column of costs, which is what is asked for here")
    return constraint.cost


def require_distinct(names: Sequence[str]) -> None:
    """Raise unless every constraint has a name of its own."""
    for name in names:
        if names.count(name) > 1:
            raise ProblemError(f"two constraints are called {name!r}: tell them apart with name=")
