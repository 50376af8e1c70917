"""A finished run, judged by the commands a user types."""

import json

import numpy as np
import polars as pl
import pytest

import checkrein
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
    problem.write_text((ward / "icu.toml").read_text().replace("holdout = 0.5", "holdout = 0.0"))
    assert checkrein_command("fit", problem, "--out", ward / "all").code == 0
    assert not (ward / "all" / "certificate.json").exists()
    done = checkrein_command("certify", ward / "all", "--data", ward / "icu.csv")
    assert done.code == 2
    assert "learned from all of this log" in done.err
