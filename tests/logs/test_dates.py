"""Steps are put in the order of what they mean, however dates are written."""

from datetime import datetime

import polars as pl
import pytest

from checkrein import read_logs
from checkrein.base.errors import DataError
from checkrein.logs.dates import in_order

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


@pytest.mark.parametrize("texts", [["first", "second"], ["2024-01-31 10:00+01:00", "2024-01-31 10:00"], ["1", "x"]])
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
