import io
import os
import pickle
import zipfile
from dataclasses import dataclass

import numpy as np
import pytest

from checkrein import (
    GreedyPolicy,
    MixturePolicy,
    OneHot,
    Polynomial,
    SoftminPolicy,
    TabularPolicy,
    save_policy,
)
from checkrein.base.errors import StorageError, WriteError
from checkrein.base.storage import load, save, storable, write_atomically
from checkrein.functions import LinearQ, TabularQ
from checkrein.policies import BehaviorMask, CountMask, EveryAction, load_policy

RNG = np.random.default_rng(0)
FINITE, VECTORS = np.arange(3), RNG.normal(size=(5, 2))
TABLE = TabularQ(RNG.normal(size=(3, 4, 1)))
LINEAR = LinearQ(Polynomial(2), RNG.normal(size=(4, 6, 1)))
MASK = BehaviorMask(np.zeros(2), np.ones(2), RNG.normal(size=(4, 2)), np.array([0, 1, 0, -np.inf]), 0.2)
POLICIES = {
    "tabular": (TabularPolicy.uniform(3, 4), FINITE),
    "greedy": (GreedyPolicy(TABLE, CountMask(RNG.random((3, 4)) < 0.7)), FINITE),
    "greedy, linear": (GreedyPolicy(LINEAR, MASK), VECTORS),
    "greedy, one-hot": (GreedyPolicy(LinearQ(OneHot(3), RNG.normal(size=(4, 3, 1))), EveryAction(4)), FINITE),
    "softmin": (SoftminPolicy(TABLE, 0.3), FINITE),
    "mixture": (
        MixturePolicy((GreedyPolicy(TABLE), SoftminPolicy(TABLE, 2.0)), np.array([0.3, 0.7])),
        FINITE,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("policy", "states"), POLICIES.values(), ids=POLICIES.keys())
def test_every_policy_comes_back_bit_for_bit(policy, states, tmp_path):
    save_policy(policy, tmp_path / "policy.npz")
    again = load_policy(tmp_path / "policy.npz")
    assert np.array_equal(policy.probabilities(states), again.probabilities(states))
    save_policy(again, tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "policy.npz").read_bytes()


def test_code_is_never_written(tmp_path):
    policy = GreedyPolicy(LinearQ(lambda states: states, np.zeros((2, 1, 1))))
    with pytest.raises(StorageError, match=r"GreedyPolicy.q.features is a function.*@checkrein.storable"):
        save_policy(policy, tmp_path / "policy.npz")
    assert list(tmp_path.iterdir()) == []


def test_a_users_own_feature_map_can_be_stored(tmp_path):
    @storable
    @dataclass(frozen=True)
    class Doubled:
        factor: float

        def __call__(self, states):
            return states * self.factor

    policy = GreedyPolicy(LinearQ(Doubled(2.0), RNG.normal(size=(3, 2, 1))))
    save_policy(policy, tmp_path / "policy.npz")
    assert np.array_equal(load_policy(tmp_path / "policy.npz").probabilities(VECTORS), policy.probabilities(VECTORS))


def test_a_pickle_in_disguise_is_not_opened(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    (tmp_path / "policy.npz").write_bytes(pickle.dumps(Trap()))
    np.savez(tmp_path / "object.npz", **{"tree.json": np.array([Trap()], dtype=object)})
    for name in ("policy.npz", "object.npz"):
        with pytest.raises(StorageError, match="not a file that checkrein wrote"):
            load_policy(tmp_path / name)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "does not exist"), (b"", "not a file that checkrein wrote"), (b"PK\x03\x04junk", "not a file")],
)
def test_missing_and_damaged_files_are_named(content, message, tmp_path):
    if content is not None:
        (tmp_path / "policy.npz").write_bytes(content)
    with pytest.raises(StorageError, match=message):
        load_policy(tmp_path / "policy.npz")


def test_other_peoples_arrays_and_unknown_types_are_refused(tmp_path):
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    with pytest.raises(StorageError, match="no tree.json"):
        load_policy(tmp_path / "other.npz")
    np.savez(tmp_path / "unknown.npz", **{"tree.json": np.array('{"type": "Subprocess", "fields": {}}')})
    with pytest.raises(StorageError, match="'Subprocess', which is not known here"):
        load_policy(tmp_path / "unknown.npz")
    np.savez(tmp_path / "mask.npz", **{"tree.json": np.array('{"type": "EveryAction", "fields": {"n_actions": 2}}')})
    with pytest.raises(StorageError, match="holds a EveryAction, not a policy"):
        load_policy(tmp_path / "mask.npz")


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(file):
        file.write(b"half of the n")
        raise OSError("disk full")

    with pytest.raises(WriteError, match="file cannot be written: disk full"):
        write_atomically(path, fail)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_class_may_say_what_stands_for_its_fields(tmp_path):
    @storable
    @dataclass(frozen=True)
    class Spoken:
        words: frozenset

        def packed(self):
            return {"text": " ".join(sorted(self.words))}

        @classmethod
        def unpacked(cls, fields):
            return cls(frozenset(fields["text"].split()))

    save(Spoken(frozenset({"one", "two"})), tmp_path / "spoken.npz")
    assert load(tmp_path / "spoken.npz").words == {"one", "two"}


def archive(path, parts, packed=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", packed) as file:
        for name, content in parts:
            file.writestr(name, content)
    return path


def declaring(shape, kind="<f8", content=b""):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": kind, "fortran_order": False, "shape": shape})
    return header.getvalue() + content


@pytest.mark.parametrize(
    ("parts", "packed"),
    [
        ([("array0.npy", declaring((10**7,), content=b"\0" * 8 * 10**7))], zipfile.ZIP_DEFLATED),  # 80 MB in 80 kB
        ([("array0.npy", declaring((10**12,)))], zipfile.ZIP_STORED),
        ([("array0.npy", declaring((2**62, 2**62)))], zipfile.ZIP_STORED),
        ([("array0.npy", declaring((-1,)))], zipfile.ZIP_STORED),
        ([("array0.npy", declaring((1,), "|O", b"\0" * 8))], zipfile.ZIP_STORED),
        ([("array0.npy", b"")], zipfile.ZIP_STORED),
        ([("array0.npy", declaring((1,), content=b"\0" * 8))] * 2, zipfile.ZIP_STORED),
    ],
    ids=["packed", "huge", "beyond numbers", "negative", "objects", "empty", "twice"],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_archive_is_measured_before_it_is_read(parts, packed, tmp_path, monkeypatch):
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(StorageError, match="is not a file that checkrein wrote"):
        load(archive(tmp_path / "policy.npz", parts, packed))


def test_a_tree_that_is_too_deep_is_damaged(tmp_path):
    tree = np.array("[" * 100_000 + "]" * 100_000)
    np.savez(tmp_path / "deep.npz", allow_pickle=False, **{"tree.json": tree})
    with pytest.raises(StorageError, match="is damaged"):
        load(tmp_path / "deep.npz")


def test_a_folder_in_the_place_of_a_file_is_named(tmp_path):
    (tmp_path / "report.html").mkdir()
    with pytest.raises(StorageError, match=r"report.html cannot be written: it is a folder"):
        write_atomically(tmp_path / "report.html", lambda file: file.write(b""))
