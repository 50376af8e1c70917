"""Two real logs from end to end, the Open Bandit data of `obp` and the wage panel of `linearmodels`: what came out.

And what it cost.

Each case runs in a process of its own, so that its memory is its own, and with a record of looks of its own.

python benchmarks/real_logs.py                     # all of them
python benchmarks/real_logs.py --only "random, all"
"""

import argparse
import bz2
import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import polars as pl

import checkrein

USER = [f"user_feature_{i}" for i in range(4)]
PERSON = ["black", "hisp", "educ", "exper", "married", "occupation", "year"]
CASES: dict[str, list[str]] = {
    **{f"{policy}, {campaign}": ["position"] for policy in ("random", "bts") for campaign in ("all", "men", "women")},
    "random, all; and the user": ["position", *USER],
    "bts, all; and the user": ["position", *USER],
    "wages": PERSON,
    "wages; and last year": [*PERSON, "wage_before", "union_before"],
}


def main() -> None:
    """Run the cases, one after another."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--only", help="a case")
    options.add_argument("--case", help=argparse.SUPPRESS)
    options.add_argument("--seed", type=int, default=0, help="of folds and learning")
    asked = options.parse_args()
    if asked.case is not None:
        _run(asked.case, CASES[asked.case], asked.seed)
        return
    for case in CASES:
        if asked.only in (None, case):
            with tempfile.TemporaryDirectory() as looks:
                words = [sys.executable, __file__, "--case", case, "--seed", str(asked.seed)]
                subprocess.run(words, check=True, env=os.environ | {"CHECKREIN_STATE": looks})


def _run(case: str, state: list[str], seed: int) -> None:
    """Print what a case came to."""
    begun = time.process_time()
    log = case.partition(";")[0].split(", ")
    run = _wages(state, seed) if log == ["wages"] else _items(*log, state, seed)
    spent, memory = time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    certificate, tried = run.certificate, len(run.summary.sequence.candidates)
    print(f"{case}: {run.summary.card.functions}")
    print(f"  {run.summary.verdict}")
    print(f"  {certificate.verdict}; {tried} candidates; {spent:.1f} CPU s, {memory:.0f} MB", flush=True)


def _items(policy: str, campaign: str, state: list[str], seed: int) -> checkrein.Run:
    folder = Path(find_spec("obp").origin).parent / "dataset" / "obd" / policy / campaign
    items = pl.read_csv(folder / "item_context.csv").select("item_id", trait="item_feature_0")
    return checkrein.fit(
        pl.read_csv(folder / f"{campaign}.csv").join(items, on="item_id", maintain_order="left"),
        state=state,
        action="item_id",
        propensity="propensity_score",
        maximize="click",
        limits={"trait": "at most 0.1"},
        seed=seed,
    )


def _wages(state: list[str], seed: int) -> checkrein.Run:
    packed = Path(find_spec("linearmodels").origin).parent / "datasets" / "wage_panel" / "wage_panel.csv.bz2"
    before = {
        f"{name}_before": pl.col(column).shift(1).over("nr") for name, column in (("wage", "lwage"), ("union", "union"))
    }
    return checkrein.fit(
        pl.read_csv(bz2.decompress(packed.read_bytes())).with_columns(last=pl.col("year") == 1987, **before),
        episode="nr",
        step="year",
        terminal="last",
        state=state,
        action="union",
        maximize="lwage",
        limits={"hours": "at most 105% of behavior"},
        seed=seed,
    )


if __name__ == "__main__":
    main()
