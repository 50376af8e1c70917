"""Tabular policies: probabilities written out for each finite state."""

from dataclasses import dataclass
from typing import cast

import numpy as np

from checkrein.base.arrays import Array, FloatArray, frozen, owned
from checkrein.base.brief import brief
from checkrein.base.errors import ArgumentError, DataError
from checkrein.base.storage import storable

SUM = 1e-9  # how far probabilities may miss one


@storable
@dataclass(frozen=True, eq=False, repr=False)
class TabularPolicy:
    """Probabilities written out for each finite state."""

    table: FloatArray  # (S, A)

    def __post_init__(self) -> None:
        table = owned(self.table).astype(np.float64, copy=False)
        if table.ndim != 2:
            raise ArgumentError(f"a tabular policy needs an (S, A) table, but its shape is {table.shape}")
        wrong = (np.abs(table.sum(axis=1) - 1) > SUM) | ~(table >= 0).all(axis=1)
        if wrong.any():
            state = int(np.argmax(wrong))
            raise ArgumentError(f"the probabilities in state {state} are {table[state]}: they must sum to 1")
        object.__setattr__(self, "table", frozen(table))

    def __repr__(self) -> str:
        return brief(self)

    @classmethod
    def uniform(cls, n_states: int, n_actions: int) -> "TabularPolicy":
        """Every action with the same probability."""
        return cls(np.full((n_states, n_actions), 1.0 / n_actions))

    def probabilities(self, states: Array) -> FloatArray:
        """(n, A)"""  # noqa: D400, D415
        return cast(FloatArray, rows_of(self.table, states))


def rows_of(table: Array, states: Array) -> Array:
    """Return the rows of a table for finite states, or say which state it does not have."""
    states = np.asarray(states)
    if states.ndim != 1 or states.dtype.kind not in "iu":
        raise DataError(f"finite states are a column of integers, but these are {states.dtype} of shape {states.shape}")
    if states.size and not 0 <= states.min() <= states.max() < len(table):
        row = int(np.argmax((states < 0) | (states >= len(table))))
        raise DataError(f"state {states[row]} in row {row}, but the table has only {len(table)} states")
    return table[states]
