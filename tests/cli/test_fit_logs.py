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
        '[[constraint]]\nname = "hole"\nat_most = 0.05\n[learn]\nmargin = "none"\n'
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
        'at_most = "100% of behavior"\n[learn]\ndiscount = 1\n[certify]\nmethod = "fqe-t"\n'
    )
    done = checkrein_command("fit", tmp_path / "problem.toml", "--out", tmp_path / "run")
    assert done.code == 0, done
    assert "are cut off" in done.err
    values = json.loads((tmp_path / "run" / "summary.json").read_text())["costs"][0]["values"]
    assert values["learned"]["held_out"] == pytest.approx(values["behavior"]["held_out"])
    assert values["behavior"]["learning"] == pytest.approx(10.0, rel=0.2)  # not the 4.1 that the log shows


def test_a_state_that_lacks_something_is_a_warning_and_keeps_the_certificate_from_passing(tmp_path):
    """What a step does harm by is the action before, which no column tells."""
    rng, rows = np.random.default_rng(0), []
    for episode in range(600):
        before = 0
        for step in range(6):
            action, ended = int(rng.integers(2)), rng.random() < 0.1
            harm = int(rng.random() < 0.1 + 0.6 * before)
            rows.append((episode, step, int(rng.integers(2)), action, 1.0 - 0.1 * action, harm, int(ended)))
            before = action
            if ended:
                break
    names = ["episode", "step", "state", "action", "effort", "harm", "done"]
    pl.DataFrame(rows, schema=names, orient="row").write_csv(tmp_path / "log.csv")
    (tmp_path / "problem.toml").write_text(
        '[data]\npath = "log.csv"\nepisode = "episode"\nstep = "step"\nstate = "state"\naction = "action"\n'
        'terminal = "done"\n[objective]\nminimize = "effort"\n[[constraint]]\nname = "harm"\ncost = "harm"\n'
        "at_most = 9\n[learn]\ndiscount = 0.9\nholdout = 0.5\n"
    )
    done = checkrein_command("fit", tmp_path / "problem.toml", "--out", tmp_path / "run")
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert any("the last action foretells what a step costs" in said for said in summary["card"]["warnings"]), done
    certificate = json.loads((tmp_path / "run" / "certificate.json").read_text())
    assert certificate["verdict"] == "inconclusive"
    assert "the state lacks something" in certificate["reason"]
    assert "the state lacks something" in (tmp_path / "run" / "report.html").read_text()


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


def stays_of_patients(folder, *, patients=80, stays=4):
    """Write a log of one-step stays, and a problem on it that says whose they are."""
    rng = np.random.default_rng(0)
    whose = np.repeat(np.arange(patients), stays)
    drug = rng.integers(0, 2, whose.size)
    harm = rng.random(whose.size) < np.where(rng.random(patients) < 0.5, 0.05, 0.35)[whose] * (1 + drug) / 2
    pl.DataFrame(
        {
            "stay": np.arange(whose.size), "patient": [f"p{i}" for i in whose], "ward": 0, "drug": drug,
            "pain": 1.0 - drug, "harm": harm.astype(int), "done": 1,
        }
    ).write_csv(folder / "stays.csv")  # fmt: skip
    (folder / "stays.toml").write_text(
        '[data]\npath = "stays.csv"\nepisode = "stay"\ncluster = "patient"\nstate = "ward"\naction = "drug"\n'
        'terminal = "done"\n[objective]\nminimize = "pain"\n[[constraint]]\nname = "harm"\nat_most = 0.6\n'
        '[learn]\nmargin = "none"\ndiscount = 1\n[certify]\nmethod = "fqe-t"\n'
    )


def test_clusters_of_a_log_are_held_out_whole_counted_and_told(tmp_path):
    stays_of_patients(tmp_path)
    shown = checkrein_command("inspect", tmp_path / "stays.toml")
    assert "in 80 clusters of up to 4" in " ".join(shown.out.split())
    done = checkrein_command("fit", tmp_path / "stays.toml", "--out", tmp_path / "run")
    assert done.code == 0, done
    assert "160 episodes in 40 clusters" in " ".join(done.out.split())
    found = json.loads((tmp_path / "run" / "certificate.json").read_text())
    assert (found["episodes"], found["clusters"]) == (160, 40)
    assert found["checks"][0]["words"] == "40 clusters judge"
    page = (tmp_path / "run" / "report.html").read_text()
    assert "160, in 40 clusters, which are what was counted" in page
    assert "320, in 80 clusters of up to 4" in page
    assert "160 held-out episodes of 40 clusters" in page
    valued = checkrein_command("evaluate", tmp_path / "run", "--data", tmp_path / "stays.csv", "--estimators", "fqe")
    assert "160 episodes in 40 clusters of the held-out part" in " ".join(valued.out.split()), valued


def test_a_first_problem_file_guesses_whose_stays_they_are(tmp_path):
    stays_of_patients(tmp_path)
    pl.read_csv(tmp_path / "stays.csv").rename({"stay": "episode"}).write_csv(tmp_path / "log.csv")
    assert checkrein_command("init", tmp_path / "log.csv", "--out", tmp_path / "first.toml").code == 0
    data = tomllib.loads((tmp_path / "first.toml").read_text())["data"]
    assert (data["episode"], data["cluster"]) == ("episode", "patient")
    assert "patient" not in data["state"]


def test_a_cluster_of_a_log_without_columns_is_refused(tmp_path):
    (tmp_path / "p.toml").write_text(
        '[data]\npath = "minari:some/log-v0"\ncluster = "patient"\n[objective]\nmaximize = "reward"\n'
    )
    done = checkrein_command("inspect", tmp_path / "p.toml")
    assert done.code == 2
    assert "cluster names a column of a table, but this log is none" in " ".join(done.err.split())


def test_what_candidates_come_to_is_listed_once_and_what_came_to_the_same_is_counted(tmp_path):
    rng = np.random.default_rng(0)
    segment, item = rng.integers(0, 2, 600), rng.integers(0, 4, 600)
    click = (rng.random(600) < 0.1 + 0.05 * item).astype(int)
    pl.DataFrame({"segment": segment, "item": item, "click": click}).write_csv(tmp_path / "log.csv")
    (tmp_path / "p.toml").write_text(
        '[data]\npath = "log.csv"\nstate = "segment"\naction = "item"\n[objective]\nmaximize = "click"\n'
        '[[constraint]]\nname = "moved"\nkind = "total variation"\nat_most = 1\n[learn]\ndiscount = 1\n'
    )
    done = checkrein_command("fit", tmp_path / "p.toml", "--out", tmp_path / "run")
    assert done.code in (0, 6), done
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    tried = len(summary["sequence"]["candidates"])
    rows = [line for line in done.out.splitlines() if " s.e. " in line]
    assert len(rows) < tried
    assert f"{tried - len(rows)} more came to the same as one before" in " ".join(done.out.split())
