"""Where a log lies: files, globs and tables of other libraries, as one lazy polars table that knows its rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from glob import glob
from itertools import accumulate
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PanicException, PolarsError

from checkrein.base.brief import some
from checkrein.base.errors import DataError
from checkrein.logs.lines import SEPARATORS, Lines

TEXT = tuple(SEPARATORS)
UNREADABLE = (PolarsError, PanicException)  # polars panics over some damaged Parquet files
ROW = "__row__"  # the place of a row in the log, kept through sorting
COUNTED = "__rows__"
FIRST, STEP = "__first__", "__step__"  # of a row's episode; of what its rows are ordered by
RESERVED = (ROW, FIRST, STEP)


@dataclass(frozen=True)
class Source:
    """A log before it is read."""

    name: str
    table: pl.LazyFrame
    files: tuple[Path, ...] = ()
    warnings: tuple[str, ...] = ()  # of what is odd about the files
    rows: int = 0  # in the files

    @property
    def columns(self) -> list[str]:
        """The log's columns."""
        return self.table.collect_schema().names()

    def require(self, *columns: str | None) -> None:
        """Raise unless the log has these columns."""
        for column in columns:
            if column is not None and column not in self.columns:
                raise DataError(f"{self.name} has no column {column!r}: it has {some(self.columns)}")

    def place(self, row: int) -> str:
        """Name a row the way its owner finds it: the file, and the row after its header."""
        if len(self.files) > 1:
            ends = list(accumulate(_scan(file).select(pl.len()).collect().item() for file in self.files))
            which = next(index for index, end in enumerate(ends) if row < end)
            return f"{self.files[which]}, row {row - (ends[which - 1] if which else 0) + 1}"
        return f"{self.name}, row {row + 1}"


def open_source(source: object, missing: Sequence[str] = ()) -> Source:
    """Return a log from a path, a glob, several of them, or a table of pandas, polars, Arrow or plain columns.

    missing: texts of a CSV file that stand for a missing value, besides the empty cell
    """
    if isinstance(source, str | Path):
        return _open_files([source], missing)
    if isinstance(source, Sequence) and source and all(isinstance(item, str | Path) for item in source):
        return _open_files(source, missing)
    frame = _as_frame(source)
    if frame.height == 0:
        raise DataError("the table has no rows")
    return Source("the table", frame.lazy())


def _as_frame(table: object) -> pl.DataFrame:
    match table:
        case pl.LazyFrame():
            return table.collect()
        case pl.DataFrame():
            return table
        case Mapping():
            return pl.DataFrame(table)
    if type(table).__module__.split(".")[0] == "pandas":
        return _from_pandas(table)
    if hasattr(table, "__arrow_c_stream__"):
        return pl.DataFrame(table)
    raise DataError(
        f"a log is a path, a glob, several of them, or a table of pandas, polars or Arrow, not {type(table).__name__}"
    )


def _from_pandas(table: Any) -> pl.DataFrame:
    """Copy column by column, so that pyarrow is not needed; what pandas calls NaN in text is missing."""
    columns = {}
    for name in table.columns:
        column = table[name]
        numeric = column.dtype.kind in "biuf" if hasattr(column.dtype, "kind") else False
        values = (
            column.to_numpy()
            if numeric
            else [None if gone else value for value, gone in zip(column, column.isna(), strict=True)]
        )
        columns[str(name)] = pl.Series(str(name), values)
    return pl.DataFrame(columns)


def _open_files(patterns: Sequence[str | Path], missing: Sequence[str]) -> Source:
    files: list[Path] = []
    for pattern in patterns:
        found = (
            sorted(Path(name) for name in glob(str(pattern), recursive=True)) if _is_glob(pattern) else [Path(pattern)]
        )
        if not found:
            raise DataError(f"no file matches {str(pattern)!r}")
        files += found
    tables, warnings, rows = [], [], 0
    for file in files:
        if not file.exists():
            raise DataError(f"{file} does not exist")
        if not file.is_file():
            raise DataError(f"{file} is not a file")
        table, said, height = _checked(file, missing)
        rows += height
        tables.append(table)
        warnings += said
    _require_alike(files, tables)
    name = str(files[0]) if len(files) == 1 else f"{len(files)} files ({files[0]}, ...)"
    table = tables[0] if len(tables) == 1 else pl.concat(tables, how="vertical_relaxed")
    return Source(name, table, tuple(files), tuple(warnings), rows)


def _is_glob(pattern: str | Path) -> bool:
    return any(sign in str(pattern) for sign in "*?[") and not Path(pattern).exists()


def _scan(file: Path, missing: Sequence[str] = ()) -> pl.LazyFrame:
    match file.suffix.lower():
        case ".csv":
            return pl.scan_csv(file, infer_schema_length=None, null_values=["", *missing], truncate_ragged_lines=False)
        case ".tsv":
            return pl.scan_csv(file, separator="\t", infer_schema_length=None, null_values=["", *missing])
        case ".parquet" | ".pq":
            return pl.scan_parquet(file)
        case suffix:
            raise DataError(f"{file} ends in {suffix or 'nothing'!r}: a log is a .csv, .tsv or .parquet file")


def _checked(file: Path, missing: Sequence[str]) -> tuple[pl.LazyFrame, list[str], int]:
    """Scan a file, and find out at once whether it can be read at all, what is odd about its lines, and its rows."""
    if file.stat().st_size == 0:
        raise DataError(f"{file} is empty")
    table, is_text = _scan(file, missing), file.suffix.lower() in TEXT
    try:
        if is_text:
            Lines(file).require_text()
        schema = table.collect_schema()
        # every field of every line of text is looked at
        nulls = pl.all().null_count() if is_text else pl.lit(0)
        rows, *lacking = table.select(pl.len().alias(COUNTED), nulls).collect(engine="streaming").row(0)
    except (*UNREADABLE, OSError) as reason:
        raise DataError(f"{file} cannot be read: {file_trouble(file, reason)}") from None
    if rows == 0:
        raise DataError(f"{file} has a header but no rows")
    return table, Lines(file).said(rows, schema, cut=lacking[-1] > 0) if is_text else [], rows


def file_trouble(file: Path, reason: BaseException) -> str:
    """Say why a file cannot be read, with the line where that can be found out."""
    if file.suffix.lower() in TEXT:
        with file.open("rb") as lines:
            for number, line in enumerate(lines):
                try:
                    line.decode()
                except UnicodeDecodeError as error:
                    shown = line[error.start : error.end]
                    return f"line {number + 1} has the bytes {shown!r}, which are not UTF-8: save the file as UTF-8"
        if found := Lines(file).trouble():
            return found
    return str(reason).split("\n")[0]


def _require_alike(files: Sequence[Path], tables: Sequence[pl.LazyFrame]) -> None:
    first = tables[0].collect_schema()
    for file, table in zip(files[1:], tables[1:], strict=True):
        schema = table.collect_schema()
        if set(schema) != set(first):
            lacking, extra = sorted(set(first) - set(schema)), sorted(set(schema) - set(first))
            raise DataError(f"{file} and {files[0]} differ in their columns: it lacks {lacking} and adds {extra}")
        for name, kind in schema.items():
            if (
                kind != first[name]
                and not (kind.is_numeric() and first[name].is_numeric())
                and pl.Null not in (kind, first[name])
            ):
                raise DataError(
                    f"column {name!r} is {first[name]} in {files[0]}, but {kind} in {file}: make them alike"
                )
