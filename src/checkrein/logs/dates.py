"""Steps that are text, put in the order of what they mean: numbers, and dates as people write them."""

import re
from itertools import product

import polars as pl

from checkrein.base.errors import DataError

YEAR_FIRST = ("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d")
DAY_FIRST = ("%d/%m/%Y", "%d-%m-%Y", "%d.%m.%Y", "%d/%m/%y", "%d-%m-%y", "%d.%m.%y")
MONTH_FIRST = ("%m/%d/%Y", "%m-%d-%Y", "%m/%d/%y", "%m-%d-%y")
IN_WORDS = ("%d-%b-%Y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%d%b%Y", "%d-%b-%y", "%d %b %y", "%d%b%y")
TIMES = ("", " %H:%M", " %H:%M:%S%.f", " %I:%M %p", " %I:%M:%S %p", " %I:%M%p")
FEW = 100  # texts that tell whether a column holds dates
SHORT_YEAR = re.compile(r"^\d{1,2}([./-]\d{1,2}[./-]|[ -]?[A-Za-z]{3}[ -]?)\d{2}(\D|$)")
REWRITTEN = {
    r"(?i)^(mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,? +": "",  # Wed, 31 Jan 2024
    r"(\d)T(\d)": "${1} ${2}",
    r"(?i)^(\d{1,2}[a-z]{3}\d{4}):(\d)": "${1} ${2}",  # 31JAN2024:09:05:00
    r"^(\d{4})(\d{2})(\d{2}) (\d{2})(\d{2})": "${1}-${2}-${3} ${4}:${5}",  # 20240131T0905
    r"^(\d{4}-\d{2}-\d{2} \d{2}:\d{2})(\d{2})": "${1}:${2}",  # and its seconds
    r"(?i)(Z| *(UTC|GMT))$": "+00:00",
    r"(:\d{2}) ([+-]\d{2}:?\d{2})$": "${1}${2}",
    r"^(\d{4})[-/.](\d{1,2})$": "${1}-${2}-01",  # a month
    r"^(\d{1,2})[-/.](\d{4})$": "${2}-${1}-01",
    r"(?i)^([a-z]{3,9})\.?[ -](\d{4})$": "1 ${1} ${2}",
    r"(?i)^([a-z]{3})[ -]'?(\d{2})$": "1-${1}-${2}",
}
CLOCK = re.compile(r"(?i)^\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?( *[ap]m)?$")
PARTS = (
    re.compile(r"(?i)^(?P<year>\d{4})[ /-]?[qw](?P<part>\d{1,2})$"),  # 2024-Q1, 2024-W05
    re.compile(r"(?i)^[qw](?P<part>\d{1,2})[ /-](?P<year>\d{4})$"),
)
ELAPSED = re.compile(r"^(?P<h>\d{1,5}):(?P<m>\d{2})(:(?P<s>\d{2}(\.\d+)?))?$")
COUNTED = re.compile(r"^(?P<word>\D*?[^\d.,+-])(?P<number>\d+)$")  # visit 3, V03
ZONE = re.compile(r"(Z|[+-]\d{2}:?\d{2})$")


def in_order(values: pl.Series, where: str) -> pl.Series:
    """Return text as the numbers or dates that it holds; what is neither, or no text, as it is.

    Dates that could be read with the day or with the month first are refused, where nothing in the column tells.

    where: what to call the column in an error
    """
    if values.dtype != pl.String or values.has_nulls() or len(values) == 0:
        return values
    text = values.str.strip_chars()
    numbers = _numbers(text)
    if numbers is not None:
        return numbers
    if text.str.contains(CLOCK.pattern).all():
        text = "2000-01-01 " + text
    for written, plain in REWRITTEN.items():
        text = text.str.replace(written, plain)
    found = _moments(text, values, where)
    return values if found is None else found


def _moments(text: pl.Series, values: pl.Series, where: str) -> pl.Series | None:
    """Return dates and times; None where they are none.

    values: as they were written
    """
    zones = text.str.contains(ZONE.pattern) & text.str.contains(r"\d:\d")
    if zones.any() and not zones.all():
        return None
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
    return next((one for one in (day, month) if one is not None), None)


def without_date(values: pl.Series) -> bool:
    """Say whether steps are times of a day alone: after midnight comes what was before."""
    if values.dtype != pl.String:
        return values.dtype == pl.Time
    text = values.str.strip_chars()
    return bool(text.str.contains(CLOCK.pattern).all()) and _elapsed(text) is None


def _numbers(text: pl.Series) -> pl.Series | None:
    """Return plain numbers, those of quarters and weeks of years, of times since a start, or of one word (visit 3)."""
    plain = text.cast(pl.Float64, strict=False)
    if plain.is_finite().fill_null(False).all():
        whole = bool((plain == plain.round()).all()) and float(plain.abs().max()) < 2**53  # type: ignore[arg-type]
        return plain.cast(pl.Int64) if whole else plain
    for pattern in PARTS:
        if text.str.contains(pattern.pattern).all():
            found = text.str.extract_groups(pattern.pattern)
            year, part = (found.struct.field(name).cast(pl.Int64) for name in ("year", "part"))
            return 100 * year + part
    elapsed = _elapsed(text)
    if elapsed is not None:
        return elapsed
    found = text.str.extract_groups(COUNTED.pattern)
    words, numbers = found.struct.field("word"), found.struct.field("number").cast(pl.Int64, strict=False)
    one = words.str.to_lowercase().str.strip_chars()
    return None if numbers.has_nulls() or one.n_unique() > 1 else numbers


def _elapsed(text: pl.Series) -> pl.Series | None:
    """Return times since a start (36:05) as seconds; None where they may be times of a day."""
    if not text.str.contains(ELAPSED.pattern).all():
        return None
    found = text.str.extract_groups(ELAPSED.pattern)
    hours, minutes, seconds = (found.struct.field(name).cast(pl.Float64).fill_null(0) for name in "hms")
    return 3600 * hours + 60 * minutes + seconds if (hours >= 24).any() else None


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
