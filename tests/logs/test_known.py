"""Which costs of a table are functions of state and action, and so known for every action."""

import numpy as np
import polars as pl
import pytest

from checkrein.logs.table import Columns, read_table

TABLE = pl.DataFrame(
    {
        "who": [0, 0, 1, 1, 2, 2],
        "age": [30, 30, 61, 61, 45, 45],
        "pressure": [80.5, None, 120.0, 110.0, 95.0, 99.5],
        "ward": ["icu", "icu", "er", "er", None, "er"],
        "dose": [0, 2, 1, 0, 2, 1],
        "died": [0, 1, 0, 0, 0, 0],
    }
)
COSTS = {
    "drug": "dose",
    "heavy": "CASE WHEN dose = 2 AND age > 40 THEN 3.5 ELSE 0 END",
    "place": "CASE WHEN COALESCE(ward, 'none') = 'er' THEN dose ELSE 1 END",
    "death": "died",
    "mixed": "died + dose",
    "change": "ABS(dose - COALESCE(previous_dose, dose))",
    "constant": "1",
}


def reading(finite):
    state = ["age", "ward"] if finite else ["age", "pressure", "ward"]
    return read_table(TABLE, Columns("who", state, "dose", COSTS, finite=finite))


@pytest.mark.parametrize("finite", [True, False])
def test_expressions_of_state_and_action_columns_alone_are_known(finite):
    assert set(reading(finite).known) == {"drug", "heavy", "place", "constant"}


@pytest.mark.parametrize("finite", [True, False])
def test_what_is_known_holds_for_actions_that_were_not_taken(finite):
    read = reading(finite)
    found = read.known["heavy"].of_actions(read.dataset.states)
    old = np.array([30, 30, 61, 61, 45, 45]) > 40
    assert found.tolist() == np.column_stack([np.zeros(6), np.zeros(6), np.where(old, 3.5, 0.0)]).tolist()
    place = read.known["place"].of_actions(read.dataset.states)
    assert place[2].tolist() == [0.0, 1.0, 2.0]
    assert place[4].tolist() == [1.0, 1.0, 1.0]  # the ward is missing


def test_features_are_turned_back_into_their_columns():
    read = reading(finite=False)
    back = read.dataset.encoding.decode(read.dataset.states)
    assert back["ward"].to_list() == TABLE["ward"].to_list()
    assert back["pressure"].to_list() == TABLE["pressure"].to_list()
    assert back["age"].to_list() == TABLE["age"].to_list()


def test_an_action_that_was_never_logged_is_known_where_its_code_is_its_value():
    columns = Columns("who", ["age", "ward"], "dose", COSTS, n_actions=4, finite=True)
    read = read_table(TABLE, columns)
    assert set(read.known) == {"drug", "heavy", "place", "constant"}
    assert read.known["drug"].of_actions(read.dataset.states)[:, 3].tolist() == [3.0] * 6
    assert read_table(TABLE.with_columns(pl.col("dose").cast(pl.Float64)), columns).known == {}
