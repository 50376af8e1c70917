import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from checkrein import AtMost, CuttingPlane, load_policy, solve
from checkrein.base.errors import CheckpointError
from checkrein.game import checkpoint
from problems import PLAYERS, binding_limits, exact_problem, random_mdp

MDP = random_mdp(0, n_constraints=2, n_states=15)
LIMITS = binding_limits(MDP)
PROBLEM = exact_problem(MDP, LIMITS)


def run(folder, *, problem=PROBLEM, max_rounds=100, **changes):
    choices = PLAYERS | {"learner": CuttingPlane(50.0), "tolerance": 1e-7}
    return solve(problem, **choices | changes, max_rounds=max_rounds, checkpoint=folder)


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_run_folder_holds_all_that_came_out_and_no_code(tmp_path):
    solution = run(tmp_path)
    names = set(contents(tmp_path))
    assert {"settings.json", "rounds.jsonl", "solution.json", "policy.npz", "policies/main-00001.npz"} <= names
    assert "manifest.json" in names
    assert {Path(name).suffix for name in names} == {".json", ".jsonl", ".npz"}
    lines = [json.loads(line) for line in (tmp_path / "rounds.jsonl").read_text().splitlines()]
    assert [line["index"] for line in lines] == list(range(1, len(solution.rounds) + 1))
    assert lines[-1]["gap"] == solution.gap
    summary = json.loads((tmp_path / "solution.json").read_text())
    assert summary["status"] == "converged"
    assert summary["values"] == solution.values
    states = np.arange(MDP.n_states)
    policy = load_policy(tmp_path / "policy.npz")
    assert np.array_equal(policy.probabilities(states), solution.policy.probabilities(states))


def test_a_run_stopped_early_and_resumed_equals_the_unbroken_one(tmp_path):
    whole = run(tmp_path / "whole")
    for rounds in (3, 4, 9):
        run(tmp_path / "parts", max_rounds=rounds)
    seen = []
    resumed = run(tmp_path / "parts", on_round=seen.append)
    assert [played.index for played in seen] == list(range(10, len(whole.rounds) + 1))
    assert resumed.values == whole.values
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def test_a_finished_run_is_not_played_again(tmp_path):
    run(tmp_path)
    before = contents(tmp_path)
    seen = []
    run(tmp_path, on_round=seen.append)
    assert seen == []
    assert contents(tmp_path) == before


@pytest.mark.parametrize("kills", [4, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_at_random_moments_a_run_equals_the_unbroken_one_bit_for_bit(kills, tmp_path):
    script = Path(__file__).with_name("kill_and_resume.py")
    ours = os.pathsep.join([str(script.parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": ours, "OMP_NUM_THREADS": "1"}
    call = [sys.executable, str(script), str(tmp_path), str(kills)]
    done = subprocess.run(call, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    progress = json.loads(done.stdout)
    assert len(progress) == kills
    assert len(set(progress)) > {4: 1, 20: 10}[kills]  # killed at different moments of the run
    assert progress[-1] < 400  # and before its end
    assert contents(tmp_path / "killed") == contents(tmp_path / "unbroken")


@pytest.mark.parametrize("cut", [1, 17, 60])
def test_a_line_cut_off_in_the_middle_of_a_write_is_played_again(cut, tmp_path):
    run(tmp_path / "whole")
    run(tmp_path / "torn", max_rounds=4)
    path = tmp_path / "torn" / "rounds.jsonl"
    path.write_bytes(path.read_bytes()[:-cut])
    (tmp_path / "torn" / "policies" / ".main-00005.npz.abc.tmp").write_bytes(b"half")
    run(tmp_path / "torn")
    assert contents(tmp_path / "torn") == contents(tmp_path / "whole")


def test_an_infeasible_run_resumes_too(tmp_path):
    problem = exact_problem(MDP, [AtMost(limit.cost, 0.1) for limit in LIMITS])
    whole = run(tmp_path / "whole", problem=problem)
    assert whole.status == "infeasible"
    path = tmp_path / "parts"
    run(path, problem=problem)
    lines = (path / "rounds.jsonl").read_text().splitlines(keepends=True)
    (path / "rounds.jsonl").write_text("".join(lines[:-2]))
    run(path, problem=problem)
    assert contents(path) == contents(tmp_path / "whole")


OTHER = {
    "seed": {"seed": 1},
    "learner": {"learner": CuttingPlane(49.0)},
    "constraints": {"problem": exact_problem(MDP, [LIMITS[0]])},
    "dataset": {"problem": exact_problem(random_mdp(1, n_constraints=2, n_states=15), LIMITS)},
}


@pytest.mark.parametrize("difference", OTHER)
def test_a_folder_of_another_run_is_refused_and_left_alone(difference, tmp_path):
    run(tmp_path, max_rounds=3)
    before = contents(tmp_path)
    with pytest.raises(CheckpointError, match=f"holds another run .*{difference} was"):
        run(tmp_path, **OTHER[difference])
    assert contents(tmp_path) == before


def test_damage_is_named(tmp_path):
    run(tmp_path, max_rounds=3)
    lines = (tmp_path / "rounds.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "rounds.jsonl").write_bytes(lines[0] + b"{broken\n" + lines[2])
    with pytest.raises(CheckpointError, match="rounds.jsonl is damaged"):
        run(tmp_path)
    (tmp_path / "rounds.jsonl").write_bytes(lines[0] + lines[2])
    with pytest.raises(CheckpointError, match="has round 3 where 2 should be"):
        run(tmp_path)
    (tmp_path / "settings.json").write_text("{")
    with pytest.raises(CheckpointError, match="settings.json is damaged"):
        run(tmp_path)


def test_a_record_that_does_not_follow_from_the_settings_is_refused(tmp_path):
    run(tmp_path, max_rounds=3)
    lines = [json.loads(line) for line in (tmp_path / "rounds.jsonl").read_text().splitlines()]
    lines[1]["objective"] += 1.0
    (tmp_path / "rounds.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(CheckpointError, match="rounds.jsonl is damaged: line 2 was changed"):
        run(tmp_path)
    before = ""
    for line in lines:  # as if it had been recorded so
        del line["check"]
        before = line["check"] = checkpoint._check(before, line)
    (tmp_path / "rounds.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(CheckpointError, match="round 3 was recorded at multipliers"):
        run(tmp_path)


def test_the_policy_of_another_round_is_noticed(tmp_path):
    run(tmp_path, max_rounds=3)
    one, other = (tmp_path / "policies" / f"main-0000{index}.npz" for index in (1, 2))
    first, second = one.read_bytes(), other.read_bytes()
    assert first != second
    one.write_bytes(second)
    other.write_bytes(first)
    with pytest.raises(CheckpointError, match=r"main-00001.npz is not the policy of that round"):
        run(tmp_path)


def test_a_game_that_is_interrupted_is_not_taken_for_a_finished_one(tmp_path):
    def stop(played):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, on_round=stop)
    assert not (tmp_path / "manifest.json").exists()
    assert not (tmp_path / ".lock").exists()


def test_a_file_is_no_run_folder_and_a_run_that_fails_at_once_leaves_none(tmp_path):
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(CheckpointError, match="cannot be a run folder"):
            run(place, max_rounds=2)

    def broken(problem, multipliers, *, rng, start=None):
        raise RuntimeError("no answer")

    with pytest.raises(RuntimeError, match="no answer"):
        run(tmp_path / "none", best_response=broken)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("name", ["settings.json", "rounds.jsonl"])
def test_a_folder_in_the_place_of_a_file_is_named(name, tmp_path):
    (tmp_path / name).mkdir()
    with pytest.raises(CheckpointError, match=rf"{name} is damaged .*choose another folder"):
        checkpoint.read_settings(tmp_path) if name == "settings.json" else checkpoint._records(tmp_path / name)
