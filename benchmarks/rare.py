"""Do certificates hold where what they limit is rare, and what do they cost? Worlds whose truth is known exactly.

python benchmarks/rare.py [--runs 40] [--jobs 2] [--only NAME ...] [--out FILE]

NAME is a family, `development` (settings are decided on these) or `report` (results are reported on these: other kinds
of worlds, not other seeds). Each run draws a world and a log of it. Finished runs are kept in FILE and not run again.

learn_certified  on the whole log; what is deployed is its policy, or behavior where none passed. A pass is false where
                 the truth breaks a limit. gain: 0 is behavior's objective, 1 the constrained optimum's, over runs in
                 which the latter is the better one (behavior may break the limits, and gain by that). worse: passes
                 whose objective is truly worse than behavior's, of passes on the same runs.
certify          as `checkrein fit` uses it, a first look: policies learned on half of the log, at the limits
                 themselves (limit), at six tenths of them (room), and the latter mixed with behavior in every step
                 (mixed), judged on the other half. wrong if tight: under the first limit alone, put just under the
                 truth, so that each pass is wrong. passes: of policies with room, under the limits as they are.

Seconds are those of the processor, for one `learn_certified`.

The same families are part of `coverage.py`, by the names `rare-...`.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import binomtest
from threadpoolctl import threadpool_limits

from checkrein import AtMost, Dataset, Problem, Support, TabularPolicy, certify, learn_certified
from checkrein.base.errors import ProblemError
from checkrein.data.split import split_episodes
from checkrein.policies import members_of
from checkrein.protocols import Policy
from checkrein.selection.fixed_sequence import TabularLearning
from rare_development import DEVELOPMENT
from rare_report import REPORT
from rare_worlds import World, log
from resumable import finished, options

FAMILIES: dict[str, Callable[[int], World]] = {**DEVELOPMENT, **REPORT}
JUST = 1e-3  # how far the truth lies over a tight limit, as a share of it
ROOM = 0.6  # the share of a limit that a policy with room was learned at
ROUNDING = 1e-9


def at_limits(dataset: Dataset, world: World, aim: float = 1.0) -> Policy:
    """Learn at the limits themselves, as a user without margin would, or at a share of them."""
    limits = [replace(c, limit=c.limit * aim**c.sign) for c in world.constraints]
    problem = Problem(dataset, objective=world.objective, constraints=limits, discount=world.mdp.discount)
    return TabularLearning()(problem, Support(min_count=5.0), ()).policy


def tight(constraint: AtMost, truth: float) -> AtMost:
    """Return a limit that the truth just breaks."""
    return replace(constraint, limit=truth * (1 - constraint.sign * JUST))


def used(constraint: AtMost, truth: float) -> float:
    """Return the truth as a share of the limit, the other way round for a benefit: over 1, the limit is broken."""
    over, under = (truth, constraint.limit) if constraint.sign > 0 else (constraint.limit, truth)
    return over / under if under else np.inf


def ratio(world: World, values: dict[str, float]) -> float:
    """Return the share of its limit that the worst constraint uses."""
    return max(used(c, values[str(c.cost)]) for c in world.constraints)


def learn(world: World, dataset: Dataset, seed: int) -> dict[str, Any]:
    """Run `learn_certified` on the log, and compare what is deployed with the truth."""
    mdp, objective, constraints = world.mdp, world.objective, world.constraints
    problem = Problem(dataset, objective=objective, constraints=constraints, discount=mdp.discount)
    began = time.process_time()
    found = learn_certified(problem, seed=seed)
    seconds = time.process_time() - began
    behavior = mdp.values(world.behavior)
    deployed = behavior if found.policy is None else mdp.values(found.policy)
    return {
        "passed": found.policy is not None,
        "ratio": ratio(world, deployed),
        "behavior_ratio": ratio(world, behavior),
        "objective": deployed[objective],
        "behavior": behavior[objective],
        "optimum": optimum(world),
        "why": found.explanation,
        "seconds": seconds,
    }


def optimum(world: World) -> float:
    """Return the constrained optimum's objective, infinity where no policy keeps the limits: then none is better."""
    try:
        return world.mdp.optimum(objective=world.objective, constraints=world.constraints).values[world.objective]
    except ProblemError:
        return np.inf


def judge(world: World, dataset: Dataset, seed: int) -> dict[str, Any]:
    """Learn on half of the log, at the limits and with room, and certify on the other half."""
    mine, held = split_episodes(dataset, holdout=0.5, seed=seed)
    bold, careful = at_limits(mine, world), at_limits(mine, world, ROOM)
    policies = {"limit": bold, "room": careful, "mixed": halfway(world, careful)}
    return {kind: certified(world, policy, held, seed, as_asked=kind == "room") for kind, policy in policies.items()}


def halfway(world: World, policy: Policy) -> TabularPolicy:
    """Return behavior with the likeliest member of a mixture, in each step one or the other by the toss of a coin."""
    member = max(members_of(policy), key=lambda pair: pair[1])[0]
    table = member.probabilities(np.arange(world.mdp.n_states))
    return TabularPolicy((table + np.asarray(world.behavior.table)) / 2)


def certified(world: World, policy: Policy, held: Dataset, seed: int, *, as_asked: bool) -> dict[str, Any]:
    """Certify at a limit that is just broken, and at those that are asked for."""
    values, first = world.mdp.values(policy), world.constraints[0]
    truth = values[str(first.cost)]
    asked: dict[str, Any] = {"discount": world.mdp.discount, "seed": seed, "look": 1}
    verdict = certify(policy, held, constraints=world.constraints, **asked).verdict if as_asked else None
    began = time.process_time()
    judged = certify(policy, held, constraints=[tight(first, truth)], **asked)
    seconds = time.process_time() - began
    bound = judged.bounds[first.name]
    return {
        "verdict": verdict,
        "ratio": ratio(world, values),
        "tight": judged.verdict,
        "truth": truth,
        "bound": bound if np.isfinite(bound) else None,
        "seconds": seconds,
    }


def run(name: str, size: int, seed: int) -> dict[str, Any]:
    """Do one run."""
    with threadpool_limits(1):
        world = FAMILIES[name](seed)
        dataset = log(world, seed, size)
        found = {"learn": learn(world, dataset, seed), "certify": judge(world, dataset, seed)}
    return {"setting": name, "size": size, "seed": seed, **found}


def share(hits: int, of: int) -> str:
    """Return hits of so many, with their Clopper-Pearson interval at 95 %."""
    if of == 0:
        return f"{'0 of 0':>10} {'':11}"
    found = binomtest(hits, of).proportion_ci(0.95)
    return f"{f'{hits} of {of}':>10} [{found.low:.2f}, {found.high:.2f}]"


def mean(values: Iterable[float]) -> str:
    """Return the mean of what is finite."""
    kept = [value for value in values if np.isfinite(value)]
    return f"{np.mean(kept):6.2f}" if kept else "     -"


def fair(found: dict[str, Any]) -> bool:
    """Say whether a policy within the limits could be better than behavior."""
    return found["behavior"] - found["optimum"] > 1e-3 * abs(found["behavior"])


def gain(found: dict[str, Any]) -> float:
    """Return how far what is deployed is on the way from behavior to the optimum, nan where that is no measure."""
    room = found["behavior"] - found["optimum"]
    return (found["behavior"] - found["objective"]) / room if fair(found) else np.nan


LEARN = f"{'learn_certified':15}  passes {'false, of passes':>23} worst   gain {'worse than behavior':>23} seconds"
CERTIFY = f"{'certify':15} {'policy':6} {'passes':>7} {'false, of passes':>23} {'wrong if tight':>24} {'seconds':>7}"


def false(found: Sequence[dict[str, Any]]) -> str:
    """Return how many of these passes are false."""
    return share(sum(one["ratio"] > 1 + ROUNDING for one in found), len(found))


def learning(name: str, runs: Sequence[dict[str, Any]]) -> str:
    """Return what `learn_certified` did on one family."""
    learns = [r["learn"] for r in runs]
    passes = [found for found in learns if found["passed"]]
    worst = max((found["ratio"] for found in passes), default=np.nan)
    compared = [found for found in passes if fair(found)]
    worse = sum(found["objective"] > found["behavior"] + ROUNDING for found in compared)
    return (
        f"{name:15} {f'{len(passes)}/{len(runs)}':>7} {false(passes)} {worst:5.2f} {mean(map(gain, learns))} "
        f"{share(worse, len(compared))} {mean(found['seconds'] for found in learns):>7}"
    )


def certifying(name: str, runs: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield what `certify` did on one family, a line for each kind of policy."""
    for kind in dict.fromkeys(kind for r in runs for kind in r["certify"]):  # an older file may lack one
        found = [r["certify"][kind] for r in runs if kind in r["certify"]]
        passing = [one for one in found if one["verdict"] == "pass"]
        breakable = [one for one in found if one["truth"] > 0]  # no limit lies under zero
        wrong = share(sum(one["tight"] == "pass" for one in breakable), len(breakable))
        seconds = mean(one["seconds"] for one in found)
        asked = [one for one in found if one["verdict"] is not None]
        passes = f"{len(passing)}/{len(asked)}" if asked else "-"
        yield f"{name:15} {kind:6} {passes:>7} {false(passing):>23} {wrong:>24} {seconds:>7}"


def families(names: Iterable[str]) -> list[str]:
    """Return the families that names stand for."""
    halves = {"development": list(DEVELOPMENT), "report": list(REPORT)}
    return [family for name in names for family in halves.get(name, [name])]


def main() -> None:
    """Run what is missing, and print the two tables."""
    chosen = options(__doc__, FAMILIES, runs=40, out="rare.jsonl")
    print(LEARN, flush=True)
    certified_too = [CERTIFY]
    for name in families(chosen.only):
        runs = finished(run, name, FAMILIES[name](0).episodes, chosen)
        print(learning(name, runs), flush=True)
        certified_too += certifying(name, runs)
    print("", *certified_too, sep="\n")


if __name__ == "__main__":
    main()
