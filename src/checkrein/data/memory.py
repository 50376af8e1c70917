"""Memory: the part of an episode's past that joins its states, for costs that must remember it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from checkrein.base.arrays import Array, BoolArray, IntArray, frozen
from checkrein.base.errors import DataError, ProblemError
from checkrein.base.storage import storable

NONE = -1  # the previous action of an episode's first row


@dataclass(frozen=True, eq=False)
class Remembered:
    """What a cost asks to remember: the previous action, and whether events (n,) of the log's rows have happened."""

    previous: bool = False
    events: Mapping[str, BoolArray] = field(default_factory=dict)


@storable
@dataclass(frozen=True)
class Memory:
    """How the past is written into states; those of the log itself, without a past, keep their numbers.

    A finite state with a past has the number of its own state plus n_states times a code of the past. To a feature
    vector the previous action is appended as one indicator per action, and one indicator per event.
    """

    n_states: int | None  # finite states of the log itself; None: feature vectors
    width: int  # features of the log itself
    n_actions: int
    previous: bool
    events: tuple[str, ...]

    @property
    def size(self) -> int | None:
        """How many finite states there are with every past; None: feature vectors."""
        if self.n_states is None:
            return None
        return self.n_states * 2 ** len(self.events) * (self.n_actions + 1 if self.previous else 1)

    def join(self, states: Array, previous: IntArray, happened: BoolArray) -> Array:
        """Return the log's states with their past: previous (n,), NONE at first, and happened (n, events)."""
        if self.n_states is None:
            parts = [np.asarray(states, dtype=np.float64)]
            parts += [np.eye(self.n_actions + 1)[previous][:, : self.n_actions]] if self.previous else []
            return np.column_stack([*parts, happened.astype(np.float64)])
        code = happened.astype(np.int64) @ (1 << np.arange(len(self.events), dtype=np.int64))
        if self.previous:
            code = code + ((previous + 1) << len(self.events))
        return np.asarray(states + self.n_states * code)

    def own(self, states: Array) -> Array:
        """Return the log's own part of states."""
        return states % self.n_states if self.n_states is not None else states[:, : self.width]

    def previous_action(self, states: Array) -> IntArray:
        """(n,) the action before; NONE at an episode's first decision."""
        if self.n_states is not None:
            return np.asarray((states // self.n_states >> len(self.events)) - 1)
        indicators = states[:, self.width : self.width + self.n_actions]
        return np.where(indicators.any(axis=1), indicators.argmax(axis=1), NONE)

    def happened(self, states: Array, event: str) -> BoolArray:
        """(n,) whether an event had happened before."""
        place = self.events.index(event)
        if self.n_states is not None:
            return np.asarray((states // self.n_states >> place) & 1 == 1)
        return np.asarray(states[:, states.shape[1] - len(self.events) + place] > 0.5)

    def features(self, actions: tuple[str, ...]) -> list[str]:
        """Name what is appended to a feature vector: an indicator for each previous action, and for each event."""
        previous = [f"after {action}" for action in actions] if self.previous else []
        return previous + [f"{event} before" for event in self.events]

    def labels(self, own: tuple[str, ...], actions: tuple[str, ...]) -> tuple[str, ...]:
        """Name every finite state: its own name, the action before, what has happened."""
        states = np.arange(self.size or 0)
        words = [own[state] for state in self.own(states).tolist()]
        if self.previous:
            before = self.previous_action(states).tolist()
            words = [w if a == NONE else f"{w}, after {actions[a]}" for w, a in zip(words, before, strict=True)]
        for event in self.events:
            done = self.happened(states, event).tolist()
            words = [f"{w}, {event} before" if yes else w for w, yes in zip(words, done, strict=True)]
        return tuple(words)


def together(asked: Iterable[Remembered]) -> Remembered:
    """Return what several costs ask to remember; raise where they mean different events by one name."""
    previous, events = False, dict[str, BoolArray]()
    for one in asked:
        previous = previous or one.previous
        for name, rows in one.events.items():
            if not np.array_equal(events.setdefault(name, rows), rows):
                raise ProblemError(
                    f"two events are called {name!r}, but happen in different rows: tell them apart, "
                    "EverEntered(condition, name=...)"
                )
    return Remembered(previous, events)


def remember(dataset: Any, wanted: Remembered) -> Any:
    """Return a Dataset whose states hold what is wanted of the past; one that holds it already is returned as it is."""
    if not wanted.previous and not wanted.events:
        return dataset
    if dataset.memory is not None:
        return _require_remembered(dataset, wanted)
    if dataset.states.ndim > 2:
        raise DataError(
            f"states of shape {dataset.states.shape[1:]} cannot hold the past: finite states and features can"
        )
    if dataset.episodes is None:
        raise DataError("without episodes it is not known what came before a row: pass episodes=")
    width = dataset.states.shape[1] if dataset.states.ndim == 2 else 0
    memory = Memory(dataset.n_states, width, dataset.n_actions, wanted.previous, tuple(wanted.events))
    order = dataset.order()
    episodes, n = dataset.episodes[order], len(dataset)
    first = np.append(True, episodes[1:] != episodes[:-1])
    previous = np.full(n, NONE)
    previous[order] = np.where(first, NONE, np.roll(dataset.actions[order], 1))
    happening = np.column_stack([np.zeros((n, 0), dtype=bool), *wanted.events.values()])
    happened = np.zeros_like(happening)
    happened[order] = _before(happening[order], first)
    starts = len(dataset.initial_states)
    nothing = np.zeros((starts, len(memory.events)), dtype=bool)
    return replace(
        dataset,
        states=frozen(memory.join(dataset.states, previous, happened)),
        next_states=frozen(memory.join(dataset.next_states, dataset.actions, happened | happening)),
        initial_states=frozen(memory.join(dataset.initial_states, np.full(starts, NONE), nothing)),
        n_states=memory.size,
        memory=memory,
    )


def _before(happening: BoolArray, first: BoolArray) -> BoolArray:
    """(n, events) whether each event happened in an earlier row of the same episode."""
    counts: IntArray = np.cumsum(happening, axis=0) - happening  # before the row, in all episodes so far
    begins = np.flatnonzero(first)
    at_start: IntArray = counts[begins][np.cumsum(first) - 1]
    return np.asarray(counts > at_start)


def _require_remembered(dataset: Any, wanted: Remembered) -> Any:
    memory = dataset.memory
    missing = [event for event in wanted.events if event not in memory.events]
    if missing or (wanted.previous and not memory.previous):
        what = ", ".join([*missing, *(["the previous action"] if wanted.previous and not memory.previous else [])])
        raise DataError(
            f"the states of this dataset hold another past, without {what}: state the problem on the log itself"
        )
    return dataset
