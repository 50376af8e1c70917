"""Problem files with limits on the policy itself, on what is known and on what happened before."""

import json

import pytest

import checkrein
from checkrein import StateActionCost
from checkrein.base.errors import DataError
from checkrein.runs.folder import RunFolder
from cli.commands import checkrein_command

LIMITS = """
[[constraint]]
name = "distance"
kind = "kl divergence"
at_most = 0.6

[[constraint]]
name = "changes"
kind = "switching"
at_most = "110% of behavior"

[[constraint]]
name = "alarm"
kind = "ever"
cost = "severity = 'critical' AND COALESCE(lactate, '') = 'high'"
at_most = 0.99
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("limits")
    checkrein_command("example", "--out", folder, "--patients", 1500)
    text = (folder / "icu.toml").read_text()
    objective, rest = text.split("[[constraint]]", 1)
    file = folder / "limits.toml"
    known = "[[constraint]]" + rest.split("[[constraint]]", 1)[0]
    learn = '[learn]\ndiscount = 0.98\nmargin = "none"\nmax_rounds = 60\n\n[certify]\nmethod = "fqe-t"\n'
    file.write_text(objective + known.replace("75%", "95%") + LIMITS + learn)
    return folder, checkrein_command("fit", file, "--out", folder / "run")


def test_all_kinds_meet_in_one_run_and_one_certificate(run):
    folder, done = run
    assert done.code == 0, done.err
    summary = json.loads((folder / "run" / "summary.json").read_text())
    learned = {row["name"]: row["values"]["learned"]["learning"] for row in summary["costs"]}
    limits = {row["name"]: row["limit"] for row in summary["costs"] if row["limit"] is not None}
    assert set(limits) == {"vasopressor hours", "distance", "changes", "alarm"}
    for name, limit in limits.items():
        assert learned[name] <= limit + 1e-5
    judged = json.loads((folder / "run" / "certificate.json").read_text())["constraints"]
    assert [one["name"] for one in judged] == list(limits)
    assert {b["cost"] for b in summary["card"]["behavior"]} == {"death", "vasopressor hours", "alarm"}


def test_a_dose_is_known_for_every_treatment(run):
    folder, _ = run
    kept = RunFolder(folder / "run").resolved().constraints[0]
    assert isinstance(kept.cost, StateActionCost)
    assert sorted(set(kept.cost.function.ravel())) == [0.0, 1.0]


def test_a_finished_run_is_judged_and_evaluated_with_its_own_costs(run):
    folder, _ = run
    data = folder / "icu.csv"
    assert checkrein_command("certify", folder / "run", "--data", data).code in (0, 5, 6)
    done = checkrein_command("evaluate", folder / "run", "--data", data, "--estimators", "fqe,naive")
    assert done.code == 0, done.err
    assert "distance" in done.out


def test_a_policy_that_remembers_is_told_what_it_remembers(run):
    folder, _ = run
    episode = checkrein.load_policy(folder / "run").start_episode(0)
    state = {"severity": "severe", "lactate": "raised"}
    first = state | {"previous action": None, "alarm": False}
    later = state | {"previous action": "vaso", "alarm": True}
    probabilities = episode.probabilities([first, later])
    assert probabilities.sum(axis=1) == pytest.approx(1)
    with pytest.raises(DataError, match="no column 'previous action', which the policy remembers: the action before"):
        episode.act([state], seed=0)
    with pytest.raises(DataError, match="'previous action' is 'morphine' in row 0"):
        episode.act([state | {"previous action": "morphine", "alarm": False}], seed=0)


def test_an_export_that_would_forget_is_refused(run):
    folder, _ = run
    done = checkrein_command("export", folder / "run", "--format", "json")
    assert done.code == 2
    assert "remembers what happened earlier in an episode" in done.err


def test_another_limit_on_the_policy_is_answered_without_the_log(run, tmp_path):
    folder, _ = run
    file = tmp_path / "tighter.toml"
    text = (folder / "limits.toml").read_text().replace("at_most = 0.6", "at_most = 0.5")
    file.write_text(text.replace("max_rounds = 60", "max_rounds = 60\ntolerance = 0.01"))
    done = checkrein_command("fit", file, "--from", folder / "run", "--out", tmp_path / "tighter")
    assert done.code == 0, done.err  # there is no log beside the new file
    summary = json.loads((tmp_path / "tighter" / "summary.json").read_text())
    learned = {row["name"]: row["values"]["learned"]["learning"] for row in summary["costs"]}
    assert learned["distance"] <= 0.5 + 1e-6
    assert checkrein_command("certify", tmp_path / "tighter", "--data", folder / "icu.csv").code in (0, 5, 6)


def test_policies_that_remember_do_not_serve_a_question_that_forgets(run, tmp_path):
    folder, _ = run
    file = tmp_path / "forgets.toml"
    before, after = (folder / "limits.toml").read_text().split('[[constraint]]\nname = "changes"', 1)
    file.write_text(before + "[[constraint]]" + after.split("[[constraint]]", 1)[1])
    done = checkrein_command("fit", file, "--from", folder / "run", "--out", tmp_path / "forgets")
    assert done.code == 2
    assert "remember alarm, the previous action, but those of this problem would remember alarm" in done.err


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ('kind = "kl"\nat_most = 1', "should be 'cost', 'ever', 'kl divergence', 'total variation', 'entropy' or"),
        ('kind = "kl divergence"\ncost = "death"\nat_most = 1', "is a cost of the policy itself: leave cost out"),
        ('kind = "switching"\nunit = "per step"\nat_most = 1', 'unit and range are for kind = "cost"'),
        ('kind = "kl divergence"\nat_most = "50% of behavior"', "own kl divergence from behavior is 0: give the limit"),
        ('kind = "ever"\nat_most = 1', "'it' names 'it', which is no column of"),
        ('kind = "ever"\ncost = "sevrity = 1"\nat_most = 1', "names 'sevrity', which is no column of"),
    ],
)
def test_a_mistake_in_a_kind_is_named(run, wrong, words):
    folder, _ = run
    file = folder / "wrong.toml"
    head = (folder / "icu.toml").read_text().split("[[constraint]]", 1)[0]
    file.write_text(f'{head}[[constraint]]\nname = "it"\n{wrong}\n')
    done = checkrein_command("inspect", file)
    assert done.code == 2
    assert words in done.err


def test_the_theorems_are_not_asked_about_costs_that_they_do_not_cover(run):
    folder, _ = run
    told = checkrein_command("bounds", "run", folder / "run")
    assert told.code == 2
    assert "distance, changes rest on the policy itself or on what happened before" in told.err
