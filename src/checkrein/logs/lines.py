"""Lines of a text file against the rows that were read from it, so that no row vanishes without a word.

A quote that is opened by mistake makes one cell of all that follows, up to the next quote. So rows are counted twice,
and where a row goes over several lines, these are looked at.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import polars as pl

from checkrein.base.arrays import CHUNK_BYTES
from checkrein.base.errors import DataError

SEPARATORS = {".csv": ",", ".tsv": "\t"}
WHOLE_FILE_IN_ONE_FIELD = "\x1f"  # a separator that no table has
HELD = 1000  # lines of a row that are looked at
OTHERS = {";": "semicolons", "\t": "tabs", ",": "commas", "|": "bars"}


class Span(NamedTuple):
    """A row that goes over several lines."""

    first: int  # the number of its first line in the file, from 1
    last: int
    lines: tuple[str, ...]  # no more than HELD of them, and the last
    closed: bool


@dataclass(frozen=True)
class Lines:
    """A text file, whose first line names its columns."""

    file: Path

    @property
    def separator(self) -> str:
        """What stands between two cells."""
        return SEPARATORS[self.file.suffix.lower()]

    @property
    def header(self) -> list[str]:
        """The names of its columns, as they are written."""
        with self.file.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
            return next(_rows(lines, self.separator), [])

    def require_text(self) -> None:
        """Raise where a file is no UTF-8 text with lines."""
        with self.file.open("rb") as content:
            begin = content.read(CHUNK_BYTES)
        if begin[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise DataError(f"{self.file} is UTF-16: save it as UTF-8")
        if b"\0" in begin:
            line = begin[: begin.index(b"\0")].count(b"\n") + 1
            raise DataError(f"{self.file} has a NUL byte in line {line}: it is no text, or not UTF-8")
        if b"\r" in begin and b"\n" not in begin:
            raise DataError(f"the lines of {self.file} end in a carriage return alone: save it with line feeds")
        names = self.header
        twice = next((name for place, name in enumerate(names) if name and name in names[:place]), None)
        if twice is not None:
            raise DataError(f"{self.file} has the column {twice!r} twice: rename one of them")
        other = next((sign for sign in OTHERS if len(names) == 1 and sign in names[0]), None)
        if other is not None:
            raise DataError(
                f"{self.file} has {OTHERS[other]} between its cells, but a {self.file.suffix} file has "
                f"{OTHERS[self.separator]}: save it so"
            )

    def trouble(self) -> str:
        """Say which line cannot be read as the others are; empty where none is found."""
        with self.file.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
            rows = _rows(lines, self.separator)
            width = len(next(rows, []))
            for number, row in enumerate(rows, start=1):
                if len(row) > width:
                    return (
                        f"row {number} has {len(row)} cells, but there are {width} columns: put a cell that "
                        "holds a separator in double quotes"
                    )
        opened = [span.first for span in self._spans() if not span.closed]
        return f"a quote is opened in line {opened[0]} and never closed" if opened else ""

    def said(self, rows: int, schema: Mapping[str, pl.DataType], *, cut: bool) -> list[str]:
        """Warn of what its lines tell of the rows that were read; raise where rows were swallowed.

        cut: whether the last column lacks values, as in lines that are too short
        """
        if self._count() != rows + 1:
            spans = list(self._spans())
            for span in spans:
                self._require_no_swallowed_rows(span, list(schema.values()))
            return [self._of_spans(spans, rows)]
        return self._of_short_lines(len(schema)) if cut else []

    def _count(self) -> int:
        count, last = 0, b"\n"
        with self.file.open("rb") as content:
            while part := content.read(CHUNK_BYTES):
                count, last = count + part.count(b"\n"), part[-1:]
        return count + (last != b"\n")

    def _spans(self) -> Iterator[Span]:
        """Yield the rows that go over several lines: a quote opened in one is closed in another."""
        held: list[str] = []
        begun = number = 0
        with self.file.open(encoding="utf-8-sig", errors="replace", newline="\n") as lines:
            for number, line in enumerate(lines, start=1):
                turns = line.count('"') % 2
                if not held and turns:
                    held, begun = [line], number
                elif held and turns:
                    yield Span(begun, number, (*held, line), closed=True)
                    held = []
                elif held and len(held) < HELD:
                    held.append(line)
        if held:
            yield Span(begun, number, tuple(held), closed=False)

    def _require_no_swallowed_rows(self, span: Span, kinds: Sequence[pl.DataType]) -> None:
        whole = [self._looks_like_a_row(line, kinds) for line in span.lines]
        if any(whole[1:-1]) or (whole[0] and whole[-1]):
            raise DataError(
                f"{self.file}, line {span.first}: a quote is opened here and closed in line {span.last}, so that these "
                "lines are one row, though they look like several: remove the quotes, or double them if they are text"
            )

    def _looks_like_a_row(self, line: str, kinds: Sequence[pl.DataType]) -> bool:
        cells = [cell.strip() for cell in line.replace('"', "").split(self.separator)]
        return len(cells) == len(kinds) and all(
            not kind.is_numeric() or not cell or _is_number(cell) for cell, kind in zip(cells, kinds, strict=True)
        )

    def _of_spans(self, spans: Sequence[Span], rows: int) -> str:
        if not spans:
            return f"{self.file} has {self._count():,} lines, but {rows:,} rows were read below its header"
        return (
            f"{len(spans):,} of {rows:,} rows of {self.file} go over several lines, as texts in quotes may: the first "
            f"begins in line {spans[0].first}. If no text should, a quote is stray"
        )

    def _of_short_lines(self, width: int) -> list[str]:
        lines = pl.scan_csv(
            self.file,
            has_header=False,
            schema={"line": pl.String},
            separator=WHOLE_FILE_IN_ONE_FIELD,
            quote_char=None,
            truncate_ragged_lines=True,
        ).with_row_index("number", offset=1)
        separators = pl.col("line").str.count_matches(self.separator, literal=True)
        short = lines.filter(separators < width - 1).select(pl.len(), pl.col("number").first()).collect()
        count, first = short.row(0)
        if not count:
            return []
        have = "1 line has" if count == 1 else f"{count:,} lines have"
        return [f"{have} fewer cells than {self.file} has columns, first line {first}: what they lack is missing"]


def _rows(lines: Iterable[str], separator: str) -> Iterator[list[str]]:
    """Yield the cells of each row, as far as they can be told apart."""
    with suppress(csv.Error):  # a cell that is too long
        yield from csv.reader(lines, delimiter=separator)


def _is_number(text: str) -> bool:
    with suppress(ValueError):
        float(text)
        return True
    return False
