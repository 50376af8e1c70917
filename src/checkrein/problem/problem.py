"""Problem: which cost to minimise, which to keep under their limits, and at what discount."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from checkrein.base.arrays import Array, BoolArray, FloatArray, frozen
from checkrein.base.brief import brief
from checkrein.base.errors import ProblemError
from checkrein.data.dataset import Dataset
from checkrein.data.remember import remember, together
from checkrein.problem.admissible import AdmissibleActions
from checkrein.problem.constraints import AtMost
from checkrein.problem.costs import LoggedCost, cost_of, per_action, per_row, per_step, step_range
from checkrein.problem.question import Question
from checkrein.protocols import (
    BoundedCost,
    Cost,
    DeferredCost,
    KnownCost,
    MemoryCost,
    PenaltyCost,
    Policy,
    RowCost,
    SumBoundedCost,
)

T = TypeVar("T")
STILL = 1e-12  # relative size of rounding: less is no variation


@dataclass(frozen=True, eq=False, repr=False)
class Problem(Question):
    """A question asked of a log: minimise `objective` subject to `constraints`, judged on `dataset`."""

    dataset: Dataset
    discount: float = field(kw_only=True)
    admissible: AdmissibleActions | None = field(default=None, kw_only=True)  # None: every action may be chosen

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isinstance(self.discount, int | float | np.floating) and 0 < self.discount <= 1):
            raise ProblemError(f"the discount is {self.discount}: it must lie in (0, 1]")
        for constraint in self.constraints:
            cost_of(constraint.cost, self.dataset)
        if self.objective is not None:
            cost_of(self.objective, self.dataset)
        object.__setattr__(self, "discount", float(self.discount))
        self._resolve()

    def __repr__(self) -> str:
        limits = "; ".join(f"{c.name} {c.words} {c.limit:.4g}" for c in self.constraints) or "no limits"
        return f"Problem(minimise {brief(self.objective)}; {limits}; discount {self.discount:g}; {self.dataset})"

    def _resolve(self) -> None:
        """Let the past that costs remember join the states, and let costs ask the log what they must know."""
        asked = [cost.remembered(self.dataset) for cost in self._given if isinstance(cost, MemoryCost)]
        dataset = remember(self.dataset, together(asked))
        object.__setattr__(self, "dataset", dataset)
        if isinstance(self.objective, DeferredCost):
            object.__setattr__(self, "objective", self.objective.resolved(dataset))
        object.__setattr__(self, "constraints", tuple(_resolved(c, dataset) for c in self.constraints))
        if self.admissible is not None:
            object.__setattr__(self, "admissible", self.admissible.resolved(dataset))

    @property
    def _given(self) -> list[str | Cost | None]:
        return [self.objective, *(c.cost for c in self.constraints)]

    @cached_property
    def transitions(self) -> Dataset:
        """The rows that every regression uses: those with a known future, equal ones merged into weights."""
        compressed = self._with_row_costs.compressed()
        usable = compressed.next_observed | compressed.terminals
        if not usable.any():
            raise ProblemError("no transition has a next state or is terminal: there is nothing to learn from")
        return compressed if usable.all() else compressed.select(usable)

    def costs(self, policy: Policy) -> FloatArray:
        """(n, 1 + m) of `transitions`, for a policy that is not a mixture (each member of one has its own)."""
        if not self.policy_costs:
            return self.row_costs
        table = self.row_costs.copy()
        for i in self.policy_costs:
            table[:, i] = self._signs[i] * per_step(cast(Cost, self._costs[i]), self.transitions, policy)
        return frozen(table)

    @cached_property
    def continuation(self) -> FloatArray:
        """(n,) how much of the next state's value counts: the discount, or nothing after a terminal."""
        return frozen(np.where(self.transitions.terminals, 0.0, self.discount))

    def worst(self, policy: Policy | None = None) -> FloatArray:
        """(1 + m,) the largest value that declared ranges or the logged costs allow: assumed without evidence.

        A cost that is never positive is at its worst when the episode ends at once; at discount 1 the horizon
        is the longest logged episode. The policy matters to costs that depend on it and declare no range.
        """
        if policy is not None and self.policy_costs:
            return self._worst(self._step_range(policy))
        return self._row_worst

    def value_range(self, policy: Policy | None = None) -> tuple[FloatArray, FloatArray]:
        """(1 + m,) the least and the largest value that the logged costs and the horizon allow any state.

        At discount 1 the horizon is the longest logged episode. In finite states there is none then, unless the log
        has one: tables may chain logged moves into an episode that is longer than any. Where every row ends its
        episode, there is one step.
        """
        low, high = (self._row_step_range if policy is None or not self.policy_costs else self._step_range(policy)).T
        low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
        endless = self.dataset.n_states is not None and self.dataset.horizon is None and not self.one_step
        if self.discount == 1 and endless:
            return frozen(np.where(low < 0, -np.inf, low)), frozen(np.where(high > 0, np.inf, high))
        steps = self._horizon()
        return frozen(low * steps), frozen(np.maximum(high * steps, self.worst(policy)))

    @property
    def spread(self) -> FloatArray:
        """(1 + m,) how much the sums of the logged episodes vary; one where they do not, or depend on the policy."""
        return self.once("spread", self._spread, any_limits=True)

    def _spread(self) -> FloatArray:
        rows = self._with_row_costs
        sums = rows.returns(self.discount)
        varies = sums.std(axis=0) > STILL * np.abs(sums).max(axis=0)  # equal sums differ by rounding
        spreads = dict(zip(rows.cost_names, np.where(varies, sums.std(axis=0), 0.0), strict=True))
        return frozen(np.array([spreads.get(name or "", 0.0) or 1.0 for name in self._columns]))

    def worst_after(self, policy: Policy | None = None) -> FloatArray:
        """(1 + m,) the most that may follow where an action has no evidence; its own step, if known, is not in it."""
        if not self.known_costs:
            return self.worst(policy)
        after = self.worst(policy).copy()
        step = self._row_step_range if policy is None else self._step_range(policy)
        for i in self.known_costs:
            after[i] = min(max(step[i, 1], 0.0) * self._steps_after, max(after[i], 0.0))
        return frozen(after)

    def known_steps(
        self, policy: Policy, states: Array, *, where: BoolArray | None = None
    ) -> Iterator[tuple[int, FloatArray]]:
        """Yield the place of each cost that is known for every action, and what actions (n, A) cost; 0 but `where`."""
        if where is None:
            for i in self.known_costs:
                yield i, self._signs[i] * per_action(cast(KnownCost, self._costs[i]), states, policy)
            return
        rows = np.flatnonzero(where)
        for i in self.known_costs if rows.size else ():
            found = per_action(cast(KnownCost, self._costs[i]), states[rows], policy)
            steps = np.zeros((len(states), found.shape[1]))
            steps[rows] = self._signs[i] * found
            yield i, steps

    def scalarised(self, multipliers: FloatArray) -> FloatArray:
        """(n, 1) the best response's cost c + multipliers . g of rows; penalties of the policy come beside it."""
        mix = np.concatenate([[1.0], multipliers])
        for i in self.policy_costs:
            if mix[i] != 0 and not isinstance(self._costs[i], PenaltyCost):
                raise ProblemError(
                    f"{self.value_names[i]} depends on the policy itself, and does not say how it is minimised "
                    "(penalty(states)): leave it out of what is learned, or use a best response that knows it"
                )
        return (self.row_costs @ mix)[:, None]

    def scalarised_worst(self, multipliers: FloatArray) -> float:
        """Return the largest value of c + multipliers . g."""
        return float(self.worst() @ np.concatenate([[1.0], multipliers]))

    def scalarised_without_evidence(self, multipliers: FloatArray, states: Array) -> FloatArray:
        """(n, A) what c + multipliers . g charges actions without evidence, but for costs of the policy itself.

        That is the steps that are known, and the worst that may follow.
        """
        mix = np.concatenate([[1.0], multipliers])
        charges = np.full((len(states), self.dataset.n_actions), float(self.worst_after() @ mix))
        for i in self.known_costs:
            cost = self._costs[i]
            if isinstance(cost, RowCost) and isinstance(cost, KnownCost):
                charges += mix[i] * self._signs[i] * per_action(cost, states, _Anyone(self.dataset.n_actions))
        return charges

    @cached_property
    def penalty_costs(self) -> tuple[PenaltyCost, ...]:
        """The costs of the policy that best responses can minimise."""
        return tuple(cost for cost in self._costs if isinstance(cost, PenaltyCost))

    def priced_penalties(self, multipliers: FloatArray) -> tuple[tuple[float, PenaltyCost], ...]:
        """Return those that have a price in c + multipliers . g, each with it."""
        prices = self._signs * np.concatenate([[1.0], multipliers])
        pairs = zip(prices.tolist(), self._costs, strict=True)
        return tuple((price, cost) for price, cost in pairs if price != 0 and isinstance(cost, PenaltyCost))

    def scalarised_range(self, multipliers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(1,) the least and the largest value of c + multipliers . g that the logged costs allow any state."""
        mix = np.concatenate([[1.0], multipliers])
        used = mix > 0  # nothing of what is not bounded is nothing
        low, high = (np.atleast_1d(mix[used] @ end[used]) for end in self.value_range())
        return low, high

    def without_objective(self) -> "Problem":
        """Return the question whether the constraints can be met at all."""
        return replace(self, objective=None)

    def with_limits(self, limits: Sequence[float]) -> "Problem":
        """Return the same question with other limits, in the user's signs; what the log was made into serves both."""
        _ = self.row_costs, self.continuation, self._row_step_range, self._built_of_log, self._kept
        found = copy(self)
        constraints = tuple(replace(c, limit=float(limit)) for c, limit in zip(self.constraints, limits, strict=True))
        object.__setattr__(found, "constraints", constraints)
        for of_limits in ("limits", "_built"):
            found.__dict__.pop(of_limits, None)
        return found

    def once(self, key: Hashable, build: Callable[[], T], *, any_limits: bool = False) -> T:
        """Build something that depends on nothing but this problem and the key, the first time it is asked for.

        any_limits: it does not depend on the limits either, so that `with_limits` need not build it again
        """
        try:
            hash(key)
        except TypeError:  # a frozen value that holds arrays: itself is what it is equal to
            self._kept.append(key)
            key = tuple(map(id, key)) if isinstance(key, tuple) else id(key)
        built = self._built_of_log if any_limits else self._built
        if key not in built:
            built[key] = build()
        return cast(T, built[key])

    @cached_property
    def _kept(self) -> list[Hashable]:
        return []

    @cached_property
    def _built(self) -> dict[Hashable, Any]:
        return {}

    @cached_property
    def _built_of_log(self) -> dict[Hashable, Any]:
        return {}

    @cached_property
    def policy_costs(self) -> tuple[int, ...]:
        """The places, among the values, of costs that depend on the policy."""
        return tuple(i for i, cost in enumerate(self._costs) if not (cost is None or isinstance(cost, RowCost)))

    @cached_property
    def known_costs(self) -> tuple[int, ...]:
        """The places, among the values, of costs that are known for every state and action."""
        return tuple(i for i, cost in enumerate(self._costs) if isinstance(cost, KnownCost))

    def signed_costs(self, dataset: Dataset, policy: Policy | None = None) -> FloatArray:
        """(n, 1 + m) the objective and every constraint's cost of a log's rows, signed so that less is better.

        Without a policy, costs that depend on it are zero.
        """
        columns = []
        for sign, cost in zip(self._signs, self._costs, strict=True):
            if isinstance(cost, RowCost):
                columns.append(sign * per_row(cost, dataset))
            elif cost is None or policy is None:
                columns.append(np.zeros(len(dataset)))
            else:
                columns.append(sign * per_step(cost, dataset, policy))
        return np.column_stack(columns)

    @cached_property
    def _costs(self) -> tuple[Cost | None, ...]:
        return tuple(None if cost is None else cost_of(cost, self.dataset) for cost in self._given)

    @cached_property
    def _signs(self) -> FloatArray:
        return np.array([1.0, *(c.sign for c in self.constraints)])

    @cached_property
    def _columns(self) -> tuple[str | None, ...]:
        """The column of `_with_row_costs` that each cost is; None where there is none, or it depends on the policy."""
        names = [cost.name if isinstance(cost, LoggedCost) else f"cost {i}" for i, cost in enumerate(self._costs)]
        known = [isinstance(cost, RowCost) for cost in self._costs]
        return tuple(name if there else None for name, there in zip(names, known, strict=True))

    @cached_property
    def _with_row_costs(self) -> Dataset:
        """The log, with a column for every cost of its rows: computed before equal rows are merged."""
        pairs = zip(self._columns, self._costs, strict=True)
        more = {
            name: per_row(cost, self.dataset)
            for name, cost in pairs
            if name is not None and isinstance(cost, RowCost) and not isinstance(cost, LoggedCost)
        }
        if not more:
            return self.dataset
        return self.dataset.with_costs({name: self.dataset.cost(name) for name in self.dataset.cost_names} | more)

    @cached_property
    def row_costs(self) -> FloatArray:
        """(n, 1 + m) of `transitions`, whoever is valued; zero where a cost depends on the policy."""
        rows, zero = self.transitions, np.zeros(len(self.transitions))
        columns = [zero if name is None else rows.cost(name) for name in self._columns]
        return frozen(self._signs * np.column_stack(columns))

    def _step_range(self, policy: Policy) -> FloatArray:
        """(1 + m, 2) the least and the largest that a step can cost, signed."""
        if not self._undeclared:
            return self._row_step_range
        ends = self._row_step_range.copy()
        for i in self._undeclared:
            ends[i] = self._signed_range(i, policy)
        return ends

    @cached_property
    def _row_step_range(self) -> FloatArray:
        ends = [np.zeros(2) if cost is None else self._signed_range(i, None) for i, cost in enumerate(self._costs)]
        return frozen(np.array(ends))

    def _signed_range(self, place: int, policy: Policy | None) -> FloatArray:
        return np.sort(self._signs[place] * np.array(step_range(cast(Cost, self._costs[place]), self.dataset, policy)))

    @cached_property
    def _undeclared(self) -> tuple[int, ...]:
        """The places, among the values, of costs that depend on the policy and declare no range."""
        return tuple(i for i in self.policy_costs if not isinstance(self._costs[i], BoundedCost))

    @cached_property
    def _row_worst(self) -> FloatArray:
        return self._worst(self._row_step_range)

    def _worst(self, step: FloatArray) -> FloatArray:
        worst = step[:, 1] * np.where(step[:, 1] > 0, self._horizon(), 1.0)
        for i, c in enumerate(self.constraints):
            if c.range is not None:
                worst[1 + i] = max(c.sign * end for end in c.range)
        return frozen(worst)

    @cached_property
    def one_step(self) -> bool:
        """Whether every logged row ends its episode: then nothing follows an action, whatever the discount."""
        return bool(self.dataset.terminals.all())

    def _horizon(self) -> float:
        if self.one_step:
            return 1.0
        if self.dataset.horizon is not None:
            return _discounted(self.dataset.horizon, self.discount)
        return 1 / (1 - self.discount) if self.discount < 1 else self.dataset.longest_episode()

    @cached_property
    def _steps_after(self) -> float:
        """How many discounted steps may follow a first one: none where every logged episode has a single row."""
        if self.one_step:
            return 0.0
        if self.dataset.horizon is not None:
            return self._horizon() - 1
        return self.dataset.longest_episode() - 1 if self.discount == 1 else self.discount / (1 - self.discount)


def _discounted(steps: int, discount: float) -> float:
    """Return how much so many steps count together."""
    return float(steps) if discount == 1 else (1 - discount**steps) / (1 - discount)


class _Anyone(NamedTuple):
    """A policy, for costs that do not depend on it."""

    n_actions: int

    def probabilities(self, states: Array) -> FloatArray:
        return np.full((len(states), self.n_actions), 1 / self.n_actions)


def _resolved(constraint: AtMost, dataset: Dataset) -> AtMost:
    """Return a constraint whose cost has asked the log what it must know, and said how far its sums can go."""
    cost = constraint.cost
    if isinstance(cost, DeferredCost):
        constraint = replace(constraint, cost=cost.resolved(dataset))
    if constraint.range is None and isinstance(cost, SumBoundedCost):
        constraint = replace(constraint, range=cost.sum_range())
    return constraint
