import subprocess
import sys

import pytest

from checkrein import CheckreinError
from checkrein.reproduction import Study, descriptions, load_study
from cli.commands import checkrein_command
from plugins.packages import install

FAILING = "reproduction.failing:Failing"
OURS = {"combination-lock", "frozen-lake", "frozen-lake-binding", "icu-sepsis", "random-cmdps"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_our_own_studies_are_found_as_anyone_s_are():
    assert set(descriptions()) >= OURS
    assert all(issubclass(load_study(name), Study) for name in OURS)


@pytest.mark.parametrize(
    ("value", "code", "words"),
    [
        ("broken_study:Any", "import no_such_package", r"ModuleNotFoundError: No module named 'no_such_package'"),
        ("broken_study:Any", "raise RuntimeError('no luck')", "RuntimeError: no luck"),
        ("broken_study:Any", "", "AttributeError: .*Any"),
        ("broken_study:f", "def f(): ...", "is broken_study:f, which is not a Study"),
        ("broken_study:A", "class A:\n def quick(self): ...\n def run(self): ...", "must be a frozen dataclass"),
        ("broken_study:A", "from dataclasses import dataclass\n@dataclass\nclass A: ...", "which is not a Study"),
    ],
)
def test_a_study_that_cannot_be_used_names_its_distribution_and_hides_no_other(value, code, words, folder, monkeypatch):
    install(folder, "broken-package", studies={"broken": value}, code={"broken_study": code})
    monkeypatch.delitem(sys.modules, "broken_study", raising=False)
    with pytest.raises(CheckreinError, match=f"'broken' of broken-package 1.5 .*{words}") as raised:
        load_study("broken")
    assert descriptions()["broken"] == str(raised.value)
    assert set(descriptions()) >= OURS
    done = checkrein_command("reproduce", "broken", "--quick")
    assert done.code == 2
    assert done.err.startswith("error: the study 'broken' of broken-package 1.5 ")
    listed = checkrein_command("reproduce", "--list")
    assert listed.code == 0
    assert all(name in listed.out for name in OURS)


def test_a_name_that_two_distributions_offer_is_nobody_s(folder):
    install(folder, "one-package", studies={"twice": FAILING, "once": FAILING})
    install(folder, "another-package", studies={"twice": FAILING})
    words = "'twice' is offered by another-package 1.5 and one-package 1.5: uninstall all but one"
    with pytest.raises(CheckreinError, match=words):
        load_study("twice")
    assert words in descriptions()["twice"]
    assert load_study("once").__name__ == "Failing"


def test_listing_the_studies_imports_nothing_that_only_running_needs():
    call = "import sys; from checkrein.reproduction import descriptions; descriptions(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, check=True).stdout.split()
    assert "checkrein_studies.paper_lake" in loaded
    for module in ("matplotlib", "torch", "sklearn", "scipy.stats", "scipy.optimize", "joblib", "gymnasium", "jinja2"):
        assert module not in loaded
