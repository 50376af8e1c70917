"""Steps that are text, put in the order of what they mean: numbers, and dates as people write them."""

import re
from itertools import product

import polars as pl

from checkrein.base.errors import DataError

YEAR_FIRST = ("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d")
DAY_FIRST = ("%d/%m/%Y", "%d-%m-%Y", "%d.%m.%Y", "%d/%m/%y", "%d-%m-%y", "%d.%m.%y")
MONTH_FIRST = ("%m/%d/%Y", "%m-%d-%Y", "%m/%d/%y", "%m-%d-%y")
IN_WORDS = ("%d-%b-%Y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%d%b%Y")
TIMES = ("", " %H:%M", " %H:%M:%S%.f", " %I:%M %p", " %I:%M:%S %p")
FEW = 100  # texts that tell whether a column holds dates
SHORT_YEAR = re.compile(r"^\d{1,2}[./-]\d{1,2}[./-]\d{2}(\D|$)")
ZONE = re.compile(r"(Z|[+-]\d{2}:?\d{2})$")


def in_order(values: pl.Series, where: str) -> pl.Series:
    """Return text as the numbers or dates that it holds; what is neither, or no text, as it is.

    Dates that could be read with the day or with the month first are refused, where nothing in the column tells.

    where: what to call the column in an error
    """
    if values.dtype != pl.String or values.has_nulls() or len(values) == 0:
        return values
    numbers = values.cast(pl.Float64, strict=False)
    if numbers.is_finite().fill_null(False).all():
        whole = bool((numbers == numbers.round()).all()) and float(numbers.abs().max()) < 2**53  # type: ignore[arg-type]
        return numbers.cast(pl.Int64) if whole else numbers
    text = values.str.strip_chars().str.replace(r"(\d)T(\d)", "${1} ${2}").str.replace(r"Z$", "+00:00")
    zones = text.str.contains(ZONE.pattern) & text.str.contains(r"\d:\d")
    if zones.any() and not zones.all():
        return values
    for formats in (YEAR_FIRST, IN_WORDS):
        found = _read(text, formats, zoned=bool(zones.all()))
        if found is not None:
            return found
    day, month = (_read(text, formats, zoned=bool(zones.all())) for formats in (DAY_FIRST, MONTH_FIRST))
    if day is not None and month is not None and not (day == month).all():
        row = int((day != month).arg_max() or 0)
        raise DataError(
            f"{where} is {values[row]!r}, and nothing in the log tells whether the day or the month comes first: "
            "write dates as YYYY-MM-DD"
        )
    return next((one for one in (day, month) if one is not None), values)


def _read(text: pl.Series, formats: tuple[str, ...], *, zoned: bool) -> pl.Series | None:
    """Return the moments, read by any of some formats; None where one of them is in none."""
    if len(text) > FEW and _read(text.head(FEW), formats, zoned=zoned) is None:
        return None  # told by a few, before a long column is read in every way
    short, found = bool(SHORT_YEAR.match(text[0])), None
    for date, time in product(formats, TIMES):
        if short != date.endswith("%y") or (zoned and not time):
            continue
        read = text.str.to_datetime(f"{date}{time}{'%#z' if zoned else ''}", time_unit="us", strict=False)
        read = read.dt.replace_time_zone(None) if zoned else read
        found = read if found is None else found.fill_null(read)
        if not found.has_nulls():
            return found
    return None
