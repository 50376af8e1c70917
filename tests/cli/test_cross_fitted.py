"""fit as it is by default: all episodes learn, all judge, none both for the same policy."""

import json
import shutil

import numpy as np
import polars as pl
import pytest

import checkrein
from checkrein.base.errors import UncertifiedError
from cli.commands import checkrein_command

LOOKS = "checkrein-looks.jsonl"


@pytest.fixture(scope="module")
def ward(tmp_path_factory):
    """The tutorial's log and a run on it that passes."""
    folder = tmp_path_factory.mktemp("ward")
    assert checkrein_command("example", "--out", folder, "--patients", 2500).code == 0
    done = checkrein_command("fit", folder / "icu.toml", "--out", folder / "run")
    return folder, done


@pytest.fixture(scope="module")
def refused(ward):
    """A run with so few episodes that nothing can be shown."""
    folder, _ = ward
    log = pl.read_csv(folder / "icu.csv").filter(pl.col("patient") < 120)
    log.write_csv(folder / "few.csv")
    problem = edited(folder, "few", ("icu.csv", "few.csv"), ("at_most = 2.5 ", "at_most = 2.6 "))
    return folder / "few-run", checkrein_command("fit", problem, "--out", folder / "few-run")


def edited(folder, name, *changes):
    text = (folder / "icu.toml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / f"{name}.toml").write_text(text)
    return folder / f"{name}.toml"


def summary_of(run):
    return json.loads((run / "summary.json").read_text())


def looks(folder):
    path = folder / LOOKS
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_a_run_that_passes_says_so_everywhere(ward):
    folder, done = ward
    assert done.code == 0, done
    certificate = json.loads((folder / "run" / "certificate.json").read_text())
    assert (certificate["verdict"], certificate["decision"]) == ("pass", "deploy")
    assert certificate["episodes"] == 2500
    summary = summary_of(folder / "run")
    assert (summary["status"], summary["level"]) == ("certified", "caution")  # amber: the improvement is not shown
    assert summary["verdict"] in " ".join(done.out.split())
    assert "litres of fluid, certified on 2,500 episodes" in summary["verdict"]  # behavior itself breaks them
    assert "is deployed" in " ".join(done.out.split())
    rows = checkrein.load_policy(folder / "run").act([{"severity": "severe", "lactate": "raised"}], seed=0)
    assert rows[0] in {"none", "fluids", "vaso", "both"}


def test_the_candidates_are_told_in_the_order_tried_with_their_bounds(ward):
    folder, _ = ward
    summary = summary_of(folder / "run")
    tried = summary["sequence"]["candidates"]
    assert [one["verdict"] for one in tried[:-1]] == ["pass"] * (len(tried) - 1)
    assert sum(one["deployed"] for one in tried) == 1
    deployed = next(one for one in tried if one["deployed"])
    certificate = checkrein.Certificate.read(folder / "run" / "certificate.json")
    assert deployed["bounds"] == certificate.bounds
    assert deployed["values"]["death"] == summary["costs"][0]["values"]["learned"]["held_out"]
    page = (folder / "run" / "report.html").read_text()
    for section in ("candidates", "certificate", "costs", "differences", "data", "repeat"):
        assert f'<section id="{section}">' in page
    for section in ("traces", "members", "trade-offs"):
        assert f'<section id="{section}">' not in page
    assert "held-out" not in page.split("<script")[0]


def test_behavior_in_the_report_is_what_was_logged(ward):
    folder, _ = ward
    summary = summary_of(folder / "run")
    logged = {row["cost"]: row["value"] for row in summary["card"]["behavior"]}
    for row in summary["costs"]:
        assert row["values"]["behavior"]["held_out"] == pytest.approx(
            logged[row["name"]], rel=0.01
        )  # some were cut off


def test_where_nothing_passes_behavior_goes_on_and_the_exit_code_says_so(refused):
    run, done = refused
    assert done.code == 6, done
    summary = summary_of(run)
    assert (summary["status"], summary["level"]) == ("behavior goes on", "caution")
    assert summary["verdict"].startswith("Behavior should go on.")
    assert "Behavior should go on." in " ".join(done.out.split())
    assert json.loads((run / "certificate.json").read_text())["decision"] == "behavior goes on"
    page = (run / "report.html").read_text()
    assert "Behavior should go on." in page
    assert "certificate of the policy that was refused" in page


def test_a_policy_that_did_not_pass_acts_only_when_asked_for_by_name(refused):
    run, _ = refused
    with pytest.raises(UncertifiedError, match="behavior should go on.*uncertified=True"):
        checkrein.load_policy(run)
    policy = checkrein.load_policy(run, uncertified=True)
    assert policy.act([{"severity": "severe", "lactate": "raised"}], seed=0)
    plain = checkrein_command("export", run, "--format", "json")
    assert plain.code == 2
    assert "behavior should go on" in " ".join(plain.err.split())
    assert "behavior should go on" in " ".join(checkrein_command("rollout", run, "--env", "FrozenLake-v1").err.split())
    assert checkrein_command("export", run, "--format", "json", "--uncertified").code == 0


def test_a_policy_that_did_not_pass_may_be_judged_by_new_episodes(refused, tmp_path):
    run, _ = refused
    assert checkrein_command("example", "--out", tmp_path, "--patients", 300, "--seed", 3).code == 0
    done = checkrein_command("certify", run, "--data", tmp_path / "icu.csv")
    assert done.code in (0, 5, 6)
    assert "what is judged here is the one that was refused" in " ".join(done.out.split())


def test_limits_that_no_policy_meets_are_a_result_with_its_own_code(ward):
    folder, _ = ward
    tight = edited(folder, "tight", ("at_most = 2.5 ", "at_most = -1.0 "))
    before = len(looks(folder))
    done = checkrein_command("fit", tight, "--out", folder / "tight")
    assert done.code == 3, done
    assert "no policy that the log supports keeps all the limits" in " ".join(done.out.split())
    certificate = checkrein.Certificate.read(folder / "tight" / "certificate.json")
    assert (certificate.verdict, certificate.alpha, certificate.decision) == ("inconclusive", 0.0, "behavior goes on")
    assert len(looks(folder)) == before  # nothing was judged
    with pytest.raises(UncertifiedError, match="has no policy"):
        checkrein.load_policy(folder / "tight", uncertified=True)


def test_a_handful_of_episodes_is_inconclusive_and_not_an_error(ward):
    folder, _ = ward
    pl.read_csv(folder / "icu.csv").filter(pl.col("patient") < 8).write_csv(folder / "tiny.csv")
    problem = edited(folder, "tiny", ("icu.csv", "tiny.csv"))
    done = checkrein_command("fit", problem, "--out", folder / "tiny")
    assert done.code == 6, done
    assert "fewer than 30 episodes prove nothing" in " ".join(done.out.split())


def test_the_run_has_learned_from_all_so_only_new_episodes_judge_it_again(ward, tmp_path):
    folder, _ = ward
    for command in ("certify", "evaluate", "sensitivity"):
        done = checkrein_command(command, folder / "run", "--data", folder / "icu.csv")
        assert done.code == 2
        assert "Only episodes that are new can judge it again" in " ".join(done.err.split())
    later = tmp_path / "later"
    assert checkrein_command("example", "--out", later, "--patients", 600, "--seed", 5).code == 0
    new = pl.read_csv(later / "icu.csv").with_columns(pl.col("patient") + 100_000)
    pl.concat([pl.read_csv(folder / "icu.csv"), new]).write_csv(later / "grown.csv")
    done = checkrein_command("certify", folder / "run", "--data", later / "grown.csv")
    assert done.code in (0, 5, 6)
    assert "learned from 2,500 of these 3,100 episodes: 600 are fresh" in " ".join(done.out.split())
    assert checkrein.Certificate.read(folder / "run" / "certificate-new.json").episodes == 600
    assert checkrein_command("evaluate", folder / "run", "--data", later / "icu.csv", "--estimators", "fqe").code == 0


def test_a_fit_is_one_look_the_same_again_and_another_is_the_next(ward):
    folder, _ = ward
    first = checkrein.Certificate.read(folder / "run" / "certificate.json")
    assert first.look == 1
    count = len(looks(folder))
    assert checkrein_command("fit", folder / "icu.toml", "--out", folder / "again").code == 0
    assert checkrein.Certificate.read(folder / "again" / "certificate.json") == first
    assert len(looks(folder)) == count
    other = edited(folder, "other", ("at_most = 2.5 ", "at_most = 2.6 "))
    assert checkrein_command("fit", other, "--out", folder / "other").code in (0, 6)
    second = checkrein.Certificate.read(folder / "other" / "certificate.json")
    assert second.look > first.look
    assert second.alpha < first.alpha
    assert len(looks(folder)) == count + 1


def test_a_run_that_is_there_is_not_overwritten_and_resumes_to_itself(ward):
    folder, _ = ward
    refused = checkrein_command("fit", folder / "icu.toml", "--out", folder / "run")
    assert refused.code == 2
    assert "--resume" in refused.err
    run = shutil.copytree(folder / "run", folder / "copy")
    told = {"summary.json", "report.html", "manifest.json"}  # which tell the command
    before = {path.name: path.read_bytes() for path in run.glob("*.*") if path.name not in told}
    assert checkrein_command("fit", folder / "icu.toml", "--out", run, "--resume").code == 0
    assert {name: (run / name).read_bytes() for name in before} == before


def test_ctrl_c_says_that_nothing_was_kept_but_charges_what_was_seen(ward, monkeypatch):
    folder, _ = ward
    problem = edited(folder, "cut", ("seed = 0", "seed = 7"))
    count = len(looks(folder))

    def interrupted(number, candidate):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("checkrein.cli.learn.candidate_line", interrupted)
        done = checkrein_command("fit", problem, "--out", folder / "cut")
    assert done.code == 130
    assert "nothing was kept" in done.err
    assert not (folder / "cut").exists()
    assert [one["verdict"] for one in looks(folder)[count:]] == ["interrupted"]


def test_exploring_learns_and_estimates_but_judges_nothing(ward):
    folder, _ = ward
    before = looks(folder)
    done = checkrein_command("fit", folder / "icu.toml", "--explore", "--out", folder / "explored")
    assert done.code == 0, done
    assert looks(folder) == before
    assert not (folder / "explored" / "certificate.json").exists()
    summary = summary_of(folder / "explored")
    assert (summary["status"], summary["level"]) == ("explored", "caution")
    assert "Explored, not judged" in " ".join(done.out.split())
    assert all(one["verdict"] is None for one in summary["sequence"]["candidates"])
    assert "no look was charged" in (folder / "explored" / "report.html").read_text()
    with pytest.raises(UncertifiedError, match="nothing was judged"):
        checkrein.load_policy(folder / "explored")


def test_exploring_leaves_what_was_held_out_alone(ward):
    folder, _ = ward
    problem = edited(folder, "held", ("seed = 0", 'margin = "none"\nmin_count = 30\nseed = 0'))
    before = looks(folder)
    done = checkrein_command("fit", problem, "--explore", "--out", folder / "held")
    assert done.code == 0, done
    assert looks(folder) == before
    assert not (folder / "held" / "certificate.json").exists()
    values = summary_of(folder / "held")["costs"][0]["values"]
    assert all(one["held_out"] is None for one in values.values())
    judged = checkrein_command("certify", folder / "held", "--data", folder / "icu.csv")
    assert "1,250 are fresh" in " ".join(judged.out.split())


@pytest.mark.parametrize(
    ("command", "needs"),
    [
        (("certify", "--single"), "--single"),
        (("export", "--format", "json", "--single"), "--single"),
        (("bounds", "run"), "checkrein bounds run"),
    ],
)
def test_what_needs_the_rounds_of_a_game_says_how_to_have_them(ward, command, needs):
    folder, _ = ward
    done = checkrein_command(*command, folder / "run")
    assert done.code == 2
    assert f"that {needs} asks for" in " ".join(done.err.split()) or "should be: pass --data" in done.err
    if "single" in needs and command[0] == "certify":
        return
    assert 'certificate = "holdout"' in done.err


def test_another_question_needs_a_run_with_rounds(ward):
    folder, _ = ward
    done = checkrein_command("fit", folder / "icu.toml", "--from", folder / "run", "--out", folder / "from")
    assert done.code == 2
    assert "that --from asks for" in " ".join(done.err.split())


def test_a_frontier_of_the_same_problem_file_holds_episodes_out(ward):
    folder, _ = ward
    few = edited(folder, "swept", ("seed = 0", "seed = 1"))
    command = ("frontier", few, "--limit", "vasopressor hours", "--from", 2, "--to", 4, "--points", 2, "--no-certify")
    done = checkrein_command(*command, "--out", folder / "frontier")
    assert done.code == 0, done


def numeric_log(folder, *, patients=700, steps=3, seed=0):
    """A log in which illness is a number, and treating the ill helps."""
    rng = np.random.default_rng(seed)
    illness, rows = rng.normal(size=patients), []
    for hour in range(steps):
        treated = rng.random(patients) < 1 / (1 + np.exp(-0.4 * illness))
        after = 0.8 * illness - 0.6 * treated + 0.3 * rng.normal(size=patients)
        columns = {
            "patient": np.arange(patients),
            "hour": hour,
            "illness": illness,
            "care": np.where(treated, "drug", "wait"),
        }
        rows.append(pl.DataFrame(columns | {"harm": np.exp(after / 2), "ended": int(hour == steps - 1)}))
        illness = after
    pl.concat(rows).write_csv(folder / "log.csv")
    (folder / "problem.toml").write_text(
        '[data]\npath = "log.csv"\nepisode = "patient"\nstep = "hour"\nstate = ["illness", "hour"]\naction = "care"\n'
        'terminal = "ended"\n[objective]\nminimize = "harm"\n[[constraint]]\nname = "dose"\n'
        "cost = \"CASE WHEN care = 'drug' THEN 1 ELSE 0 END\"\nat_most = 1.8\n[learn]\ndiscount = 1\nfolds = 2\n"
    )
    return folder / "problem.toml"


def test_numbers_for_states_go_from_a_table_to_a_certified_policy(tmp_path):
    problem = numeric_log(tmp_path)
    assert "features: 2,100 distinct states in 2,100 rows, 1.0 each, and a table needs 10" in " ".join(
        checkrein_command("inspect", problem).out.split()
    )
    done = checkrein_command("fit", problem, "--out", tmp_path / "run")
    assert done.code in (0, 6), done
    assert "Learning with features" in done.out
    summary = summary_of(tmp_path / "run")
    assert summary["card"]["functions"].startswith("features: 2,100 distinct states")
    policy = checkrein.load_policy(tmp_path / "run", uncertified=True)
    assert policy.act([{"illness": 1.0, "hour": 0}], seed=0)[0] in {"drug", "wait"}
    (tmp_path / "later").mkdir()
    numeric_log(tmp_path / "later", seed=1)
    judged = checkrein_command("certify", tmp_path / "run", "--data", tmp_path / "later" / "log.csv")
    assert judged.code in (0, 5, 6), judged
    explored = checkrein_command("fit", problem, "--explore", "--out", tmp_path / "explored")
    assert explored.code == 0, explored
