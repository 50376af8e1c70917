"""Where a run is made must not matter: clocks, cores, locales, time zones, and paths with spaces and other letters."""

import os
import subprocess
import sys
import time

import pytest

from cli.commands import checkrein_command
from fuzz.attempts import PROBLEM, good_table

LEARN = 'holdout = 0.5\nmargin = "none"\nmax_rounds = 3\n'
OTHER = "Ünï cödé  ☃ 日本"


def write(folder):
    """A log whose columns, values and file have other letters, too."""
    folder.mkdir(parents=True)
    table = good_table().rename({"severity": "schwére"})
    table.with_columns(schwére=table["schwére"].replace("high", "höch ☃")).write_csv(folder / "lög 1.csv")
    text = PROBLEM.replace("log.csv", "lög 1.csv").replace('"severity"', '"schwére"') + LEARN
    (folder / "pröblem 1.toml").write_text(text, encoding="utf-8")


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def wanted(tmp_path_factory):
    """The files of a run in usual surroundings."""
    folder = tmp_path_factory.mktemp("plain") / "here"
    write(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert checkrein_command("fit", "pröblem 1.toml", "--out", "laüf 1").code in (0, 4)
    return contents(folder / "laüf 1")


SURROUNDINGS = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "LANG": "", "TZ": "Pacific/Kiritimati"}


def test_on_one_core_elsewhere_on_a_plain_terminal_and_in_another_time_a_run_is_the_same(wanted, tmp_path):
    folder = tmp_path / OTHER
    write(folder)
    one_core = "import os, sys\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
    call = f"{one_core}sys.argv[0] = 'checkrein'\nfrom checkrein.__main__ import main\nmain()"
    done = subprocess.run(
        [sys.executable, "-c", call, "fit", "pröblem 1.toml", "--out", "laüf 1"],
        cwd=folder,
        env=os.environ | SURROUNDINGS,
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, 4), done
    assert b"Traceback" not in done.stderr
    assert contents(folder / "laüf 1") == wanted


def test_a_clock_that_was_moved_back_does_not_matter(wanted, tmp_path, monkeypatch):
    write(tmp_path / "ward")
    monkeypatch.chdir(tmp_path / "ward")
    calls = []

    def stop(costs, played):
        calls.append(played.index)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("checkrein.cli.learn.progress_line", stop)
        assert checkrein_command("fit", "pröblem 1.toml", "--out", "laüf 1").code == 130
    assert calls == [1]
    (tmp_path / "ward" / "laüf 1" / ".lock").write_text("process 1 since 2999-01-01 00:00:00")
    for path in (tmp_path / "ward").rglob("*"):
        os.utime(path, (4e9, 4e9))  # as if all had been written in 2096
    begun = time.time()
    monkeypatch.setattr(time, "time", lambda: begun - 1e9)
    assert checkrein_command("fit", "pröblem 1.toml", "--out", "laüf 1", "--resume").code in (0, 4)
    assert contents(tmp_path / "ward" / "laüf 1") == wanted
