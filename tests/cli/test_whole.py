"""Every command that reads a run checks the whole folder; what is written later joins it; a folder has one writer."""

import shutil
import subprocess
import sys

import pytest

import checkrein
from checkrein.base.errors import CheckpointError, StorageError
from checkrein.base.lock import one_writer
from cli.commands import checkrein_command
from fuzz.attempts import PROBLEM, good_table

HELD_OUT = 'holdout = 0.5\nmargin = "none"\nmax_rounds = 3\n'
READERS = {
    "report": ["report", "run"],
    "certify": ["certify", "run", "--data", "new.csv"],
    "evaluate": ["evaluate", "run", "--data", "new.csv", "--estimators", "naive"],
    "sensitivity": ["sensitivity", "run", "--data", "log.csv"],
    "export": ["export", "run", "--format", "json"],
    "card": ["export", "run", "--format", "card"],
    "rollout": ["rollout", "run", "--env", "FrozenLake-v1"],
    "bounds": ["bounds", "run", "run"],
    "compare": ["compare", "run", "run"],
    "from": ["fit", "problem.toml", "--from", "run", "--out", "other"],
}


@pytest.fixture(scope="module")
def ward(tmp_path_factory):
    """A finished run beside its log."""
    folder = tmp_path_factory.mktemp("ward")
    good_table().write_csv(folder / "log.csv")
    good_table(1).with_columns(patient=good_table()["patient"] + 1000).write_csv(folder / "new.csv")
    (folder / "problem.toml").write_text(PROBLEM + HELD_OUT)
    assert checkrein_command("fit", folder / "problem.toml", "--out", folder / "run").code in (0, 4)
    return folder


@pytest.fixture
def there(ward, tmp_path, monkeypatch):
    """A copy of it, in which a test stands."""
    shutil.copytree(ward, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def swapped(run):
    one, other = sorted((run / "policies").iterdir())[:2] if len(list((run / "policies").iterdir())) > 1 else (
        run / "policy.npz", run / "single.npz",
    )  # fmt: skip
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first + b"\0" * (first == second))


DAMAGE = {
    "missing": (lambda run: (run / "encoding.npz").unlink(), "encoding.npz is missing"),
    "changed": (
        lambda run: (run / "summary.json").write_text((run / "summary.json").read_text() + " "),
        "summary.json",
    ),
    "swapped": (swapped, ".npz is not the file that manifest.json lists"),
    "added": (lambda run: shutil.copy(run / "policy.npz", run / "uncertified.npz"), "uncertified.npz is not listed"),
    "unlisted": (lambda run: (run / "manifest.json").unlink(), "there is no manifest.json in it"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_every_command_that_reads_a_run_refuses_a_damaged_one_in_one_sentence(there, damage):
    harm, words = DAMAGE[damage]
    harm(there / "run")
    for name, command in READERS.items():
        done = checkrein_command(*command)
        assert done.code == 2, (name, done)
        assert words in done.err, name
        assert done.err.count("\n") == 1, name
    with pytest.raises(StorageError, match="run"):
        checkrein.load_policy("run")
    listed = checkrein_command("runs", ".")
    assert listed.code == 0
    assert words in listed.err


def test_certificates_reports_tables_and_exports_join_the_manifest(there):
    for name in ("certify", "evaluate", "export", "card", "report"):
        done = checkrein_command(*READERS[name])
        assert done.code in (0, 5, 6), (name, done)
    done = checkrein_command("certify", "run", "--data", "log.csv", "--method", "dr-t")
    assert done.code in (0, 5, 6), done
    assert checkrein.load_policy("run").encoding is not None
    (there / "run" / "certificate-new.json").write_text("{}")
    done = checkrein_command("report", "run")
    assert done.code == 2
    assert "certificate-new.json is not the file" in done.err


def test_what_nothing_reads_may_be_moved_away_and_a_card_may_be_edited(there):
    for name in ("export", "card"):
        assert checkrein_command(*READERS[name]).code == 0
    (there / "run" / "card.md").write_text("ours")
    (there / "run" / "policy.json").rename(there / "policy.json")
    (there / "run" / "report.html").unlink()
    assert checkrein_command("export", "run", "--format", "json", "--out", "again.json").code == 0
    assert (there / "again.json").read_bytes() == (there / "policy.json").read_bytes()


def test_a_damaged_page_is_made_again_by_report_alone(there):
    page = there / "run" / "report.html"
    before = page.read_bytes()
    page.write_bytes(before + b"<script>")
    assert checkrein_command("export", "run", "--format", "json").code == 2
    assert checkrein_command("report", "run").code == 0
    assert page.read_bytes() == before
    assert checkrein_command("export", "run", "--format", "json").code == 0


def test_a_damaged_run_is_finished_again_by_fit_as_long_as_its_rounds_are_whole(there):
    before = {path.name: path.read_bytes() for path in (there / "run").glob("*.*")}
    (there / "run" / "single.npz").write_bytes(b"")
    (there / "run" / "encoding.npz").unlink()
    assert checkrein_command("fit", "problem.toml", "--out", "run", "--resume").code in (0, 4)
    after = {path.name: path.read_bytes() for path in (there / "run").glob("*.*")}
    told = {"summary.json", "report.html", "manifest.json"}  # the command, which was another one
    assert {name: after[name] for name in before.keys() - told} == {name: before[name] for name in before.keys() - told}
    assert checkrein_command("fit", "problem.toml", "--out", "run", "--resume").code in (0, 4)
    swapped(there / "run")
    (there / "run" / "rounds.jsonl").write_text((there / "run" / "rounds.jsonl").read_text().replace("0.", "1.", 1))
    done = checkrein_command("fit", "problem.toml", "--out", "run", "--resume")
    assert done.code == 2
    assert "is damaged" in done.err or "is not the policy of that round" in done.err


def test_what_was_said_of_another_policy_goes_when_a_run_is_written_anew(there):
    (there / "folds.toml").write_text(PROBLEM)
    assert checkrein_command("fit", "folds.toml", "--out", "folds").code in (0, 6)
    assert checkrein_command("export", "folds", "--uncertified", "--format", "json").code == 0
    assert checkrein_command("fit", "folds.toml", "--out", "folds", "--resume").code in (0, 6)
    assert (there / "folds" / "policy.json").exists()
    (there / "folds.toml").write_text(PROBLEM.replace("150% of", "60% of") + "seed = 3\n")
    assert checkrein_command("fit", "folds.toml", "--out", "folds", "--resume").code in (0, 3, 6)
    assert not (there / "folds" / "policy.json").exists()
    assert checkrein_command("report", "folds").code == 0


def test_two_fits_into_one_folder_are_one_fit_and_one_message(there):
    hold = "import sys; from pathlib import Path; from checkrein.base.lock import one_writer\n" + (
        "with one_writer(Path('new')):\n print(flush=True)\n sys.stdin.read()"
    )
    other = subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    other.stdout.readline()
    try:
        done = checkrein_command("fit", "problem.toml", "--out", "new")
        assert done.code == 2
        assert f"new is being written by process {other.pid}" in done.err
        with pytest.raises(CheckpointError, match="is being written"):
            checkrein.fit("problem.toml", out="new")
    finally:
        other.communicate()
    assert checkrein_command("fit", "problem.toml", "--out", "new").code in (0, 4)
    with one_writer(there / "run"):  # whoever reads is not held up
        assert checkrein.load_policy("run").encoding is not None
