"""Do checks of a log's own assumptions alarm by chance, and do they find what is wrong? Size and power.

python benchmarks/assumptions.py [--runs 400] [--jobs 1] [--only NAME ...] [--out FILE]

Each run draws a log and runs `assumption_checks` on it. A warning is a p-value under 1 %; `forbids` is how often a pass
is forbidden, with the 95 % interval of that share. Settings called `complete ...` have states that are enough, and do
not change: all alarms are false. Those called `hidden ...` lack something, `drift ...` change half way, `old ...` are
those of `coverage.py` and `rare.py`, all complete. A quarter as many runs are done where something is wrong, and
an eighth in old ones. Finished runs are kept in FILE and not run again.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import binomtest
from threadpoolctl import threadpool_limits

from assumption_worlds import cmdp, goals, icu_sepsis, lake, machine, walk, ward
from checkrein import Problem
from checkrein.certification.assumptions import BEHAVIOR, DRIFT, MARKOV, assumption_checks
from checkrein.certification.moments import SUSPECT
from rare import FAMILIES
from rare_worlds import log as rare_log
from resumable import finished, options

CHECKS = MARKOV, DRIFT, BEHAVIOR


@dataclass(frozen=True)
class Setting:
    """Draws problems by seed and size."""

    sizes: tuple[int, ...]
    draw: Callable[[int, int], Problem]


def rare(name: str, seed: int, episodes: int) -> Problem:
    world = FAMILIES[name](seed)
    log = rare_log(world, seed, episodes)
    return Problem(log, objective=world.objective, constraints=world.constraints, discount=world.mdp.discount)


SETTINGS = {
    "complete random MDPs": Setting((100, 300, 1000), cmdp),
    "complete 500 states": Setting((300,), partial(cmdp, n_states=500)),
    "complete two steps": Setting((500,), partial(cmdp, ending=0.7)),
    "complete lake": Setting((200, 600), lake),
    "complete ward": Setting((200, 800), ward),
    "complete machine": Setting((100, 1000), machine),
    "complete machine, rare harm": Setting((1000,), partial(machine, rate=0.004)),
    "complete sepsis": Setting((500,), icu_sepsis),
    "one step": Setting((300,), partial(cmdp, ending=1.0)),
    "hidden pairs of states": Setting((100, 300, 1000), partial(cmdp, merged=2)),
    "hidden slip, lasts .3": Setting((100, 300, 1000), partial(lake, lasting=0.3)),
    "hidden slip, lasts .1": Setting((300, 1000), partial(lake, lasting=0.1)),
    "hidden mode, harm .2 +- .15": Setting((300, 1000, 3000), partial(machine, gap=0.15)),
    "hidden kind, sepsis 3": Setting((1000, 3000, 8000), partial(icu_sepsis, hidden=3.0)),
    "drift of harm by 1.5": Setting((300, 1000), partial(machine, later=1.5)),
    "drift of harm by 1.1": Setting((1000, 3000), partial(machine, later=1.1)),
    "drift of deaths, 10 % more": Setting((800, 3000), partial(ward, later=1.1)),
    "drift of deaths, 30 % more": Setting((300, 800), partial(ward, later=1.3)),
    "drift of patients, sepsis 1": Setting((1000, 3000), partial(icu_sepsis, hidden=1.0, ordered=True)),
    "drift of skill, .5 to .4": Setting((200, 600), partial(lake, skill=0.4)),
    "old random-cmdps": Setting((300,), goals),
    "old frozen-lake": Setting((1500,), lake),
    "old graph-slip": Setting((200,), partial(walk, horizon=6, slip=0.1)),
    "old deterministic": Setting((400,), partial(walk, horizon=8, slip=0.2)),
    **{f"old rare-{name}": Setting((draw(0).episodes,), partial(rare, name)) for name, draw in FAMILIES.items()},
}


def run(name: str, size: int, seed: int) -> dict[str, Any]:
    """Do one run."""
    problem = SETTINGS[name].draw(seed, size)
    began = time.process_time()
    with threadpool_limits(1):
        checks = assumption_checks(problem)
    return {
        "setting": name,
        "size": size,
        "seed": seed,
        "rows": len(problem.dataset),
        "seconds": time.process_time() - began,
        "checks": {check.name: [check.value, check.ok] for check in checks},
    }


def line(name: str, size: int, runs: Sequence[dict[str, Any]]) -> str:
    """Say how often each check warned and forbade."""
    cells = []
    for check in CHECKS:
        found = [r["checks"][check] for r in runs if check in r["checks"]]
        if not found:
            cells.append(f"{'absent':^30}")
            continue
        warned, forbade = sum(p < SUSPECT for p, _ in found), sum(not ok for _, ok in found)
        between = binomtest(forbade, len(runs)).proportion_ci()
        share = f"{forbade / len(runs):6.1%} [{between.low:.1%}, {between.high:.1%}]"
        cells.append(f"{warned / len(runs):6.1%} {share:23}")
    rows, seconds = (np.mean([r[key] for r in runs]) for key in ("rows", "seconds"))
    return f"{name:28} {size:6,} {len(runs):5} | {' | '.join(cells)} | {rows:8,.0f} {1000 * seconds:5.0f}"


def main() -> None:
    """Run what is missing, then print the table."""
    chosen = options(__doc__, SETTINGS, runs=400, out="assumptions.jsonl")
    heads = " | ".join(f"{check + ': warns, forbids':30}" for check in CHECKS)
    print(f"{'':28} {'size':>6} {'runs':>5} | {heads} | {'rows':>8} {'ms':>5}")
    for name in chosen.only:
        fewer = {"complete": 1, "one": 4, "hidden": 4, "drift": 4, "old": 8}[name.split()[0]]
        some = argparse.Namespace(**{**vars(chosen), "runs": max(chosen.runs // fewer, 1)})
        for size in SETTINGS[name].sizes:
            print(line(name, size, finished(run, name, size, some)), flush=True)


if __name__ == "__main__":
    main()
