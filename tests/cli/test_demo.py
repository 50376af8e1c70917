import json
import subprocess
import sys

import checkrein
from cli.commands import checkrein_command


def command(*arguments):
    call = [sys.executable, "-m", "checkrein", *arguments]
    return subprocess.run(call, capture_output=True, text=True, timeout=120, check=False)


def test_the_demo_shows_the_four_policies_and_writes_a_run_folder(tmp_path):
    done = command("demo", "--out", str(tmp_path / "run"), "--episodes", "2000")
    assert done.returncode == 0, done.stderr
    for words in ("gap", "Converged", "learned", "behavior", "best without limit", "best within limit", "-0.40762"):
        assert words in done.stdout
    assert json.loads((tmp_path / "run" / "solution.json").read_text())["status"] == "converged"
    page = (tmp_path / "run" / "report.html").read_text()
    assert f"checkrein demo --episodes 2000 --seed 0 --out {tmp_path / 'run'}" in page
    assert "Slippery FrozenLake 8x8" in page
    (tmp_path / "run" / "report.html").unlink()
    again = command("report", str(tmp_path / "run"))
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "run" / "report.html").read_text() == page


def test_a_folder_of_another_run_is_one_message_and_exit_code_two(tmp_path):
    checkrein_command("demo", "--out", tmp_path, "--episodes", 200)
    done = checkrein_command("demo", "--out", tmp_path, "--episodes", 300)
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert "holds another run" in done.err
    assert "Traceback" not in done.err


def test_typos_are_exit_code_two_without_a_traceback():
    for arguments in (["demo", "--episodes", "many"], ["dmeo"], ["demo", "--episodes", "0"]):
        done = checkrein_command(*arguments)
        assert done.code == 2
        assert "Traceback" not in done.err


def test_the_version_is_the_packages():
    assert command("--version").stdout.strip() == checkrein.__version__
