"""One attempt: a seed, what it damages, the command that meets it, and whether what happened is documented."""

import os
import re
import shutil
import signal
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import numpy as np
import polars as pl

from checkrein.base.errors import CheckreinError
from checkrein.runs.prepare import prepare
from cli.commands import checkrein_command
from fuzz.mutations import damage_folder, damaged_table, problem_text, table_bytes

KINDS = ("csv", "parquet", "problem", "folder")
SECONDS = 120  # that an attempt may take
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
cost = "CASE WHEN drug = 'vaso' THEN dose ELSE 0 END"
at_most = "150% of behavior"
[learn]
discount = 0.9
"""
STATES = ('["severity"]', '["severity"]', '["dose"]', '["severity", "dose"]')
LEARN = ("", "", "holdout = 0.5\nmax_rounds = 3\n", 'functions = "tabular"\n', 'functions = "linear"\nmax_rounds = 3\n')
EPISODES, STEPS = 60, 4
PAGE = Path(__file__).parents[2] / "docs" / "problem-file.md"


class Outcome(NamedTuple):
    """What came of an attempt; trouble is empty where all is as documented."""

    seed: int
    kind: str
    command: str
    code: int
    trouble: str
    message: str


def documented_codes():
    """The exit codes that docs/problem-file.md lists."""
    listed = PAGE.read_text().partition("## Exit codes")[2]
    return {int(code) for row in re.findall(r"^\| ([\d, ]+) \|", listed, re.MULTILINE) for code in row.split(",")}


def good_table(seed=0):
    """A small log of every usual kind of column."""
    rng, n = np.random.default_rng(seed), EPISODES * STEPS
    hour = np.tile(np.arange(STEPS), EPISODES)
    severity, drug = rng.choice(["low", "high"], n), rng.choice(["none", "vaso"], n)
    return pl.DataFrame(
        {
            "patient": np.repeat(np.arange(EPISODES), STEPS),
            "hour": hour,
            "severity": severity,
            "drug": drug,
            "death": ((severity == "high") & (rng.random(n) < 0.3) & (hour == STEPS - 1)).astype(int),
            "ended": (hour == STEPS - 1).astype(int),
            "dose": np.round(rng.random(n), 2),
        }
    )


@dataclass(frozen=True)
class Ground:
    """What is damaged: a log, its problem file, and finished runs."""

    folder: Path

    @classmethod
    def made(cls, folder):
        """Write the log and let it be learned from, once."""
        folder.mkdir(parents=True, exist_ok=True)
        good_table().write_csv(folder / "log.csv")
        good_table(1).with_columns(pl.col("patient") + 1000).write_csv(folder / "new.csv")
        for name, learn in {"folds": "", "game": "holdout = 0.5\n"}.items():
            (folder / f"{name}.toml").write_text(PROBLEM + learn)
            if not (folder / name).exists():
                done = checkrein_command("fit", folder / f"{name}.toml", "--out", folder / name)
                assert done.code in (0, 6), done
        return cls(folder)

    def attempt(self, seed, work):
        """Damage one thing and run one command on it; work: an empty folder."""
        rng = np.random.default_rng(seed)
        kind = KINDS[seed % len(KINDS)]
        if kind == "folder":
            arguments, rows = self._folder(rng, work), None
        else:
            arguments, rows = self._log(rng, work, kind), _rows(work)
        with mock.patch.dict(os.environ, CHECKREIN_STATE=str(work / "state")):  # looks of others do not count here
            code, trouble, message = _run(arguments)
        if not trouble and code == 0 and kind != "folder" and arguments[0] in ("inspect", "fit"):
            trouble = _rows_lost(work, rows)
        return Outcome(seed, kind, " ".join(arguments[:1]), code, trouble, message)

    def _log(self, rng, work, kind):
        state, learn = STATES[int(rng.integers(len(STATES)))], LEARN[int(rng.integers(len(LEARN)))]
        problem = PROBLEM.replace('["severity"]', state) + learn
        problem = problem.replace('step = "hour"\n', "") if rng.random() < 0.5 else problem
        table = (self.folder / "log.csv").read_bytes()
        if kind == "parquet":
            damaged_table(rng, good_table()).write_parquet(work / "log.parquet")
            problem = problem.replace("log.csv", "log.parquet")
            if rng.random() < 0.1:
                content = bytearray((work / "log.parquet").read_bytes())
                content[int(rng.integers(len(content)))] ^= 255
                (work / "log.parquet").write_bytes(content)
        else:
            (work / "log.csv").write_bytes(table_bytes(rng, table) if kind == "csv" else table)
        if kind == "problem":
            problem = problem_text(rng, problem)
        (work / "problem.toml").write_text(problem, "utf-8", "replace")
        if rng.random() < 0.2:
            return ["fit", str(work / "problem.toml"), "--out", str(work / "run")]
        if kind == "csv" and rng.random() < 0.1:
            return ["init", str(work / "log.csv"), "--out", str(work / "first.toml")]
        return ["inspect", str(work / "problem.toml")]

    def _folder(self, rng, work):
        run = work / "run"
        shutil.copytree(self.folder / ("folds", "game")[int(rng.integers(2))], run)
        for name in ("log.csv", "new.csv", "folds.toml", "game.toml"):
            shutil.copyfile(self.folder / name, work / name)
        damage_folder(rng, run)
        choices = (
            ["report", str(run)],
            ["certify", str(run), "--data", str(work / "new.csv")],
            ["evaluate", str(run), "--data", str(work / "new.csv"), "--estimators", "naive"],
            ["export", str(run), "--uncertified", "--format", "json", "--out", str(work / "policy.json")],
            ["bounds", "run", str(run)],
            ["fit", str(work / "game.toml"), "--from", str(run), "--out", str(work / "again")],
        )
        return choices[int(rng.integers(len(choices)))]


class _TooLongError(Exception):
    """An attempt did not end."""


def _stop(*_):
    raise _TooLongError(f"not done after {SECONDS} s")


def _run(arguments):
    """Return the exit code, what is wrong with it, and what was said."""
    before = signal.signal(signal.SIGALRM, _stop)
    signal.alarm(SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            done = checkrein_command(*arguments)
    except BaseException as reason:  # whatever would have been a traceback
        where = traceback.extract_tb(reason.__traceback__)[-1]
        ours = [frame for frame in traceback.extract_tb(reason.__traceback__) if "/checkrein/" in frame.filename]
        place = ours[-1] if ours else where
        return -1, f"{type(reason).__name__} in {Path(place.filename).name}:{place.lineno}", str(reason)[:300]
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    trouble = "" if done.code in documented_codes() else f"undocumented exit code {done.code}"
    if done.code == 2 and not trouble:
        trouble = "" if "rror" in done.err else "code 2 without a message"
    return done.code, trouble, done.err.strip()[-300:]


def _rows(work):
    """How many rows a log has, by other means than ours; None where that is not plain."""
    file = work / "log.parquet"
    try:
        if file.exists():
            return pl.read_parquet(file).height
    except (pl.exceptions.PolarsError, OSError):
        return None
    content = (work / "log.csv").read_bytes()
    return content.count(b"\n") + (not content.endswith(b"\n")) - 1


def _rows_lost(work, rows):
    """Say where rows in are not rows used and rows listed."""
    try:
        card = prepare(work / "problem.toml").card
    except CheckreinError as reason:
        return f"inspected, but not prepared: {reason}"
    if card.rows != card.rows_used + sum(card.left_out.values()):
        return f"{card.rows} rows, but {card.rows_used} used and {card.left_out} left out"
    listed = any("go over several lines" in words or "rows were read below" in words for words in card.warnings)
    if rows is not None and card.rows != rows and not listed:
        return f"the log has {rows} rows, but the data card {card.rows}"
    return ""
