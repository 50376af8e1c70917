"""What a column may hold by the part that it plays; all else is refused by name, and nothing is taken for a number."""

from collections.abc import Mapping, Sequence

import polars as pl
import polars.selectors as cs

from checkrein.base.errors import DataError
from checkrein.data.columns import LARGEST_INTEGER
from checkrein.data.encoding import MISSING
from checkrein.logs.dates import in_order, without_date
from checkrein.logs.sources import RESERVED, ROW, Source

NO_PART = {pl.Binary: "bytes", pl.List: "lists", pl.Array: "lists", pl.Struct: "structs", pl.Object: "objects"}
TEMPORAL = {pl.Date: "a date", pl.Datetime: "a date", pl.Time: "a time of day", pl.Duration: "a duration"}
AS_NUMBERS = "make a column of numbers of it, such as the days since a date"
STEPS = "step"
ISO = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}(:\d{2}){0,2}([.,]\d+)?\s?(Z|[+-]\d{2}:?\d{2})?)?$"
OFFSET = r"(Z|[+-]\d{2}:?\d{2})$"
NOT_SORTED_AS_TEXT = r"^(\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}[./-](\d[./-]|\d\d[./-]\d(\D|$)))"  # 3/12/2020, 2020-3-12


def plain(table: pl.LazyFrame) -> pl.LazyFrame:
    """Return a log with text for categories and wide numbers for narrow ones, in which sums cannot wrap around."""
    schema, casts = table.collect_schema(), []
    for name, kind in schema.items():
        if kind == pl.Categorical:
            casts.append(pl.col(name).cast(pl.String))
        elif isinstance(kind, pl.Decimal):
            casts.append(pl.col(name).cast(pl.Float64 if kind.scale else pl.Int128))
        elif kind in (pl.Int8, pl.Int16, pl.Int32, pl.UInt8, pl.UInt16, pl.UInt32):
            casts.append(pl.col(name).cast(pl.Int64))
    return table.with_columns(casts) if casts else table


def require_kinds(source: Source, parts: Mapping[str, Sequence[str | None]]) -> None:
    """Raise unless each column can play its part, as its type tells."""
    schema = source.table.collect_schema()
    for part, names in parts.items():
        for name in names:
            if name is None:
                continue
            kind = schema[name].base_type()
            if name in RESERVED:
                raise DataError(f"{source.name} has a column {name!r}, a name that is needed here: rename it")
            if kind in NO_PART:
                raise DataError(
                    f"{part} {name!r} of {source.name} holds {NO_PART[kind]}: make a column of numbers or text of each "
                    "value that counts"
                )
            if kind == pl.Duration and part != STEPS:
                raise DataError(f"{part} {name!r} of {source.name} holds durations: {AS_NUMBERS}")


def gone(values: pl.Series) -> pl.Series:
    """(n,) where nothing is known: nulls, and what is not a number."""
    return values.is_null() | values.is_nan() if values.dtype.is_float() else values.is_null()


def first_of(source: Source, table: pl.DataFrame, wrong: pl.Series) -> tuple[int, str]:
    """Return the first row of a table for which something holds, and how its owner finds it."""
    row = int(wrong.arg_max() or 0)
    return row, source.place(table[ROW][row])


def require_present(source: Source, table: pl.DataFrame, name: str) -> None:
    """Raise unless a column has a value in every row."""
    missing = gone(table[name])
    if missing.any():
        _, place = first_of(source, table, missing)
        raise DataError(f"{name!r} is missing in {place}: every row needs one")


def require_told_apart(source: Source, table: pl.DataFrame, name: str, part: str) -> None:
    """Raise where identifiers are floats so large that two of them may have become one."""
    values = table[name]
    if not values.dtype.is_float():
        return
    large = values.abs() >= LARGEST_INTEGER
    if large.any():
        row, place = first_of(source, table, large)
        raise DataError(
            f"{part} {name!r} is {values[row]:.17g} in {place}: numbers so large are rounded, "
            "and two of them may become one. Write them as text"
        )


def ordering(source: Source, table: pl.DataFrame, name: str) -> tuple[pl.Series, str]:
    """(n,) what rows are ordered by, and a warning where it is text that may not mean an order."""
    values = table[name]
    if values.dtype.is_float() and values.is_infinite().any():
        row, place = first_of(source, table, values.is_infinite())
        raise DataError(f"step {name!r} is {values[row]} in {place}: it must be finite")
    times = (
        f"step {name!r} is a time of day without a date: an episode that goes on after midnight is put in the wrong "
    )
    times = times + "order" if values.dtype == pl.Time or without_date(values) else ""
    values = in_order(values, f"step {name!r}")
    if values.dtype != pl.String:
        return values, times
    numbers = values.cast(pl.Float64, strict=False)
    text = ~numbers.is_finite().fill_null(False)
    if 2 * int(text.sum()) < len(text):
        row, place = first_of(source, table, text)
        raise DataError(
            f"step {name!r} is {values[row]!r} in {place}, but mostly numbers: as text 10 would "
            "come before 9, so write a number"
        )
    unsorted = values.str.contains(NOT_SORTED_AS_TEXT)
    if unsorted.any():
        row, place = first_of(source, table, unsorted)
        raise DataError(
            f"step {name!r} is {values[row]!r} in {place}, which as text is not in the order of "
            "time: write dates as YYYY-MM-DD"
        )
    if not values.str.contains(ISO).all():
        return values, (f"step {name!r} is text and is ordered as text: it is neither numbers nor dates all through")
    offsets = values.str.extract(OFFSET).unique().sort().to_list()
    if len(offsets) > 1:
        raise DataError(
            f"step {name!r} has times of several offsets ({offsets[0] or 'none'}, {offsets[1]}), which as text are not "
            "in the order of time: write all in one, such as UTC"
        )
    return values, ""


def require_no_text_for_missing(source: Source, table: pl.DataFrame, name: str) -> None:
    """Raise where a state column has missing values, and a text that looks like them."""
    values = table[name]
    if values.dtype != pl.String or not values.has_nulls():
        return
    same = (values == MISSING).fill_null(False)
    if same.any():
        _, place = first_of(source, table, same)
        raise DataError(
            f"state {name!r} is the text {MISSING!r} in {place}, and missing in other rows, "
            "which is shown by the same text: list it under missing, or write another"
        )


def alike(part: str, values: pl.Series) -> list[str]:
    """Warn where texts differ by spaces or capitals alone."""
    if values.dtype != pl.String:
        return []
    texts = values.drop_nulls().unique().sort()
    groups = pl.DataFrame({"text": texts, "key": texts.str.strip_chars().str.to_lowercase()}).group_by("key")
    twice = groups.agg(pl.col("text")).filter(pl.col("text").list.len() > 1).sort("key")
    if not twice.height:
        return []
    first, second = twice["text"][0].to_list()[:2]
    more = f", and {twice.height - 1} more such pairs" if twice.height > 1 else ""
    words = f"{first!r} and {second!r}, which differ by spaces or capitals alone{more}"
    return [f"{part} {values.name!r} has {words}: they count as different"]


def as_floats(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table whose whole numbers are floats."""
    return table.with_columns(cs.integer().cast(pl.Float64))
