"""Ctrl-C and SIGTERM at any moment end a command with one line and the documented code; full disks lose nothing."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import checkrein.__main__ as command_line
from checkrein.base import storage
from checkrein.base.errors import Stopped
from cli.commands import checkrein_command
from fuzz.attempts import PROBLEM, good_table

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
WAIT = "import sys, time\nprint('here', flush=True)\ntime.sleep(60)"
NEVER = 60  # seconds


def ended(process, *signals):
    """Send signals, one right after the other, and return the exit code and what was said."""
    for number in signals:
        process.send_signal(number)
        time.sleep(0.01)
    _, said = process.communicate(timeout=NEVER)
    return process.returncode, said


def command(*arguments, before="", **options):
    """Start a command, as the console script does, once `before` has run."""
    called = f"sys.argv[1:] = {list(map(str, arguments))!r}\nfrom checkrein.__main__ import main\nmain()"
    start = f"import sys\n{before}\n{called}"
    return subprocess.Popen(
        [sys.executable, "-c", start], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


@pytest.mark.parametrize("signals", [(signal.SIGINT,), (signal.SIGTERM,), (signal.SIGINT, signal.SIGINT)])
def test_while_packages_are_imported(signals, tmp_path):
    (tmp_path / "typer.py").write_text(WAIT)
    before = f"sys.path.insert(0, {str(tmp_path)!r})"
    process = command("--version", before=before)
    assert process.stdout.readline() == "here\n"
    code, said = ended(process, *signals)
    assert (code, said) == (CODES[signals[0]], "interrupted\n")


@pytest.mark.parametrize("signals", [(signal.SIGINT,), (signal.SIGTERM,), (signal.SIGINT, signal.SIGTERM)])
def test_while_a_command_works(signals, tmp_path):
    good_table().write_csv(tmp_path / "log.csv")
    (tmp_path / "problem.toml").write_text(PROBLEM)
    wait = f"import checkrein.runs.prepare as p\ndef prepare(*a, **k):\n exec({WAIT!r})\np.prepare = prepare"
    process = command("fit", "problem.toml", "--out", "run", before=wait, cwd=tmp_path)
    assert process.stdout.readline() == "here\n"
    code, said = ended(process, *signals)
    assert (code, said) == (CODES[signals[0]], "interrupted\n")
    assert len(signals) > 1 or not (tmp_path / "run").exists()


def test_where_python_would_swallow_it(tmp_path):
    inside = "class Slow:\n def __del__(self):\n  print('here', flush=True)\n  import time; time.sleep(60)\n"
    wait = f"{inside}import checkrein.cli as c\ndef slow():\n it = Slow()\n del it\nc.app = slow"
    process = command("--version", before=wait)
    assert process.stdout.readline() == "here\n"
    assert ended(process, signal.SIGINT) == (130, "interrupted\n")


def test_after_a_command_has_ended():
    wait = f"import atexit, checkrein.cli as c\ncli_main = c.main\ndef slow():\n exec({WAIT!r}, {{}})\n"
    wait += "c.main = lambda: (atexit.register(slow), cli_main())"
    process = command("--version", before=wait)
    assert process.stdout.readline() != "here\n"
    assert process.stdout.readline() == "here\n"
    assert ended(process, signal.SIGINT) == (130, "interrupted\n")


@pytest.mark.slow
@pytest.mark.parametrize("number", CODES)
def test_at_any_moment_from_the_first_import_on(number, tmp_path):
    good_table().write_csv(tmp_path / "log.csv")
    (tmp_path / "problem.toml").write_text(PROBLEM)
    for place in range(12):
        marked = (
            "import os, checkrein.__main__ as m\ninstall = m.Signals.install\n"  # before that, we are not there yet
        )
        marked += "m.Signals.install = lambda self: (install(self), os.write(1, b'.'))"
        process = command("fit", "problem.toml", "--out", f"run{place}", before=marked, cwd=tmp_path)
        process.stdout.read(1)
        time.sleep(0.15 * place)
        code, said = ended(process, *([number] * (1 + place % 2)))
        assert code in (CODES[number], 0, 6), (place, code, said)
        assert code in (0, 6) or (said.count("interrupted") == 1 and "Traceback" not in said), (place, said)


def test_the_first_signal_is_raised_and_the_next_one_ends_the_process(monkeypatch):
    ends = []
    monkeypatch.setattr(command_line.os, "_exit", ends.append)
    monkeypatch.setattr(command_line.os, "write", lambda _, text: ends.append(text))
    signals = command_line.Signals()
    signals.raises = True
    with pytest.raises(Stopped) as first:
        signals.meet(signal.SIGTERM, None)
    assert first.value.code == 143
    with pytest.raises(Stopped):
        signals.meet(signal.SIGINT, None)  # it ends, but for the test
    assert ends == [b"interrupted\n", 143]
    first.value.told = True
    with pytest.raises(Stopped):
        signals.meet(signal.SIGINT, None)
    assert ends[2:] == [143]


class Disk:
    """A disk that is full from its so-many-th write on."""

    def __init__(self, room):
        self.room = room

    def fsync(self, handle):
        self.room -= 1
        if self.room < 0:
            raise OSError(errno.ENOSPC, "No space left on device")


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


HELD_OUT = 'holdout = 0.5\nmargin = "none"\nmax_rounds = 3\n'


@pytest.mark.parametrize("learn", [pytest.param(HELD_OUT, id="held out"), pytest.param("", id="cross-fitted")])
def test_wherever_the_disk_is_full_it_is_one_message_and_resumed_the_run_is_the_unbroken_one(
    learn, tmp_path, monkeypatch
):
    for name in ("whole", "full"):
        (tmp_path / name).mkdir()
        good_table().write_csv(tmp_path / name / "log.csv")
        (tmp_path / name / "problem.toml").write_text(PROBLEM + learn)
    monkeypatch.chdir(tmp_path / "whole")
    code = checkrein_command("fit", "problem.toml", "--out", "run").code
    assert code in (0, 4, 6)
    wanted = contents(Path("run"))
    monkeypatch.chdir(tmp_path / "full")
    for room in (0, 2, 5, 9):  # and each is taken up where the last one stopped
        with monkeypatch.context() as patch:
            patch.setattr(storage.os, "fsync", Disk(room).fsync)
            done = checkrein_command("fit", "problem.toml", "--out", "run", "--resume")
        if done.code == code:
            continue  # it had room enough
        assert done.code == 2, done
        assert "cannot be written: No space left on device" in done.err
        assert done.err.rstrip().endswith("fit problem.toml --out run --resume")
        assert done.err.count("error:") == 1
        assert "Traceback" not in done.err
        if Path("run").exists():
            assert not list(Path("run").rglob(".*"))
            assert checkrein_command("export", "run", "--format", "json", "--out", "x.json").code == 2
    assert checkrein_command("fit", "problem.toml", "--out", "run", "--resume").code == code
    assert contents(Path("run")) == wanted


def test_a_quota_that_ends_a_write_halfway_is_one_message(tmp_path):
    """RLIMIT_FSIZE is a quota of one file; SIGXFSZ is ignored by Python, so that the write fails."""
    resource = pytest.importorskip("resource")
    good_table().write_csv(tmp_path / "log.csv")
    (tmp_path / "problem.toml").write_text(PROBLEM)
    done = subprocess.run(
        [sys.executable, "-m", "checkrein", "fit", "problem.toml", "--out", "run"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000)),
    )
    assert done.returncode == 2, done
    assert "cannot be written: File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_read_only_is_one_message_before_anything_is_learned(tmp_path):
    good_table().write_csv(tmp_path / "log.csv")
    (tmp_path / "problem.toml").write_text(PROBLEM)
    tmp_path.chmod(0o555)
    done = checkrein_command("fit", tmp_path / "problem.toml", "--out", tmp_path / "run")
    assert done.code == 2
    assert "cannot be a run folder: Permission denied" in done.err
