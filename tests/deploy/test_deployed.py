import exportable
import numpy as np
import polars as pl
import pytest

import checkrein
from checkrein import GreedyPolicy, MixturePolicy, TabularPolicy, save_policy
from checkrein.base import manifest, storage
from checkrein.base.errors import DataError, StorageError
from checkrein.data.encoding import MISSING, Encoding, StateColumn
from checkrein.deploy import DeployedPolicy, load
from checkrein.deploy.deployed import pick
from checkrein.functions import TabularQ
from checkrein.runs.folder import CHECKED

ALWAYS = [GreedyPolicy(TabularQ(np.tile(1.0 - np.eye(3)[a], (5, 1))[:, :, None])) for a in range(3)]
WEIGHTS = np.array([0.2, 0.5, 0.3])
MIXTURE = DeployedPolicy(MixturePolicy(tuple(ALWAYS), WEIGHTS))
ROWS = [{"severity": "low", "ward": "a"}, {"severity": None, "ward": "b"}, {"severity": "high", "ward": "2"}]


class Pandas:
    """As much of pandas.DataFrame as is asked for: NaN stands for what is missing."""

    def __init__(self, columns):
        self.content, self.columns = columns, list(columns)

    def __getitem__(self, name):
        return self.content[name]

    def isna(self):
        return {name: [value is None or value != value for value in values] for name, values in self.content.items()}  # noqa: PLR0124


def test_a_run_folder_gives_back_the_policy_and_the_words(tmp_path):
    save_policy(exportable.TABLES["mixture"], tmp_path / "policy.npz")
    manifest.seal(tmp_path, CHECKED)
    states = np.arange(exportable.S)
    bare = load(tmp_path)
    assert bare.encoding is None
    assert np.array_equal(bare.probabilities(states), exportable.TABLES["mixture"].probabilities(states))
    assert bare.act(states, seed=3).dtype == np.int64
    storage.save(exportable.FINITE, tmp_path / "encoding.npz")
    with pytest.raises(StorageError, match=r"encoding.npz is not listed in manifest.json"):
        load(tmp_path)
    manifest.seal(tmp_path, CHECKED)
    words = load(str(tmp_path)).act(states, seed=3)
    assert words == [exportable.ACTIONS[a] for a in bare.act(states, seed=3)]


def test_every_kind_of_table_means_the_same_states():
    deployed = DeployedPolicy(exportable.TABLES["softmin"], exportable.FINITE)
    expected = deployed.probabilities(np.array([0, 5, 7]))
    columns = {name: [row[name] for row in ROWS] for name in ("severity", "ward")}
    pandas = Pandas({"severity": ["low", float("nan"), "high"], "ward": columns["ward"]})
    for table in (ROWS, pl.DataFrame(columns), pandas):
        assert np.array_equal(deployed.probabilities(table), expected)
        assert deployed.act(table, seed=1) == deployed.act(np.array([0, 5, 7]), seed=1)


def test_a_number_names_its_category_however_it_is_written():
    """A column of integers with something missing becomes one of floats in pandas: 2 is then 2.0."""
    columns = (StateColumn("beds", ("1", "2", "10", MISSING)),)
    deployed = DeployedPolicy(TabularPolicy(np.eye(4)), Encoding(("a", "b", "c", "d"), columns, np.arange(4)[:, None]))
    for values in ([2, 10, None], [2.0, 10.0, None], ["2", "10", None], [2.0, 10.0, float("nan")]):
        for table in ([{"beds": value} for value in values], pl.DataFrame({"beds": values}), Pandas({"beds": values})):
            assert deployed.act(table, seed=0) == ["b", "c", "d"]
    with pytest.raises(DataError, match=r"'beds' is '2.5' in row 1"):
        deployed.act(pl.DataFrame({"beds": [2.0, 2.5]}), seed=0)


def test_features_come_from_rows_too():
    encoding = exportable.FEATURES
    deployed = DeployedPolicy(exportable.RULES["mixture"], encoding)
    table = [{"age": 50, "lactate": None}, {"lactate": 2.5, "age": 61.5}]
    expected = np.array([[1.5, 1.0, 50.0], [2.5, 0.0, 61.5]])
    assert np.array_equal(deployed.probabilities(table), deployed.probabilities(expected))


def test_rows_draw_their_members_independently_and_in_proportion():
    n = 20_000
    actions = MIXTURE.act(np.zeros(n, dtype=int), seed=0)
    shares = np.bincount(actions, minlength=3) / n
    assert np.abs(shares - WEIGHTS).max() < 4 * np.sqrt(0.25 / n)
    repeats = np.mean(actions[1:] == actions[:-1])
    assert abs(repeats - (WEIGHTS**2).sum()) < 4 * np.sqrt(0.25 / n)


def test_actions_of_a_random_member_follow_the_mixtures_probabilities():
    policy, n = exportable.TABLES["mixture"], 40_000
    states = np.repeat([2, 9], n // 2)
    actions = DeployedPolicy(policy).act(states, seed=1)
    for state in (2, 9):
        shares = np.bincount(actions[states == state], minlength=exportable.A) / (n // 2)
        assert np.abs(shares - policy.probabilities(np.array([state]))[0]).max() < 4 * np.sqrt(0.25 / (n // 2))


def test_an_episode_follows_one_member_to_the_end():
    drawn = [MIXTURE.start_episode(seed) for seed in range(300)]
    for episode in drawn:
        taken = np.concatenate([episode.act(np.arange(5), seed=step) for step in range(3)])
        assert np.array_equal(taken, np.full(15, episode.member))
    shares = np.bincount([episode.member for episode in drawn], minlength=3) / 300
    assert np.abs(shares - WEIGHTS).max() < 4 * np.sqrt(0.25 / 300)


def test_the_seed_decides_everything():
    states = np.repeat(np.arange(exportable.S), 20)
    deployed = DeployedPolicy(exportable.TABLES["mixture"])
    assert np.array_equal(deployed.act(states, seed=7), deployed.act(states, seed=7))
    assert not np.array_equal(deployed.act(states, seed=7), deployed.act(states, seed=8))
    assert deployed.start_episode(7).member == deployed.start_episode(7).member


def test_an_action_of_probability_zero_is_never_drawn():
    assert pick(np.array([[0.0, 0.4, 0.6], [0.0, 1.0, 0.0]]), np.array([0.0, 1 - 1e-16])).tolist() == [1, 1]
    policy = DeployedPolicy(TabularPolicy(np.array([[0.0, 0.3, 0.0, 0.7, 0.0]])))
    assert set(policy.act(np.zeros(10_000, dtype=int), seed=0)) == {1, 3}


def test_what_does_not_fit_is_named(tmp_path):
    with pytest.raises(StorageError, match="holds no finished run: there is no manifest.json"):
        load(tmp_path)
    manifest.seal(tmp_path, CHECKED)
    with pytest.raises(StorageError, match="has no policy.npz"):
        load(tmp_path)
    save_policy(ALWAYS[0], tmp_path / "policy.npz")
    save_policy(ALWAYS[0], tmp_path / "encoding.npz")
    manifest.seal(tmp_path, CHECKED)
    with pytest.raises(StorageError, match="holds a GreedyPolicy, not an Encoding"):
        load(tmp_path)
    with pytest.raises(DataError, match="no encoding: give states as an array"):
        MIXTURE.act(ROWS, seed=0)
    deployed = DeployedPolicy(exportable.TABLES["table"], exportable.FINITE)
    with pytest.raises(DataError, match="'severity' is 'dire' in row 1"):
        deployed.act([ROWS[0], {"severity": "dire", "ward": "a"}], seed=0)
    with pytest.raises(DataError, match="state 12 in row 1"):
        deployed.act(np.array([0, 12]), seed=0)


def test_whole_numbers_come_back_as_numbers_and_other_files_are_told_apart(tmp_path):
    table = pl.DataFrame({"e": [1, 1, 2], "x": ["u", "v", "u"], "a": [2, 7, 7], "c": [0, 1, 0]})
    log = checkrein.read_logs(table, episode="e", state="x", action="a", costs="c")
    policy = DeployedPolicy(checkrein.TabularPolicy.uniform(2, 2), log.encoding)
    assert set(policy.act([{"x": "u"}, {"x": "v"}] * 20, seed=0)) == {2, 7}
    with pytest.raises(DataError, match="pass \\[row\\]"):
        policy.act({"x": "u"}, seed=0)
    (tmp_path / "policy.json").write_text("{}")
    with pytest.raises(StorageError, match="load the run folder instead"):
        checkrein.load_policy(tmp_path / "policy.json")
