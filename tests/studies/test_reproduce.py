import json
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from checkrein_studies import reproduce
from checkrein.reproduction import panels
from checkrein.reproduction import Claim, Findings, Picture, Table, each
from cli.commands import checkrein_command

NAMES = list(reproduce.STUDIES)
WRITTEN = {"study", "command", "settings", "versions", "seconds", "holds", "claims", "tables", "numbers", "figures"}


@pytest.mark.parametrize("name", NAMES)
def test_quick_studies_hold_and_leave_numbers_figures_and_a_page(name, tmp_path):
    done = checkrein_command("reproduce", name, "--quick", "--out", tmp_path)
    assert done.code == 0, done.out + done.err
    results = json.loads((tmp_path / "results.json").read_text())
    assert set(results) >= WRITTEN
    assert results["holds"]
    assert results["claims"]
    assert all(claim["holds"] and claim["wanted"] and claim["measured"] for claim in results["claims"])
    assert results["settings"] == json.loads(json.dumps(reproduce.asdict(reproduce.study_of(name, quick=True))))
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
    study = reproduce.study_of("frozen-lake", changes=["behavior=shortest-path", "rounds=7", "limit=0.2"])
    assert (study.behavior, study.rounds, study.limit) == ("shortest-path", 7, 0.2)
    assert replace(study, behavior="dqn", rounds=150, limit=0.1) == reproduce.study_of("frozen-lake")


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


@dataclass(frozen=True)
class Failing:
    """A study whose claim does not hold."""

    names: tuple[str, ...] = field(default=("a & b",))

    @classmethod
    def quick(cls):
        return cls()

    def run(self, tell):
        tell("failing")
        figure, (axes,) = panels([2.0])
        axes.plot([0, 1])
        return Findings(
            title="<b>Failing</b>",
            summary="It fails.",
            claims=[Claim.at_most("three", 3, 2), Claim.at_least("four", 4, 2)],
            numbers={"nothing": np.array([np.nan, 1.0]), "many": {1: np.int64(3)}},
            tables=[Table("T", ["a"], [[np.float64(1.23456789)]])],
            pictures=[Picture("one", "A line.", figure)],
        )


def test_a_claim_that_does_not_hold_has_an_exit_code_of_its_own(tmp_path):
    with mock.patch.dict(reproduce.STUDIES, {"failing": Failing}):
        done = checkrein_command("reproduce", "failing", "--out", tmp_path)
    assert done.code == 7
    assert "NO" in done.out
    results = json.loads((tmp_path / "results.json").read_text())
    assert not results["holds"]
    assert results["claims"][0] == {"what": "three", "wanted": "at most 2", "measured": "3", "holds": False}
    assert results["numbers"] == {"nothing": [None, 1.0], "many": {"1": 3}}
    page = (tmp_path / "index.html").read_text()
    assert "1 of 2 claims do not hold" in page
    assert "&lt;b&gt;Failing" in page
    assert "1.2346" in page


def test_the_default_folder_is_named_after_the_study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with mock.patch.dict(reproduce.STUDIES, {"failing": Failing}):
        checkrein_command("reproduce", "failing")
    assert (tmp_path / "reproduce-failing" / "index.html").exists()


def test_figures_are_the_same_each_time(tmp_path):
    for folder in ("a", "b"):
        reproduce.reproduce(Failing(), tmp_path / folder, name="failing", command="")
    for form in ("svg", "png"):
        first, second = ((tmp_path / folder / f"one.{form}").read_bytes() for folder in ("a", "b"))
        assert first == second


def test_calls_keep_their_order_and_are_counted():
    told = []
    assert each([lambda: 1, lambda: 2], jobs=1, tell=told.append) == [1, 2]
    assert told == ["1 of 2", "2 of 2"]


def test_the_template_is_part_of_the_package():
    assert (Path(reproduce.__file__).parent / "page.html.j2").exists()
