import sys

import numpy as np
import pytest

from checkrein.base.errors import CheckreinError, DataError, MissingExtraError
from checkrein.logs import hdf5 as hdf5_module
from checkrein.logs.hdf5 import episodes_and_steps, read_hdf5

h5py = pytest.importorskip("h5py", reason="HDF5 logs need the extra: pip install 'checkrein[minari]'")

# Three episodes: two steps and a pole that falls; three steps and the clock; one step, and the file is full.
OBSERVATIONS = np.array([[0.0, 1], [2, 3], [10, 11], [12, 13], [14, 15], [20, 21]], dtype=np.float32)
NEXT = np.array([[2.0, 3], [4, 5], [12, 13], [14, 15], [16, 17], [22, 23]], dtype=np.float32)
FLAT = {
    "observations": OBSERVATIONS,
    "actions": np.array([0, 1, 1, 0, 1, 0]),
    "rewards": np.array([1.0, 1, 2, 2, 2, 3], dtype=np.float32),
    "terminals": np.array([0, 1, 0, 0, 0, 0], dtype=bool),
    "timeouts": np.array([0, 0, 0, 0, 1, 0], dtype=bool),
}
EPISODES, STEPS = [0, 0, 1, 1, 1, 2], [0, 1, 0, 1, 2, 0]
BY_EPISODE = [slice(0, 2), slice(2, 5), slice(5, 6)]


def hdf5(folder, content):
    path = folder / "log.hdf5"
    with h5py.File(path, "w") as file:
        for key, values in content.items():
            file.create_dataset(key, data=values)
    return path


def d3rlpy_2(**changes):
    """What ReplayBuffer.dump of d3rlpy 2.1 to 2.8 writes."""
    content = {"columns": ["observations", "actions", "rewards", "terminated"], "num_episodes": 3, "version": "2.1"}
    for number, rows in enumerate(BY_EPISODE):
        content |= {
            f"observations_{number}": OBSERVATIONS[rows],
            f"actions_{number}": FLAT["actions"][rows, None],
            f"rewards_{number}": FLAT["rewards"][rows, None],
            f"terminated_{number}": bool(FLAT["terminals"][rows][-1]),
        }
    return content | changes


def d3rlpy_1(**changes):
    """What MDPDataset.dump of d3rlpy 1 wrote."""
    content = {key: values for key, values in FLAT.items() if key != "timeouts"}
    ends = np.array([0, 1, 0, 0, 1, 1], dtype=np.float32)
    return content | {"episode_terminals": ends, "discrete_action": True, "version": "1.0"} | changes


def huge(file):
    file.create_dataset("observations", shape=(10**11, 2), dtype="f4", chunks=(1000, 2))


def elsewhere(file):
    stored = [(file.filename + ".secret", 0, 24)]
    file.create_dataset("observations", shape=(6,), dtype="f4", external=stored)


def linked(file):
    file["observations"] = h5py.ExternalLink("other.h5", "observations")


def virtual(file):
    layout = h5py.VirtualLayout((6,), "f4")
    layout[:] = h5py.VirtualSource("other.h5", "observations", (6,))
    file.create_virtual_dataset("observations", layout)


STRANGE = {
    huge: r"declares \(100000000000, 2\) of float32, but 0 bytes of it are in the file",
    elsewhere: "takes its numbers from other files",
    linked: "lies in another file",
    virtual: "takes its numbers from other files",
}


@pytest.mark.parametrize("make", STRANGE, ids=lambda make: make.__name__)
def test_a_file_from_a_stranger_holds_what_it_declares_and_opens_no_other(make, tmp_path):
    path = hdf5(tmp_path, without(FLAT, "observations"))
    path.with_name(path.name + ".secret").write_bytes(bytes(24))
    with h5py.File(path, "a") as file:
        make(file)
    with pytest.raises(DataError, match=STRANGE[make]):
        read_hdf5(path)


def test_a_long_array_that_packs_well_is_read(tmp_path):
    n = 1 << 25
    path = hdf5(tmp_path, {})
    with h5py.File(path, "a") as file:
        file.create_dataset("terminals", data=np.zeros(n, bool), compression="gzip", chunks=(1 << 20,))
    with pytest.raises(DataError, match="there is no 'observations'"):  # but not of the ends
        read_hdf5(path)
    with h5py.File(path) as file:
        hdf5_module._require_own(file, "terminals")


@pytest.mark.parametrize("count", [-3, 0])
def test_no_episodes_are_none_to_learn_from(count, tmp_path):
    with pytest.raises(DataError, match=f"num_episodes is {count}"):
        read_hdf5(hdf5(tmp_path, d3rlpy_2(num_episodes=count)))


def without(content, *keys):
    return {key: values for key, values in content.items() if key not in keys}


@pytest.mark.parametrize("content", [FLAT, d3rlpy_1(), d3rlpy_2()], ids=["D4RL", "d3rlpy 1", "d3rlpy 2"])
def test_no_episode_runs_into_the_next(content, tmp_path):
    dataset = read_hdf5(hdf5(tmp_path, content))
    assert dataset.states.dtype == np.float32
    assert dataset.states.tolist() == OBSERVATIONS.tolist()
    assert dataset.actions.tolist() == [0, 1, 1, 0, 1, 0]
    assert dataset.cost_names == ("reward",)
    assert dataset.cost("reward").tolist() == [1, 1, 2, 2, 2, 3]
    assert dataset.episodes.tolist() == EPISODES
    assert dataset.steps.tolist() == STEPS
    assert dataset.terminals.tolist() == [False, True, False, False, False, False]
    assert dataset.truncated.tolist() == [False, False, False, False, True, True]
    assert dataset.next_observed.tolist() == [True, True, True, True, False, False]
    assert dataset.next_states[[0, 2, 3]].tolist() == OBSERVATIONS[[1, 3, 4]].tolist()
    assert dataset.next_states[[1, 4, 5]].tolist() == OBSERVATIONS[[1, 4, 5]].tolist()  # their own: there is no other
    assert dataset.initial_states.tolist() == OBSERVATIONS[[0, 2, 5]].tolist()


def test_the_three_layouts_of_one_log_are_one_dataset(tmp_path):
    first, second, third = (read_hdf5(hdf5(tmp_path, content)) for content in (FLAT, d3rlpy_1(), d3rlpy_2()))
    assert first == second == third


def test_next_observations_of_the_file_are_used_also_where_an_episode_was_cut(tmp_path):
    dataset = read_hdf5(hdf5(tmp_path, FLAT | {"next_observations": NEXT}))
    assert dataset.next_states.tolist() == NEXT.tolist()
    assert dataset.next_observed.all()
    assert dataset.truncated.tolist() == [False, False, False, False, True, True]


def test_costs_of_dsrl_stand_beside_rewards(tmp_path):
    path = hdf5(tmp_path, FLAT | {"costs": np.arange(6.0)[:, None], "rewards": FLAT["rewards"][:, None]})
    assert read_hdf5(path).cost("cost").tolist() == [0, 1, 2, 3, 4, 5]
    assert read_hdf5(path, cost_name="crash").cost_names == ("reward", "crash")
    with pytest.raises(DataError, match="cost_name is 'reward'"):
        read_hdf5(path, cost_name="reward")


def test_a_row_that_is_both_terminal_and_timeout_is_terminal(tmp_path):
    dataset = read_hdf5(hdf5(tmp_path, FLAT | {"timeouts": np.array([0, 1, 0, 0, 1, 1])}))
    assert dataset.terminals.tolist() == [False, True, False, False, False, False]
    assert dataset.next_observed.tolist() == [True, True, True, True, False, False]


def test_integers_of_one_column_are_finite_states(tmp_path):
    dataset = read_hdf5(hdf5(tmp_path, FLAT | {"observations": np.array([[0], [1], [2], [3], [2], [4]])}))
    assert dataset.n_states == 5
    assert dataset.next_states.tolist() == [1, 1, 3, 2, 2, 4]


def test_images_stay_bytes(tmp_path):
    images = np.arange(6 * 12, dtype=np.uint8).reshape(6, 2, 2, 3)
    dataset = read_hdf5(hdf5(tmp_path, FLAT | {"observations": images}))
    assert dataset.states.dtype == np.uint8
    assert dataset.states.shape == (6, 2, 2, 3)


def test_groups_beside_the_log_are_left_alone(tmp_path):
    content = FLAT | {"infos/qpos": np.zeros((6, 3)), "metadata/algorithm": "SAC"}
    assert read_hdf5(hdf5(tmp_path, content)) == read_hdf5(hdf5(tmp_path, FLAT))


def test_continuous_actions_need_discretise(tmp_path):
    path = hdf5(tmp_path, FLAT | {"actions": np.linspace(-1, 1, 12).reshape(6, 2)})
    with pytest.raises(DataError, match=r"log.hdf5: actions are float64 of shape \(6, 2\).*discretise="):
        read_hdf5(path)
    dataset = read_hdf5(path, discretise=lambda actions: (actions[:, 0] > 0).astype(int), n_actions=4)
    assert dataset.actions.tolist() == [0, 0, 0, 1, 1, 1]
    assert dataset.n_actions == 4


@pytest.mark.parametrize("discretise", [lambda actions: actions, lambda actions: actions[:, 0], np.size])
def test_discretise_must_return_an_integer_per_row(discretise, tmp_path):
    path = hdf5(tmp_path, FLAT | {"actions": np.linspace(-1, 1, 12).reshape(6, 2)})
    with pytest.raises(
        DataError, match=r"discretise turned actions of shape \(6, 2\) into .* integers of shape \(6,\)"
    ):
        read_hdf5(path, discretise=discretise)


def test_discretise_is_given_a_row_per_action_even_where_actions_are_flat(tmp_path):
    shapes = []
    read_hdf5(hdf5(tmp_path, FLAT), discretise=lambda a: shapes.append(a.shape) or a[:, 0])
    assert shapes == [(6, 1)]


def test_d3rlpys_discrete_actions_may_be_stored_as_floats(tmp_path):
    floats = {f"actions_{i}": FLAT["actions"][rows, None].astype(np.float32) for i, rows in enumerate(BY_EPISODE)}
    assert read_hdf5(hdf5(tmp_path, d3rlpy_2(**floats))).actions.tolist() == [0, 1, 1, 0, 1, 0]
    flat = FLAT["actions"].astype(np.float32)
    assert read_hdf5(hdf5(tmp_path, d3rlpy_1(actions=flat))).actions.tolist() == [0, 1, 1, 0, 1, 0]
    with pytest.raises(DataError, match="discretise="):
        read_hdf5(hdf5(tmp_path, d3rlpy_1(actions=flat, discrete_action=False)))


def test_episodes_of_an_old_d3rlpy_file_end_where_it_says_terminal(tmp_path):
    dataset = read_hdf5(hdf5(tmp_path, without(d3rlpy_1(), "episode_terminals")))
    assert dataset.episodes.tolist() == [0, 0, 1, 1, 1, 1]


def test_a_dsrl_file_without_timeouts_is_not_guessed_at(tmp_path):
    with pytest.raises(DataError, match="log.hdf5: there is no 'timeouts'.*all false if"):
        read_hdf5(hdf5(tmp_path, without(FLAT, "timeouts")))


def test_steps_are_counted_from_the_end_before():
    episodes, steps = episodes_and_steps(np.array([True, False, False, True, False]))
    assert episodes.tolist() == [0, 1, 1, 1, 2]
    assert steps.tolist() == [0, 0, 1, 2, 0]


DAMAGED = {
    "no rewards": (without(FLAT, "rewards"), "there is no 'rewards': the keys are actions, observations"),
    "nothing": ({}, "there is no 'observations'"),
    "group": (without(FLAT, "rewards") | {"rewards/first": 1.0}, "'rewards' is a group"),
    "scalar": (FLAT | {"rewards": 1.0}, r"'rewards' has shape \(\): it must have rows"),
    "short rewards": (FLAT | {"rewards": np.ones(5)}, r"'rewards' has shape \(5,\), but 'observations' has 6 rows"),
    "wide rewards": (FLAT | {"rewards": np.ones((6, 2))}, r"'rewards' has shape \(6, 2\)"),
    "long actions": (FLAT | {"actions": np.zeros(7, int)}, "'observations' has 6 rows and 'actions' 7"),
    "no rows": ({key: values[:0] for key, values in FLAT.items()}, "'observations' has 0 rows"),
    "half a terminal": (FLAT | {"terminals": np.full(6, 0.5)}, "terminals is 0.5 in row 0"),
    "nan": (FLAT | {"rewards": [0, 0, 0, np.nan, 0, 0]}, r"cost 'reward' is nan in row 3 \(episode 1\)"),
    "negative": (FLAT | {"actions": [0, -1, 0, 0, 0, 0]}, r"action -1 in row 1 \(episode 0\)"),
    "text": (FLAT | {"rewards": ["a"] * 6}, "cost 'reward' hold"),
    "next": (FLAT | {"next_observations": NEXT[:, :1]}, r"states have shape \(6, 2\), but next_states \(6, 1\)"),
    "no episodes": (d3rlpy_2(num_episodes=0), "num_episodes is 0"),
    "episode gone": (without(d3rlpy_2(), "actions_1"), "there is no 'actions_1'"),
    "several": (d3rlpy_2(observations_0_0=1), "'observations_0_0' is one of several observations"),
    "uneven": (d3rlpy_2(rewards_1=np.ones((2, 1))), "episode 1 has arrays of unequal length.*'rewards_1': 2"),
    "shapes": (d3rlpy_2(observations_2=np.ones((1, 3))), r"observations differ in shape.*\(2,\), \(3,\)"),
}


@pytest.mark.parametrize(("content", "message"), DAMAGED.values(), ids=DAMAGED.keys())
def test_damage_is_named_with_file_key_and_row(content, message, tmp_path):
    with pytest.raises(DataError, match=f"log.hdf5: {message}"):
        read_hdf5(hdf5(tmp_path, content))


def test_a_file_that_is_not_hdf5_or_not_there_or_cut_is_named(tmp_path):
    with pytest.raises(DataError, match="none.hdf5 does not exist"):
        read_hdf5(tmp_path / "none.hdf5")
    path = hdf5(tmp_path, FLAT)
    content = path.read_bytes()
    for cut in (b"", b"state,action\n0,1\n", content[: len(content) // 2], content[:-1]):
        path.write_bytes(cut)
        with pytest.raises(DataError, match="log.hdf5 is not a whole HDF5 file"):
            read_hdf5(path)


def test_a_missing_extra_names_the_command(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(
        MissingExtraError, match=r"reading .*log.hdf5 needs .*pip install 'checkrein\[minari\]'"
    ) as caught:
        read_hdf5(tmp_path / "log.hdf5")
    assert isinstance(caught.value, CheckreinError)
    assert isinstance(caught.value, ImportError)


WRONG = {
    "strings": lambda _: np.array(["a"] * 6, dtype="S"),
    "texts": lambda _: ["a"] * 6,
    "complex numbers": lambda _: np.ones(6, complex),
    "records": lambda _: np.zeros(6, dtype=[("a", "f4"), ("b", "f4")]),
    "nothing": lambda _: h5py.Empty("f4"),
    "one number": lambda _: 1.0,
    "too few": lambda values: values[:3],
    "none": lambda values: values[:0],
    "NaN": lambda values: np.full(values.shape, np.nan),
    "too large": lambda values: np.full(values.shape, 1e300),
    "too many dimensions": lambda _: np.zeros((6, 2, 2, 2)),
}


@pytest.mark.parametrize("key", FLAT)
@pytest.mark.parametrize("wrong", WRONG)
def test_an_array_of_the_wrong_kind_is_one_message(key, wrong, tmp_path):
    path = hdf5(tmp_path, FLAT | {key: WRONG[wrong](FLAT[key])})
    if (key, wrong) == ("observations", "too many dimensions"):
        assert read_hdf5(path).states.shape == (6, 2, 2, 2)  # images
        return
    with pytest.raises(DataError, match="log.hdf5"):
        read_hdf5(path)
