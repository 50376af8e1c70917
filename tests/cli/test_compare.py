"""Runs side by side: what each came to, what differs in settings and in decisions."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import checkrein
from checkrein.runs.side_by_side import side_by_side
from cli.commands import checkrein_command

TOML = """
[data]
path = "log.csv"
state = "segment"
action = "item"
propensity = "p"
[objective]
minimize = "loss"
[[constraint]]
name = "harm"
at_most = "160% of behavior"
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs that pass, under limits that make them decide differently, and one that cannot."""
    folder = tmp_path_factory.mktemp("compared")
    rng = np.random.default_rng(0)
    n = 3000
    segment, item = rng.integers(0, 3, n), rng.integers(0, 3, n)
    loss, harm = (rng.random(n) < 0.8 - 0.35 * item) * 1, (rng.random(n) < 0.05 + 0.1 * item) * 1
    log = pl.DataFrame({"segment": segment, "item": item, "p": np.full(n, 1 / 3), "loss": loss, "harm": harm})
    log.write_csv(folder / "log.csv")
    log.head(40).write_csv(folder / "few.csv")
    (folder / "p.toml").write_text(TOML)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        changes = {"loose": [], "tight": ["constraint.harm.at_most=0.21"], "few": ["data.path=few.csv"]}
        for name, settings in changes.items():
            options = [part for one in settings for part in ("--set", one)]
            done = checkrein_command("fit", "p.toml", *options, "--out", f"group/{name}")
            assert done.code == (6 if name == "few" else 0), done
        yield folder


def test_a_run_keeps_the_settings_it_was_made_with(runs):
    text = (runs / "group" / "tight" / "problem.toml").read_text()
    assert text.startswith("# p.toml with constraint.harm.at_most=0.21\n")
    assert "at_most = 0.21" in text
    certificate = checkrein.Certificate.read(runs / "group" / "tight" / "certificate.json")
    assert certificate.constraints[0].limit == 0.21


def test_runs_are_compared_in_a_table_and_a_page(runs, monkeypatch):
    monkeypatch.chdir(runs)
    done = checkrein_command("compare", "group/loose", "group/tight", "group/few")
    assert done.code == 0, done
    said = " ".join(done.out.split())
    assert "constraint.harm.at_most" in said
    assert "data.path" in said
    assert "The runs did not learn from the same log." in said
    assert "behavior goes on" in said
    page = (runs / "compare.html").read_text()
    for section in ("results", "settings", "decisions"):
        assert f'<section id="{section}">' in page
    assert "<script" not in page
    assert "may act" in page
    assert "160% of behavior" in page


def test_decisions_are_compared_by_what_policies_do(runs, monkeypatch):
    monkeypatch.chdir(runs)
    paths = [runs / "group" / name for name in ("loose", "tight")]
    found = side_by_side(paths)
    table = pl.read_csv("log.csv")
    one, other = (checkrein.load_policy(path).probabilities(table) for path in paths)
    assert found.decisions.alike[0][1] == pytest.approx(np.minimum(one, other).sum(axis=1).mean())
    assert found.decisions.alike[0][0] == pytest.approx(1)
    assert found.decisions.rows == 3000
    assert {state.state for state in found.decisions.states} <= {"0", "1", "2"}
    assert [setting.key for setting in found.settings] == ["constraint.harm.at_most"]
    assert found.same_log
    assert found.units_differ == ""
    other = found.runs[1].model_copy(
        update={"costs": {"loss": found.runs[1].costs["loss"].model_copy(update={"unit": "x"})}}
    )
    changed = found.model_copy(update={"runs": [found.runs[0], other]})
    assert "are not of the same unit (loose: share of episodes; tight: x)" in changed.units_differ
    for name, run in zip(("loose", "tight"), found.runs, strict=True):
        certificate = checkrein.Certificate.read(runs / "group" / name / "certificate.json")
        assert run.costs["harm"].bound == certificate.bounds["harm"]
        assert run.deploys


def test_where_the_log_is_gone_decisions_are_left_out_and_the_rest_is_shown(runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = [runs / "group" / name for name in ("loose", "tight")]
    done = checkrein_command("compare", *paths)
    assert done.code == 0
    assert "Decisions are not compared: there is no log.csv here: pass --data" in " ".join(done.out.split())
    assert side_by_side(paths, str(runs / "log.csv")).decisions is not None
    done = checkrein_command("compare", *paths, "--data", "none.csv")
    assert done.code == 2


def test_runs_are_listed(runs):
    (runs / "group" / "broken").mkdir()
    (runs / "group" / "broken" / "summary.json").write_text("{")
    done = checkrein_command("runs", runs)
    assert done.code == 0
    assert "4 runs in" in done.out
    assert "broken" in done.err
    assert done.out.count(" yes ") == 2
    assert done.out.count(" no ") == 1


def test_too_few_runs_and_what_is_none_are_refused(runs, tmp_path):
    assert "there is one run" in checkrein_command("compare", runs / "group" / "loose").err
    assert checkrein_command("compare", runs, tmp_path).code == 2
    assert "is not a folder" in checkrein_command("runs", runs / "p.toml").err


def test_set_is_refused_beside_from(runs):
    done = checkrein_command(
        "fit", runs / "p.toml", "--from", runs / "group" / "loose", "--set", "learn.seed=1", "--out", "x"
    )
    assert done.code == 2
    assert "--set does not go with --from" in done.err


def test_a_run_with_a_horizon_is_compared_step_by_step(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    n = 1200
    item = rng.integers(0, 2, n)
    log = {"id": np.repeat(np.arange(n // 4), 4), "segment": rng.integers(0, 2, n), "item": item}
    log |= {"p": np.full(n, 0.5), "loss": (rng.random(n) < 0.6 - 0.3 * item) * 1, "harm": item * 1.0}
    pl.DataFrame(log).write_csv("log.csv")
    Path("p.toml").write_text(TOML.replace('state = "segment"', 'episode = "id"\nstate = "segment"'))
    for name, settings in {"all": [], "some": ["--set", "data.horizon=2"]}.items():
        assert checkrein_command("fit", "p.toml", *settings, "--explore", "--out", name).code == 0
    done = checkrein_command("compare", "some", "all")
    assert done.code == 0, done
    assert "data.horizon" in done.out
    assert "not compared" not in done.out
    assert "of 600 logged states" in " ".join(done.out.split())
