"""A run that does not fit into memory is refused before it begins, with what to do instead."""

import numpy as np
import polars as pl
import pytest

from checkrein import read_logs
from checkrein.base import memory
from checkrein.base.errors import ResourceError
from checkrein.base.memory import available, in_words, memory_of, require_memory
from checkrein.runs.needs import memory_needed
from checkrein.runs.prepare import prepare
from cli.commands import checkrein_command

PROBLEM = """\
[data]
path = "log.parquet"
episode = "e"
state = ["s"]
action = "a"
[objective]
minimize = "c"
[[constraint]]
name = "d"
at_most = 10
[learn]
functions = "tabular"
"""


def written(folder, *, rows=400, states=4, actions=2, problem=PROBLEM):
    n = np.arange(rows)
    table = {"e": n // 4, "s": n % states, "a": (n // 3) % actions, "c": n % 5, "d": n % 7 / 7}
    pl.DataFrame(table).write_parquet(folder / "log.parquet")
    (folder / "problem.toml").write_text(problem)
    return folder / "problem.toml"


def test_a_run_that_needs_more_than_there_is_is_refused_before_it_begins(tmp_path):
    problem = written(tmp_path, rows=4000, states=1000, actions=500)
    done = checkrein_command("fit", problem, "--out", tmp_path / "run", "--max-memory", "2GB")
    assert done.code == 2
    assert "learning from 4,000 rows with 1,000 states and 500 actions needs about" in done.err
    assert "2.0 GB may be used: group states or actions" in done.err
    assert not (tmp_path / "run").exists()


def test_a_small_run_says_nothing_of_memory(tmp_path):
    done = checkrein_command("fit", written(tmp_path), "--out", tmp_path / "run", "--max-memory", "2GB")
    assert done.code in (3, 6)
    assert "memory" not in done.out


@pytest.mark.parametrize("text", ["", "8", "GB", "-1GB", "0GB", "8 PB", "nan GB"])
def test_a_memory_that_is_not_understood_is_said(text, tmp_path):
    done = checkrein_command("fit", written(tmp_path), "--out", tmp_path / "run", "--max-memory", text)
    assert done.code == 2
    assert "write it like 8GB" in done.err


def test_memory_is_read_and_written():
    assert memory_of("8GB") == 8e9
    assert memory_of(" 1.5 gib ") == 1.5 * 2**30
    words = ["5.0 MB", "1.5 GB", "75 GB", "120 GB", "3.6 TB"]
    assert [in_words(size) for size in (5e6, 1.5e9, 7.5e10, 1.2e11, 3.6e12)] == words


def test_what_is_free_is_found_and_is_infinite_where_the_system_does_not_say(monkeypatch, tmp_path):
    assert 0 < available() < 1e15
    (tmp_path / "memory.max").write_text("5000000\n")
    (tmp_path / "memory.current").write_text("2000000\n")
    monkeypatch.setattr(memory, "GROUP", tmp_path)
    assert available() == 3e6
    with pytest.raises(ResourceError, match=r"a step needs about 4.0 MB of memory, and 3.0 MB are free: wait"):
        require_memory(4e6, "a step", "wait")
    (tmp_path / "memory.max").write_text("max\n")
    monkeypatch.setattr(memory, "MACHINE", tmp_path / "nothing")
    assert available() > 1e9


def test_needs_grow_with_all_that_takes_memory(tmp_path):
    small = memory_needed(prepare(written(tmp_path)))
    for larger in ({"rows": 800}, {"states": 8}, {"actions": 4}):
        assert memory_needed(prepare(written(tmp_path, **larger))) > small
    for problem in (PROBLEM + "holdout = 0.5\n", PROBLEM.replace('"tabular"', '"features"')):
        few = memory_needed(prepare(written(tmp_path, problem=problem)))
        assert memory_needed(prepare(written(tmp_path, rows=800, actions=4, problem=problem))) > few


def test_a_log_that_does_not_fit_is_refused_before_it_is_read(tmp_path, monkeypatch):
    written(tmp_path)
    monkeypatch.setattr(memory, "available", lambda: 1e5)
    with pytest.raises(ResourceError, match=r"reading 400 rows of 4 columns needs .*read_compressed"):
        read_logs(tmp_path / "log.parquet", episode="e", state="s", action="a", costs="c")


def test_memory_that_runs_out_all_the_same_is_one_message(tmp_path, monkeypatch):
    def full(*_, **__):
        raise MemoryError("Unable to allocate 75 GiB")

    problem = written(tmp_path)
    monkeypatch.setattr("checkrein.runs.prepare.prepare", full)
    done = checkrein_command("inspect", problem)
    assert done.code == 2
    assert "memory ran out (Unable to allocate 75 GiB): use fewer states" in done.err
