"""No row vanishes, and nothing is taken for what it is not: it is handled, or refused by its place."""

import datetime as dt

import numpy as np
import polars as pl
import pytest

from checkrein import Dataset, read_logs
from checkrein.base.errors import DataError
from checkrein.logs import table as tables
from checkrein.logs.stream import read_compressed
from checkrein.logs.table import Columns, read_table

ROWS = 40
TABLE = pl.DataFrame(
    {
        "patient": np.repeat(np.arange(10), 4),
        "hour": np.tile(np.arange(4), 10),
        "severity": ["low", "high", "low", "high"] * 10,
        "drug": ["none", "vaso"] * 20,
        "harm": [0.5, 0.0, 1.0, 2.0] * 10,
        "note": ["seen"] * ROWS,
    }
)
LINES = TABLE.write_csv().splitlines()
NAMED = {"episode": "patient", "state": "severity", "action": "drug", "costs": "harm", "step": "hour"}


def columns(**changes):
    return Columns(**NAMED | changes)


def lines(*changes):
    """The lines of the good table with some replaced: (number from 1, text before, text after)."""
    kept = list(LINES)
    for number, old, new in changes:
        assert old in kept[number - 1]
        kept[number - 1] = kept[number - 1].replace(old, new)
    return "\n".join(kept) + "\n"


def read_text(folder, text, **changes):
    (folder / "log.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_table(folder / "log.csv", columns(**changes))


SWALLOWED = {
    "a state": (lines((4, "low", '"low'), (30, "low", 'low"')), ["line 4", "line 30"]),
    "two lines": (lines((4, "low", '"low'), (5, "high", 'high"')), ["line 4", "line 5"]),
    "a column that is not read": (lines((3, "seen", '"seen'), (9, "seen", 'seen"')), ["line 3", "line 9"]),
    "never closed": (lines((4, "low", '"low')), ["line 4", "never closed"]),
    "in the middle of a word": (lines((4, "low", 'lo"w')), ["line 4", "never closed"]),
}


@pytest.mark.parametrize("name", SWALLOWED)
def test_a_stray_quote_swallows_no_rows(name, tmp_path):
    text, words = SWALLOWED[name]
    for read in (read_text, _streamed):
        with pytest.raises(DataError) as found:
            read(tmp_path, text)
        assert all(word in str(found.value) for word in ["a quote is opened", *words])


def _streamed(folder, text):
    (folder / "log.csv").write_text(text)
    return read_compressed(folder / "log.csv", **NAMED)


@pytest.mark.parametrize("first", [False, True])
def test_texts_over_several_lines_are_rows_like_others_and_a_warning_names_the_first(first, tmp_path):
    text = '"walks, eats\nand, says ""no""\n\nsleeps"'
    table = TABLE.with_columns(note=pl.lit("x"))
    body = [line.removesuffix(",x") for line in table.write_csv().splitlines()[1:]]
    named = [name for name in TABLE.columns if name != "note"]
    rows = [f"{text},{line}" if first else f"{line},{text}" for line in body]
    header = ",".join(["note", *named] if first else [*named, "note"])
    found = read_text(tmp_path, "\n".join([header, *rows]) + "\n")
    assert len(found.dataset) == ROWS
    assert "40 of 40 rows of" in found.warnings[0]
    assert "the first begins in line 2" in found.warnings[0]


def test_lines_that_are_too_short_are_said(tmp_path):
    found = read_text(tmp_path, lines((7, ",seen", ""), (9, ",seen", "")))
    assert len(found.dataset) == ROWS
    assert "2 lines have fewer cells than" in found.warnings[0]
    assert "first line 7" in found.warnings[0]
    whole = read_text(tmp_path, lines((7, "seen", ""), (9, "seen", "")))
    assert not any("fewer cells" in words for words in whole.warnings)


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbf" + lines().encode(),
        lines().replace("\n", "\r\n"),
        lines().rstrip("\n"),
        "\n".join(line + "," for line in LINES) + "\n",
    ],
    ids=["byte order mark", "CRLF", "no last line feed", "trailing commas"],
)
def test_usual_ways_to_write_a_table_are_read(text, tmp_path):
    found = read_text(tmp_path, text)
    assert found.dataset == read_logs(TABLE, **NAMED)
    assert not any(word in said for said in found.warnings for word in ("lines", "cells"))


UNREADABLE = {
    "semicolons": (lines().replace(",", ";"), "has semicolons between its cells, but a .csv file has commas"),
    "tabs": (lines().replace(",", "\t"), "has tabs between its cells"),
    "UTF-16": (lines().encode("utf-16"), "is UTF-16: save it as UTF-8"),
    "a NUL byte": (lines((5, "low", "lo\0w")) if "low" in LINES[4] else lines((4, "low", "lo\0w")), "NUL byte in line"),
    "carriage returns": (lines().replace("\n", "\r"), "carriage return alone"),
    "a line too long": (lines((6, "seen", "seen,1")), "row 5 has 7 cells, but there are 6 columns"),
    "commas in numbers": (lines((5, "2.0", '"2,0"')), "'2,0' in .*row 4: it must be a finite number"),
    "no cost": (lines((5, "2.0", "")), "cost 'harm' is missing in .*row 4: .*COALESCE"),
    "a word among steps": (lines((2, "0,0,", "0,first,")), "'first' in .*row 1, but mostly numbers"),
    "NaN among steps": (lines((2, "0,0,", "0,nan,")), "'nan' in .*row 1, but mostly numbers"),
    "NaN for an action": (lines((3, "vaso", "NaN")), "action 'drug' is missing in .*row 2"),
    "the header again": (lines((20, LINES[19], LINES[0])), "'hour' in .*row 19"),
    "text after 10,000 rows": (
        "patient,hour,severity,drug,harm\n"
        + "".join(f"{i},0,low,none,0\n" for i in range(11_000))
        + "0,1,low,none,x\n",
        "cost 'harm' is 'x' in .*row 11001",
    ),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_is_said_with_its_line(name, tmp_path):
    text, message = UNREADABLE[name]
    with pytest.raises(DataError, match=message):
        read_text(tmp_path, text)


def put(name, row, value, dtype=None):
    values = TABLE[name].to_list()
    values[row] = value
    return TABLE.with_columns(pl.Series(name, values, dtype=dtype, strict=False))


DATE = dt.date(2020, 1, 5)
WHEN = pl.col("hour")
REFUSED = {
    "NaN for an action": (
        TABLE.with_columns(drug=pl.Series([1.0, np.nan] * 20)),
        "action 'drug' is missing in .*row 2",
    ),
    "an infinite action": (TABLE.with_columns(drug=pl.Series([1.0, np.inf] * 20)), "'drug' is inf in .*row 2"),
    "NaN for a step": (put("hour", 5, np.nan, pl.Float64), "'hour' is missing in .*row 6"),
    "an infinite step": (put("hour", 5, np.inf, pl.Float64), "step 'hour' is inf in .*row 6: it must be finite"),
    "NaN for an episode": (put("patient", 0, np.nan, pl.Float64), "'patient' is missing in .*row 1"),
    "rounded identifiers": (TABLE.with_columns(pl.col("patient") + 2.0**60), "two of them may become one"),
    "dates as costs": (TABLE.with_columns(harm=pl.lit(DATE)), "cost 'harm' is a date, not a number"),
    "times as costs": (TABLE.with_columns(harm=pl.lit(dt.time(3))), "cost 'harm' is a time of day"),
    "durations as costs": (TABLE.with_columns(harm=pl.duration(hours=WHEN)), "cost 'harm' is a duration"),
    "bytes as costs": (TABLE.with_columns(harm=pl.lit(b"x")), "cost 'harm' holds bytes"),
    "lists as costs": (TABLE.with_columns(harm=pl.concat_list("harm")), "cost 'harm' holds lists"),
    "structs as costs": (TABLE.with_columns(harm=pl.struct("harm")), "cost 'harm' holds structs"),
    "a cost that overflows": (put("harm", 3, 1e300), "'harm' is 1e\\+300 in .*row 4, which is too large"),
    "lists as states": (TABLE.with_columns(severity=pl.concat_list("harm")), "state 'severity' .*holds lists"),
    "durations as states": (TABLE.with_columns(severity=pl.duration(hours=WHEN)), "state 'severity' .*durations"),
    "structs as actions": (TABLE.with_columns(drug=pl.struct("hour")), "action 'drug' .*holds structs"),
    "lists as ends": (TABLE.with_columns(note=pl.concat_list("harm")), "terminal 'note' .*holds lists"),
    "bytes as episodes": (TABLE.with_columns(patient=pl.lit(b"x")), "episode 'patient' .*holds bytes"),
    "states that overflow": (TABLE.with_columns(severity=pl.col("harm") * 1e300), "'severity' is 5e\\+299 in .*row 1"),
    "days before months": (
        TABLE.with_columns(hour=pl.format("{}/01/2020", WHEN + 8)),
        "'8/01/2020', and nothing in the log tells whether the day or the month comes first",
    ),
    "times that are written alike": (
        TABLE.with_columns(severity=pl.Series([1, 2] * 20).cast(pl.Time)),
        "'severity' has values that differ, but are written alike as '00:00:00'",
    ),
    "several time zones": (
        TABLE.with_columns(
            hour=pl.format("2020-01-01T0{}:00{}", WHEN, pl.when(WHEN > 1).then(pl.lit("+01:00")).otherwise(pl.lit("")))
        ),
        "times of several offsets .none, .01:00.",
    ),
    "a text for a missing value beside one": (
        TABLE.with_columns(severity=pl.Series([None, "(missing)", "low", "low"] * 10)),
        "the text '\\(missing\\)' in .*row 2, and missing in other rows",
    ),
    "a name that is needed here": (TABLE.with_columns(__row__=1), "column '__row__', a name that is needed"),
}
CHANGED = {
    "lists as ends": {"terminal": "note"},
    "a name that is needed here": {"state": "__row__"},
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_part_of_a_decision_is_refused_by_its_place(name):
    table, message = REFUSED[name]
    with pytest.raises(DataError, match=message):
        read_table(table, columns(**CHANGED.get(name, {})))


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("POW(10, 400)", "comes to inf .*row 1, but to 0 in whole numbers"),
        ("POW(hour + 10, 40)", "comes to 1e\\+40 .*row 1"),
        ("(hour + 4000000000) * 4000000000 * 4000000000", "in whole numbers, which go round"),
        ("CAST(hour + 3 AS INT) * 2147483647", "in whole numbers, which go round"),
        ("harm * 1e308 * 1e10", "is inf in .*row 1"),
        ("harm / 0", "is inf in .*row 1"),
    ],
)
def test_an_expression_that_overflows_is_no_other_number(expression, message):
    with pytest.raises(DataError, match=message):
        read_logs(TABLE, **NAMED | {"costs": {"c": expression}})


@pytest.mark.parametrize("kind", [pl.Int8, pl.UInt8, pl.Int16, pl.UInt32])
def test_narrow_whole_numbers_do_not_wrap_around(kind):
    table = TABLE.with_columns(dose=pl.lit(100, dtype=kind))
    costs = {"square": "dose * dose", "less": "dose - 2 * dose"}
    assert read_logs(table, **NAMED | {"costs": costs}).costs[0].tolist() == [10_000.0, -100.0]


@pytest.mark.parametrize(
    "expression", ["ROUND(harm, 1) + hour % 2", "CASE WHEN hour IN (1, 2) THEN 1 ELSE 0 END", "7 // 2"]
)
def test_whole_numbers_stay_what_they_are(expression):
    plain = TABLE.with_columns(pl.sql_expr(expression).alias("c"))["c"]
    found = read_logs(TABLE, **NAMED | {"costs": {"c": expression}}).cost("c")
    assert found.tolist() == plain.cast(pl.Float64).to_list()


@pytest.mark.parametrize(
    "harm",
    [
        pl.col("harm") > 0.6,
        pl.col("harm").cast(pl.Decimal(10, 2)),
        pl.col("harm").cast(pl.String).cast(pl.Categorical),
        pl.col("harm").cast(pl.String),
        pl.col("hour").cast(pl.Int128),
    ],
    ids=["booleans", "decimals", "categories", "texts", "wide integers"],
)
def test_numbers_however_they_are_kept_are_costs(harm):
    table = TABLE.with_columns(harm=harm)
    numbers = table["harm"].cast(pl.String) if table["harm"].dtype == pl.Categorical else table["harm"]
    assert read_logs(table, **NAMED).cost("harm").tolist() == numbers.cast(pl.Float64).to_list()


@pytest.mark.parametrize("role", ["episode", "step", "state", "action", "costs", "terminal"])
@pytest.mark.parametrize("name", ["first", "index", "len", "__cost__", "literal"])
def test_a_column_may_be_called_as_it_likes(role, name):
    table = TABLE.with_columns(note=TABLE["hour"] == 3)
    named = NAMED | {"terminal": "note"}
    renamed = read_logs(table.rename({named[role]: name}), **named | {role: name})
    assert renamed.costs.tolist() == read_logs(table, **named).costs.tolist()
    assert renamed.actions.tolist() == read_logs(table, **named).actions.tolist()


def test_numbers_written_as_text_order_as_numbers():
    table = TABLE.with_columns(hour=(pl.col("hour") + 8).cast(pl.String))[::-1]
    found = read_table(table, columns())
    assert found.dataset.costs[:4, 0].tolist() == [0.5, 0.0, 1.0, 2.0]
    assert not any("text" in words for words in found.warnings)


def test_dates_of_one_form_need_no_warning():
    table = TABLE.with_columns(hour=pl.format("2020-01-0{}", pl.col("hour") + 1))
    assert not any("text" in words for words in read_table(table, columns()).warnings)
    named = TABLE.with_columns(hour=pl.format("{}th day", pl.col("hour")))
    assert any("is ordered as text" in words for words in read_table(named, columns()).warnings)


def test_words_that_differ_by_spaces_or_capitals_are_said():
    table = put("drug", 1, "Vaso ").with_columns(severity=put("severity", 0, "LOW")["severity"])
    said = "\n".join(read_table(table, columns()).warnings)
    assert "action 'drug' has 'Vaso ' and 'vaso', which differ by spaces or capitals alone" in said
    assert "state 'severity' has 'LOW' and 'low'" in said


def test_declared_actions_are_not_cut_to_whole_numbers():
    table = TABLE.with_columns(drug=pl.Series([1.0, 2.7] * 20))
    with pytest.raises(DataError, match=r"action 2.7 in the table, row 2"):
        read_logs(table, **NAMED, n_actions=4)


def test_streams_refuse_what_tables_refuse():
    for name in ("NaN for an action", "NaN for a step", "lists as states", "rounded identifiers", "dates as costs"):
        table, message = REFUSED[name]
        with pytest.raises(DataError, match=message):
            read_compressed(table, **NAMED)


def test_a_log_that_grows_while_it_is_read_is_not_read(tmp_path, monkeypatch):
    opened = tables.open_source

    def written_to(source, missing):
        found = opened(source, missing)
        with source.open("a") as file:
            file.write(LINES[1] + "\n")
        return found

    monkeypatch.setattr(tables, "open_source", written_to)
    with pytest.raises(DataError, match="had 40 rows when it was opened, and 41 when it was read"):
        read_text(tmp_path, lines())


@pytest.mark.parametrize("value", [1e300, -1e31])
def test_arrays_hold_nothing_that_overflows_either(value):
    rows = {"actions": [0, 1], "terminals": [False, True], "episodes": [0, 0]}
    with pytest.raises(DataError, match="too large to compute with"):
        Dataset.from_arrays(states=[[0.0], [value]], next_states=[[0.0], [0.0]], costs={"c": [0, 1]}, **rows)
    with pytest.raises(DataError, match="cost 'c' is .* in row 1 .* too large"):
        Dataset.from_arrays(states=[0, 1], next_states=[1, 1], costs={"c": [0.0, value]}, **rows)


def test_quantities_are_no_actions():
    with pytest.raises(DataError, match="100,001 actions, and no more than 100,000"):
        read_logs(TABLE.with_columns(drug=pl.col("hour")), **NAMED, n_actions=100_001)
    rows = {"states": [0, 0], "next_states": [0, 0], "costs": {"c": [0, 1]}, "terminals": [False, True]}
    with pytest.raises(DataError, match="1,000,000,000 actions"):
        Dataset.from_arrays(actions=[0, 999_999_999], episodes=[0, 0], **rows)


def test_where_polars_panics_there_is_one_message(tmp_path, monkeypatch):
    def panic(*_, **__):
        raise pl.exceptions.PanicException("index out of bounds")

    TABLE.write_parquet(tmp_path / "log.parquet")
    monkeypatch.setattr(pl.LazyFrame, "collect", panic)
    with pytest.raises(DataError, match=r"log.parquet cannot be read: index out of bounds"):
        read_table(tmp_path / "log.parquet", columns())
