import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from checkrein import reproduction
from checkrein.reproduction import TimeLimited, each, reproduce
from cli.commands import checkrein_command
from plugins.packages import install
from reproduction.failing import Failing


@pytest.fixture
def offered(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("packages")
    install(folder, "failing-package", studies={"failing": "reproduction.failing:Failing"})
    monkeypatch.syspath_prepend(folder)


def test_a_claim_that_does_not_hold_has_an_exit_code_of_its_own(offered, tmp_path):
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


def test_the_default_folder_is_named_after_the_study(offered, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    checkrein_command("reproduce", "failing")
    assert (tmp_path / "reproduce-failing" / "index.html").exists()


def test_figures_are_the_same_each_time(tmp_path):
    for folder in ("a", "b"):
        reproduce(Failing(), tmp_path / folder, name="failing", command="")
    for form in ("svg", "png"):
        first, second = ((tmp_path / folder / f"one.{form}").read_bytes() for folder in ("a", "b"))
        assert first == second


def test_calls_keep_their_order_and_are_counted():
    told = []
    assert each([lambda: 1, lambda: 2], jobs=1, tell=told.append) == [1, 2]
    assert told == ["1 of 2", "2 of 2"]


def test_the_template_is_part_of_the_package():
    assert (Path(reproduction.__file__).parent / "page.html.j2").exists()


@dataclass(frozen=True)
class Hasty(Failing):
    """A study that claims to be done before it began."""

    most_seconds: float = 0.0


def test_only_a_study_with_a_limit_of_seconds_claims_to_keep_it(tmp_path):
    assert isinstance(Hasty(), TimeLimited)
    assert not isinstance(Failing(), TimeLimited)
    hasty, failing = (reproduce(study, tmp_path, name="", command="") for study in (Hasty(), Failing()))
    (added,) = hasty.findings.claims[len(failing.findings.claims) :]
    assert (added.what, added.wanted, added.holds) == ("seconds in all, on two cores", "at most 0 s", False)
