import contextlib
import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkrein import Dataset
from checkrein.base.errors import DataError
from checkrein.data.columns import LARGEST
from checkrein.data.encoding import Encoding, StateColumn
from checkrein.data.parquet import DIGEST, HEADER
from problems import random_log

RNG = np.random.default_rng(0)
N = 7


def log_of(states, **changes):
    n = len(states)
    fields = {
        "states": states,
        "actions": np.arange(n) % 3,
        "next_states": states[::-1],
        "costs": {"reward": np.linspace(-1, 1, n), "a:b, ü": np.full(n, -0.0)},
        "terminals": np.arange(n) == n - 1,
        "episodes": np.arange(n) // 3,
    }
    return Dataset.from_arrays(**(fields | changes))


WORDS = Encoding(
    ("none", "vaso", "both"),
    (StateColumn("severity", ("high", "low")), StateColumn("lactate", ("1", "2", "(missing)"))),
    np.array([[0, 0], [0, 2], [1, 1]]),
)
NUMBERS = Encoding(("0", "1", "2"), (StateColumn("a", fill=0.1), StateColumn("b"), StateColumn("c", ("x", "y"))))
EVERYTHING = {
    "steps": np.array([5, 6, 9, 0, 1, 2, 0]),
    "propensities": RNG.uniform(0.1, 1, N),
    "weights": RNG.uniform(0, 2, N),
    "next_observed": np.arange(N) % 3 != 2,
    "initial_states": np.array([2, 0]),
    "initial_weights": np.array([0.25, 1 / 3]),
    "n_actions": 5,
    "n_states": 11,
}
DATASETS = {
    "finite states": log_of(np.array([0, 1, 2, 0, 2, 1, 1])),
    "every field": log_of(np.array([0, 1, 2, 0, 2, 1, 1]), **EVERYTHING),
    "no episodes": log_of(np.arange(N), episodes=None, initial_states=np.array([3])),
    "encoded finite states": log_of(np.array([0, 1, 2, 0, 2, 1, 1]), encoding=WORDS),
    "float64 features": log_of(RNG.normal(size=(N, 4)), encoding=NUMBERS),
    "float32 features": log_of(RNG.normal(size=(N, 1)).astype(np.float32)),
    "float32 then float64": log_of(RNG.normal(size=(N, 2)).astype(np.float32), next_states=RNG.normal(size=(N, 2))),
    "images": log_of(RNG.integers(0, 256, (N, 4, 3, 2), dtype=np.uint8)),
    "negative zeros": log_of(np.array([[0.0], [-0.0]] * 4)),
    "no features": log_of(np.zeros((N, 0))),
    "compressed": random_log(1).compressed(),
    "selected rows": random_log(2).select(np.arange(len(random_log(2))) % 2 == 1),
}


def written(dataset, folder):
    path = folder / "log.parquet"
    dataset.write_parquet(path)
    return path


@pytest.mark.parametrize("dataset", DATASETS.values(), ids=DATASETS.keys())
def test_a_dataset_comes_back_equal(dataset, tmp_path):
    again = Dataset.read_parquet(written(dataset, tmp_path))
    assert again == dataset
    assert again.next_states.dtype == dataset.next_states.dtype
    if dataset.encoding is None:
        assert again.encoding is None
    else:
        assert (again.encoding.actions, again.encoding.columns) == (dataset.encoding.actions, dataset.encoding.columns)
        assert np.array_equal(again.encoding.combinations, dataset.encoding.combinations)
        assert again.action_labels == dataset.action_labels


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-LARGEST, LARGEST), min_size=1, max_size=20),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=10),
)
def test_every_number_and_every_name_of_a_cost_survives(tmp_path_factory, numbers, name):
    dataset = log_of(np.array(numbers)[:, None], costs={name: numbers, "x": numbers})
    assert Dataset.read_parquet(written(dataset, tmp_path_factory.mktemp("any"))) == dataset


def test_several_row_groups_come_back_in_order(tmp_path):
    dataset = log_of(np.arange(600_000) % 1000)
    assert Dataset.read_parquet(written(dataset, tmp_path)) == dataset


def test_rows_that_count_once_take_no_memory_when_read(tmp_path):
    assert Dataset.read_parquet(written(DATASETS["finite states"], tmp_path)).weights.strides == (0,)


def test_other_tools_find_plain_columns(tmp_path):
    table = pl.read_parquet(written(DATASETS["every field"], tmp_path))
    assert dict(table.schema) == {
        "state": pl.Int64, "action": pl.Int64, "next_state": pl.Int64, "cost:reward": pl.Float64,
        "cost:a:b, ü": pl.Float64, "terminal": pl.Boolean, "next_observed": pl.Boolean, "weight": pl.Float64,
        "episode": pl.Int64, "step": pl.Int64, "propensity": pl.Float64,
    }  # fmt: skip
    images = pl.read_parquet(written(DATASETS["images"], tmp_path))
    assert images["state"].dtype == pl.Array(pl.UInt8, 24)


def test_what_is_not_per_row_is_json_in_the_metadata(tmp_path):
    path = written(DATASETS["every field"], tmp_path)
    header = json.loads(pl.read_parquet_metadata(path)[HEADER])
    assert (header["n_actions"], header["n_states"], header["observation"]) == (5, 11, [])
    assert header["initial_weights"]["shape"] == [2]


def test_writing_over_a_file_replaces_it_and_leaves_nothing_beside_it(tmp_path):
    written(DATASETS["images"], tmp_path)
    path = written(DATASETS["finite states"], tmp_path)
    assert Dataset.read_parquet(path) == DATASETS["finite states"]
    assert list(tmp_path.iterdir()) == [path]


def test_a_path_with_the_letters_of_a_glob_or_of_a_partition_is_a_path(tmp_path):
    folder = tmp_path / "site=3" / "a[1]*"
    folder.mkdir(parents=True)
    assert Dataset.read_parquet(str(written(DATASETS["finite states"], folder))) == DATASETS["finite states"]


def test_rows_that_weigh_nothing_are_not_written(tmp_path):
    nothing = DATASETS["finite states"].select(np.zeros(N, dtype=bool))
    with pytest.raises(DataError, match="0 rows that weigh 0.0"):
        nothing.write_parquet(tmp_path / "log.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match="none.parquet does not exist"):
        Dataset.read_parquet(tmp_path / "none.parquet")


@pytest.mark.parametrize("content", [b"", b"episode,state\n1,2\n", b"PAR1PAR1", b"PAR1" + bytes(40) + b"PAR1"])
def test_what_is_no_parquet_file_is_named(content, tmp_path):
    path = tmp_path / "log.parquet"
    path.write_bytes(content)
    with pytest.raises(DataError, match="log.parquet is not a whole Parquet file"):
        Dataset.read_parquet(path)


def test_a_folder_is_no_parquet_file(tmp_path):
    with pytest.raises(DataError, match="is not a whole Parquet file"):
        Dataset.read_parquet(tmp_path)


def test_a_log_of_something_else_is_for_read_logs(tmp_path):
    pl.DataFrame({"state": [0, 1]}).write_parquet(tmp_path / "log.parquet")
    with pytest.raises(DataError, match=r"log.parquet is a Parquet file, but.*read_logs"):
        Dataset.read_parquet(tmp_path / "log.parquet")


def test_a_file_cut_at_any_length_is_named(tmp_path):
    path = written(DATASETS["every field"], tmp_path)
    content = path.read_bytes()
    for length in range(0, len(content), 97):
        path.write_bytes(content[:length])
        with pytest.raises(DataError, match="log.parquet"):
            Dataset.read_parquet(path)


def test_a_changed_byte_never_gives_another_dataset(tmp_path):
    dataset = DATASETS["float64 features"]
    path = written(dataset, tmp_path)
    content, rng = path.read_bytes(), np.random.default_rng(0)
    refused = 0
    for place in rng.integers(4, len(content) - 2000, 60):  # numbers and their pages
        changed = bytearray(content)
        changed[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        with contextlib.suppress(DataError):
            assert Dataset.read_parquet(path) == dataset
            continue
        refused += 1
    assert refused > 0


@pytest.mark.parametrize(
    "edit", [pl.col("action") + 1, pl.col("state").cast(pl.Int32), pl.lit(1.0).alias("weight")], ids=str
)
def test_an_edited_table_under_old_metadata_is_refused(edit, tmp_path):
    path = written(DATASETS["finite states"], tmp_path)
    metadata = {key: value for key, value in pl.read_parquet_metadata(path).items() if key in (HEADER, DIGEST)}
    pl.read_parquet(path).with_columns(edit).write_parquet(path, metadata=metadata)
    with pytest.raises(DataError, match=r"log.parquet is not as it was written.*7 rows"):
        Dataset.read_parquet(path)
