"""remember: a log whose states hold what must be remembered of the past."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from checkrein.base.arrays import BoolArray, IntArray, frozen
from checkrein.base.errors import DataError, ProblemError
from checkrein.data.dataset import Dataset
from checkrein.data.memory import NONE, Memory, Remembered

LARGEST = 1_000_000  # finite states with their past


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


def remember(dataset: Dataset, wanted: Remembered) -> Dataset:
    """Return a Dataset whose states hold what is wanted of the past; one that holds it already is returned as it is."""
    if not wanted.previous and not wanted.events:
        return dataset
    if dataset.memory is not None:
        _require_remembered(dataset.memory, wanted)
        return dataset
    if dataset.states.ndim > 2:
        raise DataError(
            f"states of shape {dataset.states.shape[1:]} cannot hold the past: finite states and features can"
        )
    if dataset.episodes is None:
        raise DataError("without episodes it is not known what came before a row: pass episodes=")
    width = dataset.states.shape[1] if dataset.states.ndim == 2 else 0
    memory = Memory(dataset.n_states, width, dataset.n_actions, wanted.previous, tuple(wanted.events))
    if memory.size is not None and memory.size > LARGEST:
        past = ", ".join([*(["the previous action"] if wanted.previous else []), *wanted.events])
        raise DataError(
            f"{dataset.n_states:,} states with every past of {past} would be {memory.size:,}, which is too many (up "
            f"to {LARGEST:,}): remember less, or use fewer states"
        )
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


def _require_remembered(memory: Memory, wanted: Remembered) -> None:
    missing = [event for event in wanted.events if event not in memory.events]
    if missing or (wanted.previous and not memory.previous):
        what = ", ".join([*missing, *(["the previous action"] if wanted.previous and not memory.previous else [])])
        raise DataError(
            f"the states of this dataset hold another past, without {what}: state the problem on the log itself"
        )
