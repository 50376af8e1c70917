import inspect
import json
import random
import shutil
import subprocess
import sys

import exportable
import numpy as np
import polars as pl
import pytest

from checkrein import GreedyPolicy, MixturePolicy, Polynomial, SoftminPolicy, TabularPolicy, storable
from checkrein.base.errors import StorageError
from checkrein.data.encoding import Encoding, StateColumn
from checkrein.deploy import export_json, json_export, read_policy
from checkrein.deploy.agreement import close_calls, random_rows
from checkrein.deploy.portable import portable
from checkrein.functions import LinearQ, TabularQ
from checkrein.policies import BehaviorMask, members_of


@pytest.mark.parametrize("policy", exportable.EVERY.values(), ids=exportable.EVERY.keys())
def test_the_reader_gives_our_probabilities(policy, tmp_path):
    export_json(policy, None, tmp_path / "policy.json")
    content = read_policy.read(str(tmp_path / "policy.json"))
    states = exportable.states_for(policy)
    unclear = close_calls(portable(policy, None), states)
    assert unclear.mean() < 0.001
    for place, (ours, weight) in enumerate(members_of(policy)):
        member = content["members"][place]
        assert member["weight"] == weight
        theirs = np.array([read_policy.probabilities(content, member, state) for state in states.tolist()])
        expected = ours.probabilities(states)
        assert np.abs(theirs - expected)[~unclear[place]].max() < 1e-12
    assert list(tmp_path.iterdir()) == [tmp_path / "policy.json"]


@pytest.mark.parametrize(
    ("policy", "encoding"),
    [(exportable.TABLES["mixture"], exportable.FINITE), (exportable.RULES["mixture"], exportable.FEATURES)],
    ids=["finite", "features"],
)
def test_rows_of_the_log_give_labels(policy, encoding, tmp_path):
    export_json(policy, encoding, tmp_path / "policy.json")
    content = read_policy.read(str(tmp_path / "policy.json"))
    rows = random_rows(encoding, 300, np.random.default_rng(0))
    encoded = [read_policy.encode(content, row) for row in rows.to_dicts()]
    assert np.array_equal(encoding.encode(rows), encoded)
    rng = random.Random(0)  # noqa: S311
    for row, state in zip(rows.to_dicts(), encoded, strict=True):
        member = read_policy.start_episode(content, rng)
        label = read_policy.act(content, member, row, rng)
        assert read_policy.probabilities(content, member, state)[exportable.ACTIONS.index(label)] > 0


def test_numbers_and_truth_values_are_the_categories_that_they_read_as(tmp_path):
    export_json(exportable.TABLES["table"], exportable.FINITE, tmp_path / "policy.json")
    content = read_policy.read(str(tmp_path / "policy.json"))
    for ward in (2, True, "b"):
        row = {"severity": None, "ward": ward}
        assert read_policy.encode(content, row) == exportable.FINITE.encode(pl.DataFrame([row]))[0]

    assert read_policy.encode(content, {"severity": "low", "ward": 2.0}) == exportable.FINITE.states.index(
        "severity=low, ward=2"
    )
    with pytest.raises(ValueError, match="'ward' is 'c', which is none of"):
        read_policy.encode(content, {"severity": "low", "ward": "c"})


def test_equal_values_go_to_the_first_action_as_ours_do(tmp_path):
    weights = np.tile(np.random.default_rng(0).normal(size=(1, 10, 1)), (exportable.A, 1, 1))
    weights[2] *= 1 + 1e-13  # a difference of no weight
    policy = GreedyPolicy(LinearQ(Polynomial(2), weights), exportable.behavior(0.2))
    export_json(policy, None, tmp_path / "policy.json")
    content = read_policy.read(str(tmp_path / "policy.json"))
    states = np.random.default_rng(1).normal(size=(1000, exportable.D))
    theirs = [read_policy.probabilities(content, content["members"][0], state) for state in states.tolist()]
    assert np.array_equal(theirs, policy.probabilities(states))


def test_categories_among_features_become_indicators(tmp_path):
    encoding = Encoding(exportable.ACTIONS, (StateColumn("sex", ("f", "m")), StateColumn("age")))
    export_json(exportable.RULES["quadratic"], encoding, tmp_path / "policy.json")
    content = read_policy.read(str(tmp_path / "policy.json"))
    assert read_policy.encode(content, {"age": 70, "sex": "m"}) == [0.0, 1.0, 70.0]
    assert content["states"]["names"] == ["sex=f", "sex=m", "age"]


def test_nothing_but_the_file_and_the_standard_library_is_needed(tmp_path):
    export_json(exportable.RULES["mixture"], exportable.FEATURES, tmp_path / "policy.json")
    shutil.copy(inspect.getsourcefile(read_policy), tmp_path / "reader.py")
    code = (
        "import sys, json, random; sys.path.insert(0, '.'); import reader; policy = reader.read('policy.json');"
        "rng = random.Random(1); member = reader.start_episode(policy, rng); row = {'lactate': None, 'age': 2};"
        "print(json.dumps([reader.act(policy, member, row, rng), 'numpy' in sys.modules, 'checkrein' in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], cwd=tmp_path, capture_output=True, check=True)
    action, numpy_used, checkrein_used = json.loads(done.stdout)
    assert action in exportable.ACTIONS
    assert not numpy_used
    assert not checkrein_used


def test_members_are_drawn_in_proportion(tmp_path):
    export_json(exportable.TABLES["mixture"], None, tmp_path / "policy.json")
    content = read_policy.read(str(tmp_path / "policy.json"))
    rng, n = random.Random(0), 10_000  # noqa: S311
    drawn = [content["members"].index(read_policy.start_episode(content, rng)) for _ in range(n)]
    assert np.abs(np.bincount(drawn) / n - [0.1, 0.2, 0.3, 0.4]).max() < 4 * np.sqrt(0.25 / n)


def test_the_file_explains_itself(tmp_path):
    export_json(exportable.RULES["mixture"], exportable.FEATURES, tmp_path / "policy.json")
    content = json.loads((tmp_path / "policy.json").read_text())
    assert (content["format"], content["version"]) == ("checkrein policy", 1)
    keys = {key for member in content["members"] for key in member} | set(content["members"][2]["support"])
    text = " ".join(content["about"])
    assert [key for key in keys if key not in text] == []


def test_other_files_are_refused_by_the_reader(tmp_path):
    (tmp_path / "other.json").write_text('{"format": "checkrein policy", "version": 2}')
    with pytest.raises(ValueError, match="'checkrein policy' 2, not 'checkrein policy' 1"):
        read_policy.read(str(tmp_path / "other.json"))


def test_a_file_that_disagrees_is_not_written(tmp_path, monkeypatch):
    path = tmp_path / "policy.json"
    path.write_text("old")
    honest = json_export.document

    def mistaken(policy):
        content = honest(policy)
        content["members"][0]["actions"][4] ^= 1
        return content

    monkeypatch.setattr(json_export, "document", mistaken)
    with pytest.raises(StorageError, match=r"in state 4, but member 0 of the policy gives .*not written"):
        export_json(exportable.TABLES["greedy"], None, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@storable
class Nearest:
    """A policy of the user's own, by code."""

    def probabilities(self, states):
        return np.eye(4)[np.asarray(states).reshape(len(states), -1).sum(axis=1).astype(int) % 4]


@pytest.mark.parametrize(
    ("policy", "encoding", "message"),
    [
        (GreedyPolicy(LinearQ(np.abs, np.zeros((4, 3, 1)))), None, "feature map absolute over feature vectors.*Linear"),
        (GreedyPolicy(np.abs), None, "ufunc over feature vectors cannot be written"),
        (Nearest(), None, "Nearest over feature vectors cannot"),
        (exportable.TABLES["table"], exportable.FEATURES, "makes 3 features, but the policy is a table of 12"),
        (TabularPolicy.uniform(5, 4), exportable.FINITE, r"the encoding has 12 states, but the policy \[5\]"),
        (TabularPolicy.uniform(12, 3), exportable.FINITE, "has 3 actions, but its encoding names 4"),
        (GreedyPolicy(exportable.linear_q(0)), None, "nothing says how many features"),
        (GreedyPolicy(LinearQ(exportable.linear_q(1).features, np.zeros((4, 6, 1)))), exportable.FEATURES,
         "the encoding has 3 features; member 0 has 5 features: they must agree"),
        (SoftminPolicy(TabularQ(np.full((12, 4, 1), np.nan)), 1.0), None, r"in state 0 are \[nan.*diverged"),
        (GreedyPolicy(LinearQ(exportable.linear_q(1).features, np.full((4, 4, 1), np.nan))), None, "not finite"),
        (GreedyPolicy(exportable.linear_q(1), BehaviorMask(np.zeros(3), np.ones(3), np.full((4, 3), np.inf),
         np.zeros(4), 0.1)), None, "numbers that JSON cannot"),
    ],
)  # fmt: skip
def test_what_cannot_be_expressed_is_named_and_nothing_is_written(policy, encoding, message, tmp_path):
    with pytest.raises(StorageError, match=message):
        export_json(policy, encoding, tmp_path / "policy.json")
    assert list(tmp_path.iterdir()) == []


def test_a_users_own_policy_over_finite_states_is_written_out(tmp_path):
    export_json(Nearest(), exportable.FINITE, tmp_path / "policy.json")
    content = json.loads((tmp_path / "policy.json").read_text())
    assert content["members"][0]["actions"] == [state % 4 for state in range(12)]


def test_a_table_shorter_than_the_states_is_continued_as_ours_is(tmp_path):
    policy = MixturePolicy((GreedyPolicy(TabularQ(-np.eye(4)[:, :, None])),), np.ones(1))
    export_json(policy, exportable.FINITE, tmp_path / "policy.json")
    content = json.loads((tmp_path / "policy.json").read_text())
    assert content["members"][0]["actions"] == [0, 1, 2, 3] + [0] * 8
