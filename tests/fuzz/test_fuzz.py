"""Two hundred of the attempts that `make fuzz` runs by the thousand."""

import json
import sys

import pytest

from cli.commands import Done
from fuzz import __main__ as fuzzing
from fuzz import attempts, readers
from fuzz.attempts import Ground, documented_codes

BATCH = 20


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    return Ground.made(tmp_path_factory.mktemp("ground"))


@pytest.mark.parametrize("first", range(0, 200, BATCH))
def test_whatever_is_damaged_the_answer_is_documented_and_no_row_is_lost(first, ground, tmp_path):
    for seed in range(first, first + BATCH):
        work = tmp_path / str(seed)
        work.mkdir()
        outcome = ground.attempt(seed, work)
        assert not outcome.trouble, outcome


def test_the_documented_codes_are_those_of_the_page():
    assert documented_codes() == {0, 2, 3, 4, 5, 6, 7, 130, 143}


def test_a_traceback_a_lost_row_and_an_unknown_code_are_found(ground, tmp_path, monkeypatch):
    def broken(*arguments):
        raise ZeroDivisionError(arguments)

    monkeypatch.setattr(attempts, "checkrein_command", broken)
    assert "ZeroDivisionError in" in ground.attempt(0, tmp_path).trouble
    monkeypatch.setattr(attempts, "checkrein_command", lambda *_: attempts_done(9))
    assert ground.attempt(0, tmp_path).trouble == "undocumented exit code 9"
    monkeypatch.setattr(attempts, "checkrein_command", lambda *_: attempts_done(2))
    assert ground.attempt(0, tmp_path).trouble == "code 2 without a message"
    (tmp_path / "log.csv").write_text((ground.folder / "log.csv").read_text())
    (tmp_path / "problem.toml").write_text(attempts.PROBLEM)
    assert "the log has 241 rows, but the data card 240" in attempts._rows_lost(tmp_path, 241)


def attempts_done(code):
    return Done(code, "", "")


def test_what_was_recorded_is_not_run_again(tmp_path, monkeypatch, capsys):
    tried = []
    monkeypatch.setattr(fuzzing.Ground, "made", fuzzing.Ground)
    monkeypatch.setattr(
        fuzzing.Ground,
        "attempt",
        lambda _, seed, __: tried.append(seed) or attempts.Outcome(seed, "csv", "inspect", 0, "", ""),
    )
    monkeypatch.setattr(fuzzing.resource, "setrlimit", lambda *_: None)
    record = tmp_path / "record.jsonl"
    record.write_text(json.dumps({"seed": 1}) + "\n")  # begun by a process that is gone
    monkeypatch.setattr(sys, "argv", ["fuzz", "--attempts", "4", "--record", str(record)])
    monkeypatch.setenv("CHECKREIN_STATE", str(tmp_path))
    for _ in range(2):
        with pytest.raises(SystemExit, match="True"):
            fuzzing.main()
    assert tried == [0, 2, 3]
    assert "3 attempts" in capsys.readouterr().out


def test_a_few_damaged_parquet_files_are_read_whole_or_refused(tmp_path, capfd):
    assert set(readers.files(60, tmp_path)) == {"read", "refused"}


def test_a_few_expressions_are_read_or_refused(capfd):
    assert set(readers.expressions(200)) == {"read", "refused"}
