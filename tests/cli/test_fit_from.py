"""Another question to a finished run, by the commands a user types."""

import json
import re
import shutil

import numpy as np
import polars as pl
import pytest

import checkrein
from checkrein.runs.folder import RunFolder
from cli.commands import checkrein_command

FILE = """
[data]
path = "icu.csv"
episode = "patient"
step = "hour"
state = ["severity", "lactate"]
action = "treatment"
terminal = "ended"

[objective]
minimize = "death"

[[constraint]]
name = "vaso"
cost = "CASE WHEN treatment IN ('vaso', 'both') THEN 1 ELSE 0 END"
at_most = "75% of behavior"

[[constraint]]
name = "litres"
at_most = 2.5

[learn]
discount = 0.99
margin = "none"
min_count = 20

[certify]
method = "fqe-t"
"""
RELAXED = (
    ("75% of", "77% of"),
    ("at_most = 2.5", "at_most = 2.55"),
    ("discount = 0.99", "discount = 0.99\ntolerance = 5e-4"),
)
PLAYED = ("rounds.jsonl", "solution.json", "policy.npz")


@pytest.fixture(scope="module")
def ward(tmp_path_factory):
    """A log and a finished run."""
    folder = tmp_path_factory.mktemp("ward")
    assert checkrein_command("example", "--out", folder, "--patients", 3000).code == 0
    (folder / "old.toml").write_text(FILE)
    assert checkrein_command("fit", folder / "old.toml", "--out", folder / "old").code == 0
    return folder


def written(folder, name, *changes):
    text = FILE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / f"{name}.toml").write_text(text)
    return folder / f"{name}.toml"


def values_of(run):
    return json.loads((run / "solution.json").read_text())["values"]


def fit_from(folder, name, *changes, start="old"):
    """Ask another question of a run and from scratch: what the command did, and both folders."""
    path = written(folder, name, *changes)
    done = checkrein_command("fit", path, "--from", folder / start, "--out", folder / f"{name}-again")
    assert checkrein_command("fit", path, "--out", folder / f"{name}-anew").code == done.code == 0
    return done, folder / f"{name}-again", folder / f"{name}-anew"


@pytest.fixture(scope="module")
def relaxed(ward, tmp_path_factory):
    """Other limits, answered where there is no log at all."""
    alone = tmp_path_factory.mktemp("alone")
    shutil.copytree(ward / "old", alone / "old")
    path = written(alone, "relaxed", *RELAXED)
    done = checkrein_command("fit", path, "--from", alone / "old", "--out", alone / "run")
    assert done.code == 0, done
    return alone, done


def test_other_limits_are_answered_without_the_log(ward, relaxed):
    alone, done = relaxed
    assert "the log was not read" in done.out
    assert "Nothing was judged on held-out episodes yet: `checkrein certify" in done.out.replace("\n", " ")
    assert checkrein_command("fit", alone / "relaxed.toml", "--out", alone / "anew").code == 2  # there is no log here
    _, _, anew = fit_from(ward, "relaxed", *RELAXED)
    found, exact = values_of(alone / "run"), values_of(anew)
    assert found["death"] == pytest.approx(exact["death"], abs=1e-3)  # each to the tolerance
    here, there = (RunFolder(run).resolved() for run in (alone / "run", anew))
    assert [c.limit for c in here.constraints] == pytest.approx([c.limit for c in there.constraints])
    assert (here.log, here.rows, here.support) == (there.log, there.rows, there.support)


def test_the_report_says_whose_policies_they_are(relaxed):
    alone, _ = relaxed
    summary = json.loads((alone / "run" / "summary.json").read_text())
    assert summary["reused"] == {
        "run": str(alone / "old"),
        "policies": summary["reused"]["policies"],
        "log_read": False,
    }
    assert all(one["held_out"] is None for row in summary["costs"] for one in row["values"].values())
    page = (alone / "run" / "report.html").read_text()
    assert "nothing was judged on held-out episodes" in page
    assert "Where it differs from behavior" not in page
    before = (alone / "run" / "report.html").read_bytes()
    assert checkrein_command("report", alone / "run").code == 0
    assert (alone / "run" / "report.html").read_bytes() == before


def test_the_answer_is_a_run_like_any_other(ward, relaxed):
    alone, _ = relaxed
    log = ward / "icu.csv"
    looks = ward / "checkrein-looks.jsonl"
    before = looks.read_text().count("\n")
    assert checkrein_command("certify", alone / "run", "--data", log).code in (0, 5, 6)
    assert (alone / "run" / "certificate.json").exists()
    assert looks.read_text().count("\n") == before + 1
    assert checkrein_command("evaluate", alone / "run", "--data", log, "--estimators", "fqe").code == 0
    assert checkrein_command("export", alone / "run", "--format", "json").code == 0
    policy = checkrein.load_policy(alone / "run")
    assert policy.policy.probabilities(np.arange(4)).shape == (4, len(policy.encoding.actions))


def test_an_answer_is_asked_again_and_resumes_to_itself(relaxed):
    alone, _ = relaxed
    path = written(alone, "third", ("75% of", "76% of"), RELAXED[-1])
    call = ("fit", path, "--from", alone / "run", "--out", alone / "third")
    assert checkrein_command(*call).code == 0
    refused = checkrein_command(*call)
    assert refused.code == 2
    assert "--resume" in refused.err
    before = {p: p.read_bytes() for p in (alone / "third").rglob("*.*")}
    assert checkrein_command(*call, "--resume").code == 0
    assert {p: p.read_bytes() for p in (alone / "third").rglob("*.*")} == before


SWAPPED = (
    ('minimize = "death"', "minimize = \"CASE WHEN treatment IN ('vaso', 'both') THEN 1 ELSE 0 END\"\nname = 'hours'"),
    ("name = \"vaso\"\ncost = \"CASE WHEN treatment IN ('vaso', 'both') THEN 1 ELSE 0 END\"", 'name = "death"'),
    ("75% of behavior", "95% of behavior"),
)


def test_another_objective_goes_on_from_what_is_known(ward):
    done, again, anew = fit_from(ward, "swapped", *SWAPPED)
    assert "The log is needed." in done.out
    assert values_of(again)["hours"] == pytest.approx(values_of(anew)["hours"], abs=2e-4)
    new, whole = (len((run / "rounds.jsonl").read_text().splitlines()) for run in (again, anew))
    known = json.loads((again / "summary.json").read_text())["reused"]["policies"]
    assert 0 < new - known < whole
    assert f"new rounds on the log: {new - known}" in done.out.replace("\n", " ")


def test_limits_that_could_not_be_met_leave_policies_to_go_on_from(ward):
    brief = '[[constraint]]\nname = "stay"\ncost = "1"\nat_most = 1.0\n\n[learn]'
    tight = written(ward, "tight", ("[learn]", brief))
    assert checkrein_command("fit", tight, "--out", ward / "tight").code == 3
    assert checkrein_command("fit", tight, "--from", ward / "old", "--out", ward / "tight-again").code == 3
    _, again, anew = fit_from(ward, "loose", start="tight")
    assert values_of(again)["death"] == pytest.approx(values_of(anew)["death"], abs=2e-4)


def test_one_constraint_more_is_valued_on_the_log(ward):
    more = ("[learn]", '[[constraint]]\nname = "stay"\ncost = "1"\nat_most = 9.0\nunit = "sum"\n\n[learn]')
    done, again, anew = fit_from(ward, "more", more)
    assert "has no values of stay. The log is needed." in done.out.replace("\n", " ")
    assert values_of(again)["death"] == pytest.approx(values_of(anew)["death"], abs=2e-4)
    assert values_of(again)["stay"] <= 9.0 + 1e-5


def test_units_and_signs_are_seen_through(ward):
    """The same cost in another unit is known; the other side of it is not: it has another worst value."""
    per_step = written(ward, "steps", ("at_most = 2.5", 'at_most = 0.0255\nunit = "per step"'), RELAXED[-1])
    done = checkrein_command("fit", per_step, "--from", ward / "old", "--out", ward / "steps")
    assert done.code == 0, done
    assert "the log was not read" in done.out
    row = json.loads((ward / "steps" / "summary.json").read_text())["costs"][2]
    old = json.loads((ward / "old" / "summary.json").read_text())["costs"][2]
    ours, theirs = (one["values"]["behavior"]["learning"] for one in (row, old))
    assert ours == pytest.approx(0.01 * theirs)
    turned = written(ward, "turned", ("at_most = 2.5", "at_least = 0.5"))
    done = checkrein_command("fit", turned, "--from", ward / "old", "--out", ward / "turned")
    assert "has no values of litres" in done.out.replace("\n", " ")


def test_ctrl_c_leaves_a_run_that_resumes_to_the_same_result(ward, monkeypatch):
    path = written(ward, "cut", *SWAPPED, ("at_most = 2.5", "at_most = 2.4"))
    call = ("fit", path, "--from", ward / "old", "--out")
    assert checkrein_command(*call, ward / "whole").code == 0
    rounds = []

    def interrupted(costs, played):
        rounds.append(played.index)
        if len(rounds) == 2:
            raise KeyboardInterrupt
        return ""

    with monkeypatch.context() as patch:
        patch.setattr("checkrein.cli.learn.progress_line", interrupted)
        done = checkrein_command(*call, ward / "cut")
    assert done.code == 130
    assert f"--from {ward / 'old'}" in done.err
    assert checkrein_command(*call, ward / "cut", "--resume").code == 0
    for name in PLAYED:
        assert (ward / "cut" / name).read_bytes() == (ward / "whole" / name).read_bytes()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("discount = 0.99", "discount = 0.9"), "learn.discount is 0.9, but in .*old it is 0.99"),
        (("min_count = 20", "min_count = 10"), "learn.min_count is 10.0, but in .*old it is 20.0"),
        (('margin = "none"', 'margin = "auto"'), "learn.margin is auto"),
        (("discount = 0.99", "discount = 0.99\nseed = 1"), "learn.seed is 1, but in .*old it is 0"),
        (('["severity", "lactate"]', '["severity"]'), "data.state is "),
        (('terminal = "ended"', ""), "data.terminal is not set, but in .*old it is ended"),
    ],
)
def test_what_must_agree_is_named(ward, change, words, tmp_path):
    done = checkrein_command("fit", written(ward, "wrong", change), "--from", ward / "old", "--out", tmp_path / "run")
    assert done.code == 2
    assert not (tmp_path / "run").exists()
    assert re.search(words, done.err.replace("\n", " ")), done.err


def test_a_question_that_would_be_cross_fitted_is_none_to_a_game(ward, tmp_path):
    held_out = ('margin = "none"\nmin_count = 20\n\n[certify]\nmethod = "fqe-t"\n', "")
    path = written(ward, "crossed", held_out)
    done = checkrein_command("fit", path, "--from", ward / "old", "--out", tmp_path / "run")
    assert done.code == 2
    said = " ".join(done.err.split())
    assert 'learn.certificate is "cross-fitted", but in' in said
    assert 'it is "holdout": set it to that' in said


@pytest.mark.parametrize("edit", ["rows", "costs"])
def test_another_log_is_named(ward, edit, tmp_path):
    log = pl.read_csv(ward / "icu.csv")
    changed = log.filter(pl.col("patient") < 2500) if edit == "rows" else log.with_columns(pl.col("litres") * 1.1)
    changed.write_csv(ward / "other.csv")
    path = written(ward, "other", ("icu.csv", "other.csv"))
    done = checkrein_command("fit", path, "--from", ward / "old", "--out", tmp_path / "run")
    assert done.code == 2
    said = {"rows": "is not the log that", "costs": "the log has changed since"}[edit]
    assert said in done.err.replace("\n", " ")
    assert not (tmp_path / "run").exists()


def test_a_moved_log_is_known_by_what_it_holds(ward):
    shutil.copy(ward / "icu.csv", ward / "moved.csv")
    path = written(ward, "moved", ("icu.csv", "moved.csv"))
    done = checkrein_command("fit", path, "--from", ward / "old", "--out", ward / "moved")
    assert done.code == 0
    assert "new rounds on the log: 0" in done.out.replace("\n", " ")


def test_what_is_no_finished_run_is_named(ward, tmp_path):
    path = written(ward, "none")
    for start, words in ((tmp_path, "no finished run"), (tmp_path / "nothing", "no finished run")):
        done = checkrein_command("fit", path, "--from", start, "--out", tmp_path / "run")
        assert done.code == 2
        assert words in done.err


def test_the_room_under_the_limits_is_kept(ward):
    """Margins that a run chose stay as they are, in the units of the new limits."""
    auto = written(ward, "auto", ('margin = "none"', "max_rounds = 60"))
    assert checkrein_command("fit", auto, "--out", ward / "auto").code == 0
    path = written(ward, "roomy", ('margin = "none"', "max_rounds = 50"), ("at_most = 2.5", "at_most = 2.6"))
    done = checkrein_command("fit", path, "--from", ward / "auto", "--out", ward / "roomy")
    assert done.code == 0, done
    assert "leave the room that" in done.out.replace("\n", " ")
    before, after = (RunFolder(ward / name).resolved() for name in ("auto", "roomy"))
    rooms = [[c.limit - a.limit for c, a in zip(r.constraints, r.aimed, strict=True)] for r in (before, after)]
    assert rooms[0] == pytest.approx(rooms[1])
    assert after.constraints[1].limit == 2.6
