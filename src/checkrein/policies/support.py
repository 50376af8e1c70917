"""Evidence before choice: which actions the log supports in a state."""

from dataclasses import dataclass, replace

import numpy as np

from checkrein.base.arrays import Array, BoolArray, frozen
from checkrein.base.errors import ArgumentError
from checkrein.base.storage import storable
from checkrein.data.dataset import Dataset
from checkrein.policies.behavior import BehaviorMask, RegressedMask
from checkrein.policies.restricted import AdmissibleMask
from checkrein.policies.tabular import rows_of
from checkrein.problem import Problem
from checkrein.protocols import ActionMask, FunctionClass

ROUNDING = 1e-9  # weights are sums of floats: 20 occurrences may read 19.999999999


@storable
@dataclass(frozen=True)
class Support:
    """An action is supported where the log shows it often enough.

    min_count: in finite states, logged occurrences in that very state; 0 allows everything.
    min_probability: for other observations, the estimated probability that behavior takes the action there;
        0 allows everything.
    behavior: the function class it is estimated by, which regresses whether each action was taken (trees, or a network
        for images); by default a logistic model.
    among: in finite states, only what this mask allows, where the state shows any of it: the rule of a larger log
    Where no action of a logged state comes up to that, those that come closest are allowed. At discount 1, what was
    only ever seen to stay in its state is not chosen: nothing says where it leads.
    """

    min_count: float = 1
    min_probability: float = 0.01
    behavior: FunctionClass | None = None
    among: "CountMask | None" = None

    def __post_init__(self) -> None:
        if not (isinstance(self.min_count, int | float) and self.min_count >= 0):
            raise ArgumentError(f"min_count is {self.min_count}: it must be a number, not negative")
        if not (isinstance(self.min_probability, int | float) and 0 <= self.min_probability < 1):
            raise ArgumentError(f"min_probability is {self.min_probability}: it must lie in [0, 1)")

    def words(self, *, finite: bool) -> str:
        """Say the rule for finite states, or for others."""
        if not finite:
            return f"an action needs an estimated probability of at least {self.min_probability:g}"
        return f"an action must have been logged {self.min_count:g} times or more in a state"

    def of(self, problem: Problem) -> ActionMask:
        """Return the actions with evidence in a problem's transitions (computed once per problem)."""
        return problem.once(self, lambda: self.fit(problem.transitions), any_limits=True)

    def choices(self, problem: Problem) -> ActionMask:
        """Return the actions that a policy may choose: those with evidence, admissible, of what leads anywhere."""
        rows, admissible = problem.transitions, problem.admissible
        leading = problem.discount == 1 and rows.n_states is not None
        if admissible is not None:
            return problem.once(("choices", self), lambda: self._among(admissible, rows, leading), any_limits=True)
        if not leading:
            return self.of(problem)
        return problem.once(("choices", self), lambda: self.fit(_leading(rows)), any_limits=True)

    def _among(self, admissible: ActionMask, rows: Dataset, leading: bool = False) -> ActionMask:
        """Return the admissible actions with evidence: how often others were logged does not matter."""
        if rows.n_states is None:
            return AdmissibleMask(self.fit(rows), admissible)
        table = admissible.allowed(np.arange(rows.n_states))
        kept = rows.select(table[rows.states, rows.actions])
        evidence = self.fit(_leading(kept) if leading else kept)
        return CountMask(frozen(evidence.allowed(np.arange(rows.n_states)) & table))

    def fit(self, dataset: Dataset) -> ActionMask:
        """Count, or estimate the behavior policy."""
        if dataset.n_states is not None:
            return self._count(dataset, dataset.n_states)
        if self.min_probability == 0:
            return EveryAction(dataset.n_actions)
        if self.behavior is not None:
            return RegressedMask.estimate(dataset, self.min_probability, self.behavior)
        return BehaviorMask.estimate(dataset, self.min_probability)

    def within(self, whole: Problem) -> "Support":
        """Return the rule for parts of a log of finite states: what has evidence in all of it, and occurs in the part.

        Whether an action comes up to the rule then does not depend on how its occurrences fell into parts. If it did,
        what was seldom logged would be chosen just where the other part, which is to judge, shows it least.
        """
        evidence = self.of(whole) if whole.admissible is None else self._among(whole.admissible, whole.transitions)
        mask = CountMask(frozen(evidence.allowed(np.arange(whole.transitions.n_states or 0))))
        return replace(self, min_count=min(self.min_count, 1), among=mask)

    def _count(self, dataset: Dataset, n_states: int) -> "CountMask":
        pair = dataset.states * dataset.n_actions + dataset.actions
        counts = np.bincount(pair, dataset.weights, n_states * dataset.n_actions).reshape(n_states, dataset.n_actions)
        if self.among is not None:
            there = counts * self.among.table
            counts = np.where(there.any(axis=1, keepdims=True), there, counts)
        if self.min_count == 0:
            return CountMask(frozen(np.ones_like(counts, dtype=bool)))
        if self.min_count <= 1:  # logged at all, whatever the rows weigh
            return CountMask(frozen(counts > 0))
        needed = np.minimum(self.min_count, counts.max(axis=1, keepdims=True)) * (1 - ROUNDING)
        return CountMask(frozen((counts > 0) & (counts >= needed)))


def _leading(rows: Dataset) -> Dataset:
    """Leave out the pairs that were only ever seen to stay, unless no episode could begin with another."""
    n_states, n_actions = int(rows.n_states or 0), rows.n_actions
    pair = rows.states * n_actions + rows.actions
    leads = np.bincount(pair, rows.terminals | (rows.next_states != rows.states), n_states * n_actions) > 0
    left = np.flatnonzero(leads) // n_actions
    return rows.select(leads[pair]) if np.isin(rows.initial_states, left).any() and not leads[pair].all() else rows


@storable
@dataclass(frozen=True, eq=False)
class CountMask:
    """Actions allowed in each finite state; none where the state was never left in the log."""

    table: BoolArray  # (S, A)

    def allowed(self, states: Array) -> BoolArray:
        """(n, A)"""  # noqa: D400, D415
        return rows_of(self.table, states)


@storable
@dataclass(frozen=True)
class EveryAction:
    """No restriction."""

    n_actions: int

    def allowed(self, states: Array) -> BoolArray:
        """(n, A)"""  # noqa: D400, D415
        return np.ones((len(states), self.n_actions), dtype=bool)
