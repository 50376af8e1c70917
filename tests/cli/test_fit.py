"""From a table to a policy and a report, by the commands a user types."""

import json
import tomllib

import numpy as np
import polars as pl
import pytest

import checkrein
from checkrein import AtMost
from checkrein_studies import frozen_lake, icu
from cli.commands import checkrein_command


@pytest.fixture(scope="module")
def ward(tmp_path_factory):
    """The tutorial: an example log, its data card, and a run."""
    folder = tmp_path_factory.mktemp("ward")
    done = [
        checkrein_command("example", "--out", folder, "--patients", 6000),
        checkrein_command("inspect", folder / "icu.toml"),
        checkrein_command("fit", folder / "icu.toml", "--out", folder / "run"),
    ]
    return folder, done


def test_three_commands_lead_from_a_table_to_a_report(ward):
    folder, done = ward
    assert [one.code for one in done] == [0, 0, 0]
    assert "16 finite states of severity, lactate" in done[1].out
    assert "keeps every limit: certified" in done[2].out
    assert "Certificate: pass." in done[2].out
    names = {path.name for path in (folder / "run").iterdir()}
    assert {
        "problem.toml",
        "rounds.jsonl",
        "solution.json",
        "summary.json",
        "report.html",
        "policy.npz",
        "certificate.json",
    } <= names
    assert "vasopressor hours" in (folder / "run" / "report.html").read_text()


def test_no_row_is_lost(ward):
    folder, _ = ward
    card = json.loads((folder / "run" / "summary.json").read_text())["card"]
    assert card["rows"] == pl.read_csv(folder / "icu.csv").height
    assert card["rows"] == card["rows_used"] + sum(card["left_out"].values())
    assert card["left_out"]  # some patients were still there when the log stopped


def exact_values(run):
    """What the policy of a run really does in the ward."""
    deployed = checkrein.load_policy(run)
    order = deployed.encoding.encode(
        pl.DataFrame({"severity": np.repeat(icu.SEVERITIES, 4), "lactate": [*(icu.LACTATES[:3]), None] * 4})
    )
    renamed = [deployed.encoding.actions.index(name) for name in icu.TREATMENTS]
    members = [checkrein.TabularPolicy(m.probabilities(order)[:, renamed]) for m in deployed.policy.members]
    return icu.ward().values(checkrein.MixturePolicy(tuple(members), deployed.policy.weights))


def test_what_is_certified_is_true(ward):
    folder, _ = ward
    exact = exact_values(folder / "run")
    certificate = checkrein.Certificate.read(folder / "run" / "certificate.json")
    assert certificate.verdict == "pass"
    for constraint in certificate.constraints:
        assert exact[constraint.name] <= constraint.bound <= constraint.limit
    assert exact["death"] < icu.ward().values(icu.clinicians())["death"]


@pytest.fixture(scope="module")
def close(ward):
    """A run that aims at the limits themselves."""
    folder, _ = ward
    problem = folder / "close.toml"
    problem.write_text((folder / "icu.toml").read_text() + 'margin = "none"\nmin_count = 30\n')
    assert checkrein_command("fit", problem, "--out", folder / "close").code == 0
    return folder / "close"


def test_without_margin_what_was_learned_is_near_the_exact_optimum(close):
    mdp = icu.ward()
    behavior = mdp.values(icu.clinicians())
    limits = [AtMost("vasopressor hours", 0.75 * behavior["vasopressor hours"]), AtMost("litres of fluid", 2.5)]
    best = mdp.optimum(objective="death", constraints=limits).values
    exact = exact_values(close)
    assert exact["death"] == pytest.approx(best["death"], abs=0.03)
    for limit in limits:
        assert exact[limit.cost] == pytest.approx(best[limit.cost], rel=0.1)


def test_the_summary_shows_the_users_own_units(ward):
    folder, _ = ward
    summary = json.loads((folder / "run" / "summary.json").read_text())
    vaso = summary["costs"][1]
    assert vaso["limit_source"] == "75% of behavior"
    assert vaso["limit"] == pytest.approx(0.75 * vaso["values"]["behavior"]["learning"])
    assert vaso["unit"] == "expected sum per episode"
    assert summary["policies"] == ["learned", "behavior", "unconstrained", "best single policy"]


def test_a_run_is_not_overwritten_and_a_finished_one_resumes_to_itself(ward):
    folder, _ = ward
    refused = checkrein_command("fit", folder / "icu.toml", "--out", folder / "run")
    assert refused.code == 2
    assert "--resume" in refused.err
    before = {path.name: path.read_bytes() for path in (folder / "run").glob("*.*")}
    assert checkrein_command("fit", folder / "icu.toml", "--out", folder / "run", "--resume").code == 0
    assert {path.name: path.read_bytes() for path in (folder / "run").glob("*.*")} == before


def test_ctrl_c_leaves_a_run_that_resumes_to_the_same_result(ward, monkeypatch):
    folder, _ = ward
    calls = []

    def interrupted(costs, played):
        calls.append(played.index)
        if played.index == 3:
            raise KeyboardInterrupt
        return ""

    with monkeypatch.context() as patch:
        patch.setattr("checkrein.cli.learn.progress_line", interrupted)
        done = checkrein_command("fit", folder / "icu.toml", "--out", folder / "cut")
    assert done.code == 130
    assert "--resume" in done.err
    assert calls == [1, 2, 3]
    assert checkrein_command("fit", folder / "icu.toml", "--out", folder / "cut", "--resume").code == 0
    for name in ("rounds.jsonl", "solution.json", "policy.npz"):
        assert (folder / "cut" / name).read_bytes() == (folder / "run" / name).read_bytes()


def test_the_report_is_made_again_from_the_summary_alone(ward):
    folder, _ = ward
    page = folder / "run" / "report.html"
    before = page.read_bytes()
    page.unlink()
    assert checkrein_command("report", folder / "run").code == 0
    assert page.read_bytes() == before
    nothing = checkrein_command("report", folder)
    assert nothing.code == 2
    assert "no finished run" in nothing.err


@pytest.mark.parametrize("form", ["json", "onnx"])
@pytest.mark.parametrize("single", [[], ["--single"]])
def test_policies_are_exported(ward, form, single, tmp_path):
    pytest.importorskip("onnx")
    folder, _ = ward
    done = checkrein_command("export", folder / "run", "--format", form, "--out", tmp_path / "policy", *single)
    assert done.code == 0
    assert (tmp_path / "policy").stat().st_size > 500


def edited(folder, name, *changes):
    """The tutorial's problem file with some texts replaced."""
    text = (folder / "icu.toml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / name).write_text(text)
    return folder / name


def test_limits_that_cannot_be_met_are_a_result_with_its_own_exit_code(ward):
    folder, _ = ward
    path = edited(folder, "tight.toml", ('"75% of behavior"', "0.5"), ("at_most = 2.5", "at_most = 0.1\nunit = 'sum'"))
    path.write_text(path.read_text() + '\n[[constraint]]\nname = "hours"\ncost = "1"\nat_most = 2\n')
    done = checkrein_command("fit", path, "--out", folder / "tight")
    assert done.code == 3
    assert "No policy that the log supports keeps all the limits together" in done.out
    assert "The closest that any comes:" in done.out
    assert (folder / "tight" / "report.html").exists()


def test_too_few_rounds_are_a_result_with_its_own_exit_code(ward):
    folder, _ = ward
    path = edited(folder, "short.toml", ("holdout = 0.5", "holdout = 0.5\nmax_rounds = 2\ntolerance = 1e-9"))
    done = checkrein_command("fit", path, "--out", folder / "short")
    assert done.code == 4
    assert "Stopped at the limit of 2 rounds" in done.out


def test_maximising_and_at_least_are_minimising_and_at_most_of_the_negative(ward):
    folder, _ = ward
    path = edited(
        folder,
        "mirrored.toml",
        ('minimize = "death"', 'maximize = "1 - death"\nname = "alive"'),
        ('litres"\nat_most = 2.5 ', '0 - litres"\nat_least = -2.5 '),
        ("holdout = 0.5", 'margin = "none"\nholdout = 0.5'),
    )
    done = checkrein_command("fit", path, "--out", folder / "mirrored")
    assert done.code == 0
    costs = json.loads((folder / "mirrored" / "summary.json").read_text())["costs"]
    assert costs[0]["goal"] == "maximise"
    assert costs[2]["goal"] == "at least -2.5"
    assert costs[2]["values"]["learned"]["learning"] == pytest.approx(-2.5, abs=1e-3)
    judged = checkrein.Certificate.read(folder / "mirrored" / "certificate.json").constraints[1]
    assert judged.bound < judged.estimate < judged.other_bound  # of what must be at least so much, from below


def test_features_and_averages_per_step_work_too(ward):
    folder, _ = ward
    levels = {name: place + 0.0 for place, name in enumerate(icu.SEVERITIES)}
    log = pl.read_csv(folder / "icu.csv").filter(pl.col("patient") < 1000)
    log = log.with_columns(level=pl.col("severity").replace_strict(levels))
    log.write_parquet(folder / "icu.parquet")
    path = edited(
        folder,
        "linear.toml",
        ("icu.csv", "icu.parquet"),
        ('state = ["severity", "lactate"]', 'state = ["level", "lactate"]'),
        ('functions = "tabular"', 'functions = "linear"\ndegree = 2'),
        ("discount = 1.0", "discount = 0.9"),
        ("at_most = 2.5 ", 'at_most = "90% of behavior"\nunit = "per step" '),
        ("holdout = 0.5", 'margin = "none"\nholdout = 0.5'),
    )
    done = checkrein_command("fit", path, "--out", folder / "linear")
    assert done.code == 0, done
    summary = json.loads((folder / "linear" / "summary.json").read_text())
    assert summary["costs"][2]["unit"] == "average per step, discounted by 0.9"
    assert summary["costs"][2]["values"]["behavior"]["learning"] < 0.5  # litres an hour
    assert "lactate" in summary["differences"]["tree"] or "level" in summary["differences"]["tree"]


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


def test_what_would_mislead_is_a_warning(ward):
    folder, _ = ward
    leaking = edited(folder, "leak.toml", ('state = ["severity", "lactate"]', 'state = ["severity", "litres"]'))
    leaking.write_text(leaking.read_text().replace('name = "litres of fluid"\ncost = "litres"', 'name = "litres"'))
    assert "'litres' is a state column and also an outcome" in checkrein_command("inspect", leaking).out
    log = pl.read_csv(folder / "icu.csv").with_columns(noise=pl.int_range(pl.len()) * 0.5)
    log.write_parquet(folder / "noise.parquet")
    scattered = edited(folder, "noise.toml", ("icu.csv", "noise.parquet"), ('"lactate"]', '"noise"]'))
    done = checkrein_command("inspect", scattered)
    assert "states occur only once" in done.out.replace("\n", " ")


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
    assert "the dataset has reward, cost" in checkrein_command("inspect", tmp_path / "problem.toml").err


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


@pytest.mark.parametrize("learner", ["exponentiated-gradient", "online-gradient-descent"])
def test_the_gradient_learners_find_their_way_without_a_bound_or_a_rate(ward, close, learner):
    folder, _ = ward
    settings = 'max_rounds = 300\ntolerance = 0.01\nmargin = "none"\nmin_count = 30'
    path = edited(folder, f"{learner}.toml", ("cutting-plane", learner), ("seed = 0", settings))
    done = checkrein_command("fit", path, "--out", folder / learner)
    assert done.code == 0, done
    found, best = (
        json.loads((run / "solution.json").read_text())["values"]["death"] for run in (folder / learner, close)
    )
    assert found == pytest.approx(best, abs=0.011)
