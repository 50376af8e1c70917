"""Logs of other kinds, from a file to a policy, by the commands a user types."""

import json
import tomllib

import numpy as np
import polars as pl
import pytest

from checkrein_studies import frozen_lake
from cli.commands import checkrein_command


def test_a_policy_learned_from_a_table_is_played_in_its_environment(tmp_path):
    lake = frozen_lake.lake()
    log = frozen_lake.log(lake, frozen_lake.behavior(lake), episodes=1500, seed=0)
    pl.DataFrame(
        {
            "episode": log.episodes, "step": log.steps, "state": log.states, "action": log.actions,
            "goal": log.cost("goal"), "hole": log.cost("hole"), "done": log.terminals,
        }
    ).write_csv(tmp_path / "lake.csv")  # fmt: skip
    assert checkrein_command("init", tmp_path / "lake.csv", "--out", tmp_path / "first.toml").code == 0
    first = tomllib.loads((tmp_path / "first.toml").read_text())
    assert first["data"]["episode"] == "episode"
    assert first["data"]["terminal"] == "done"
    assert checkrein_command("init", tmp_path / "lake.csv", "--out", tmp_path / "first.toml").code == 2
    (tmp_path / "lake.toml").write_text(
        '[data]\npath = "lake.csv"\nepisode = "episode"\nstep = "step"\nstate = "state"\naction = "action"\n'
        'terminal = "done"\nn_actions = 4\n[objective]\nminimize = "goal"\n'
        '[[constraint]]\nname = "hole"\nat_most = 0.05\n'
    )
    assert checkrein_command("fit", tmp_path / "lake.toml", "--out", tmp_path / "run").code == 0
    done = checkrein_command(
        "rollout", tmp_path / "run", "--env", "FrozenLake8x8-v1", "--episodes", 20, "--max-steps", 200
    )
    assert done.code == 0, done
    assert "20 episodes" in done.out


def test_behavior_is_valued_to_the_end_where_episodes_were_cut_off(tmp_path):
    """One action everywhere: the only policy is behavior itself, so all must agree, and 100% of it can be met."""
    rng, rows = np.random.default_rng(0), []
    for episode in range(300):
        for step in range(5):  # cut off after five steps, unless it ends before
            ended = rng.random() < 0.1
            rows.append((episode, step, int(rng.integers(3)), "go", 1.0, int(ended)))
            if ended:
                break
    names = ["episode", "step", "state", "action", "usage", "done"]
    pl.DataFrame(rows, schema=names, orient="row").write_csv(tmp_path / "log.csv")
    (tmp_path / "problem.toml").write_text(
        '[data]\npath = "log.csv"\nepisode = "episode"\nstep = "step"\nstate = "state"\naction = "action"\n'
        'terminal = "done"\n[objective]\nminimize = "usage"\n[[constraint]]\nname = "limit"\ncost = "usage"\n'
        'at_most = "100% of behavior"\n[learn]\ndiscount = 1\n'
    )
    done = checkrein_command("fit", tmp_path / "problem.toml", "--out", tmp_path / "run")
    assert done.code == 0, done
    assert "are cut off" in done.err
    values = json.loads((tmp_path / "run" / "summary.json").read_text())["costs"][0]["values"]
    assert values["learned"]["held_out"] == pytest.approx(values["behavior"]["held_out"])
    assert values["behavior"]["learning"] == pytest.approx(10.0, rel=0.2)  # not the 4.1 that the log shows


def test_an_hdf5_log_needs_no_columns(tmp_path):
    h5py = pytest.importorskip("h5py")
    rng = np.random.default_rng(0)
    n = 600
    states = rng.normal(size=(n, 2))
    actions = rng.integers(0, 2, n)
    with h5py.File(tmp_path / "log.hdf5", "w") as file:
        file["observations"], file["next_observations"] = states, rng.normal(size=(n, 2))
        file["actions"] = actions
        file["rewards"] = states[:, 0] * (2 * actions - 1)  # right where the first number is positive
        file["costs"] = actions.astype(float)
        file["terminals"] = np.arange(n) % 10 == 9
        file["timeouts"] = np.zeros(n, dtype=bool)
    text = (
        '[data]\npath = "log.hdf5"\n[objective]\nmaximize = "reward"\n'
        '[[constraint]]\nname = "cost"\nat_most = "80% of behavior"\n[learn]\nfunctions = "linear"\ndiscount = 0.9\n'
    )
    (tmp_path / "problem.toml").write_text(text)
    done = checkrein_command("fit", tmp_path / "problem.toml", "--out", tmp_path / "run")
    assert done.code == 0, done
    costs = json.loads((tmp_path / "run" / "summary.json").read_text())["costs"]
    assert costs[0]["values"]["learned"]["held_out"] > costs[0]["values"]["behavior"]["held_out"] + 1
    (tmp_path / "problem.toml").write_text(text.replace("linear", "tabular"))
    refused = checkrein_command("fit", tmp_path / "problem.toml", "--out", tmp_path / "other")
    assert refused.code == 2
    assert "has no finite states" in refused.err
    (tmp_path / "problem.toml").write_text(text.replace('maximize = "reward"', 'maximize = "profit"'))
    assert "it has reward, cost" in checkrein_command("inspect", tmp_path / "problem.toml").err


def test_a_policy_that_need_not_end_is_one_message_and_leaves_nothing(tmp_path):
    rows = [(e, t, t % 2, "go" if t % 3 else "stay", 1.0, 0) for e in range(10) for t in range(6)]
    names = ["episode", "step", "state", "action", "usage", "done"]
    pl.DataFrame(rows, schema=names, orient="row").write_csv(tmp_path / "log.csv")
    (tmp_path / "problem.toml").write_text(
        '[data]\npath = "log.csv"\nepisode = "episode"\nstep = "step"\nstate = "state"\naction = "action"\n'
        'terminal = "done"\n[objective]\nminimize = "usage"\n[learn]\ndiscount = 1\n'
    )
    done = checkrein_command("fit", tmp_path / "problem.toml", "--out", tmp_path / "run")
    assert done.code == 2
    assert "can circle for ever in 2 states" in done.err
    assert not (tmp_path / "run").exists()
