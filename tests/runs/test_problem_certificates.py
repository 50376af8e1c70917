"""Which certificate and which function class a problem file asks for."""

import tomllib

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError

from checkrein.base.errors import DataError
from checkrein.logs.finite import StateChoice
from checkrein.runs.problem_file import ProblemFile

WHOLE = {
    "data": {"path": "log.csv", "episode": "patient", "state": ["severity"], "action": "treatment"},
    "objective": {"minimize": "death"},
    "constraint": [{"name": "dose", "at_most": 1}],
}


def read(text):
    return ProblemFile.model_validate(WHOLE | tomllib.loads(text))


def test_all_episodes_learn_and_judge_where_nothing_else_is_asked_for():
    assert read("").certificate == "cross-fitted"
    assert read('[learn]\nfunctions = "tabular"\nfolds = 3\nseed = 1\ndiscount = 0.9').certificate == "cross-fitted"


HOLDOUT = [
    "[learn]\nholdout = 0.5",
    '[learn]\nmargin = "auto"',
    '[learn]\nlearner = "cutting-plane"',
    "[learn]\nbound = 3.0",
    '[learn]\nlearner = "exponentiated-gradient"\nrate = 0.1',
    "[learn]\nmin_count = 5",
    "[learn]\nmin_probability = 0.1",
    "[learn]\ntolerance = 0.1",
    "[learn]\nmax_rounds = 3",
    '[learn]\nfunctions = "linear"',
    '[learn]\nfunctions = "trees"\nmin_leaf = 5',
    '[learn]\nfunctions = "neural"',
    '[certify]\nmethod = "dr-t"',
]


@pytest.mark.parametrize("text", HOLDOUT)
def test_a_key_that_makes_sense_only_with_a_held_out_part_asks_for_one(text):
    assert read(text).certificate == "holdout"


@pytest.mark.parametrize("text", HOLDOUT)
def test_such_a_key_beside_a_cross_fitted_certificate_is_named(text):
    section, *_ = text.splitlines()
    learn = 'certificate = "cross-fitted"\n'
    text = text.replace("[learn]\n", f"[learn]\n{learn}") if section == "[learn]" else f"[learn]\n{learn}{text}"
    key = "certify.method" if section == "[certify]" else f"learn.{text.splitlines()[2].split(' ')[0]}"
    with pytest.raises(ValidationError, match=f"has no use for {key}"):
        read(text)


def test_folds_and_features_are_for_cross_fitting():
    with pytest.raises(ValidationError, match=r"learn.folds is for certificate = \"cross-fitted\", but learn.holdout"):
        read("[learn]\nfolds = 3\nholdout = 0.5")
    with pytest.raises(ValidationError, match="learn.functions is for"):
        read('[learn]\nfunctions = "features"\ncertificate = "holdout"')


def test_without_constraints_there_is_nothing_to_cross_fit():
    free = ProblemFile.model_validate({key: WHOLE[key] for key in ("data", "objective")})
    assert free.certificate == "holdout"


def test_what_auto_comes_to_depends_on_the_states_and_on_how_they_are_judged():
    file = read("")
    assert file.settled(finite=True, width=1, by_folds=True).learn.functions == "tabular"
    assert file.settled(finite=False, width=3, by_folds=True).learn.functions == "features"
    assert file.holding_out().settled(finite=False, width=3, by_folds=False).learn.functions == "linear"
    assert file.settled(finite=False, width=3, by_folds=False).learn.degree == 2
    fixed = read('[learn]\nfunctions = "tabular"')
    assert fixed.settled(finite=True, width=1, by_folds=True) == fixed


def table(rows, **columns):
    return pl.DataFrame({name: [value(row) for row in range(rows)] for name, value in columns.items()})


@pytest.mark.parametrize(
    ("log", "finite"),
    [
        (table(200, severity=lambda r: f"s{r % 16}", lactate=lambda r: r % 2), True),
        (table(200, severity=lambda r: f"s{r % 90}"), True),
        (table(200, severity=lambda r: f"s{r % 150}"), False),
        (table(200, age=lambda r: r % 20), True),
        (table(200, age=lambda r: r % 21), False),
        (table(4360, wage=lambda r: float(r % 3050), year=lambda r: r // 3050), False),
    ],
)
def test_tables_are_for_combinations_that_come_up_again_and_again(log, finite):
    choice = StateChoice.of(log, log.columns)
    assert choice.finite == finite
    assert choice.why.startswith("tables: " if finite else "features: ")


def test_many_states_are_no_table_where_decisions_come_up_too_seldom_in_them():
    rng = np.random.default_rng(0)
    bought = table(3000, item=lambda _: int(rng.integers(100)), hour=lambda r: r % 24)
    choice = StateChoice.of(bought, ["hour"], "item")
    assert not choice.finite
    assert "125 each, but only" in choice.why
    assert "comes up 5 times in its state" in choice.why
    assert StateChoice.of(bought.with_columns(item=pl.col("item") % 4), ["hour"], "item").finite


def test_a_column_of_many_texts_is_named():
    with pytest.raises(DataError, match="state 'street' has 300 different texts"):
        StateChoice.of(table(300, street=lambda r: f"no {r}"), ["street"])
