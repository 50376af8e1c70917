"""Whether a log's states are finite in a sensible way: a table learns from combinations that come up often."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from checkrein.base.errors import DataError

ROWS_OF_NUMBERS = 10  # that a distinct combination must have on average, where a column is one of numbers
ROWS_OF_WORDS = 2  # and where none is: features have nothing to measure nearness by
MOST_WORDS = 200  # that a column of a state may have to become features: each is one
SEEN = 5  # times that a decision must come up in a state to be chosen there, under the loosest rule that is tried ...
MOSTLY_SEEN = 0.5  # ... and the rows that must be of such decisions: else a table could choose next to nothing


@dataclass(frozen=True)
class StateChoice:
    """What the states of a log are taken for, and why."""

    finite: bool
    why: str

    @classmethod
    def of(cls, table: pl.DataFrame, names: Sequence[str], action: str | None = None) -> "StateChoice":
        """Count how often a combination of the state columns comes up, and the decisions (if named) in it."""
        distinct = table.select(names).n_unique()
        least = ROWS_OF_NUMBERS if any(table.schema[name].is_numeric() for name in names) else ROWS_OF_WORDS
        each = table.height / max(distinct, 1)
        states = "1 distinct state" if distinct == 1 else f"{distinct:,} distinct states"
        found = f"{states} in {table.height:,} rows, {_few_digits(each)} each"
        wordy = [name for name in names if not table.schema[name].is_numeric() and table[name].n_unique() > MOST_WORDS]
        seen = 1.0 if action is None else _seen(table, names, action)
        if each >= least and (seen >= MOSTLY_SEEN or wordy):
            return cls(True, f"tables: {found}")
        if each >= least:
            return cls(
                False,
                f"features: {found}, but only {seen:.0%} of the rows hold a decision that comes up {SEEN} times in its "
                f"state, and a table needs {MOSTLY_SEEN:.0%}",
            )
        if wordy:
            raise DataError(
                f"state {wordy[0]!r} has {table[wordy[0]].n_unique():,} different texts, too many to learn from in "
                f'{table.height:,} rows: group them, leave the column out, or set functions = "tabular"'
            )
        return cls(False, f"features: {found}, and a table needs {least}")


def _seen(table: pl.DataFrame, names: Sequence[str], action: str) -> float:
    """Return the share of rows whose decision comes up often enough in their state."""
    counts = table.group_by(list(dict.fromkeys((*names, action)))).len()["len"]
    return float(counts.filter(counts >= SEEN).sum() / max(table.height, 1))


def _few_digits(number: float) -> str:
    return f"{number:,.0f}" if number >= ROWS_OF_NUMBERS else f"{number:.1f}"
