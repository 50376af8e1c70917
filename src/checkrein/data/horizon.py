"""until: a log whose values stop after so many steps, with the step as a part of its states."""

from dataclasses import replace
from typing import Any

import numpy as np

from checkrein.base.arrays import Array, IntArray, frozen, require_counts
from checkrein.base.errors import DataError
from checkrein.data.encoding import STEP_NUMBER, Encoding, StateColumn

LARGEST = 1_000_000  # finite states with their steps


def until(dataset: Any, horizon: int) -> Any:
    """Return a Dataset that ends at a horizon (`Dataset.until` explains it)."""
    require_counts(horizon=horizon)
    if dataset.horizon is not None:
        raise DataError(f"the log ends at horizon {dataset.horizon} already: begin with the log itself")
    if dataset.episodes is None:
        raise DataError("without episodes it is not known which step a row is: pass episodes=")
    if dataset.memory is not None:
        raise DataError("the states of this dataset hold the past of their episodes: begin with the log itself")
    if dataset.states.ndim > 2:
        raise DataError(
            f"states of shape {dataset.states.shape[1:]} cannot hold the step: finite states and features can"
        )
    if dataset.n_states is not None and dataset.n_states * horizon > LARGEST:
        raise DataError(
            f"{dataset.n_states:,} states in each of {horizon:,} steps would be {dataset.n_states * horizon:,}, which "
            f"is too many (up to {LARGEST:,}): use fewer states, or a nearer horizon"
        )
    steps = steps_of(dataset.order(), dataset.episodes)
    log, at = dataset.part(steps < horizon), steps[steps < horizon]
    final = at == horizon - 1
    size = log.n_states
    return replace(
        log,
        states=frozen(_join(log.states, at, size)),
        next_states=frozen(_join(log.next_states, np.minimum(at + 1, horizon - 1), size)),
        initial_states=frozen(_join(log.initial_states, np.zeros(len(log.initial_states), np.int64), size)),
        terminals=frozen(log.terminals | final),
        next_observed=frozen(log.next_observed | final),
        n_states=None if size is None else size * horizon,
        longest=None if log.longest is None else min(log.longest, float(horizon)),
        encoding=None if log.encoding is None else _encoding(log.encoding, horizon),
        horizon=horizon,
    )


def steps_of(order: IntArray, episodes: IntArray) -> IntArray:
    """(n,) the step of each row in its episode, from 0; order: the rows by episode and step."""
    ordered = episodes[order]
    begins = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))
    steps = np.empty(len(order), dtype=np.int64)
    steps[order] = np.arange(len(order)) - np.repeat(begins, np.diff(begins, append=len(order)))
    return steps


def labels_of(own: tuple[str, ...], horizon: int) -> tuple[str, ...]:
    """Name the finite states of `until`: the log's own name, and the step."""
    return tuple(f"{name}, step {step}" for step in range(1, horizon + 1) for name in own)


def _join(states: Array, steps: IntArray, n_states: int | None) -> Array:
    return np.column_stack([states, steps + 1.0]) if n_states is None else states + n_states * steps


def _encoding(own: Encoding, horizon: int) -> Encoding:
    """Return what states stand for, with the step as one more column."""
    if own.combinations is None:
        return replace(own, columns=(*own.columns, StateColumn(STEP_NUMBER)), horizon=horizon)
    column = StateColumn(STEP_NUMBER, tuple(map(str, range(1, horizon + 1))))
    tiled = np.tile(own.combinations, (horizon, 1))
    steps = np.repeat(np.arange(horizon), len(own.combinations))
    every = frozen(np.column_stack([tiled, steps]))
    return replace(own, columns=(*own.columns, column), combinations=every, horizon=horizon)
