"""A dozen kills of runs that are taken up again; `make kills` does a thousand."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz import kills


def killed(folder, kinds, count):
    """Kill runs in a process of their own: who forks must not have used polars before."""
    ours = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    asked = ["--kinds", kinds, "--kills", str(count), "--record", str(folder / "record")]
    call, environment = [sys.executable, "-m", "fuzz.kills", *asked], os.environ | {"PYTHONPATH": ours}
    done = subprocess.run(call, env=environment, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done
    found = [json.loads(line) for line in (folder / "record").read_text().splitlines()]
    assert not any(one["trouble"] for one in found)
    return [kill for one in found for kill in one["kills"]]


@pytest.mark.parametrize(
    ("kinds", "count"),
    [("folds,tabular", 12), pytest.param("features,linear,trees", 18, marks=pytest.mark.slow)],
)
def test_killed_and_taken_up_again_a_run_ends_in_the_folder_of_an_unbroken_one(kinds, count, tmp_path):
    found = killed(tmp_path, kinds, count)
    assert len(found) == count
    assert sum(kill["partial"] for kill in found) > count / 3


def test_what_is_not_as_it_should_be_is_found(tmp_path, monkeypatch):
    ground, work = kills.Ground("folds", tmp_path / "ground", 0, 9), tmp_path / "work"
    for folder in (ground.folder / "run", work / "run"):
        folder.mkdir(parents=True)
        (folder / "policy.npz").write_text(folder.parent.name)
    blow = kills.Blow(1, 0.0)
    (work / "output.txt").write_text("fine")
    assert ground._odd(work, -signal.SIGKILL, blow) == []
    assert "ended with 1 at" in ground._odd(work, 1, blow)[0]
    (work / "output.txt").write_text("Traceback (most recent call last)")
    assert "said at" in ground._odd(work, -signal.SIGKILL, blow)[0]
    (work / "output.txt").write_text("interrupted\ninterrupted\n")
    assert "said at" in ground._odd(work, 130, blow)[0]
    monkeypatch.setattr(kills.RunFolder, "opened", lambda _: None)
    (work / "output.txt").write_text("")
    assert "half a run was taken for a finished one" in ground._odd(work, -signal.SIGKILL, blow)[0]
    for name in ("log.csv", "problem.toml"):
        (ground.folder / name).write_text("")
    monkeypatch.setattr(kills, "strike", lambda *_, **__: 0)
    monkeypatch.setattr(kills, "start", lambda *_, **__: None)
    monkeypatch.setattr(kills, "ended", lambda _: 2)
    monkeypatch.setattr(kills.Ground, "_odd", lambda *_: [])
    again = tmp_path / "again"
    again_made = kills.Path.mkdir

    def with_output(self, *arguments, **options):
        again_made(self, *arguments, **options)
        (again / "output.txt").write_text("refused")

    monkeypatch.setattr(kills.Path, "mkdir", with_output)
    trouble = ground.chain(0, again, 3)["trouble"]
    assert trouble == ["resumed, it ended with 2: refused", "not as the unbroken run: ['policy.npz']"]


def test_what_was_recorded_is_not_run_again(tmp_path, monkeypatch, capsys):
    seeds = []

    class Still:
        def chain(self, seed, work, most):
            seeds.append(seed)
            work.mkdir()
            kill = {"signals": [9], "event": 1, "partial": True}
            return {"seed": seed, "kind": "folds", "kills": [kill] * min(2, most), "trouble": []}

    monkeypatch.setattr(kills.Ground, "made", lambda *_: Still())
    monkeypatch.setattr(sys, "argv", ["kills", "--kills", "5", "--record", str(tmp_path / "record")])
    for _ in range(2):
        with pytest.raises(SystemExit, match="False"):
            kills.main()
    assert seeds == [0, 1, 2]
    assert "5 kills in 3 runs, 5 by SIGKILL, 5 of half a run" in capsys.readouterr().out
