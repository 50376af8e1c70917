"""What a run folder holds: each file comes back as it was written, or is named with what is wrong with it."""

import os
import shutil
from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

from checkrein import AtLeast, AtMost, TabularPolicy, storable
from checkrein.base import storage
from checkrein.base.errors import CheckreinError, DataError, StorageError, WriteError
from checkrein.certification import METHODS
from checkrein.data.encoding import Encoding, StateColumn
from checkrein.policies import EveryAction
from checkrein.runs import folder as names
from checkrein.runs.folder import Resolved, RunFolder
from cli.commands import checkrein_command

RESOLVED = Resolved(
    "minus alive",
    (AtMost("dose", 0.1 + 0.2, name="total dose", range=(0, 10)), AtLeast("consent", 0.9), AtMost("hours", -1 / 3)),
    "5f1d",
)
POLICY = TabularPolicy(np.array([[0.25, 0.75], [1.0, 0.0]]))
ENCODING = Encoding(("wait", "treat"), (StateColumn("pain", ("no", "yes")),), np.arange(2)[:, None])


@pytest.fixture
def run(tmp_path):
    return RunFolder(tmp_path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run, judged in every way and exported."""
    ward = tmp_path_factory.mktemp("ward")
    log, problem, folder = ward / "icu.csv", ward / "icu.toml", ward / "run"
    assert checkrein_command("example", "--out", ward, "--patients", 500).code == 0
    problem.write_text(problem.read_text() + 'margin = "none"\nmax_rounds = 3\n')
    other = ward / "other.csv"
    pl.read_csv(log).filter(pl.col("patient") < 400).write_csv(other)
    assert checkrein_command("fit", problem, "--out", folder).code in (0, 4)
    for command in (
        ("certify", folder, "--data", log),
        ("certify", folder, "--data", log, "--single"),
        ("certify", folder, "--data", other),
        ("sensitivity", folder, "--data", log),
        ("sensitivity", folder, "--data", log, "--single"),
        ("sensitivity", folder, "--data", other),
        ("evaluate", folder, "--data", log, "--estimators", "fqe,dr"),
        ("export", folder, "--format", "json"),
    ):
        done = checkrein_command(*command)
        assert done.code in (0, 5, 6), done
    return folder


def test_every_file_of_a_finished_run_is_one_that_the_folder_knows(finished):
    there = {path.name for path in finished.iterdir()}
    assert there <= names.KNOWN
    unasked = {names.by_method(name, method) for name in names.JUDGED for method in METHODS} | {
        "policy.onnx",
        "card.md",
    }
    assert names.KNOWN - there == unasked | {"uncertified.npz", ".lock"}  # of a cross-fitted run, while one writes


def test_a_finished_run_is_read_back(finished):
    folder = RunFolder(finished)
    assert folder.holds_rounds
    shown = folder.summary()
    resolved, file = folder.resolved(), folder.problem_file()
    assert resolved.objective == file.objective.label == shown.costs[0].name
    assert [(c.name, c.limit) for c in resolved.constraints] == [(row.name, row.limit) for row in shown.costs[1:]]
    assert [c.name for c in folder.certificate().constraints] == [c.name for c in resolved.constraints]
    assert folder.policy().probabilities(np.arange(2)).shape == (2, len(folder.encoding().actions))


def test_judging_needs_no_page(finished, tmp_path):
    again = shutil.copytree(finished, tmp_path / "run")
    (again / names.REPORT).unlink()
    log = finished.parent / "icu.csv"
    assert checkrein_command("certify", again, "--data", log).code in (0, 5, 6)
    assert (again / names.CERTIFICATE).read_bytes() == (finished / names.CERTIFICATE).read_bytes()


def test_constraints_come_back_as_they_were_bit_for_bit(run):
    run.write_problem("title = 'kept'", RESOLVED)
    again = run.resolved()
    assert again == RESOLVED
    assert [type(c) for c in again.constraints] == [AtMost, AtLeast, AtMost]
    assert again.constraints[0].range == (0.0, 10.0)
    assert (run.path / names.PROBLEM).read_text() == "title = 'kept'"


def test_a_constraint_may_hold_any_storable_cost(run):
    @storable
    @dataclass(frozen=True)
    class Doubled:
        column: str

        def per_step(self, transitions, policy):
            return 2 * transitions.cost(self.column)

    constraints = (AtMost(Doubled("dose"), 1.0, name="twice"),)
    run.write_problem("", Resolved("harm", constraints, None))
    assert run.resolved().constraints == constraints


def test_policies_and_what_their_numbers_stand_for_come_back(run):
    run.write_policy(POLICY, None)
    assert run.encoding() is None
    run.write_policy(POLICY, ENCODING)
    assert run.encoding().actions == ("wait", "treat")
    assert np.array_equal(run.policy(single=True).probabilities(np.arange(2)), POLICY.probabilities(np.arange(2)))
    with pytest.raises(StorageError, match="has no policy.npz: it is not the folder of a finished run"):
        run.policy()


READERS = {
    names.RESOLVED: RunFolder.resolved,
    names.PROBLEM: RunFolder.problem_file,
    names.SUMMARY: RunFolder.summary,
    names.CERTIFICATE: RunFolder.certificate,
}


@pytest.mark.parametrize(("name", "read"), READERS.items())
def test_a_missing_file_is_named(run, name, read):
    with pytest.raises((DataError, StorageError), match=rf"no {name} in it|{name} does not exist"):
        read(run)


DAMAGED = {
    **READERS,
    names.ENCODING: RunFolder.encoding,
    names.SINGLE: lambda run: run.policy(single=True),
}


@pytest.mark.parametrize("content", [b"half of a f", b"\xff\xfe", b"{}", b""])
@pytest.mark.parametrize(("name", "read"), DAMAGED.items())
def test_a_damaged_file_is_one_clear_error(run, name, read, content):
    (run.path / name).write_bytes(content)
    with pytest.raises(CheckreinError, match=name):
        read(run)


@pytest.mark.parametrize(
    ("name", "read", "words"),
    [
        (names.RESOLVED, RunFolder.resolved, "holds a EveryAction, not the constraints of a run"),
        (names.ENCODING, RunFolder.encoding, "holds a EveryAction, not an Encoding"),
        (names.SINGLE, lambda run: run.policy(single=True), "holds a EveryAction, not a policy"),
    ],
)
def test_another_kind_of_object_is_named(run, name, read, words):
    storage.save(EveryAction(2), run.path / name)
    with pytest.raises(StorageError, match=words):
        read(run)


def test_what_cannot_be_written_leaves_no_half_file(run, monkeypatch):
    run.write_problem("old", RESOLVED)
    with pytest.raises(StorageError, match="cannot be saved"):
        run.write_problem("old", Resolved("harm", (), object()))
    assert run.resolved() == RESOLVED

    def full(handle):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", full)
    for write in (
        lambda: run.write_problem("new", RESOLVED),
        lambda: run.write_report("new"),
        lambda: run.write_policy(POLICY, ENCODING),
        lambda: run.write_evaluation(pl.DataFrame({"value": [1.0]}), None),
    ):
        with pytest.raises(WriteError, match="cannot be written: disk full"):
            write()
    assert {path.name for path in run.path.iterdir()} == {names.PROBLEM, names.RESOLVED}
    assert (run.path / names.PROBLEM).read_text() == "old"
