"""fit in one call: the same as the command, from a table, with errors that name the argument."""

import tempfile
from html import unescape

import numpy as np
import polars as pl
import pytest

import checkrein
from checkrein.base.errors import ArgumentError, DataError, UncertifiedError
from checkrein_studies import icu
from cli.commands import checkrein_command

VASO = "CASE WHEN treatment IN ('vaso', 'both') THEN 1 ELSE 0 END"
ASKED = {
    "episode": "patient",
    "step": "hour",
    "terminal": "ended",
    "state": ["severity", "lactate"],
    "action": "treatment",
    "minimize": "death",
    "limits": {"vaso": "at most 75% of behavior", "litres": "at most 2.5"},
    "costs": {"vaso": VASO},
}
ROWS = [{"severity": "severe", "lactate": "raised"}, {"severity": "mild", "lactate": "normal"}]


@pytest.fixture(scope="module")
def ward(tmp_path_factory):
    """A log, and a problem file that asks what ASKED does."""
    folder = tmp_path_factory.mktemp("ward")
    table, problem = icu.write(folder, patients=2500, seed=0)
    text = problem.read_text().replace("vasopressor hours", "vaso").replace("litres of fluid", "litres")
    problem.write_text(text)
    return table, problem


@pytest.fixture(scope="module")
def run(ward, tmp_path_factory):
    """A run on a data frame."""
    return checkrein.fit(pl.read_csv(ward[0]), **ASKED, out=tmp_path_factory.mktemp("runs") / "run")


def test_a_table_and_a_problem_file_give_the_same(ward, run):
    other = checkrein.fit(str(ward[1]))
    assert other.certificate.bounds == run.certificate.bounds
    assert other.certificate.look == run.certificate.look == 1  # the same claim on the same episodes
    np.testing.assert_array_equal(other.predict_proba(ROWS), run.predict_proba(ROWS))
    assert other.folder.is_relative_to(tempfile.gettempdir())
    assert other.report().exists()


def test_the_command_line_agrees(ward, run):
    folder = ward[1].parent / "by-command"
    assert checkrein_command("fit", ward[1], "--out", folder).code == 0
    assert checkrein.Run.of(folder).certificate.bounds == run.certificate.bounds


def test_pandas_tables_are_acted_on(run):
    pandas = pytest.importorskip("pandas")
    assert run.policy.act(pandas.DataFrame(ROWS), seed=3) == run.policy.act(ROWS, seed=3)


def test_a_run_acts_in_the_words_of_the_log(run):
    assert run.certificate.verdict == "pass"
    drawn = run.predict(ROWS * 500, seed=1)
    assert set(drawn) <= set(run.classes_) == {"both", "fluids", "none", "vaso"}
    shares = (drawn.reshape(-1, 2)[:, :, None] == run.classes_).mean(axis=0)
    np.testing.assert_allclose(shares, run.predict_proba(ROWS), atol=0.08)  # draws, not the likeliest action
    assert list(drawn) == list(run.policy.act(ROWS * 500, seed=1))


def test_a_run_shows_itself_in_a_few_lines_and_in_a_notebook(run):
    assert repr(run).startswith(f"Run: {run.summary.verdict}")
    assert len(repr(run).splitlines()) <= 5
    assert str(run.report()) in repr(run)
    shown = unescape(run._repr_html_())
    assert run.summary.verdict in shown
    assert "<script" not in shown
    assert shown.count("<tr>") == 4


def test_a_run_folder_written_from_a_table_is_one_like_any_other(ward, run):
    later = ward[0].parent / "later"
    icu.write(later, patients=1500, seed=9)
    done = checkrein_command("certify", run.folder, "--data", later / "icu.csv")
    assert done.code in (0, 5, 6), done
    assert "1,500" in done.out
    done = checkrein_command("certify", run.folder)
    assert done.code == 2
    assert "a table in memory" in done.err
    assert "--data" in done.err


def test_looks_at_a_table_in_memory_are_recorded_for_the_user_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CHECKREIN_STATE", str(tmp_path / "state"))
    log = icu.write(tmp_path / "log", patients=100, seed=1)[0]
    run = checkrein.fit(pl.read_csv(log), **ASKED)
    assert (tmp_path / "state" / "checkrein-looks.jsonl").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "state"]
    assert [path.name for path in (tmp_path / "log").glob("*looks*")] == []
    again = checkrein.fit(pl.read_csv(log), **(ASKED | litres("at most 2.4")))
    assert (run.certificate.look, again.certificate.look) == (1, 2)


def test_a_run_without_a_policy_that_passed_refuses_to_act(ward):
    few = pl.read_csv(ward[0]).filter(pl.col("patient") < 60)
    run = checkrein.fit(few, **ASKED)
    assert run.policy is None
    assert "behavior should go on" in repr(run)
    with pytest.raises(UncertifiedError, match="uncertified=True"):
        run.predict(ROWS)


def test_what_did_not_pass_on_held_out_episodes_may_not_act_either(ward, tmp_path):
    pl.read_csv(ward[0]).filter(pl.col("patient") < 700).write_csv(tmp_path / "icu.csv")
    (tmp_path / "icu.toml").write_text(ward[1].read_text() + 'certificate = "holdout"\nmargin = "none"\n')
    run = checkrein.fit(tmp_path / "icu.toml")
    assert run.certificate.verdict != "pass"
    assert run.policy is None


def test_a_folder_that_holds_a_run_is_not_overwritten(ward, run):
    with pytest.raises(DataError, match="holds a run already: choose another out="):
        checkrein.fit(ward[0], **ASKED, out=run.folder)


def litres(limit):
    return {"limits": {"litres": limit}, "costs": {}}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"minimize": None}, "give either minimize= or maximize="),
        ({"maximize": "death"}, "give either minimize= or maximize="),
        ({"minimize": 3}, "minimize is 3: give a column's name"),
        ({"state": None}, "state= is missing: name the columns of the log"),
        ({"action": ["treatment"]}, r"action is \['treatment'\]: give a column's name"),
        (litres(2.5), r"limits\['litres'\] is 2.5: write 'at most 2.5' or 'at least 2.5'"),
        (
            litres("below 2"),
            r"limits\['litres'\] is 'below 2': write it like \"at most 2.5\"",
        ),
        (
            litres("at most a lot"),
            "'a lot' is neither a number nor like '75% of behavior'",
        ),
        (
            litres("at most inf"),
            r"limits\['litres'\]: the limit is inf: it must be a finite number",
        ),
        ({"limits": ["litres"]}, "limits is a list: give a dict"),
        ({"limits": {"vasso": "at most 1"}}, "costs\\['vaso'\\] is neither limited nor .*, did you mean 'vasso'"),
        ({"limits": {"litre": "at most 1"}, "costs": {}}, "names 'litre', which is no column of the table"),
        (litres("at most 0.1 per step"), 'unit = "per step" needs a discount below 1'),
        ({"functions": "forests"}, "functions: input should be 'auto', 'tabular'"),
        ({"discount": 1.5}, "discount: input should be less than or equal to 1"),
        ({"confidence": 95}, "confidence: input should be less than 1"),
        ({"seed": -1}, "seed: input should be greater than or equal to 0"),
        ({"episode": "patients"}, "the table has no column 'patients': it has patient"),
        ({"episode": None}, "step = 'hour', but no episode column is named"),
        ({"limits": {"death": "at most 1"}, "costs": {}}, "'death' names two things"),
    ],
)
def test_a_wrong_argument_is_named_with_what_was_expected(ward, changes, words):
    with pytest.raises((ArgumentError, DataError), match=words):
        checkrein.fit(pl.read_csv(ward[0], n_rows=300), **(ASKED | changes))


def test_a_problem_file_says_all_itself(ward):
    with pytest.raises(ArgumentError, match="is a problem file, which says all itself: write discount there"):
        checkrein.fit(ward[1], discount=0.9)
    with pytest.raises(DataError, match="a log is a path, a glob, several of them, or a table"):
        checkrein.fit(42, **ASKED)


def test_texts_of_any_kind_are_kept_in_the_problem_file(tmp_path):
    name = 'the "cost" \\ of ünïcode \N{GRINNING FACE}'
    rng = np.random.default_rng(0)
    log = pl.DataFrame({"x": rng.integers(0, 2, 200), "a": rng.integers(0, 2, 200), "y": rng.random(200), name: 1.0})
    run = checkrein.fit(log, state="x", action="a", minimize="y", limits={name: "at most 2"}, out=tmp_path / "run")
    assert list(run.certificate.bounds) == [name]
    assert name in (tmp_path / "run" / "problem.toml").read_text().replace('\\"', '"').replace("\\\\", "\\")


def test_without_limits_there_is_nothing_to_certify():
    rng = np.random.default_rng(0)
    log = pl.DataFrame({"x": rng.integers(0, 3, 400), "a": rng.integers(0, 2, 400)})
    log = log.with_columns(y=pl.Series((log["a"] == log["x"] % 2).cast(pl.Float64) + rng.random(400)))
    run = checkrein.fit(log, state="x", action="a", minimize="y")
    assert run.certificate is None
    assert run.predict(pl.DataFrame({"x": [0, 1, 2]})).tolist() == [1, 0, 1]
    assert ".policy may act; no limit was asked for." in repr(run)
