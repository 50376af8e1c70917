import contextlib
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

from checkrein.base.errors import DataError, MissingExtraError
from checkrein.logs.minari import read_minari

WHY = "Minari datasets need the extra: pip install 'checkrein[minari]'"
minari = pytest.importorskip("minari", reason=WHY)
h5py = pytest.importorskip("h5py", reason=WHY)
pytest.importorskip("PIL", reason=WHY)

CART = spaces.Box(-99, 99, (2,), np.float32)
TWO = spaces.Discrete(2)


@pytest.fixture
def record(tmp_path, monkeypatch):
    """Return a function that stores episodes as the dataset toy/log-v0."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))

    def create(episodes, observations=CART, actions=TWO):
        buffers = [minari.data_collector.EpisodeBuffer(**episode) for episode in episodes]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Minari's, of an author and a description that are not given
            return minari.create_dataset_from_buffers(
                "toy/log-v0", buffer=buffers, observation_space=observations, action_space=actions
            )

    return create


def episode(start, actions, *, terminated, infos=None, observations=None):
    length = len(actions)
    last = np.arange(length) == length - 1
    return {
        "observations": [np.array([start + t, t], np.float32) for t in range(length + 1)]
        if observations is None
        else observations,
        "actions": list(actions),
        "rewards": [float(start + t) for t in range(length)],
        "terminations": list(last & terminated),
        "truncations": list(last & (not terminated)),
        "infos": infos,
    }


# Each info is 100 * episode + the number of the observation that it came with: reset's is number 0.
def numbered(number, length):
    return {"cost": [100.0 * number + t for t in range(length + 1)], "inner": {"deep": list(range(length + 1))}}


CARTPOLE = [
    episode(0, [0, 1], terminated=True, infos=numbered(0, 2)),
    episode(10, [1, 1, 0], terminated=False, infos=numbered(1, 3)),
    episode(20, [0], terminated=False, infos=numbered(2, 1)),
]


def test_rows_are_the_transitions_of_the_episodes(record):
    dataset = read_minari(record(CARTPOLE))
    assert dataset.states.dtype == np.float32
    assert dataset.states.tolist() == [[0, 0], [1, 1], [10, 0], [11, 1], [12, 2], [20, 0]]
    assert dataset.next_states.tolist() == [[1, 1], [2, 2], [11, 1], [12, 2], [13, 3], [21, 1]]
    assert dataset.actions.tolist() == [0, 1, 1, 1, 0, 0]
    assert dataset.cost_names == ("reward",)
    assert dataset.cost("reward").tolist() == [0, 1, 10, 11, 12, 20]
    assert dataset.terminals.tolist() == [False, True, False, False, False, False]
    assert dataset.truncated.tolist() == [False, False, False, False, True, True]
    assert dataset.next_observed.all()
    assert dataset.episodes.tolist() == [0, 0, 1, 1, 1, 2]
    assert dataset.steps.tolist() == [0, 1, 0, 1, 2, 0]
    assert dataset.initial_states.tolist() == [[0, 0], [10, 0], [20, 0]]


def test_the_info_of_a_transition_is_the_one_that_came_with_its_next_state(record):
    dataset = read_minari(record(CARTPOLE), costs={"crash": "cost", "deep": "inner/deep"})
    assert dataset.cost("crash").tolist() == [1, 2, 101, 102, 103, 201]
    assert dataset.cost("deep").tolist() == dataset.next_states[:, 1].tolist()


def test_an_info_with_an_entry_per_transition_is_used_as_it_is(record):
    infos = {"cost": [7.0, 8.0], "column": np.array([[0.0], [5.0], [6.0]])}
    source = record([episode(0, [0, 1], terminated=True, infos=infos)])
    dataset = read_minari(source, costs={"c": "cost", "d": "column"})
    assert dataset.cost("c").tolist() == [7, 8]
    assert dataset.cost("d").tolist() == [5, 6]


def test_a_cost_may_be_a_function_of_the_episode(record):
    dataset = read_minari(record(CARTPOLE), costs={"far": lambda episode: episode.observations[1:, 0] > 10})
    assert dataset.cost("far").tolist() == [0, 0, 1, 1, 1, 1]


def test_a_dataset_is_found_by_its_name(record):
    source = record(CARTPOLE)
    assert read_minari("toy/log-v0") == read_minari(source)


def test_filtered_episodes_keep_their_numbers(record):
    ended = record(CARTPOLE).filter_episodes(lambda episode: not episode.terminations[-1])
    assert read_minari(ended).episodes.tolist() == [1, 1, 1, 2]


def test_discrete_observations_are_finite_states_and_both_spaces_count_from_their_start(record):
    episodes = [episode(0, [1, 3], terminated=True, observations=[5, 7, 6])]
    dataset = read_minari(record(episodes, spaces.Discrete(4, start=5), spaces.Discrete(3, start=1)))
    assert dataset.states.tolist() == [0, 2]
    assert dataset.next_states.tolist() == [2, 1]
    assert dataset.actions.tolist() == [0, 2]
    assert (dataset.n_states, dataset.n_actions) == (4, 3)


def test_dictionaries_become_the_features_that_gymnasium_would_make(record):
    space = spaces.Dict({"goal": spaces.Tuple((CART, spaces.Discrete(3, start=1))), "at": CART})
    seen = {
        "at": np.array([[1, 2], [3, 4], [5, 6]], np.float32),
        "goal": (np.array([[7, 8], [7, 9], [7, 7]], np.float32), np.array([1, 3, 2])),
    }
    dataset = read_minari(record([episode(0, [0, 1], terminated=False, observations=seen)], space))
    for row in range(2):
        goal = (seen["goal"][0][row], seen["goal"][1][row])
        assert dataset.states[row].tolist() == spaces.flatten(space, {"at": seen["at"][row], "goal": goal}).tolist()


def test_small_images_stay_bytes(record):
    images = np.arange(3 * 12, dtype=np.uint8).reshape(3, 2, 2, 3)
    space = spaces.Box(0, 255, (2, 2, 3), np.uint8)
    dataset = read_minari(record([episode(0, [0, 1], terminated=True, observations=images)], space))
    assert dataset.next_states.tolist() == images[1:].tolist()
    assert dataset.states.dtype == np.uint8


def test_continuous_actions_need_discretise(record):
    actions = [np.array([-0.5, 0.0], np.float32), np.array([0.5, 0.0], np.float32)]
    source = record([episode(0, actions, terminated=True)], actions=spaces.Box(-1, 1, (2,), np.float32))
    with pytest.raises(DataError, match=r"toy/log-v0: actions are float32 of shape \(2, 2\).*discretise="):
        read_minari(source)
    dataset = read_minari(source, discretise=lambda a: (a[:, 0] > 0).astype(int), n_actions=3)
    assert dataset.actions.tolist() == [0, 1]
    assert dataset.n_actions == 3


COSTS = {
    "unknown key": ({"c": "speed"}, "episode 0: cost 'c' is the info 'speed', but there is no 'speed'; the keys: cost"),
    "unknown inner key": ({"c": "inner/x"}, "no 'x'; the keys: deep"),
    "too deep": ({"c": "cost/x"}, "no 'x'; the keys: none"),
    "a group": ({"c": "inner"}, "info 'inner' are a dict of several arrays"),
    "wrong length": ({"c": lambda episode: episode.rewards[:1]}, "episode 0: cost 'c' has 1 entries, but 2 are needed"),
    "one number": ({"c": lambda episode: episode.rewards[0]}, "episode 0: cost 'c' has one value, but 2 are needed"),
    "wide": ({"c": lambda e: np.ones((len(e), 3))}, r"cost 'c' must be one-dimensional, but its shape is \(6, 3\)"),
    "nan": ({"c": lambda e: np.full(len(e), np.nan)}, r"cost 'c' is nan in row 0 \(episode 0\)"),
    "taken name": ({"reward": "cost"}, "a cost is called 'reward'"),
}


@pytest.mark.parametrize(("costs", "message"), COSTS.values(), ids=COSTS.keys())
def test_a_cost_that_is_not_there_is_named(costs, message, record):
    with pytest.raises(DataError, match=message):
        read_minari(record(CARTPOLE), costs=costs)


def test_a_dataset_without_infos_says_so(record):
    with pytest.raises(DataError, match="there is no 'cost'; the keys: none"):
        read_minari(record([episode(0, [0], terminated=True)]), costs={"c": "cost"})


def test_observations_must_be_one_more_than_actions(record):
    short = episode(0, [0, 1], terminated=True, observations=[np.zeros(2, np.float32)] * 2)
    with pytest.raises(DataError, match="episode 0: observations has 2 entries, but 3 are needed"):
        read_minari(record([short]))


def test_text_is_no_state(record):
    texts = episode(0, [0, 1], terminated=True, observations=["a", "b", "c"])
    with pytest.raises(DataError, match="toy/log-v0: states hold <U1, not numbers"):
        read_minari(record([texts], spaces.Text(3)))


def test_a_damaged_dataset_is_named(record, tmp_path):
    record(CARTPOLE)
    data = next(tmp_path.rglob("main_data.hdf5"))
    data.write_bytes(data.read_bytes()[:2000])
    with pytest.raises(DataError, match="the Minari dataset 'toy/log-v0' is damaged"):
        read_minari("toy/log-v0")
    (data.parent / "metadata.json").write_text("{")
    with pytest.raises(DataError, match="the Minari dataset 'toy/log-v0' cannot be read"):
        read_minari("toy/log-v0")


def test_what_is_no_dataset_is_named(record):
    with pytest.raises(DataError, match="no local Minari dataset 'toy/none-v0': minari download toy/none-v0"):
        read_minari("toy/none-v0")
    with pytest.raises(DataError, match="a PosixPath is neither a Minari dataset nor the name of one"):
        read_minari(Path("somewhere"))


def test_a_missing_extra_names_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(MissingExtraError, match=r"'toy/log-v0' needs .*pip install 'checkrein\[minari\]'"):
        read_minari("toy/log-v0")


@pytest.mark.parametrize("key", ["observations", "actions", "rewards", "terminations", "truncations"])
@pytest.mark.parametrize("put", [None, np.zeros(1), np.array(["a"] * 3, dtype="S"), np.float64(1.0)])
def test_a_dataset_that_is_damaged_is_one_message(key, put, record, tmp_path):
    record(CARTPOLE)
    (path,) = tmp_path.rglob("main_data.hdf5")
    with h5py.File(path, "a") as file:
        del file["episode_1"][key]
        if put is not None:
            file["episode_1"][key] = put
    with contextlib.suppress(DataError):  # ends are not asked for where the numbers of others tell
        read_minari("toy/log-v0")
        assert key in ("truncations",)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"observation_space": 1}', "\0"])
def test_a_description_that_is_damaged_is_one_message(text, record, tmp_path):
    record(CARTPOLE)
    (path,) = tmp_path.rglob("metadata.json")
    path.write_text(text)
    with pytest.raises(DataError, match="cannot be read|damaged"):
        read_minari("toy/log-v0")
