"""A folder has one writer; a lock ends with its process, however that ends."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from checkrein.base.errors import CheckpointError, WriteError
from checkrein.base.lock import LOCK, one_writer

HOLD = "import sys, time; from pathlib import Path; from checkrein.base.lock import one_writer\n" + (
    "with one_writer(Path(sys.argv[1])):\n print('held', flush=True)\n time.sleep(60)"
)


@pytest.fixture
def other(tmp_path):
    """Another process that holds the folder."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path / "run")], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_while_another_process_holds_a_folder_it_is_refused_and_named(other, tmp_path):
    with (
        pytest.raises(CheckpointError, match=f"is being written by process {other.pid} since"),
        one_writer(tmp_path / "run"),
    ):
        pass


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_lock_of_a_process_that_is_gone_is_free(other, tmp_path, how):
    other.send_signal(how)
    other.wait()
    assert (tmp_path / "run" / LOCK).exists()
    with one_writer(tmp_path / "run") as alone:
        assert alone
    assert not (tmp_path / "run" / LOCK).exists()


def test_a_lock_file_that_another_process_wrote_and_let_go_of_holds_nobody_up(tmp_path):
    (tmp_path / LOCK).write_text(f"process {os.getpid()} since 2999-01-01 00:00:00")
    with one_writer(tmp_path):
        pass
    assert not list(tmp_path.iterdir())


def test_who_holds_a_folder_may_take_it_again_but_another_thread_may_not(tmp_path):
    found = []

    def attempt():
        try:
            with one_writer(tmp_path):
                found.append("taken")
        except CheckpointError:
            found.append("refused")

    with one_writer(tmp_path) as first, one_writer(tmp_path / "." / "x" / "..") as again:
        assert (first, again) == (True, False)
        threading.Thread(target=attempt).start()
        until = time.monotonic() + 30
        while not found and time.monotonic() < until:
            time.sleep(0.01)
    assert found == ["refused"]


def test_what_a_killed_writer_left_behind_is_removed(tmp_path):
    (tmp_path / "policies").mkdir()
    for name in (".summary.json.abc.tmp", "policies/.main-00001.npz.abc.tmp", "mine.tmp"):
        (tmp_path / name).write_text("half")
    with one_writer(tmp_path):
        assert {path.name for path in tmp_path.rglob("*")} == {"policies", "mine.tmp", LOCK}


def test_folders_that_were_made_and_stay_empty_are_removed(tmp_path):
    with pytest.raises(ZeroDivisionError), one_writer(tmp_path / "a" / "b"):
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())
    with one_writer(tmp_path / "a" / "b"):
        (tmp_path / "a" / "b" / "file").write_text("")
    assert (tmp_path / "a" / "b" / "file").exists()


def test_a_file_in_the_place_of_a_folder_and_a_disk_that_is_read_only_are_told(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(CheckpointError, match="there is a file in its place"), one_writer(place):
            pass

    def refused(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(WriteError, match="cannot be written: Permission denied"), one_writer(tmp_path):
        pass
    monkeypatch.setattr(os, "mkdir", refused)
    with pytest.raises(WriteError, match="cannot be a run folder: Permission denied"), one_writer(tmp_path / "new"):
        pass
