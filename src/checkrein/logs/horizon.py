"""A table that ends at a horizon: later rows are left out, and a column counts those that stay."""

from dataclasses import replace

import polars as pl

from checkrein.base.arrays import IntArray, require_counts
from checkrein.base.errors import DataError
from checkrein.data.encoding import STEP_NUMBER
from checkrein.logs.sources import Source


def with_step_numbers(source: Source, horizon: int) -> Source:
    """Return a log with the column that a horizon adds, still without its values."""
    require_counts(horizon=horizon)
    if STEP_NUMBER in source.columns:
        raise DataError(f"{source.name} has a column {STEP_NUMBER!r}, which horizon adds to the state: rename it")
    return replace(source, table=source.table.with_columns(pl.lit(0).alias(STEP_NUMBER)))


def rows_until(
    table: pl.DataFrame, episodes: IntArray, steps: IntArray, horizon: int
) -> tuple[pl.DataFrame, IntArray, IntArray]:
    """Return the rows up to a horizon, with a column that counts them from 1 in each episode."""
    kept = steps < horizon
    table = table.filter(pl.Series(kept)).with_columns(pl.Series(STEP_NUMBER, steps[kept] + 1))
    return table, episodes[kept], steps[kept]


def beyond_words(horizon: int | None, rows: int) -> tuple[str, ...]:
    """Say that rows were left out, if any were."""
    return (f"{rows:,} rows lie beyond the horizon of {horizon} decisions: they are left out",) if rows else ()
