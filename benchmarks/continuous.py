"""Is what is certified where states are numbers right, and better than behavior? Rollouts tell.

python benchmarks/continuous.py [--runs 20] [--jobs 2] [--only NAME ...] [--sizes 500 2000] [--out FILE]

NAME is a world of `continuous_worlds.py`. Each run draws a log without propensities and calls `learn_certified`; the
truth about its policy comes from 50,000 rollouts. Finished runs are kept in FILE and not run again.

passes    logs in which a policy was certified
false     of these, the truth breaks a limit (by more than 2 standard errors of the rollouts)
worse     of these, the true objective is worse than behavior's (by more than 2 standard errors), where behavior keeps
          its limits itself
gain      of what is deployed, behavior where nothing passed: 0 is behavior's objective, 1 that of a tuned rule
misses    of all bounds on limits of all candidates that were judged, those on the wrong side of the truth: were a limit
          just inside the truth, these are the wrong passes. Rollouts are half as many as for what is deployed
boasts    of all candidates, those whose bound on how much better they are than behavior says too much
"""

import time
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import binomtest
from threadpoolctl import threadpool_limits

from checkrein import Problem, learn_certified
from continuous_worlds import WORLDS, log, truth, tuned
from resumable import finished, options

SIZES = (500, 2000)
SURE = 2.0  # standard errors of rollouts

Truth = dict[str, tuple[float, float]]


@cache
def known(name: str) -> tuple[Truth, Truth]:
    """Return the truth about behavior, and about the tuned rule."""
    world = WORLDS[name]
    return truth(world, None, seed=1), truth(world, tuned(world), seed=1)


def run(name: str, size: int, seed: int) -> dict[str, Any]:
    """Do one run."""
    with threadpool_limits(1):
        world = WORLDS[name]
        behavior, best = known(name)
        problem = Problem(
            log(world, size, seed), objective=world.objective, constraints=world.constraints, discount=world.discount
        )
        began = time.process_time()
        found = learn_certified(problem, folds=3, seed=seed)
        seconds = time.process_time() - began
        deployed = behavior if found.policy is None else truth(world, found.policy, seed=1000 + seed)
        judged = [bounds_of(truth(world, c.policy, 25_000, 2000 + seed), c, behavior) for c in found.candidates]
    room = behavior[world.objective][0] - best[world.objective][0]
    return {
        "setting": name,
        "size": size,
        "seed": seed,
        "passed": found.policy is not None,
        "distance": None if found.passed is None else found.passed.distance,
        "broken": [str(c.cost) for c in world.constraints if over(c.sign, deployed[str(c.cost)], c.limit)],
        "lawful": not any(over(c.sign, behavior[str(c.cost)], c.limit) for c in world.constraints),
        "worse": over(1.0, deployed[world.objective], behavior[world.objective][0]),
        "gain": (behavior[world.objective][0] - deployed[world.objective][0]) / room,
        "misses": [one for one, _ in judged],
        "boasts": [two for _, two in judged],
        "why": found.explanation,
        "seconds": seconds,
    }


def over(sign: float, value: tuple[float, float], limit: float) -> bool:
    """Say whether the truth is beyond a limit, beyond the chance in the rollouts."""
    return bool(sign * (value[0] - limit) > SURE * value[1])


def bounds_of(found: Truth, candidate: Any, behavior: Truth) -> tuple[list[bool], bool]:
    """Return of each bound whether it is on the wrong side of the truth, and whether the gain is claimed too large."""
    misses = []
    for constraint in candidate.certificate.constraints:
        sign = 1.0 if constraint.words == "at most" else -1.0
        misses.append(constraint.bound is not None and over(sign, found[constraint.name], constraint.bound))
    name = candidate.certificate.objective.name
    change = found[name][0] - behavior[name][0], float(np.hypot(found[name][1], behavior[name][1]))
    return misses, over(1.0, change, candidate.certificate.objective.upper)


def share(hits: int, of: int) -> str:
    """Return hits of so many, with their Clopper-Pearson interval at 95 %."""
    if of == 0:
        return f"{'0 of 0':>9} {'':12}"
    found = binomtest(hits, of).proportion_ci(0.95)
    return f"{f'{hits} of {of}':>9} [{found.low:.2f}, {found.high:.2f}]"


def line(name: str, size: int, runs: list[dict[str, Any]]) -> str:
    """Return what came out for one world and size."""
    passes = [r for r in runs if r["passed"]]
    false = share(sum(bool(r["broken"]) for r in passes), len(passes))
    compared = [r for r in passes if r["lawful"]]
    worse = share(sum(r["worse"] for r in compared), len(compared))
    misses = [any(one) for r in runs for one in r["misses"][:1]], [one for r in runs for c in r["misses"] for one in c]
    boasts = [one for r in runs for one in r["boasts"]]
    gains, seconds = np.mean([r["gain"] for r in runs]), np.mean([r["seconds"] for r in runs])
    return (
        f"{name:9} {size:5} {f'{len(passes)} of {len(runs)}':>9} {false} {worse} {gains:6.2f} "
        f"{share(sum(misses[0]), len(misses[0]))} {share(sum(misses[1]), len(misses[1]))} "
        f"{share(sum(boasts), len(boasts))} {seconds:6.1f}"
    )


def main() -> None:
    """Run what is missing, and print the table."""
    chosen = options(__doc__, WORLDS, runs=20, out="continuous.jsonl", sizes=SIZES)
    print(
        f"{'world':9} {'size':>5} {'passes':>9} {'false, of passes':>22} {'worse, of passes':>22} {'gain':>6} "
        f"{'any misses, of firsts':>22} {'misses, of all bounds':>22} {'boasts':>22} seconds"
    )
    for name in chosen.only:
        for size in chosen.sizes:
            print(line(name, size, list(finished(run, name, size, chosen))), flush=True)


if __name__ == "__main__":
    main()
