"""Costs that are known for every state and action, logged or not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from checkrein.base.arrays import Array, FloatArray, frozen, owned
from checkrein.base.errors import ArgumentError, ProblemError
from checkrein.base.storage import storable
from checkrein.costs.references import CachedReference, OwnStates, no_policy, require_distributions, unresolved
from checkrein.data.dataset import Dataset
from checkrein.data.memory import Memory
from checkrein.policies.tabular import rows_of
from checkrein.protocols import Policy

CostOfActions = Callable[[Array, Array], FloatArray]  # of states (n, ...) and actions (n,)


def _numbers(given: object, what: str) -> Array:
    """Return an array of numbers, or say that there is none in it."""
    try:
        found: Array = owned(given)  # type: ignore[arg-type]
    except ValueError as reason:  # ragged lists
        raise ProblemError(f"{what} cannot be read as an array: {reason}") from None
    if found.dtype.kind not in "biuf":
        raise ProblemError(f"{what} must be numbers, but are {found.dtype}")
    return found


class _PerAction:
    """A cost that is looked up by state and action."""

    n_actions: int | None

    def of_actions(self, states: Array) -> FloatArray:
        """(n, A) of the log's own states, with what is remembered."""
        raise NotImplementedError

    def per_row(self, transitions: Dataset) -> FloatArray:
        """(n,)"""  # noqa: D400, D415
        return self.of_actions(transitions.states)[np.arange(len(transitions)), transitions.actions]

    def per_step(self, transitions: Dataset, policy: Policy) -> FloatArray:
        """(n,) whoever is valued."""
        del policy
        return self.per_row(transitions)

    def per_action(self, states: Array, policy: Policy) -> FloatArray:
        """(n, A) whoever is valued."""
        del policy
        return self.of_actions(states)

    def step_range(self, dataset: Dataset) -> tuple[float, float]:
        """Of every action, in every state of the log."""
        states = np.arange(dataset.n_states) if dataset.n_states is not None else dataset.states
        every = self.of_actions(states)
        return float(every.min()), float(every.max())


@storable
@dataclass(frozen=True, eq=False)
class StateActionCost(_PerAction):
    """A cost that is a function of state and action: known where nothing was logged, and so never valued at its worst.

    function: a table (S, A) of finite states, or a function of states (n, ...) and actions (n,) that returns (n,)
    """

    function: FloatArray | CostOfActions
    name: str = "StateActionCost"
    n_actions: int | None = None  # found in the log
    memory: Memory | None = None  # what of the past has joined the states: the function does not look at it

    def __post_init__(self) -> None:
        if callable(self.function):
            return
        table = _numbers(self.function, "a table of costs")
        if table.ndim != 2 or table.dtype.kind not in "biuf" or not np.isfinite(table).all():
            raise ProblemError(
                f"a table of costs must be finite numbers of shape (S, A), but these are {table.dtype} of shape "
                f"{table.shape}: or give a function of states and actions"
            )
        object.__setattr__(self, "function", frozen(table.astype(np.float64)))

    def times(self, factor: float) -> "StateActionCost":
        """Return the same in another unit."""
        if factor == 1:
            return self
        function = self.function
        return replace(self, function=_Scaled(function, factor) if callable(function) else factor * function)

    def resolved(self, dataset: Dataset) -> "StateActionCost":
        """Learn how many actions there are, and require a cost of each."""
        found = replace(self, n_actions=dataset.n_actions, memory=dataset.memory)
        if not callable(self.function):
            known = dataset.n_states if dataset.memory is None else dataset.memory.n_states
            if known is None:
                raise ProblemError("a table of costs needs finite states: give a function of states and actions")
            rows, columns = np.shape(self.function)
            if columns != dataset.n_actions or rows < known:
                raise ProblemError(
                    f"the table of costs has shape {(rows, columns)}, but the log has {known} states and "
                    f"{dataset.n_actions} actions"
                )
        return found

    def of_actions(self, states: Array) -> FloatArray:
        """(n, A)"""  # noqa: D400, D415
        own = states if self.memory is None else self.memory.own(states)
        if not callable(self.function):
            return np.asarray(rows_of(self.function, own))
        if self.n_actions is None:
            raise unresolved(self, "actions")
        columns = []
        for action in range(self.n_actions):
            found = np.asarray(self.function(own, np.full(len(own), action)), dtype=np.float64)
            if found.shape != (len(own),) or not np.isfinite(found).all():
                raise ArgumentError(
                    f"the function of a StateActionCost gives {found.dtype} of shape {found.shape} for {len(own)} "
                    f"states and action {action}: it must give one finite number for each"
                )
            columns.append(found)
        return np.column_stack(columns)


@storable
@dataclass(frozen=True, eq=False)
class _Scaled:
    """A function of states and actions, times a factor."""

    function: CostOfActions
    factor: float

    def __call__(self, states: Array, actions: Array) -> FloatArray:
        return np.asarray(self.factor * self.function(states, actions))


@storable
@dataclass(frozen=True, eq=False)
class Disagreement(_PerAction):
    """The expected loss of an action against an expert's: by default 1 where they differ.

    expert: a policy, or an action for each finite state, -1 where the expert's is not known; a policy says that by
        probabilities that are not numbers. Where the expert is not known, nothing is paid
    loss: (A, A) of an action (row) where the expert takes another (column)
    """

    expert: Policy | Sequence[int]
    loss: FloatArray | None = None
    n_actions: int | None = field(default=None, repr=False)  # found in the log

    def __post_init__(self) -> None:
        if not isinstance(self.expert, Policy):
            object.__setattr__(self, "expert", self._actions(self.expert))
        if self.loss is not None:
            loss = _numbers(self.loss, "the loss").astype(np.float64, copy=False)
            if loss.ndim != 2 or loss.shape[0] != loss.shape[1] or not np.isfinite(loss).all():
                raise ProblemError(f"the loss must be a finite (A, A) table, but has shape {loss.shape}")
            object.__setattr__(self, "loss", frozen(loss))
        object.__setattr__(self, "_cached", CachedReference(self.expert) if isinstance(self.expert, Policy) else None)

    @staticmethod
    def _actions(expert: object) -> Array:
        if isinstance(expert, str) or not isinstance(expert, Sequence | np.ndarray):
            raise no_policy(expert, "expert")
        given = _numbers(expert, "the expert's actions")
        if given.ndim != 1 or given.dtype.kind not in "iu":
            raise ProblemError(f"the expert's actions must be whole numbers, one for each state, but are {expert!r}")
        return frozen(owned(given).astype(np.int64))

    def resolved(self, dataset: Dataset) -> "Disagreement":
        """Learn how many actions there are, and require that the expert says something of the log's states."""
        if self.n_actions == dataset.n_actions:
            return self
        n_actions = dataset.n_actions
        if self.loss is not None and len(self.loss) != n_actions:
            raise ProblemError(f"the loss is {self.loss.shape}, but the log has {n_actions} actions")
        expert: Policy
        if isinstance(self.expert, Policy):
            expert = self.expert
        else:
            expert = _WrittenDown(np.asarray(self.expert), n_actions)
            expert.require_actions(dataset)
        expert = expert if dataset.memory is None else OwnStates(expert, dataset.memory)
        found = replace(self, expert=expert, n_actions=n_actions)
        found.require_known(dataset)
        return found

    def require_known(self, dataset: Dataset) -> None:
        """Raise unless the expert gives probabilities in some of the log's states, and nowhere something else."""
        known = require_distributions(self._probabilities, dataset, "expert", unknown="give NaN, or the action -1")
        if not known.any():
            raise ProblemError("the expert is not known in any state of the log: there is nothing to disagree with")

    def of_actions(self, states: Array) -> FloatArray:
        """(n, A)"""  # noqa: D400, D415
        expert = self._probabilities(states)
        loss = 1 - np.eye(expert.shape[1]) if self.loss is None else self.loss
        return np.asarray(np.where(np.isnan(expert).any(axis=1, keepdims=True), 0.0, np.nan_to_num(expert) @ loss.T))

    def _probabilities(self, states: Array) -> FloatArray:
        cached: CachedReference | None = self._cached  # type: ignore[attr-defined]
        if cached is None:
            raise unresolved(self, "actions")
        return cached(states)


@storable
@dataclass(frozen=True, eq=False)
class _WrittenDown:
    """An expert whose actions are written down for each finite state; -1: not known."""

    actions: Array  # (S,)
    n_actions: int

    def require_actions(self, dataset: Dataset) -> None:
        """Raise unless they fit the log."""
        states = dataset.n_states if dataset.memory is None else dataset.memory.n_states
        if states is None:
            raise ProblemError("an expert's actions by state need finite states: give a policy instead")
        if len(self.actions) < states:
            raise ProblemError(f"the expert's actions are given for {len(self.actions)} of the log's {states} states")
        beyond = (self.actions < -1) | (self.actions >= self.n_actions)
        if beyond.any():
            state = int(np.argmax(beyond))
            raise ProblemError(
                f"the expert takes action {self.actions[state]} in state {state}, but the log has only {self.n_actions}"
            )

    def probabilities(self, states: Array) -> FloatArray:
        """(n, A) one-hot, NaN where the expert is not known."""
        chosen = rows_of(self.actions, states)
        table = np.asarray(chosen[:, None] == np.arange(self.n_actions), dtype=np.float64)
        return np.where(chosen[:, None] < 0, np.nan, table)
