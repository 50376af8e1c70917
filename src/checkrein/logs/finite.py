"""Whether a log's states are finite in a sensible way: a table learns from combinations that come up often."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from checkrein.base.errors import DataError

ROWS_OF_NUMBERS = 10  # that a distinct combination must have on average, where a column is one of numbers
ROWS_OF_WORDS = 2  # and where none is: features have nothing to measure nearness by
MOST_WORDS = 200  # that a column of a state may have to become features: each is one


@dataclass(frozen=True)
class StateChoice:
    """What the states of a log are taken for, and why."""

    finite: bool
    why: str

    @classmethod
    def of(cls, table: pl.DataFrame, names: Sequence[str]) -> "StateChoice":
        """Count how often a combination of the state columns comes up."""
        distinct = table.select(names).n_unique()
        least = ROWS_OF_NUMBERS if any(table.schema[name].is_numeric() for name in names) else ROWS_OF_WORDS
        each = table.height / max(distinct, 1)
        states = "1 distinct state" if distinct == 1 else f"{distinct:,} distinct states"
        found = f"{states} in {table.height:,} rows, {_few_digits(each)} each"
        if each >= least:
            return cls(True, f"tables: {found}")
        for name in names:
            words = table[name].n_unique()
            if not table.schema[name].is_numeric() and words > MOST_WORDS:
                raise DataError(
                    f"state {name!r} has {words:,} different texts, too many to learn from in {table.height:,} rows: "
                    'group them, leave the column out, or set functions = "tabular"'
                )
        return cls(False, f"features: {found}, and a table needs {least}")


def _few_digits(number: float) -> str:
    return f"{number:,.0f}" if number >= ROWS_OF_NUMBERS else f"{number:.1f}"
