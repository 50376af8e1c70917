"""Memory: the part of an episode's past that joins its states, for costs that must remember it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from checkrein.base.arrays import Array, BoolArray, IntArray
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
