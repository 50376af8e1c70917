import numpy as np
import polars as pl
import pytest

from checkrein import read_logs
from checkrein.base.errors import ArgumentError, DataError
from checkrein.data.encoding import MISSING
from checkrein.logs import stream, stream_runs, stream_sums
from checkrein.logs.stream import read_compressed

CHOICE = {"episode": "e", "state": ["x", "word"], "action": "a", "costs": ["c", "d"], "step": "t", "terminal": "end"}
VALUES = ("states", "actions", "next_states", "terminals", "next_observed", "weights", "initial_states")
NUMBERS = ("costs", "initial_weights", "lowest", "highest", "longest")


def random_log(seed=0, n_episodes=30):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 9, n_episodes)
    n = int(lengths.sum())
    last = np.cumsum(lengths) - 1
    ends = np.zeros(n, dtype=int)
    ends[last] = rng.random(n_episodes) < 0.5
    return pl.DataFrame(
        {
            "e": np.repeat(np.arange(n_episodes) * 3, lengths),
            "t": np.concatenate([np.cumsum(rng.integers(1, 3, length)) for length in lengths]),
            "x": [
                None if gone else int(x) for x, gone in zip(rng.integers(-2, 9, n), rng.random(n) < 0.1, strict=True)
            ],
            "word": [["high", "low", None][k] for k in rng.integers(0, 3, n)],
            "a": np.array(["wait", "vaso", "fluid"])[rng.integers(0, 3, n)],
            "c": rng.normal(size=n),
            "d": rng.integers(0, 3, n),
            "f": rng.integers(0, 4, n) / 2,
            "end": ends,
        }
    )


def require_same(streamed, whole):
    assert streamed.encoding.actions == whole.encoding.actions
    assert streamed.encoding.columns == whole.encoding.columns
    assert streamed.encoding.combinations.tolist() == whole.encoding.combinations.tolist()
    assert (streamed.n_states, streamed.n_actions, streamed.cost_names) == (
        whole.n_states,
        whole.n_actions,
        whole.cost_names,
    )
    for name in VALUES:
        np.testing.assert_array_equal(getattr(streamed, name), getattr(whole, name), err_msg=name)
    for name in NUMBERS:
        np.testing.assert_allclose(getattr(streamed, name), getattr(whole, name), rtol=1e-12, atol=1e-12, err_msg=name)


def check(log, source=None, **changes):
    choice = CHOICE | changes
    whole = read_logs(log, **choice, finite=True).compressed()
    require_same(read_compressed(log if source is None else source, **choice), whole)


SIZES = [(2, 3), (1000, 1000)]
MORE = [pytest.param(sizes, marks=pytest.mark.slow) for sizes in ((1, 1), (3, 1000), (7, 14))]


@pytest.fixture(params=[*SIZES, *MORE], ids=str)
def batches(request, monkeypatch):
    monkeypatch.setattr(stream, "BATCH", request.param[0])
    monkeypatch.setattr(stream, "SLAB", request.param[1])


@pytest.mark.parametrize("seed", range(3))
def test_a_streamed_log_is_the_compressed_log(batches, seed):
    check(random_log(seed))


@pytest.mark.parametrize(
    "changes",
    [
        {"state": "x"},
        {"state": "word"},
        {"state": "f"},
        {"state": ["word", "d", "x", "f"]},
        {"state": "a"},
        {"action": "d"},
        {"action": "d", "n_actions": 5},
        {"action": "f"},
        {"terminal": None},
        {"step": None},
        {"step": "c", "episode": "t"},
        {"costs": "d"},
    ],
    ids=str,
)
def test_every_kind_of_column_streams(batches, changes):
    log = random_log().sort("t", "c") if "c" in changes.values() else random_log()
    check(log, **changes)


def test_states_that_lie_too_wide_for_a_table_stream_too(batches, monkeypatch):
    for table, dense in ((1, 1), (10_000, 1), (1, 10**6)):
        monkeypatch.setattr(stream_sums, "TABLE", table)
        monkeypatch.setattr(stream_sums, "DENSE", dense)
        check(random_log())


def test_kinds_of_values_that_are_neither_numbers_nor_text_stream(batches):
    log = random_log().with_columns(
        flag=pl.col("d") > 1,
        end=pl.col("end").replace_strict({0: "no", 1: "Yes"}),
        kind=pl.col("word").cast(pl.Categorical),
        large=pl.col("d").cast(pl.UInt64) + 2**63,
        day=pl.date(2020, 1, 1) + pl.duration(days=pl.col("d")),
    )
    check(log, state=["flag", "kind", "large", "day"])


def test_expressions_see_the_previous_row_across_batches(batches):
    costs = {
        "changed": "CASE WHEN a <> previous_a THEN 1 ELSE 0 END",
        "rise": "COALESCE(d - previous_d, 0)",
        "vaso": "CASE WHEN a IN ('vaso') THEN c ELSE 0 END",
        "word": "CASE WHEN word LIKE 'h%' AND x IS NOT NULL THEN ROUND(ABS(c) * d, 2) / 2 ELSE LEAST(d, f) END",
    }
    check(random_log(), costs=costs)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_files_stream_one_after_another_even_within_an_episode(batches, tmp_path, kind):
    log = random_log()
    for place, part in enumerate(log.iter_slices(50)):
        getattr(part, f"write_{kind}")(tmp_path / f"{place}.{kind}")
    check(log, tmp_path / f"*.{kind}")


def test_texts_of_a_csv_file_can_stand_for_a_missing_value(batches, tmp_path):
    log = random_log()
    log.with_columns(pl.col("x").cast(pl.String).fill_null("?")).write_csv(tmp_path / "log.csv")
    streamed = read_compressed(tmp_path / "log.csv", **CHOICE, missing=["?"])
    require_same(streamed, read_logs(tmp_path / "log.csv", **CHOICE, missing=["?"], finite=True).compressed())
    assert MISSING in streamed.encoding.columns[0].categories


def test_keep_streams_some_episodes_and_numbers_states_by_the_whole_log(batches):
    log = random_log()
    parts = [read_compressed(log, **CHOICE, keep=lambda ids, k=k: ids % 2 == k) for k in (0, 1)]
    whole = read_logs(log, **CHOICE, finite=True)
    odd = log["e"].to_numpy() % 2 == 1
    for part, rows in zip(parts, (~odd, odd), strict=True):
        chosen = whole.select(rows)
        first = chosen.first_rows()
        assert part.weights.sum() == rows.sum()
        assert part.longest == chosen.longest_episode()
        np.testing.assert_allclose(part.weights @ part.costs, chosen.costs.sum(axis=0))
        np.testing.assert_allclose(part.lowest, chosen.costs.min(axis=0))
        starts = np.bincount(chosen.states[first], minlength=whole.n_states)
        np.testing.assert_array_equal(part.initial_weights, starts[part.initial_states])
        assert part.encoding.states == whole.encoding.states
        assert part.n_states == whole.n_states
        again = chosen.compressed()
        for name in VALUES[:-1]:
            np.testing.assert_array_equal(getattr(part, name), getattr(again, name), err_msg=name)


def test_keep_must_answer_and_choose_something():
    with pytest.raises(DataError, match="keep chose none of the 30 episodes of the table"):
        read_compressed(random_log(), **CHOICE, keep=lambda ids: ids < 0)
    with pytest.raises(ArgumentError, match="one boolean for each of 30 episode ids"):
        read_compressed(random_log(), **CHOICE, keep=lambda ids: ids)


def damaged(name, value):
    """Return a log with another value in row 41 of a column."""
    log = random_log()
    return log.with_columns(pl.Series(name, [value if row == 40 else old for row, old in enumerate(log[name])]))


BAD = [("a", None), ("c", float("nan")), ("c", None), ("d", None), ("end", 2), ("end", None), ("e", None), ("t", None)]


@pytest.mark.parametrize("cell", BAD, ids=str)
def test_a_bad_cell_is_named_as_read_logs_names_it(batches, tmp_path, cell):
    log = damaged(*cell)
    log[:30].write_parquet(tmp_path / "1.parquet")
    log[30:].write_parquet(tmp_path / "2.parquet")
    for source in (log, tmp_path / "*.parquet"):
        with pytest.raises(DataError) as expected:
            read_logs(source, **CHOICE, finite=True)
        with pytest.raises(DataError) as found:
            read_compressed(source, **CHOICE)
        assert str(found.value) == str(expected.value)
        assert "row 11" in str(found.value) or "row 41" in str(found.value)


def test_an_action_beyond_n_actions_and_text_among_numbers_are_named_alike(batches):
    log = random_log().with_columns(
        x=pl.Series(["?" if row == 40 else str(row % 3) for row in range(len(random_log()))])
    )
    for changes in ({"action": "d", "n_actions": 2}, {"state": "x"}):
        with pytest.raises(DataError) as expected:
            read_logs(log, **CHOICE | {"state": "d"} | changes, finite=True)
        with pytest.raises(DataError) as found:
            read_compressed(log, **CHOICE | {"state": "d"} | changes)
        assert str(found.value) == str(expected.value)


def test_text_that_is_mostly_text_may_hold_numbers(batches):
    log = random_log().with_columns(
        x=pl.Series([str(row % 9) if row % 5 == 0 else "NA" for row in range(len(random_log()))])
    )
    check(log, state="x")


def steps(episodes, numbers):
    n = len(episodes)
    return pl.DataFrame({"e": episodes, "t": numbers, "x": [0] * n, "a": [0] * n, "c": [0.0] * n})


PLAIN = {"episode": "e", "state": "x", "action": "a", "costs": "c", "step": "t"}


def test_steps_out_of_order_are_an_error_that_says_what_to_do(batches):
    third, fourth = "step 2 of episode 1 is in the table, row 3", "in the table, row 4"
    with pytest.raises(DataError, match=f"{third}, before step 1 {fourth}: sort the log, or read it with read_logs"):
        read_compressed(steps([0, 1, 1, 1], [0, 0, 2, 1]), **PLAIN)
    with pytest.raises(DataError, match=f"{third} and again {fourth}"):
        read_compressed(steps([0, 1, 1, 1], [0, 0, 2, 2]), **PLAIN)


@pytest.mark.parametrize("ids", [[1, 2, 2, 3, 1, 4], ["a", "b", "b", "c", "a", "d"]])
@pytest.mark.parametrize("episodes", [1, 2, 1000])
def test_an_episode_that_comes_back_is_an_error_that_says_where(batches, monkeypatch, ids, episodes):
    monkeypatch.setattr(stream_runs, "EPISODES", episodes)
    with pytest.raises(
        DataError, match=f"episode {ids[0]} comes back in the table, row 5, .* or read it with read_logs"
    ):
        read_compressed(steps(ids, range(6)), **PLAIN)


@pytest.mark.parametrize("ids", [[3, 3, 2, 1], [2, 2, 3, 1], ["e9", "e9", "e10", "e11"]])
def test_ids_in_any_order_will_do_as_long_as_none_comes_back(batches, ids):
    check(steps(ids, range(4)), **PLAIN, terminal=None)


def test_costs_that_need_the_whole_log_are_refused():
    with pytest.raises(DataError, match="cost 'k' is a function: .* read_logs"):
        read_compressed(random_log(), **CHOICE | {"costs": {"k": lambda *_: 0}})
    for cost in (
        "c - AVG(c)",
        "ROUND(c * SUM(d), 2)",
        "CASE WHEN d IN (1) THEN MAX(c) ELSE 0 END",
        "SUM(c) OVER (PARTITION BY a)",
        "ROW_NUMBER() OVER ()",
    ):
        with pytest.raises(DataError, match="cost 'k': .* is not computed row by row: read the log with read_logs"):
            read_compressed(random_log(), **CHOICE | {"costs": {"k": cost}})
    with pytest.raises(DataError, match="costs is empty"):
        read_compressed(random_log(), **CHOICE | {"costs": []})
    with pytest.raises(DataError, match="state is empty"):
        read_compressed(random_log(), **CHOICE | {"state": []})
    with pytest.raises(DataError, match="no column 'nope'"):
        read_compressed(random_log(), **CHOICE | {"action": "nope"})


def test_whole_clusters_are_kept():
    log = random_log().with_columns((pl.col("e") // 9).alias("patient"))
    streamed = read_compressed(log, **CHOICE, cluster="patient", keep=lambda patients: patients < 4)
    whole = read_compressed(log, **CHOICE, keep=lambda ids: ids < 36)
    require_same(streamed, whole)


@pytest.mark.parametrize("batch", [2, 1000])
def test_an_episode_of_two_clusters_or_none_is_refused_wherever_a_batch_ends(monkeypatch, batch):
    monkeypatch.setattr(stream, "BATCH", batch)
    monkeypatch.setattr(stream, "SLAB", batch)
    log = random_log()
    row = next(i for i in range(1, log.height) if log["e"][i] == log["e"][i - 1])
    for wrong, words in (
        (99, f"row {row + 1}, but 5 in the row before"),
        (None, f"'patient' is missing in .*{row + 1}"),
    ):
        patients = [5] * log.height
        patients[row] = wrong
        with pytest.raises(DataError, match=words):
            read_compressed(log.with_columns(pl.Series("patient", patients)), **CHOICE, cluster="patient")
