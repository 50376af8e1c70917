"""Steps are put in the order of what they mean, however dates are written."""

from datetime import datetime

import polars as pl
import pytest

from checkrein import read_logs
from checkrein.base.errors import DataError
from checkrein.logs.dates import in_order
from checkrein.logs.table import Columns, read_table

WRITTEN = {
    "year first": ["2024-01-31", "2024-02-01", "2023-12-05"],
    "slashes": ["2024/1/31", "2024/2/1", "2023/12/5"],
    "day first": ["31/01/2024", "01/02/2024", "05/12/2023"],
    "month first": ["1/31/2024", "2/1/2024", "12/5/2023"],
    "dots": ["31.1.2024", "1.2.2024", "5.12.2023"],
    "two digits": ["31.1.24", "1.2.24", "5.12.23"],
    "words": ["31-Jan-2024", "1-Feb-2024", "5-Dec-2023"],
    "long words": ["January 31, 2024", "February 1, 2024", "December 5, 2023"],
}


@pytest.mark.parametrize("way", WRITTEN)
def test_dates_in_every_usual_form_are_dates(way):
    found = in_order(pl.Series("day", WRITTEN[way]), "step 'day'")
    assert found.to_list() == [datetime(2024, 1, 31), datetime(2024, 2, 1), datetime(2023, 12, 5)]


ROUGHLY = {
    "months": ["2024-01", "2024-02", "2023-12"],
    "months last": ["01/2024", "02/2024", "12/2023"],
    "months as words": ["Jan 2024", "Feb 2024", "December 2023"],
    "short months": ["Jan-24", "Feb-24", "Dec-23"],
    "quarters": ["2024-Q1", "2024-Q2", "2023-Q4"],
    "quarters first": ["Q1 2024", "Q2 2024", "Q4 2023"],
    "weeks": ["2024-W9", "2024-W10", "2023-W49"],
    "weekdays": ["Wed, 31 Jan 2024", "Thursday 1 Feb 2024", "Tue, 05 Dec 2023"],
    "mail": ["Wed, 31 Jan 2024 09:05:00 +0000", "Thu, 01 Feb 2024 09:05:00 +0100", "Tue, 05 Dec 2023 09:05:00 +0000"],
    "UTC": ["2024-01-31 09:05:00 UTC", "2024-02-01 09:05:00 UTC", "2023-12-05 09:05:00 UTC"],
    "without marks": ["20240131T0905", "20240201T0905", "20231205T0905"],
    "with seconds": ["20240131T090512", "20240131T090513", "20231205T090512"],
    "SAS": ["31JAN2024:09:05:00", "01FEB2024:09:05:00", "05DEC2023:09:05:00"],
    "two digits after a word": ["31-Jan-24", "01-Feb-24", "05-Dec-23"],
    "times of a day": ["10:05", "11:00", "9:30"],
    "with noon": ["10:05 AM", "1:00 PM", "9:30 AM"],
    "visits": ["visit 9", "Visit 10", "visit 2"],
    "V": ["V9", "V10", "V02"],
    "since the start": ["30:05", "101:00", "4:59"],
    "half days": ["9:30am", "1:15pm", "12:05am"],
}


@pytest.mark.parametrize("way", ROUGHLY)
def test_other_usual_forms_are_put_in_their_order(way):
    middle, last, first = in_order(pl.Series("t", ROUGHLY[way]), "step 't'").to_list()
    assert first < middle < last
    assert not isinstance(first, str)


def test_times_without_a_date_are_a_warning():
    table = {"who": ["a", "a"], "t": ["23:50", "0:10"], "x": ["u", "v"], "do": ["u", "v"], "cost": [1.0, 2.0]}
    found = read_table(pl.DataFrame(table), Columns("who", "x", "do", "cost", step="t"))
    assert any("after midnight" in words for words in found.warnings)


@pytest.mark.parametrize(
    "texts",
    [
        ["2024-01-31T09:05", "2024-01-31T10:00:30"],
        ["2024-01-31 09:05:00", "2024-01-31 10:00:30.25"],
        ["01/31/2024 9:05 AM", "01/31/2024 1:00 PM"],
        ["2024-01-31T10:05:00+01:00", "2024-01-31T09:30:00Z"],
        ["9", "10"],
        ["9.5", "10.25"],
        ["2024-01-31", "2024-01-31 12:00"],
    ],
)
def test_times_zones_and_numbers_are_put_in_their_order(texts):
    found = in_order(pl.Series("t", texts), "step 't'")
    assert found.dtype != pl.String
    assert found[0] < found[1]


def test_where_the_day_or_the_month_may_come_first_nothing_is_guessed():
    with pytest.raises(DataError, match=r"step 'day' is '01/02/2024'.*write dates as YYYY-MM-DD"):
        in_order(pl.Series("day", ["03/03/2024", "01/02/2024"]), "step 'day'")
    assert in_order(pl.Series("day", ["03/03/2024", "04/04/2024"]), "step 'day'")[0] == datetime(2024, 3, 3)


@pytest.mark.parametrize(
    "texts",
    [
        ["first", "second"],
        ["visit 1", "call 2"],
        ["a1b", "a2"],
        ["2024-01-31 10:00+01:00", "2024-01-31 10:00"],
        ["1", "x"],
    ],
)
def test_what_is_neither_a_number_nor_a_date_stays_text(texts):
    assert in_order(pl.Series("t", texts), "step 't'").to_list() == texts


def test_a_log_by_days_is_read_in_their_order():
    table = pl.DataFrame(
        {
            "who": ["a", "a", "a"],
            "day": ["1.2.2024", "31.1.2024", "5.12.2023"],
            "x": ["third", "second", "first"],
            "do": ["u", "v", "u"],
            "cost": [1.0, 2.0, 3.0],
        }
    )
    log = read_logs(table, episode="who", step="day", state="x", action="do", costs=["cost"])
    assert [log.state_labels[state] for state in log.states] == ["first", "second", "third"]
