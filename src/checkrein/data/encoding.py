"""Encoding: what the numbers inside stand for in the log's own words, so that all that is shown is decoded again."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from checkrein.base.arrays import Array, BoolArray, FloatArray, IntArray
from checkrein.base.errors import DataError
from checkrein.base.storage import storable
from checkrein.data.memory import NONE, Memory

STEP_NUMBER = "step number"  # the column that a horizon adds to the state: 1 at the first decision of an episode
PREVIOUS = "previous action"  # the column of a table in which a policy that remembers it looks it up
MISSING = "(missing)"  # how a value that is not there is shown


@storable
@dataclass(frozen=True)
class StateColumn:
    """One column of a state: a category, or a number.

    categories: the values it takes, as text; None: it is a number
    fill: what a missing number counts as, beside an indicator of its own; None: none was missing
    """

    name: str
    categories: tuple[str, ...] | None = None
    fill: float | None = None


@storable
@dataclass(frozen=True, eq=False)
class Encoding:
    """How a table's states and actions became numbers.

    combinations: (S, columns) which category each column has in each finite state; None: states are feature vectors
    integer_actions: the log's actions were whole numbers, and are given back as such
    memory: what of an episode's past the policy's states hold beside the log's own; a table that is encoded then has a
        column "previous action", empty at first, and one of each event, true once it has happened
    horizon: the last "step number", which is then one of the columns
    """

    actions: tuple[str, ...]
    columns: tuple[StateColumn, ...]
    combinations: IntArray | None = None
    integer_actions: bool = False
    memory: Memory | None = None
    horizon: int | None = None

    @cached_property
    def states(self) -> tuple[str, ...]:
        """How each finite state is shown: `severity=high, lactate=2`, or the bare value of a single column."""
        if self.combinations is None:
            raise DataError("these states are feature vectors: they have no labels, only feature names")
        words = [self._words(row) for row in self.combinations.tolist()]
        return tuple(pairs[0][1] if len(pairs) == 1 else ", ".join(f"{n}={v}" for n, v in pairs) for pairs in words)

    @cached_property
    def features(self) -> tuple[str, ...]:
        """Name every feature: a number's own column, `column=category` for a category, `column missing`."""
        names: list[str] = []
        for column in self.columns:
            if column.categories is None:
                names += [column.name] if column.fill is None else [column.name, f"{column.name} missing"]
            else:
                names += [f"{column.name}={value}" for value in column.categories]
        return tuple(names)

    def encode(self, table: pl.DataFrame) -> Array:
        """Turn rows of a table into states: (n,) integers, or (n, d) features."""
        own = self._own_states(table)
        return own if self.memory is None else self.memory.join(own, *self._past(self.memory, table))

    def decode(self, states: Array) -> pl.DataFrame:
        """Turn states, (n,) or (n, d), back into the columns that they were made of; numbers are numbers again."""
        if self.combinations is not None:
            codes = self.combinations[states]
            return pl.DataFrame({c.name: _values(c, codes[:, place]) for place, c in enumerate(self.columns)})
        columns, place = {}, 0
        for column in self.columns:
            if column.categories is None:
                values = pl.Series(states[:, place], dtype=pl.Float64)
                if column.fill is not None:
                    values = values.set(pl.Series(states[:, place + 1] > 0.5), None)
                place += 1 if column.fill is None else 2
            else:
                width = len(column.categories)
                values = _values(column, states[:, place : place + width].argmax(axis=1))
                place += width
            columns[column.name] = values
        return pl.DataFrame(columns)

    def _past(self, memory: Memory, table: pl.DataFrame) -> tuple[IntArray, BoolArray]:
        """Read the previous action (n,) and what has happened (n, events) off a table."""
        needed = {PREVIOUS: "the action before, empty at an episode's first decision"} if memory.previous else {}
        needed |= dict.fromkeys(memory.events, "whether that has happened before")
        for name, words in needed.items():
            if name not in table.columns:
                raise DataError(f"the table has no column {name!r}, which the policy remembers: {words}")
        previous = np.full(table.height, NONE)
        if memory.previous:
            there = table[PREVIOUS].is_not_null().to_numpy()
            taken = table.filter(pl.Series(there)).select(PREVIOUS)
            previous[there] = category_codes(StateColumn(PREVIOUS, self.actions), taken)
        happened = [table[event].cast(pl.Boolean).fill_null(False).to_numpy() for event in memory.events]
        return previous, np.column_stack([np.zeros((table.height, 0), dtype=bool), *happened])

    def _own_states(self, table: pl.DataFrame) -> Array:
        for column in self.columns:
            if column.name == STEP_NUMBER and column.name not in table.columns:
                raise DataError(
                    f"the table has no column {STEP_NUMBER!r}, which the horizon added to the state: which decision of "
                    "its episode a row is, 1 for the first"
                )
            if column.name not in table.columns:
                raise DataError(f"the table has no column {column.name!r}: it has {', '.join(table.columns)}")
        self._require_within(table)
        if self.combinations is None:
            return np.column_stack([self._features(column, table) for column in self.columns])
        codes = np.column_stack([category_codes(column, table) for column in self.columns])
        place = {tuple(row): state for state, row in enumerate(self.combinations.tolist())}
        states = np.array([place.get(tuple(row), -1) for row in codes.tolist()], dtype=np.int64)
        if (states < 0).any():
            row = int(np.argmax(states < 0))
            shown = ", ".join(f"{n}={v}" for n, v in self._words(codes[row].tolist()))
            raise DataError(f"row {row} has the state {shown}, which never occurred in the log that was learned from")
        return states

    def _require_within(self, table: pl.DataFrame) -> None:
        """Raise where a row lies beyond the horizon."""
        if self.horizon is None:
            return
        steps = table[STEP_NUMBER].cast(pl.Float64, strict=False)
        wrong = ~steps.is_between(1, self.horizon).fill_null(False)
        if wrong.any():
            row = int(wrong.arg_max() or 0)
            raise DataError(
                f"{STEP_NUMBER!r} is {table[STEP_NUMBER][row]} in row {row}: it must be 1 to {self.horizon}, the "
                "horizon after which the policy has nothing to decide"
            )

    def _words(self, codes: list[int]) -> list[tuple[str, str]]:
        pairs = zip(self.columns, codes, strict=True)
        return [(column.name, (column.categories or ())[code]) for column, code in pairs]

    def _features(self, column: StateColumn, table: pl.DataFrame) -> FloatArray:
        if column.categories is not None:
            return np.eye(len(column.categories))[category_codes(column, table)]
        numbers = table[column.name].cast(pl.Float64, strict=False)
        missing = numbers.is_null() | numbers.is_nan()
        if column.fill is None and missing.any():
            row = int(missing.arg_max() or 0)
            value = table[column.name][row]
            raise DataError(f"column {column.name!r} is {value!r} in row {row}: it must be a number")
        values = np.array(numbers.fill_nan(None).fill_null(column.fill or 0.0))
        return values[:, None] if column.fill is None else np.column_stack([values, np.array(missing, dtype=float)])


def _values(column: StateColumn, codes: IntArray) -> pl.Series:
    """(n,) the values of categories: text, or numbers where all of them are; a missing one is null."""
    names = [None if name == MISSING else name for name in column.categories or ()]
    words = pl.Series(names, dtype=pl.String)
    numbers = words.cast(pl.Float64, strict=False)
    written = numbers if numbers.null_count() == words.null_count() else words
    return written.gather(codes)


def as_text(values: pl.Series) -> pl.Series:
    """Return a column's values as the text that categories are named by."""
    return values.cast(pl.String).fill_null(MISSING)


def category_codes(column: StateColumn, table: pl.DataFrame) -> IntArray:
    """(n,) the category of each row, or an error that names the first one that is not known."""
    categories = column.categories or ()
    text = as_text(table[column.name])
    codes = text.replace_strict(categories, range(len(categories)), default=-1, return_dtype=pl.Int64)
    if (codes < 0).any():
        row = int((codes < 0).arg_max() or 0)
        raise DataError(
            f"column {column.name!r} is {text[row]!r} in row {row}, which never occurred in the log that was learned "
            f"from: there it was {', '.join(categories[:10])}{', ...' if len(categories) > 10 else ''}"
        )
    return np.array(codes, dtype=np.int64)
