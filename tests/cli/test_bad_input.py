"""Damaged logs and problem files: exit code 2, one message with place and value, or key; nothing is written."""

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cli.commands import checkrein_command

PROBLEM = """\
[data]
path = "log.csv"
episode = "patient"
step = "hour"
state = ["severity"]
action = "drug"
terminal = "ended"
[objective]
minimize = "death"
[[constraint]]
name = "vaso"
cost = "CASE WHEN drug = 'vaso' THEN 1 ELSE 0 END"
at_most = 1.5
[learn]
discount = 0.9
holdout = 0.5
"""
HEADER = "patient,hour,severity,drug,death,ended,dose\n"
ROWS = [
    "1,0,low,none,0,0,0.5",
    "1,1,high,vaso,1,1,0.1",
    "2,0,low,vaso,0,0,0.2",
    "2,1,low,none,0,1,0.3",
    "3,0,high,none,0,0,0.9",
    "3,1,high,vaso,0,1,0.4",
]


def rows(*changes):
    """The good rows with some replaced: (place, text)."""
    kept = list(ROWS)
    for place, text in changes:
        kept[place] = text
    return HEADER + "\n".join(kept) + "\n"


def toml(old, new):
    assert old in PROBLEM
    return PROBLEM.replace(old, new)


GOOD = rows()
LOGS = {
    "missing column": (GOOD.replace("severity", "grade"), ["log.csv", "no column 'severity'", "grade"]),
    "missing episode column": (GOOD.replace("patient", "id"), ["no column 'patient'"]),
    "empty action": (rows((2, "2,0,low,,0,0,0.2")), ["action 'drug' is missing", "log.csv, row 3"]),
    "empty episode": (rows((2, ",0,low,vaso,0,0,0.2")), ["'patient' is missing", "row 3"]),
    "empty step": (rows((2, "2,,low,vaso,0,0,0.2")), ["'hour' is missing", "row 3"]),
    "NaN cost": (rows((3, "2,1,low,none,nan,1,0.3")), ["cost 'death'", "nan", "row 4"]),
    "infinite cost": (rows((3, "2,1,low,none,inf,1,0.3")), ["cost 'death'", "inf", "row 4"]),
    "text cost": (rows((3, "2,1,low,none,dead,1,0.3")), ["cost 'death'", "'dead'", "row 4"]),
    "missing cost": (rows((3, "2,1,low,none,,1,0.3")), ["cost 'death'", "missing", "row 4"]),
    "duplicate step": (rows((3, "2,0,low,none,0,1,0.3")), ["step 0 of episode 2", "row 3", "row 4"]),
    "terminal is text": (rows((3, "2,1,low,none,0,maybe,0.3")), ["terminal 'ended' is 'maybe'", "row 4"]),
    "terminal is missing": (rows((3, "2,1,low,none,0,,0.3")), ["terminal 'ended' is missing", "row 4"]),
    "empty file": ("", ["log.csv is empty"]),
    "header only": (HEADER, ["log.csv has a header but no rows"]),
    "column twice": (GOOD.replace("dose", "death"), ["'death' twice"]),
    "too many fields": (rows((2, "2,0,low,vaso,0,0,0.2,9,9")), ["log.csv cannot be read"]),
    "latin-1 bytes": (GOOD.replace("low", "lów").encode("latin-1"), ["log.csv", "line 2", "UTF-8"]),
    "one episode": (HEADER + "\n".join(ROWS[:2]) + "\n", ["1 episodes cannot be split"]),
}
PROBLEMS = {
    "unknown key": (toml("step =", "stepp ="), ["data.stepp", "did you mean step?"]),
    "one bracket": (toml("[[constraint]]", "[constraint]"), ["[[constraint]]"]),
    "questions of init": (toml('action = "drug"', 'action = "CHANGE ME"').replace('minimize = "death"', 'minimize = "CHANGE ME"'), ["still says CHANGE ME (data.action, objective.minimize)"]),
    "unknown section": (PROBLEM + "[lern]\nseed = 1\n", ["lern", "did you mean learn?"]),
    "missing key": (toml('action = "drug"\n', ""), ["data: action must name columns of the log"]),
    "broken TOML": (toml("[learn]", "[learn"), ["not valid TOML", "line"]),
    "bad SQL": (toml("CASE WHEN drug = 'vaso' THEN 1 ELSE 0 END", "CASE WHEN drugg = 'vaso'"), ["'vaso'", "CASE WHEN"]),
    "unknown column in SQL": (toml("drug = 'vaso'", "drugg = 'vaso'"), ["names 'drugg'", "patient"]),
    "text without quotes in SQL": (toml("drug = 'vaso'", "drug = vaso"), ["names 'vaso'", "single quotes"]),
    "SQL that makes text": (toml("THEN 1 ELSE 0", "THEN 'much' ELSE 'none'"), ["cost 'vaso' is 'none'", "row 1"]),
    "limit is no number": (toml("at_most = 1.5", 'at_most = "little"'), ["constraint.1", "'little'", "75% of behavior"]),
    "limit is infinite": (toml("at_most = 1.5", "at_most = inf"), ["constraint.1", "inf"]),
    "two limits": (toml("at_most = 1.5", "at_most = 1.5\nat_least = 0"), ["either at_most or at_least"]),
    "no limit": (toml("at_most = 1.5\n", ""), ["either at_most or at_least"]),
    "two of one name": (PROBLEM.replace("[learn]", '[[constraint]]\nname = "vaso"\ncost = "dose"\nat_most = 1\n[learn]'), ["'vaso' names two things"]),
    "named like the objective": (toml('name = "vaso"', 'name = "death"'), ["'death' names two things"]),
    "two objectives": (toml('minimize = "death"', 'minimize = "death"\nmaximize = "dose"'), ["either minimize or maximize"]),
    "no objective": (toml('minimize = "death"', ""), ["either minimize or maximize"]),
    "discount too large": (toml("discount = 0.9", "discount = 1.5"), ["learn.discount", "less than or equal to 1", "1.5"]),
    "discount is text": (toml("discount = 0.9", 'discount = "high"'), ["learn.discount", "number", "'high'"]),
    "unknown functions": (toml("discount = 0.9", 'functions = "magic"'), ["learn.functions", "'tabular'", "'magic'"]),
    "state is a number": (toml('state = ["severity"]', "state = 3"), ["data.state", "3"]),
    "state is empty": (toml('state = ["severity"]', "state = []"), ["state is empty"]),
    "no such log": (toml("log.csv", "lost.csv"), ["lost.csv does not exist"]),
    "no file matches": (toml("log.csv", "lost-*.csv"), ["no file matches", "lost-*.csv"]),
    "unknown ending": (toml("log.csv", "problem.toml"), ["'.toml'", ".csv"]),
    "per step without discount": (toml("discount = 0.9", "discount = 1").replace("at_most = 1.5", 'at_most = 1.5\nunit = "per step"'), ["per step"]),
    "features with text": (toml("discount = 0.9", 'functions = "linear"').replace('"severity"', '"mixed"'), ["'mixed' is 'n/a'", "row 2"]),
}  # fmt: skip


def attempt(folder, log=GOOD, problem=PROBLEM):
    (folder / "log.csv").write_bytes(log if isinstance(log, bytes) else log.encode())
    (folder / "problem.toml").write_text(problem)
    return checkrein_command("fit", folder / "problem.toml", "--out", folder / "run")


def require_refusal(done, folder, words):
    assert done.code == 2, done
    assert done.err.startswith("error: ")
    assert "Traceback" not in done.err
    for word in words:
        assert word in done.err
    assert not (folder / "run").exists()


def test_the_good_ones_are_good(tmp_path):
    assert attempt(tmp_path).code == 0


@pytest.mark.parametrize("name", LOGS)
def test_a_damaged_log_is_one_message(name, tmp_path):
    log, words = LOGS[name]
    require_refusal(attempt(tmp_path, log=log), tmp_path, words)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_damaged_problem_is_one_message(name, tmp_path):
    problem, words = PROBLEMS[name]
    mixed = GOOD.replace("dose", "mixed").replace("0.1\n", "n/a\n")
    log = mixed if name == "features with text" else GOOD
    require_refusal(attempt(tmp_path, log=log, problem=problem), tmp_path, words)


def test_several_mistakes_are_said_at_once(tmp_path):
    problem = toml("discount = 0.9", 'discount = 7\nseed = "x"\nrounds = 3')
    require_refusal(attempt(tmp_path, problem=problem), tmp_path, ["3 mistakes", "discount", "seed", "learn.rounds"])


def parquet(folder, name, table):
    table.write_parquet(folder / name)
    return PROBLEM.replace("log.csv", name)


def test_a_truncated_parquet_file_is_named(tmp_path):
    problem = parquet(tmp_path, "log.parquet", pl.read_csv(GOOD.encode()))
    content = (tmp_path / "log.parquet").read_bytes()
    (tmp_path / "log.parquet").write_bytes(content[: len(content) // 2])
    require_refusal(attempt(tmp_path, problem=problem), tmp_path, ["log.parquet cannot be read"])


def test_files_with_different_columns_are_named(tmp_path):
    (tmp_path / "part-1.csv").write_text(GOOD)
    (tmp_path / "part-2.csv").write_text(GOOD.replace("dose", "amount"))
    done = attempt(tmp_path, problem=PROBLEM.replace("log.csv", "part-*.csv"))
    require_refusal(done, tmp_path, ["part-2.csv", "part-1.csv", "'dose'", "'amount'"])


def test_mixed_types_across_files_are_named(tmp_path):
    (tmp_path / "part-1.csv").write_text(GOOD)
    (tmp_path / "part-2.csv").write_text(GOOD.replace(",0,0.5", ",0,much"))
    done = attempt(tmp_path, problem=PROBLEM.replace("log.csv", "part-*.csv"))
    require_refusal(done, tmp_path, ["'dose'", "Float64", "String", "part-2.csv"])


def test_a_missing_problem_file_says_how_to_get_one(tmp_path):
    done = checkrein_command("inspect", tmp_path / "lost.toml")
    assert done.code == 2
    assert "checkrein init" in done.err


def test_strict_makes_a_warning_an_error(tmp_path):
    (tmp_path / "log.csv").write_text(GOOD + "4,0,low,none,0,1,0.1\n")
    (tmp_path / "problem.toml").write_text(PROBLEM)
    assert "a single row" in checkrein_command("inspect", tmp_path / "problem.toml").out
    done = checkrein_command("fit", tmp_path / "problem.toml", "--out", tmp_path / "run", "--strict")
    require_refusal(done, tmp_path, ["--strict", "a single row"])


field = st.text(alphabet="01-.,;\"'\naé\x00 \t%=[]", max_size=6)


def long_fuzz(examples):
    """A few examples in every run, many in the slow one."""
    return settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


CROSS_FITTED = PROBLEM.replace("holdout = 0.5\n", "")


def test_few_episodes_are_no_damage_and_nothing_can_be_shown_by_them(tmp_path):
    done = attempt(tmp_path, problem=CROSS_FITTED)
    assert done.code == 6, done
    assert "fewer than 30 episodes prove nothing" in " ".join(done.out.split())


def any_cell(examples, problem):
    @long_fuzz(examples)
    @given(place=st.integers(0, 5), column=st.integers(0, 6), value=field)
    def attempted(tmp_path, place, column, value):
        cells = ROWS[place].split(",")
        cells[column] = value
        done = attempt(tmp_path, log=rows((place, ",".join(cells))).encode(), problem=problem)
        assert done.code in ((0, 2, 3, 4) if problem is PROBLEM else (2, 3, 6))
        for path in (tmp_path / "run").rglob("*.*"):
            path.unlink()

    return attempted


@pytest.mark.parametrize("examples", [10, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("problem", [PROBLEM, CROSS_FITTED], ids=["holdout", "cross-fitted"])
def test_whatever_stands_in_a_cell_there_is_no_traceback(examples, problem, tmp_path):
    any_cell(examples, problem)(tmp_path)


@long_fuzz(100)
@given(line=st.integers(0, len(PROBLEM.splitlines()) - 1), value=field)
def test_whatever_stands_in_a_problem_file_there_is_no_traceback(line, value, tmp_path):
    lines = PROBLEM.splitlines()
    lines[line] = lines[line].split("=")[0] + "=" + value
    (tmp_path / "log.csv").write_text(GOOD)
    (tmp_path / "problem.toml").write_text("\n".join(lines))
    assert checkrein_command("inspect", tmp_path / "problem.toml").code in (0, 2)
