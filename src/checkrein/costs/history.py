"""Costs of what happened before: it joins the state, so that a policy may heed it and tables may hold it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from checkrein.base.arrays import Array, BoolArray, FloatArray
from checkrein.base.errors import ArgumentError, ProblemError
from checkrein.base.storage import storable
from checkrein.costs.conditions import rows_where
from checkrein.costs.references import unresolved
from checkrein.data.dataset import Dataset
from checkrein.data.memory import NONE, Memory, Remembered
from checkrein.protocols import Policy

Condition = str | Iterable[int] | Callable[[Array], Array]
SHOWN = 5  # states in the name of a set


@storable
@dataclass(frozen=True)
class Switching:
    """1 where an action differs from the one before in the episode; the previous action joins the state."""

    memory: Memory | None = None  # found in the log

    def remembered(self, dataset: Dataset) -> Remembered:
        """Ask for the previous action."""
        del dataset
        return Remembered(previous=True)

    def resolved(self, dataset: Dataset) -> "Switching":
        """Learn how the past is written into the states."""
        return replace(self, memory=dataset.memory)

    def per_row(self, transitions: Dataset) -> FloatArray:
        """(n,)"""  # noqa: D400, D415
        return self._differs(transitions.states, transitions.actions)

    def per_step(self, transitions: Dataset, policy: Policy) -> FloatArray:
        """(n,) whoever is valued."""
        del policy
        return self.per_row(transitions)

    def per_action(self, states: Array, policy: Policy) -> FloatArray:
        """(n, A) of every action."""
        n_actions = policy.probabilities(states[:1]).shape[1] if self.memory is None else self.memory.n_actions
        return np.column_stack([self._differs(states, np.full(len(states), a)) for a in range(n_actions)])

    def step_range(self, dataset: Dataset) -> tuple[float, float]:
        """From 0 to 1."""
        del dataset
        return 0.0, 1.0

    def _differs(self, states: Array, actions: Array) -> FloatArray:
        if self.memory is None:
            raise unresolved(self, "previous actions")
        previous = self.memory.previous_action(states)
        return np.asarray((previous != NONE) & (previous != actions), dtype=np.float64)


@storable
@dataclass(frozen=True, eq=False)
class EverEntered:
    """1 when a condition first holds in an episode: at discount 1 its sum is the probability that it ever does.

    (A chance constraint, Section 2.2 of the paper.) At a lower discount an entry after t steps counts discount^t. That
    it has happened joins the state, so that it is paid once.

    condition: a set of finite states, or a function of states (n, ...) that returns (n,) truth values: entered by the
        row that leads there (a terminal row's next state must be the real one), or by the first row of an episode that
        begins there. Or a SQL expression over the log's
        state columns and costs, or a cost's name: entered by the first row where it holds, or is not 0
    name: of the event, to tell several apart
    """

    condition: Condition | None
    name: str = ""
    memory: Memory | None = None  # found in the log

    def __post_init__(self) -> None:
        condition, name = self.condition, self.name
        if condition is None:
            return  # read from a file: it needs no condition any more
        if not isinstance(condition, str) and not callable(condition):
            try:
                states = np.unique(np.array([_whole(state) for state in condition], dtype=np.int64))
            except (TypeError, ValueError, OverflowError):
                raise ProblemError(
                    f"the condition is {condition!r}: give a set of finite states, a function of states, or the name "
                    "of a cost of the log"
                ) from None
            if states.size == 0:
                raise ProblemError("the set of states is empty: nothing can enter it, so there is nothing to limit")
            object.__setattr__(self, "condition", tuple(states.tolist()))
            shown = ", ".join(map(str, states[:SHOWN])) + (", ..." if states.size > SHOWN else "")
            name = name or f"states {shown}"
        elif callable(condition):
            name = name or getattr(condition, "__name__", "the condition")
        object.__setattr__(self, "name", name or str(condition))

    def remembered(self, dataset: Dataset) -> Remembered:
        """Ask for whether it has happened."""
        if dataset.memory is not None and self.name in dataset.memory.events:
            return Remembered(events={self.name: self._recalled(dataset, dataset.memory)})  # it is there already
        return Remembered(events={self.name: self._happening(dataset)})

    def resolved(self, dataset: Dataset) -> "EverEntered":
        """Learn how the past is written into the states."""
        return replace(self, memory=dataset.memory)

    def per_row(self, transitions: Dataset) -> FloatArray:
        """(n,)"""  # noqa: D400, D415
        if self.memory is None:
            raise unresolved(self, "events")
        before, after = (self.memory.happened(s, self.name) for s in (transitions.states, transitions.next_states))
        return np.asarray(after & ~before, dtype=np.float64)

    def per_step(self, transitions: Dataset, policy: Policy) -> FloatArray:
        """(n,) whoever is valued."""
        del policy
        return self.per_row(transitions)

    def step_range(self, dataset: Dataset) -> tuple[float, float]:
        """From 0 to 1."""
        del dataset
        return 0.0, 1.0

    def sum_range(self) -> tuple[float, float]:
        """From 0 to 1, for it is paid once."""
        return 0.0, 1.0

    def packed(self) -> dict[str, object]:
        """Leave a function out: what has happened is in the states."""
        condition = None if callable(self.condition) else self.condition
        return {"condition": condition, "name": self.name, "memory": self.memory}

    @classmethod
    def unpacked(cls, fields: dict[str, object]) -> "EverEntered":
        """Make it of its fields."""
        return cls(**fields)  # type: ignore[arg-type]

    def _recalled(self, dataset: Dataset, memory: Memory) -> BoolArray:
        """(n,) rows after which it has happened, as the states say; raise where the condition says something else."""
        after = memory.happened(dataset.next_states, self.name)
        known = self.condition in dataset.cost_names if isinstance(self.condition, str) else self.condition is not None
        if known:
            states, next_states = memory.own(dataset.states), memory.own(dataset.next_states)
            own = replace(dataset, states=states, next_states=next_states, n_states=memory.n_states)
            if not np.array_equal(after, memory.happened(dataset.states, self.name) | self._happening(own)):
                raise ProblemError(
                    f"the states of this dataset hold another event that is called {self.name!r}: give this one a name "
                    "of its own, EverEntered(condition, name=...), and state the problem on the log itself"
                )
        return after

    def _happening(self, dataset: Dataset) -> BoolArray:
        """(n,) whether the condition is met in a row, or where it leads."""
        if self.condition is None:
            raise ProblemError(f"{self.name!r} was given by a function, which no file keeps: state it again")
        if isinstance(self.condition, str):
            if self.condition in dataset.cost_names:
                return np.asarray(dataset.cost(self.condition) != 0)
            return rows_where(self.condition, dataset)
        self._require_states(dataset.n_states)
        inside = self._inside(dataset.states)
        known = dataset.terminals | dataset.next_observed
        return np.asarray(inside | (known & self._inside(dataset.next_states)))

    def _inside(self, states: Array) -> BoolArray:
        if callable(self.condition):
            found = np.asarray(self.condition(states))
            if found.shape != (len(states),) or found.dtype.kind not in "bif":
                raise ArgumentError(
                    f"the condition {self.name!r} gives {found.dtype} of shape {found.shape} for {len(states)} states: "
                    "it must give one truth value for each"
                )
            return found.astype(bool)
        if states.ndim != 1:
            raise ProblemError("a set of states needs finite states: give a function of states instead")
        return np.isin(states, np.array(self.condition))

    def _require_states(self, n_states: int | None) -> None:
        """Raise where a set holds states that the log does not have: nothing would ever be seen to enter them."""
        if n_states is None or not isinstance(self.condition, tuple):
            return
        beyond = [state for state in self.condition if not 0 <= state < n_states]
        if beyond:
            raise ProblemError(
                f"the condition {self.name!r} holds state {beyond[0]}, but the log has the states 0 to {n_states - 1}: "
                "correct the set, or pass n_states= to the dataset if there are more"
            )


def _whole(state: object) -> int:
    """Return the number of a state; a truth value, of a mask say, is none."""
    if isinstance(state, bool | np.bool_) or not isinstance(state, int | np.integer):
        raise TypeError(state)
    return int(state)
