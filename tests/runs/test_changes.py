"""--set: a problem file with other values, checked like any other."""

import tomllib
from pathlib import Path

import pytest

from checkrein.base.errors import ArgumentError
from checkrein.runs.changes import changed
from checkrein.runs.problem_file import parse_problem

TEXT = """
[data]
path = "log.csv"
state = ["x", "y"]
action = "a"
[objective]
minimize = "c"
[[constraint]]
name = "hours on vaso.active"
at_most = 2
[[constraint]]
name = "g"
at_least = "75% of behavior"
"""


def content(*settings):
    text = changed(TEXT, Path("p.toml"), settings)
    parse_problem(text, Path("p.toml"))
    return tomllib.loads(text)


def test_without_settings_the_text_stays_as_it_is():
    assert changed(TEXT, Path("p.toml"), []) == TEXT


def test_values_are_set_in_their_sections():
    found = content("learn.discount=0.95", "certify.confidence = 0.9", "data.state=['x']", "title=Another try")
    assert found["learn"] == {"discount": 0.95}
    assert found["certify"] == {"confidence": 0.9}
    assert found["data"]["state"] == ["x"]
    assert found["title"] == "Another try"
    assert found["constraint"] == tomllib.loads(TEXT)["constraint"]


def test_texts_need_no_quotes_and_one_of_two_keys_takes_the_place_of_the_other():
    found = content("objective.maximize=c", "constraint.g.at_most=80% of behavior", "learn.functions='tabular'")
    assert found["objective"] == {"maximize": "c"}
    assert found["constraint"][1] == {"name": "g", "at_most": "80% of behavior"}
    assert found["learn"]["functions"] == "tabular"
    found = content("constraint.hours on vaso.active.at_most=1.5")
    assert found["constraint"][0]["at_most"] == 1.5


def test_the_first_line_says_what_was_set():
    first = changed(TEXT, Path("folder/p.toml"), ["learn.seed=3"]).splitlines()[0]
    assert first == "# p.toml with learn.seed=3"


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("learn.discount", "--set learn.discount: write it like learn.discount=0.95"),
        ("lern.discount=1", "'lern' is not a section, did you mean learn?"),
        ("discount=1", "'discount' is not a section: there are data, objective"),
        ("learn.a.b=1", "write it like"),
        ("constraint.h.at_most=1", "no constraint is called 'h': there are hours on vaso.active, g"),
        ("learn.discont=1", "learn.discont: is not a known key, did you mean discount?"),
    ],
)
def test_a_wrong_setting_is_named(setting, words):
    with pytest.raises((ArgumentError, ValueError)) as error:
        content(setting)
    assert words in str(error.value)
