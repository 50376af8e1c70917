"""A finished run, judged by the commands a user types."""

import json
import shutil
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import checkrein
from checkrein.base import manifest
from checkrein.runs.folder import CHECKED, RunFolder
from cli.commands import checkrein_command

LOOKS = "checkrein-looks.jsonl"


@pytest.fixture(scope="module")
def ward(tmp_path_factory):
    """The tutorial's log and a run on it."""
    folder = tmp_path_factory.mktemp("ward")
    assert checkrein_command("example", "--out", folder, "--patients", 4000).code == 0
    with (folder / "icu.toml").open("a") as file:
        file.write('margin = "none"\nmin_count = 30\n')
        file.write('\n[certify]\nmethod = "fqe-t"\n')  # later looks would ask for thousands of replicates
    assert checkrein_command("fit", folder / "icu.toml", "--out", folder / "run").code == 0
    return folder


def looks(folder):
    return [json.loads(line) for line in (folder / LOOKS).read_text().splitlines()]


def test_every_estimator_has_its_row_and_the_table_is_saved(ward):
    done = checkrein_command("evaluate", ward / "run", "--data", ward / "icu.csv")
    assert done.code == 0
    assert "held-out part of the run's own log" in done.out
    table = pl.read_csv(ward / "run" / "evaluation.csv")
    names = {"naive", "is", "pdis", "wis", "cwpdis", "fqe", "lstdq", "model", "dr", "wdr", "magic"}
    assert set(table["estimator"]) == names
    assert set(table["cost"]) == {"death", "vasopressor hours", "litres of fluid"}
    assert table["value"].is_not_null().all()
    assert (table["low"] <= table["high"]).all()
    assert "joint standard errors" in done.out
    calibration = pl.read_csv(ward / "run" / "calibration.csv")
    assert (calibration["probability"] - calibration["observed"]).abs().max() < 0.05


def test_fitted_values_are_those_of_the_report(ward):
    assert checkrein_command("evaluate", ward / "run", "--data", ward / "icu.csv", "--estimators", "fqe").code == 0
    table = pl.read_csv(ward / "run" / "evaluation.csv")
    summary = json.loads((ward / "run" / "summary.json").read_text())
    for row in summary["costs"]:
        found = table.filter(pl.col("cost") == row["name"])["value"][0]
        assert found == pytest.approx(row["values"]["learned"]["held_out"], rel=1e-9)


def test_an_unknown_estimator_is_named(ward):
    done = checkrein_command("evaluate", ward / "run", "--data", ward / "icu.csv", "--estimators", "fqe,guess")
    assert done.code == 2
    assert "'guess'" in done.err
    assert "cwpdis" in done.err


def test_unknown_propensities_are_refused_even_where_nothing_is_weighed(tmp_path):
    done = checkrein_command("evaluate", tmp_path / "none", "--estimators", "fqe", "--propensities", "guess")
    assert done.code == 2
    assert "'guess' is not one of logged, counts, logistic, trees" in " ".join(done.err.split())


def require_kinds(run, said):
    """All kinds are shown, and the one that is kept and judged is the cheapest of those that keep the limits."""
    summary = json.loads((run / "summary.json").read_text())
    found = {one["kind"]: one for one in summary["singles"]["found"]}
    assert list(found) == ["best member", "deterministic", "averaged weights"]
    limits = {row["name"]: row["limit"] for row in summary["costs"][1:]}
    keeps = {
        kind: one["price"]
        for kind, one in found.items()
        if all(one["values"][name]["learning"] <= limit + 1e-9 for name, limit in limits.items())
    }
    assert found[min(keeps, key=keeps.get)]["chosen"]
    assert sum(one["chosen"] for one in found.values()) == 1
    assert keeps["deterministic"] <= keeps.get("best member", np.inf)
    mixture, kept = (summary["costs"][0]["values"][who] for who in ("learned", "best single policy"))
    chosen = next(one for one in found.values() if one["chosen"])
    assert chosen["values"]["death"] == kept
    assert chosen["price"] == pytest.approx(kept["learning"] - mixture["learning"], abs=1e-9)
    assert f"Judged here: {chosen['kind']}." in said
    for one in found.values():
        death = one["values"]["death"]
        assert f"{death['held_out']:.4g} ({death['learning']:.4g})" in said
        assert f"({one['price']:.4g})" in said


def test_the_same_claim_is_one_look_and_another_policy_is_the_next(ward):
    first = checkrein.Certificate.read(ward / "run" / "certificate.json")
    again = checkrein_command("certify", ward / "run", "--data", ward / "icu.csv")
    assert checkrein.Certificate.read(ward / "run" / "certificate.json") == first
    assert again.code == {"pass": 0, "fail": 5, "inconclusive": 6}[first.verdict]
    assert first.look == 1
    before = len(looks(ward))
    done = checkrein_command("certify", ward / "run", "--data", ward / "icu.csv", "--single")
    require_kinds(ward / "run", " ".join(done.out.split()))
    single = checkrein.Certificate.read(ward / "run" / "certificate-single.json")
    assert single.look == before + 1
    assert single.alpha < first.alpha
    assert single.policy != first.policy
    assert len(looks(ward)) == before + 1


def test_a_second_run_on_the_same_log_pays_for_its_look(ward):
    problem = ward / "other.toml"
    text = (ward / "icu.toml").read_text().replace("at_most = 2.5", "at_most = 2.6")
    problem.write_text(text)
    count = len(looks(ward))
    assert checkrein_command("fit", problem, "--out", ward / "second").code == 0
    certificate = checkrein.Certificate.read(ward / "second" / "certificate.json")
    assert certificate.look == count + 1
    assert certificate.alpha < 0.01


def test_a_new_log_is_judged_by_all_of_its_episodes(ward):
    new = ward / "new"
    new.mkdir()
    assert checkrein_command("example", "--out", new, "--patients", 3000, "--seed", 7).code == 0
    done = checkrein_command("certify", ward / "run", "--data", new / "icu.csv")
    certificate = checkrein.Certificate.read(ward / "run" / "certificate-new.json")
    assert certificate.episodes == 3000
    assert certificate.look == 1
    assert done.code in (0, 6)
    assert (new / LOOKS).exists()


def test_the_log_that_was_learned_from_is_known_again_when_an_outcome_in_it_is_corrected(ward):
    table = pl.read_csv(ward / "icu.csv")
    corrected = pl.when(pl.int_range(pl.len()) == 3).then(0.25).otherwise("litres").alias("litres")
    table.with_columns(corrected).write_csv(ward / "corrected.csv")
    done = checkrein_command("evaluate", ward / "run", "--data", ward / "corrected.csv", "--estimators", "naive")
    assert "2,000 episodes of the held-out part of the run's own log" in done.out


def test_a_log_that_is_not_where_it_was_is_asked_for(ward, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = checkrein_command("certify", ward / "run")
    assert done.code == 2
    assert "pass --data" in done.err


def test_a_log_with_an_unknown_treatment_is_refused(ward):
    table = pl.read_csv(ward / "icu.csv").with_columns(
        pl.when(pl.int_range(pl.len()) == 5).then(pl.lit("surgery")).otherwise("treatment").alias("treatment")
    )
    table.write_csv(ward / "odd.csv")
    done = checkrein_command("certify", ward / "run", "--data", ward / "odd.csv")
    assert done.code == 2
    assert "'surgery'" in done.err


def test_a_wrong_method_or_confidence_is_named(ward):
    wrong = checkrein_command("certify", ward / "run", "--data", ward / "icu.csv", "--method", "guess")
    assert wrong.code == 2
    assert "fqe-studentised" in wrong.err
    assert checkrein_command("certify", ward / "run", "--data", ward / "icu.csv", "--confidence", "2").code == 2


def test_a_damaged_record_of_looks_is_not_ignored(ward, tmp_path):
    log = tmp_path / "icu.csv"
    log.write_bytes((ward / "icu.csv").read_bytes())
    (tmp_path / LOOKS).write_text("not json\n")
    done = checkrein_command("certify", ward / "run", "--data", log)
    assert done.code == 2
    assert "line 1" in done.err


def test_a_method_that_is_not_known_is_a_mistake_in_the_problem_file(ward):
    problem = ward / "method.toml"
    problem.write_text((ward / "icu.toml").read_text().replace("fqe-t", "guess"))
    done = checkrein_command("inspect", problem)
    assert done.code == 2
    assert "certify" in done.err
    assert "fqe-studentised" in done.err


def test_without_a_holdout_there_is_no_certificate(ward):
    problem = ward / "all.toml"
    problem.write_text((ward / "icu.toml").read_text().replace("seed = 0", "seed = 0\nholdout = 0.0"))
    assert checkrein_command("fit", problem, "--out", ward / "all").code == 0
    assert not (ward / "all" / "certificate.json").exists()
    done = checkrein_command("certify", ward / "all", "--data", ward / "icu.csv")
    assert done.code == 2
    assert "learned from all of this log" in done.err


def test_what_a_certificate_survives_is_shown_kept_and_put_on_the_page_without_a_look(ward):
    run, log = ward / "run", ward / "icu.csv"
    before = (ward / LOOKS).read_text()
    done = checkrein_command("sensitivity", run, "--data", log)
    assert done.code == 0, done.err
    assert (ward / LOOKS).read_text() == before
    found = checkrein.Sensitivity.read(run / "sensitivity.json")
    certificate = checkrein.Certificate.read(run / "certificate.json")
    assert found.passed == (certificate.verdict == "pass")
    for claim, judged in zip(found.constraints, certificate.constraints, strict=True):
        assert (claim.odds_ratio is not None) == (judged.verdict == "pass")
    said = " ".join(done.out.split())
    assert found.explanation in said
    assert all(claim.name in said for claim in found.claims)
    assert "What would have to be hidden" in (run / "report.html").read_text()
    assert json.loads((run / "summary.json").read_text())["sensitivity"] == json.loads(found.model_dump_json())


def test_without_a_certificate_there_is_nothing_to_undo(ward, tmp_path):
    new = ward / "newer"
    new.mkdir()
    assert checkrein_command("example", "--out", new, "--patients", 60, "--seed", 9).code == 0
    run = shutil.copytree(ward / "run", tmp_path / "run")
    (run / "certificate-new.json").unlink(missing_ok=True)
    manifest.seal(run, CHECKED)  # as if there had never been one
    done = checkrein_command("sensitivity", run, "--data", new / "icu.csv")
    assert done.code == 2
    assert "has no certificate-new.json" in done.err
    assert f"checkrein certify {run} --data {new / 'icu.csv'}" in done.err


@pytest.fixture(scope="module")
def other_ward(ward):
    """A fresh log of the same kind, under names that the first does not have."""
    folder = ward / "other"
    folder.mkdir()
    assert checkrein_command("example", "--out", folder, "--patients", 1000, "--seed", 9).code == 0
    return pl.read_csv(folder / "icu.csv").with_columns(pl.col("patient") + 100_000)


def judged_on(ward, folder, table):
    """What certify says of the run on a table that lies elsewhere, and the certificate."""
    folder.mkdir()
    table.write_csv(folder / "log.csv")
    done = checkrein_command("certify", ward / "run", "--data", folder / "log.csv", "--out", folder / "found.json")
    certificate = checkrein.Certificate.read(folder / "found.json") if (folder / "found.json").exists() else None
    return " ".join((done.out + done.err).split()), certificate


def by_patient(table, seed):
    """The rows with patients in another order."""
    patients = table["patient"].unique(maintain_order=True).shuffle(seed=seed)
    return pl.DataFrame({"patient": patients}).join(table, on="patient", how="left", maintain_order="left")


def test_a_log_that_is_shuffled_is_judged_by_what_was_held_out_and_is_the_same_look(ward, tmp_path):
    said, found = judged_on(ward, tmp_path / "there", by_patient(pl.read_csv(ward / "icu.csv"), 1))
    first = checkrein.Certificate.read(ward / "run" / "certificate.json")
    assert "learned from 2,000 of these 4,000 episodes: 2,000 are fresh" in said
    assert (found.episodes, found.look, found.verdict) == (2000, 1, first.verdict)
    assert found.bounds == pytest.approx(first.bounds)


def test_names_that_were_changed_do_not_make_learning_episodes_judges_nor_reset_the_looks(ward, tmp_path):
    table = by_patient(pl.read_csv(ward / "icu.csv"), 2)
    table = table.with_columns(patient=pl.col("patient").rank("dense") * 7 + 3)
    said, found = judged_on(ward, tmp_path / "there", table)
    assert "learned from 2,000 of these 4,000 episodes" in said
    assert found.look > 1


def test_new_episodes_alone_are_a_first_look(ward, other_ward, tmp_path):
    said, found = judged_on(ward, tmp_path / "there", other_ward)
    assert "learned from" not in said
    assert (found.episodes, found.look) == (1000, 1)


def test_of_a_log_that_has_grown_the_new_episodes_and_those_held_out_judge(ward, other_ward, tmp_path):
    table = pl.concat([other_ward, pl.read_csv(ward / "icu.csv")])
    said, found = judged_on(ward, tmp_path / "there", table)
    assert "learned from 2,000 of these 5,000 episodes: 3,000 are fresh" in said
    assert found.episodes == 3000
    assert found.look > 1


def test_a_log_of_learning_episodes_alone_judges_nothing(ward, tmp_path):
    table = pl.read_csv(ward / "icu.csv")
    learned = checkrein_command("evaluate", ward / "run", "--data", ward / "icu.csv", "--estimators", "naive")
    assert "learned from 2,000 of these 4,000 episodes" in " ".join(learned.out.split())
    held_out = np.random.default_rng(0).permutation(4000)[:2000]
    names = table["patient"].unique(maintain_order=True).to_numpy()
    part = table.filter(~pl.col("patient").is_in(names[held_out].tolist()))
    said, found = judged_on(ward, tmp_path / "there", part)
    assert found is None
    assert "learned from all of this log, 2,000 episodes" in said


def test_copies_are_left_out_before_a_log_is_split_and_the_report_says_so(ward, tmp_path):
    table = pl.read_csv(ward / "icu.csv")
    first = table.filter(pl.col("patient").is_in(table["patient"].unique(maintain_order=True)[:300].to_list()))
    again = first.with_columns(pl.col("patient") + 500_000)
    pl.concat([table, again]).write_csv(tmp_path / "icu.csv")
    (tmp_path / "icu.toml").write_text((ward / "icu.toml").read_text())
    done = checkrein_command("inspect", tmp_path / "icu.toml")
    assert "300 of 4,300 episodes are copies of others (episodes 500" in " ".join((done.out + done.err).split())
    assert f"{len(table) + len(again):,}, " in done.out  # every row of the log, used or listed
    assert f"{len(again):,}: a row of a copy of another episode" in " ".join(done.out.split())
    said, found = judged_on(ward, tmp_path / "there", pl.concat([table, again]))
    assert "learned from 2,000 of these 4,000 episodes" in said
    assert "Of this log, 300 of 4,300 episodes are copies of others" in said
    assert found.look == 1
    assert found.checks[0].words.startswith("300 of 4,300 episodes are copies")


def test_a_run_that_does_not_say_what_it_learned_from_cannot_be_judged(ward, tmp_path):
    shutil.copytree(ward / "run", tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    folder.write_problem((ward / "icu.toml").read_text(), replace(folder.resolved(), learned=None))
    manifest.seal(folder.path, CHECKED)
    done = checkrein_command("certify", tmp_path / "run", "--data", ward / "icu.csv")
    assert done.code == 2
    assert "does not say which episodes it learned from" in " ".join(done.err.split())
