"""Problem: which cost to minimise, which to keep under their limits, and at what discount."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from checkrein.base.arrays import FloatArray, frozen
from checkrein.base.errors import ProblemError
from checkrein.base.storage import storable
from checkrein.data.dataset import Dataset

T = TypeVar("T")


@storable
@dataclass(frozen=True)
class AtMost:
    """The expected discounted sum of a cost must not exceed a limit.

    range: the least and the largest (discounted) sum that an episode can have, where that is known beforehand:
        what is not supported is then valued at no worse, and finite-sample bounds can be had
    """

    cost: str
    limit: float
    name: str = ""  # default: the cost's own
    range: tuple[float, float] | None = None

    sign = 1.0
    words = "at most"

    def __post_init__(self) -> None:
        if isinstance(self.limit, bool) or not isinstance(self.limit, int | float | np.number):
            raise ProblemError(f"the limit on {self.cost!r} is {self.limit!r}: it must be a number")
        if not np.isfinite(self.limit):
            raise ProblemError(f"the limit on {self.cost!r} is {self.limit}: it must be finite, or drop the constraint")
        object.__setattr__(self, "limit", float(self.limit))
        if self.range is not None:
            low, high = (float(end) for end in self.range)
            if not (np.isfinite([low, high]).all() and low < high):
                raise ProblemError(f"the range of {self.cost!r} is {self.range}: give its least and its largest sum")
            object.__setattr__(self, "range", (low, high))
        object.__setattr__(self, "name", self.name or self.cost)


@storable
@dataclass(frozen=True)
class AtLeast(AtMost):
    """The expected discounted sum of a cost (a benefit, then) must reach a limit."""

    sign = -1.0
    words = "at least"


class Values(NamedTuple):
    """The objective and the constraints of a policy, signed so that less is better and limits are upper limits."""

    objective: float
    constraints: FloatArray  # (m,)


@dataclass(frozen=True, eq=False)
class Problem:
    """Minimise `objective` subject to `constraints` (OPT of the paper), judged on `dataset`.

    Inside, the objective is cost 0 and constraint i is cost i + 1, each signed so that less is better.
    """

    dataset: Dataset
    objective: str | None = field(kw_only=True)  # None: only the constraints matter
    constraints: Sequence[AtMost] = field(kw_only=True)
    discount: float = field(kw_only=True)

    def __post_init__(self) -> None:
        if isinstance(self.constraints, AtMost):
            raise ProblemError("constraints is a single constraint: give a list of them")
        object.__setattr__(self, "constraints", tuple(self.constraints))
        if not (isinstance(self.discount, int | float | np.floating) and 0 < self.discount <= 1):
            raise ProblemError(f"the discount is {self.discount}: it must lie in (0, 1]")
        for constraint in self.constraints:
            if not isinstance(constraint, AtMost):
                raise ProblemError(
                    f"{constraint!r} is not a constraint: use AtMost(cost, limit) or AtLeast(cost, limit)"
                )
        known = self.dataset.cost_names
        wanted = [c.cost for c in self.constraints] + ([] if self.objective is None else [self.objective])
        for name in wanted:
            if name not in known:
                raise ProblemError(f"no cost is called {name!r}: the dataset has {', '.join(known)}")
        require_distinct([c.name for c in self.constraints])
        object.__setattr__(self, "discount", float(self.discount))

    @property
    def n_constraints(self) -> int:
        """The paper's m."""
        return len(self.constraints)

    @cached_property
    def limits(self) -> FloatArray:
        """(m,) signed like the costs."""
        return frozen(np.array([c.sign * c.limit for c in self.constraints], dtype=np.float64))

    @cached_property
    def transitions(self) -> Dataset:
        """The rows that every regression uses: those with a known future, equal ones merged into weights."""
        compressed = self.dataset.compressed()
        usable = compressed.next_observed | compressed.terminals
        if not usable.any():
            raise ProblemError("no transition has a next state or is terminal: there is nothing to learn from")
        return compressed if usable.all() else compressed.select(usable)

    @cached_property
    def costs(self) -> FloatArray:
        """(n, 1 + m) of `transitions`."""
        return frozen(self.signed_costs(self.transitions))

    @cached_property
    def continuation(self) -> FloatArray:
        """(n,) how much of the next state's value counts: the discount, or nothing after a terminal."""
        return frozen(np.where(self.transitions.terminals, 0.0, self.discount))

    @cached_property
    def worst(self) -> FloatArray:
        """(1 + m,) the largest value that declared ranges or the logged costs allow: assumed without evidence.

        A cost that is never positive is at its worst when the episode ends at once; at discount 1 the horizon
        is the longest logged episode.
        """
        lowest, highest = self.dataset.cost_range()
        at = [self.dataset.cost_names.index(c.cost) for c in self.constraints]
        steps = [c.sign * (highest if c.sign > 0 else lowest)[i] for c, i in zip(self.constraints, at, strict=True)]
        objective = 0.0 if self.objective is None else highest[self.dataset.cost_names.index(self.objective)]
        worst = np.array([objective, *steps])
        worst = worst * np.where(worst > 0, self._horizon(), 1.0)
        for i, c in enumerate(self.constraints):
            if c.range is not None:
                worst[1 + i] = max(c.sign * end for end in c.range)
        return frozen(worst)

    @cached_property
    def value_range(self) -> tuple[FloatArray, FloatArray]:
        """(1 + m,) the least and the largest value that the logged costs allow any state; at discount 1, any value."""
        lowest, highest = self.dataset.cost_range()
        signs = np.array([1.0, *(c.sign for c in self.constraints)])
        names = [self.objective, *(c.cost for c in self.constraints)]
        at = [None if name is None else self.dataset.cost_names.index(name) for name in names]
        ends = np.array([[0.0, 0.0] if i is None else [lowest[i], highest[i]] for i in at]) * signs[:, None]
        low, high = np.minimum(ends.min(axis=1), 0.0), np.maximum(ends.max(axis=1), 0.0)
        if self.discount == 1:
            return frozen(np.where(low < 0, -np.inf, low)), frozen(np.where(high > 0, np.inf, high))
        return frozen(low / (1 - self.discount)), frozen(np.maximum(high / (1 - self.discount), self.worst))

    @cached_property
    def value_names(self) -> tuple[str, ...]:
        """What each value is called, the objective first."""
        return (self.objective or "the objective", *(c.name for c in self.constraints))

    @cached_property
    def spread(self) -> FloatArray:
        """(1 + m,) how much the sums of the logged episodes vary; one where they do not."""
        spreads = dict(zip(self.dataset.cost_names, self.dataset.returns(self.discount).std(axis=0), strict=True))
        names = [self.objective, *(c.cost for c in self.constraints)]
        return frozen(np.array([spreads.get(name or "", 0.0) or 1.0 for name in names]))

    def scalarised(self, multipliers: FloatArray) -> tuple[FloatArray, float]:
        """Return the best response's cost c + multipliers . g, (n, 1), and its worst value."""
        mix = np.concatenate([[1.0], multipliers])
        return (self.costs @ mix)[:, None], float(self.worst @ mix)

    def scalarised_range(self, multipliers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(1,) the least and the largest value of c + multipliers . g that the logged costs allow any state."""
        mix = np.concatenate([[1.0], multipliers])
        used = mix > 0  # nothing of what is not bounded is nothing
        low, high = (np.atleast_1d(mix[used] @ end[used]) for end in self.value_range)
        return low, high

    def named(self, values: Values) -> dict[str, float]:
        """Return values in the user's own signs, by the name of each cost."""
        signed = {c.cost: float(c.sign * v) for c, v in zip(self.constraints, values.constraints, strict=True)}
        return ({} if self.objective is None else {self.objective: float(values.objective)}) | signed

    def without_objective(self) -> "Problem":
        """Return the question whether the constraints can be met at all."""
        return replace(self, objective=None)

    def once(self, key: Hashable, build: Callable[[], T]) -> T:
        """Build something that depends on nothing but this problem and the key, the first time it is asked for."""
        try:
            hash(key)
        except TypeError:  # a frozen value that holds arrays: itself is what it is equal to
            self._kept.append(key)
            key = tuple(map(id, key)) if isinstance(key, tuple) else id(key)
        if key not in self._built:
            self._built[key] = build()
        return cast(T, self._built[key])

    @cached_property
    def _kept(self) -> list[Hashable]:
        return []

    @cached_property
    def _built(self) -> dict[Hashable, Any]:
        return {}

    def signed_costs(self, dataset: Dataset) -> FloatArray:
        """(n, 1 + m) the objective and every constraint's cost of a log's rows, signed so that less is better."""
        objective = np.zeros(len(dataset)) if self.objective is None else dataset.cost(self.objective)
        return np.column_stack([objective, *(c.sign * dataset.cost(c.cost) for c in self.constraints)])

    def _horizon(self) -> float:
        return 1 / (1 - self.discount) if self.discount < 1 else self.dataset.longest_episode()


def require_distinct(names: Sequence[str]) -> None:
    """Raise unless every constraint has a name of its own."""
    for name in names:
        if names.count(name) > 1:
            raise ProblemError(f"two constraints are called {name!r}: tell them apart with name=")
