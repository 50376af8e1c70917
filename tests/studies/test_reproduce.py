import json
import sys
from dataclasses import asdict, replace
from unittest import mock

import pytest

from checkrein.reproduction import study_of
from cli.commands import checkrein_command

NAMES = ["frozen-lake", "frozen-lake-binding", "icu-sepsis", "random-cmdps", "combination-lock"]
WRITTEN = {"study", "command", "settings", "versions", "seconds", "holds", "claims", "tables", "numbers", "figures"}


QUICKEST = "combination-lock"


@pytest.mark.parametrize("name", [QUICKEST, *(pytest.param(n, marks=pytest.mark.slow) for n in NAMES if n != QUICKEST)])
def test_quick_studies_hold_and_leave_numbers_figures_and_a_page(name, tmp_path):
    done = checkrein_command("reproduce", name, "--quick", "--out", tmp_path)
    assert done.code == 0, done.out + done.err
    results = json.loads((tmp_path / "results.json").read_text())
    assert set(results) >= WRITTEN
    assert results["holds"]
    assert results["claims"]
    assert all(claim["holds"] and claim["wanted"] and claim["measured"] for claim in results["claims"])
    assert results["settings"] == json.loads(json.dumps(asdict(study_of(name, quick=True))))
    assert {"python", "checkrein", "numpy", "matplotlib"} <= set(results["versions"])
    assert "seed" in results["settings"]
    assert name != "icu-sepsis" or name in results["versions"]
    page = (tmp_path / "index.html").read_text()
    for figure in results["figures"]:
        assert (tmp_path / f"{figure['name']}.svg").read_bytes().startswith(b"<?xml")
        assert (tmp_path / f"{figure['name']}.png").read_bytes().startswith(b"\x89PNG")
        assert f'<figure id="{figure["name"]}">\n<svg' in page
    for claim in results["claims"]:
        assert claim["what"].split("'")[0] in page
    assert "http-equiv" not in page
    assert "src=" not in page
    assert not list(tmp_path.glob("*.tmp"))


def test_without_a_name_studies_are_listed():
    for arguments in ([], ["--list"]):
        done = checkrein_command("reproduce", *arguments)
        assert done.code == 0
        assert all(name in done.out for name in NAMES)


def test_an_unknown_name_is_answered_with_the_nearest(tmp_path):
    done = checkrein_command("reproduce", "frozen-lake-bindin", "--out", tmp_path / "x")
    assert done.code == 2
    assert "did you mean 'frozen-lake-binding'?" in done.err
    assert "combination-lock" in done.err
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("behavior=clever", "choose from dqn, shortest-path"),
        ("behavoir=dqn", "write SETTING=VALUE with one of behavior"),
        ("rounds", "write SETTING=VALUE"),
        ("rounds=many", "must be of type int"),
        ("shares=1", "cannot be set from here"),
    ],
)
def test_a_setting_that_does_not_fit_is_named(change, words):
    done = checkrein_command("reproduce", "frozen-lake", "--set", change)
    assert done.code == 2
    assert words in done.err


def test_settings_are_changed_in_their_own_type():
    study = study_of("frozen-lake", changes=["behavior=shortest-path", "rounds=7", "limit=0.2"])
    assert (study.behavior, study.rounds, study.limit) == ("shortest-path", 7, 0.2)
    assert replace(study, behavior="dqn", rounds=150, limit=0.1) == study_of("frozen-lake")


def test_without_matplotlib_the_extra_is_named_before_anything_is_run(tmp_path):
    hidden = {name: None for name in sys.modules if name.split(".")[0] == "matplotlib"} | {"matplotlib.figure": None}
    with mock.patch.dict(sys.modules, hidden):
        done = checkrein_command("reproduce", "frozen-lake", "--quick", "--out", tmp_path / "x")
    assert done.code == 2
    assert "pip install 'checkrein[studies]'" in done.err
    assert not (tmp_path / "x").exists()


def test_without_torch_the_dqn_names_the_extra(tmp_path):
    with mock.patch.dict(sys.modules, {"torch": None}):
        done = checkrein_command("reproduce", "frozen-lake", "--out", tmp_path / "x")
    assert done.code == 2
    assert "the DQN of a study" in done.err
    assert "pip install 'checkrein[studies]'" in done.err
