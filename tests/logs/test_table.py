import numpy as np
import polars as pl
import pytest

from checkrein import read_logs
from checkrein.base.errors import DataError
from checkrein.data.encoding import MISSING
from checkrein.logs.table import Columns, read_table

ROWS = {
    "patient": ["b", "b", "b", "a", "a"],
    "hour": [2, 0, 1, 0, 1],
    "severity": ["high", "low", "high", "low", None],
    "drug": ["vaso", "none", "none", "none", "vaso"],
    "harm": [3.0, 0.0, 1.0, 0.5, 2.0],
    "ended": [1, 0, 0, 0, 0],
}
MAPPING = {"episode": "patient", "state": "severity", "action": "drug", "costs": ["harm"], "step": "hour"}


def read(table=None, **changes):
    return read_logs(pl.DataFrame(table or ROWS), **MAPPING | {"terminal": "ended"} | changes)


def decoded(dataset):
    """Every row in the log's own words."""
    states, actions = dataset.state_labels, dataset.action_labels
    return [
        (states[x], actions[a], states[y] if known and not end else None, bool(end), cost)
        for x, a, y, known, end, cost in zip(
            dataset.states, dataset.actions, dataset.next_states, dataset.next_observed, dataset.terminals,
            dataset.costs[:, 0], strict=True,
        )
    ]  # fmt: skip


def test_the_next_state_is_that_of_the_next_row_of_the_episode():
    assert decoded(read()) == [
        ("low", "none", "high", False, 0.0),
        ("high", "none", "high", False, 1.0),
        ("high", "vaso", None, True, 3.0),
        ("low", "none", MISSING, False, 0.5),
        (MISSING, "vaso", None, False, 2.0),
    ]
    assert read().truncated.tolist() == [False, False, False, False, True]
    assert read().initial_states.tolist() == read().states[[0, 3]].tolist()


def test_without_a_step_rows_stand_in_their_order_even_when_episodes_interleave():
    rows = {"e": [1, 2, 1, 2], "x": [0, 10, 1, 11], "a": [0, 0, 1, 1], "c": [0, 0, 0, 0]}
    dataset = read_logs(pl.DataFrame(rows), episode="e", state="x", action="a", costs="c")
    labels = dataset.state_labels
    assert [labels[x] for x in dataset.states] == ["0", "1", "10", "11"]
    assert [labels[x] for x in dataset.next_states[dataset.next_observed]] == ["1", "11"]


def test_numbers_sort_as_numbers_and_several_columns_make_one_state():
    rows = {"e": [1, 1, 1], "x": [10, 2, 2], "y": ["u", "v", "u"], "a": [7, 0, 7], "c": [0, 0, 0]}
    dataset = read_logs(pl.DataFrame(rows), episode="e", state=["x", "y"], action="a", costs="c")
    assert dataset.state_labels == ("x=2, y=u", "x=2, y=v", "x=10, y=u")
    assert dataset.action_labels == ("0", "7")


def test_fractions_make_features_with_categories_spelled_out_and_gaps_filled_and_marked():
    rows = {
        "e": [1, 1, 1, 1],
        "x": [0.5, None, 1.5, float("nan")],
        "y": ["u", "v", "u", "v"],
        "a": [0, 1, 0, 1],
        "c": [0] * 4,
    }
    dataset = read_logs(pl.DataFrame(rows), episode="e", state=["x", "y"], action="a", costs="c")
    assert dataset.encoding.features == ("x", "x missing", "y=u", "y=v")
    assert dataset.states.tolist() == [[0.5, 0, 1, 0], [1.0, 1, 0, 1], [1.5, 0, 1, 0], [1.0, 1, 0, 1]]


def test_finite_and_features_can_be_asked_for():
    rows = {"e": [1, 1], "x": [0.5, 1.5], "a": [0, 1], "c": [0, 0]}
    choice = {"episode": "e", "state": "x", "action": "a", "costs": "c"}
    assert read_logs(pl.DataFrame(rows), **choice, finite=True).state_labels == ("0.5", "1.5")
    whole = read_logs(pl.DataFrame(rows | {"x": [3, 4]}), **choice, finite=False)
    assert whole.states.tolist() == [[3.0], [4.0]]


def test_costs_are_columns_expressions_or_functions():
    dataset = read(
        costs={
            "harm": "harm",
            "drug": "CASE WHEN drug IN ('vaso', 'both') THEN 1 ELSE 0 END",
            "change": "CASE WHEN drug <> previous_drug THEN 1 ELSE 0 END",
            "double": lambda _states, actions, _next_states, costs: 2 * costs["harm"] + actions,
        }
    )
    assert dataset.cost("drug").tolist() == [0, 0, 1, 0, 1]
    assert dataset.cost("change").tolist() == [0, 0, 1, 0, 1]  # the first row of an episode has no previous one
    assert dataset.cost("double").tolist() == [0, 2, 7, 1, 5]


def test_files_globs_and_lists_give_what_the_table_gives(tmp_path):
    table = pl.DataFrame(ROWS)
    expected = read()
    table.write_csv(tmp_path / "log.csv")
    table.write_parquet(tmp_path / "log.parquet")
    table[:3].write_csv(tmp_path / "part-1.csv")
    table[3:].write_csv(tmp_path / "part-2.csv")
    choice = MAPPING | {"terminal": "ended"}
    for source in (
        tmp_path / "log.csv",
        str(tmp_path / "log.parquet"),
        str(tmp_path / "part-*.csv"),
        [tmp_path / "part-1.csv", tmp_path / "part-2.csv"],
        table,
        table.lazy(),
        ROWS,
    ):
        assert read_logs(source, **choice) == expected


def test_pandas_and_arrow_tables_give_the_same():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(ROWS)
    assert read_logs(table, **MAPPING | {"terminal": "ended"}) == read()


class Arrow:
    """Any table that offers the Arrow stream interface."""

    def __arrow_c_stream__(self, requested_schema=None):
        return pl.DataFrame(ROWS).__arrow_c_stream__(requested_schema)


def test_arrow_streams_are_read():
    assert read_logs(Arrow(), **MAPPING | {"terminal": "ended"}) == read()


def test_texts_that_stand_for_missing_values_can_be_named(tmp_path):
    (tmp_path / "log.csv").write_text("e,x,a,c\n1,0.5,0,1\n1,n/a,1,2\n")
    choice = {"episode": "e", "state": "x", "action": "a", "costs": "c"}
    dataset = read_logs(tmp_path / "log.csv", **choice, missing=["n/a"])
    assert dataset.states.tolist() == [[0.5, 0.0], [0.5, 1.0]]


def test_declared_actions_are_the_integers_themselves():
    rows = {"e": [1, 1], "x": [0, 1], "a": [0, 3], "c": [0, 0]}
    choice = {"episode": "e", "state": "x", "action": "a", "costs": "c"}
    dataset = read_logs(pl.DataFrame(rows), **choice, n_actions=5)
    assert dataset.actions.tolist() == [0, 3]
    assert dataset.n_actions == 5
    with pytest.raises(DataError, match="action 3 in the table, row 2, but n_actions is 2"):
        read_logs(pl.DataFrame(rows), **choice, n_actions=2)


def test_propensities_are_read_and_checked():
    rows = ROWS | {"p": [0.5, 1.0, 0.25, 0.5, 0.5]}
    assert read(rows, propensity="p").propensities.tolist() == [1.0, 0.25, 0.5, 0.5, 0.5]
    with pytest.raises(DataError, match="propensity 'p' is 0.0 in the table, row 3"):
        read(ROWS | {"p": [0.5, 1.0, 0.0, 0.5, 0.5]}, propensity="p")


def test_what_is_odd_but_legal_is_a_warning():
    rows = {
        "e": [1, 1, 1, 2, 3],
        "t": [0, 1, 5, 0, 0],
        "x": [1, 1, 1, 1, 1],
        "a": ["u", "u", "u", "u", "v"],
        "c": [0, 0, 0, 0, 0],
        "end": [0, 1, 0, 1, 1],
    }
    choice = {"episode": "e", "state": "x", "action": "a", "costs": "c", "step": "t", "terminal": "end"}
    said = "\n".join(read_table(pl.DataFrame(rows), Columns(**choice)).warnings)
    for words in (
        "followed by more rows",
        "2 episodes have a single row",
        "seen only once: v",
        "is constant",
        "1 steps are not",
    ):
        assert words in said
    assert len(read_table(pl.DataFrame(rows), Columns(**choice)).dataset) == 5  # and no row is lost


def test_rows_of_the_log_are_named_through_sorting_and_files(tmp_path):
    (tmp_path / "a.csv").write_text("e,t,x,a,c\n1,1,0,0,1\n1,0,0,0,1\n")
    (tmp_path / "b.csv").write_text("e,t,x,a,c\n0,1,0,0,1\n0,0,0,0,inf\n")
    with pytest.raises(DataError, match=r"cost 'c' is inf in .*b.csv, row 2: it must be a finite number"):
        read_logs(str(tmp_path / "*.csv"), episode="e", state="x", action="a", costs="c", step="t")


def test_other_things_are_no_log():
    with pytest.raises(DataError, match="not int"):
        read_logs(3, **MAPPING)


def test_an_encoding_says_which_raw_value_it_does_not_know():
    dataset = read()
    table = pl.DataFrame({"severity": ["low", "odd"]})
    with pytest.raises(DataError, match="column 'severity' is 'odd' in row 1, which never occurred"):
        dataset.encoding.encode(table)
    assert np.array_equal(dataset.encoding.encode(pl.DataFrame({"severity": ["low", "high"]})), dataset.states[:2])
    with pytest.raises(DataError, match="the table has no column 'severity'"):
        dataset.encoding.encode(pl.DataFrame({"x": [1]}))


STAYS = ROWS | {"patient": [7, 7, 7, 8, 8], "hospital": ["north", "north", "north", "south", "south"]}


def test_a_cluster_column_says_whose_each_row_is():
    found = read(STAYS, cluster="hospital")
    assert [("north", "south")[c] for c in found.clusters] == ["north"] * 3 + ["south"] * 2
    assert read(STAYS, cluster="patient").clusters.tolist() == [0, 0, 0, 1, 1]
    assert read(STAYS).clusters is None


def test_a_cluster_must_be_known_in_every_row_and_one_for_an_episode():
    with pytest.raises(DataError, match="cluster 'hospital' is missing in the table, row 2: every row must say"):
        read(STAYS | {"hospital": ["north", None, "north", "south", "south"]}, cluster="hospital")
    with pytest.raises(DataError, match="'hospital' is missing in the table, row 4"):
        read(STAYS | {"hospital": [1.0, 1.0, 1.0, np.nan, 2.0]}, cluster="hospital")
    words = (
        "episode 7 has 'hospital' south in the table, row 2, but north in the table, row 3: .*fix the log or split it"
    )
    with pytest.raises(DataError, match=words):
        read(STAYS | {"hospital": ["north", "south", "north", "south", "south"]}, cluster="hospital")
    with pytest.raises(DataError, match="no column 'ward'"):
        read(STAYS, cluster="ward")
