import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkrein import Dataset
from checkrein.base.errors import CheckreinError, DataError
from problems import random_log, rows_of

GOOD = {
    "states": [0, 1, 0, 2],
    "actions": [0, 1, 1, 0],
    "next_states": [1, 2, 2, 0],
    "costs": {"c": [0.0, 1.0, 2.0, 3.0], "g": [1.0, 0.0, 0.0, 1.0]},
    "terminals": [False, True, False, False],
    "episodes": [7, 7, 18, 18],
}


def test_a_dataset_knows_its_sizes_names_and_initial_states():
    dataset = Dataset.from_arrays(**GOOD)
    assert (len(dataset), dataset.n_states, dataset.n_actions) == (4, 3, 2)
    assert dataset.cost_names == ("c", "g")
    assert dataset.initial_states.tolist() == [0, 0]
    assert dataset.cost("g").tolist() == [1, 0, 0, 1]
    assert repr(dataset) == "Dataset(4 rows, 3 states, 2 actions, costs c, g)"


def test_truncated_rows_end_an_episode_without_a_terminal_state():
    assert Dataset.from_arrays(**GOOD).truncated.tolist() == [False, False, False, True]


def test_steps_decide_which_row_is_first_even_when_rows_are_shuffled():
    dataset = Dataset.from_arrays(**GOOD | {"steps": [1, 0, 5, 2], "terminals": [True, False, False, False]})
    assert dataset.initial_states.tolist() == [1, 2]
    assert dataset.truncated.tolist() == [False, False, True, False]


def test_interleaved_episodes_keep_their_own_first_rows():
    assert Dataset.from_arrays(**GOOD | {"episodes": [1, 0, 1, 0]}).initial_states.tolist() == [1, 0]


def test_it_is_frozen_inside_and_out():
    dataset = Dataset.from_arrays(**GOOD)
    with pytest.raises(dataclasses.FrozenInstanceError):
        dataset.n_actions = 5
    with pytest.raises(ValueError, match="read-only"):
        dataset.costs[0, 0] = 9.0


def test_equal_contents_are_equal_and_hash_alike_and_any_change_shows():
    first, second = Dataset.from_arrays(**GOOD), Dataset.from_arrays(**GOOD)
    assert first == second
    assert hash(first) == hash(second)
    assert first != Dataset.from_arrays(**GOOD | {"terminals": [False, True, False, True]})
    assert first != Dataset.from_arrays(**GOOD | {"weights": [1, 1, 1, 2]})


def test_observations_may_be_vectors_or_images_and_bytes_stay_bytes():
    vectors = Dataset.from_arrays(**GOOD | {"states": np.ones((4, 2)), "next_states": np.ones((4, 2))})
    assert vectors.n_states is None
    assert vectors.initial_states.shape == (2, 2)
    pictures = np.zeros((4, 8, 8, 3), dtype=np.uint8)
    assert Dataset.from_arrays(**GOOD | {"states": pictures, "next_states": pictures}).states.dtype == np.uint8


def test_what_follows_a_terminal_row_need_not_be_a_number():
    following = np.array([[1.0], [np.nan], [2.0], [0.0]])
    dataset = Dataset.from_arrays(**GOOD | {"states": np.zeros((4, 1)), "next_states": following})
    assert np.isfinite(dataset.next_states).all()


def test_with_costs_judges_the_same_rows_by_other_costs():
    other = Dataset.from_arrays(**GOOD).with_costs({"h": [1.0, 2.0, 3.0, 4.0]})
    assert other.cost_names == ("h",)
    assert other.states.tolist() == GOOD["states"]
    with pytest.raises(DataError, match=r"cost 'h' is nan in row 2 \(episode 18\)"):
        other.with_costs({"h": [1.0, 2.0, np.nan, 4.0]})


BAD = {
    "lengths differ": ({"actions": [0, 1, 1]}, "actions has 3 rows, but states has 4"),
    "next lengths differ": ({"next_states": [0, 1]}, "next_states has 2 rows, but states has 4"),
    "cost length": ({"costs": {"c": [0.0]}}, "cost 'c' has 1 rows, but states has 4"),
    "shapes differ": ({"states": np.zeros((4, 3))}, r"states have shape \(4, 3\), but next_states \(4,\)"),
    "NaN cost": ({"costs": {"c": [0, 1, np.nan, 3]}}, r"cost 'c' is nan in row 2 \(episode 18\)"),
    "infinite cost": ({"costs": {"c": [0, np.inf, 2, 3]}}, r"cost 'c' is inf in row 1 \(episode 7\)"),
    "text cost": ({"costs": {"c": ["a", "b", "c", "d"]}}, "cost 'c' hold .*'a'"),
    "no costs": ({"costs": {}}, "costs is empty"),
    "action too large": (
        {"actions": [0, 1, 7, 0], "n_actions": 4},
        r"action 7 in row 2 \(episode 18\), but n_actions is 4: pass n_actions=8 or fix the log",
    ),
    "negative action": ({"actions": [0, -1, 1, 0]}, r"action -1 in row 1 \(episode 7\)"),
    "fractional action": ({"actions": [0, 0.5, 1, 0]}, "actions is 0.5 in row 1: it must be an integer"),
    "text action": ({"actions": ["a", "b", "a", "b"]}, "actions hold"),
    "negative state": ({"states": [0, -3, 0, 2]}, "states is -3 in row 1"),
    "huge action": ({"actions": [0, 1e300, 1, 0]}, r"actions is 1e\+300 in row 1: it must be an integer"),
    "identifier as state": ({"states": [0, 10**12, 0, 2]}, "there would be 1000000000001 states.*encode them"),
    "text state": ({"states": ["a", "b", "a", "b"]}, "states hold .*encode them"),
    "too many states": ({"n_states": 2}, "state 2 is logged, but n_states is 2"),
    "NaN observation": (
        {"states": [[0.0], [np.nan], [0.0], [1.0]], "next_states": np.zeros((4, 1))},
        r"states is nan in row 1 \(episode 7\)",
    ),
    "NaN next observation": (
        {"states": np.zeros((4, 2)), "next_states": [[0, 0], [0, 0], [0, np.inf], [0, 0]]},
        r"next_states\[1\] is inf in row 2 \(episode 18\)",
    ),
    "terminal no flag": ({"terminals": [0, 1, 2, 0]}, "terminals is 2 in row 2"),
    "no initial state": ({"episodes": None}, "there is no initial state: pass episodes="),
    "empty initial states": ({"initial_states": []}, "there is no initial state"),
    "initial shape": ({"initial_states": [[0.0, 1.0]]}, "initial_states have shape"),
    "empty": (
        {"states": [], "actions": [], "next_states": [], "costs": {"c": []}, "terminals": [], "episodes": []},
        "the dataset is empty",
    ),
    "negative weight": ({"weights": [1, 1, -2, 1]}, "weights is -2.0 in row 2"),
    "no weight": ({"weights": [0, 0, 0, 0]}, "weights are all zero"),
    "propensity zero": ({"propensities": [0.5, 0.5, 0.0, 1]}, r"propensity is 0.0 in row 2 \(episode 18\)"),
    "propensity NaN": ({"propensities": [0.5, np.nan, 1, 1]}, r"propensity is nan in row 1 \(episode 7\)"),
    "step twice": ({"steps": [0, 0, 0, 1]}, "step 0 of episode 7 occurs twice, again in row 1"),
    "a number": ({"states": 3}, "states is the single number 3"),
    "matrix of actions": ({"actions": [[0, 1, 1, 0]]}, "actions must be one-dimensional"),
}


@pytest.mark.parametrize(("change", "message"), BAD.values(), ids=BAD.keys())
def test_bad_arrays_raise_a_data_error_that_shows_the_numbers(change, message):
    with pytest.raises(DataError, match=message):
        Dataset.from_arrays(**GOOD | change)


def test_an_unknown_cost_is_named_with_those_there_are():
    with pytest.raises(DataError, match="no cost is called 'd': the dataset has c, g"):
        Dataset.from_arrays(**GOOD).cost("d")


numbers = st.one_of(st.integers(-2, 5), st.floats(allow_nan=True, allow_infinity=True), st.text(max_size=2), st.none())


@settings(max_examples=200, deadline=None)
@given(field=st.sampled_from(sorted(GOOD)), values=st.lists(numbers, max_size=6))
def test_whatever_is_in_a_column_the_answer_is_a_dataset_or_a_checkrein_error(field, values):
    change = {field: {"c": values} if field == "costs" else values}
    try:
        dataset = Dataset.from_arrays(**GOOD | change)
    except CheckreinError as error:
        assert str(error)  # noqa: PT017
    else:
        assert len(dataset) == 4
        assert np.isfinite(dataset.costs).all()


@pytest.mark.parametrize("seed", range(5))
def test_compression_keeps_every_weight_and_every_cost(seed):
    dataset = random_log(seed)
    small = dataset.compressed()
    assert len(small) < len(dataset)
    assert small.weights.sum() == pytest.approx(len(dataset), abs=1e-9)
    assert small.weights @ small.costs == pytest.approx(dataset.costs.sum(axis=0), rel=1e-12)
    assert small.initial_weights.sum() == dataset.initial_weights.sum()
    keys = np.column_stack([small.states, small.actions, small.next_states, small.terminals, small.next_observed])
    assert len(np.unique(keys, axis=0)) == len(small)


def test_compression_sees_terminal_and_unobserved_rows_apart():
    dataset = Dataset.from_arrays(
        states=[0, 0, 0, 0],
        actions=[0, 0, 0, 0],
        next_states=[1, 1, 1, 1],
        costs={"c": [1.0, 2.0, 4.0, 8.0]},
        terminals=[False, True, False, False],
        next_observed=[True, True, False, True],
        initial_states=[0],
    )
    small = dataset.compressed()
    assert sorted(zip(small.terminals, small.next_observed, small.costs[:, 0], small.weights, strict=True)) == [
        (False, False, 4.0, 1.0),
        (False, True, 4.5, 2.0),
        (True, True, 2.0, 1.0),
    ]


def test_compression_by_sorting_equals_compression_by_bins(monkeypatch):
    dataset = random_log(3)
    weighted = rows_of(dataset, weights=np.random.default_rng(0).integers(0, 3, len(dataset)).astype(float))
    by_bins = [dataset.compressed(), weighted.compressed()]
    monkeypatch.setattr("checkrein.data.compression.DENSE_BINS", 0)
    for dense, sparse in zip(by_bins, [dataset.compressed(), weighted.compressed()], strict=True):
        assert dense.states.tolist() == sparse.states.tolist()
        assert dense.weights == pytest.approx(sparse.weights, rel=1e-12)
        assert dense.costs == pytest.approx(sparse.costs, rel=1e-12)


def test_a_part_begins_as_its_episodes_do_unless_other_starts_were_given():
    log = random_log(0)
    chosen = np.asarray(log.episodes) < 20
    assert log.own_starts
    assert log.part(chosen).initial_states.tolist() == log.initial_states[:20].tolist()
    given = rows_of(log, initial_states=np.array([3]), initial_weights=np.ones(1))
    assert not given.own_starts
    assert given.part(chosen).initial_states.tolist() == [3]
