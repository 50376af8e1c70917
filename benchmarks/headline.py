"""How many claims that a limit is kept are false: judged on the data that chose the policy, and certified.

python benchmarks/headline.py [--runs 200] [--jobs 2] [--only NAME ...] [--out FILE]

Each run logs episodes, and learns twice. `plain` learns at the limit from all of them, and claims that the limit is
kept because FQE on the same episodes says so (the paper's way). `checkrein` learns on one half, support and margin
chosen inside it, and claims it where the certificate of the other half passes. Truth is exact.
Finished runs are kept in FILE and not run again.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from checkrein import FQE, FQI, AtMost, CuttingPlane, Dataset, Problem, Solution, Support, Tabular, TabularMDP, solve
from checkrein.certification import certify
from checkrein.certification.certify import alpha_spent
from checkrein.data.split import split_episodes
from checkrein.selection.margins import choose_margins
from checkrein_studies import frozen_lake, random_cmdps
from resumable import finished, options

CONFIDENCE = 0.95


class Setting(NamedTuple):
    """A problem with known truth, and a log of it."""

    mdp: TabularMDP
    log: Dataset
    objective: str
    limit: AtMost
    behavior: float  # the objective of who wrote the log


def lake(seed: int, episodes: int) -> Setting:
    """Slippery FrozenLake with a binding limit on falling into holes."""
    mdp = frozen_lake.lake()
    behavior = frozen_lake.behavior(mdp)
    log = frozen_lake.log(mdp, behavior, episodes=episodes, seed=seed)
    limit = AtMost("hole", frozen_lake.HOLE_LIMIT, range=(0, 1))
    return Setting(mdp, log, "goal", limit, mdp.values(behavior)["goal"])


def cmdps(seed: int, episodes: int) -> Setting:
    """Another random constrained MDP for each seed."""
    mdp = random_cmdps.goal_cmdp(seed)
    behavior = random_cmdps.skilled_behavior(mdp, 0.1)
    log = mdp.simulate(behavior, episodes=episodes, max_steps=50, rng=np.random.default_rng(seed))
    return Setting(mdp, log, "loss", AtMost("cost", 0.1, range=(0, 1)), mdp.values(behavior)["loss"])


SETTINGS: dict[str, tuple[tuple[int, ...], Callable[[int, int], Setting]]] = {
    "frozen-lake": ((4000,), lake),
    "random-cmdps": ((10, 50, 200, 1000, 2000), cmdps),
}


def learned(problem: Problem, support: Support, tolerance: float = 1e-4) -> Solution:
    """Solve with tables."""
    players: dict[str, Any] = {"best_response": FQI(Tabular(), support=support), "evaluator": FQE(Tabular())}
    return solve(problem, **players, learner=CuttingPlane(100.0), tolerance=tolerance, max_rounds=50)


def run(name: str, size: int, seed: int) -> dict[str, Any]:
    """Learn and claim both ways."""
    with threadpool_limits(1):
        mdp, log, objective, limit, behavior = SETTINGS[name][1](seed, size)
        whole = Problem(log, objective=objective, constraints=[limit], discount=mdp.discount)
        best = mdp.optimum(objective=objective, constraints=[limit]).values[objective]
        plain = learned(whole, Support())
        mine, held = split_episodes(log, holdout=0.5, seed=seed)
        if held is None:
            raise SystemExit("half of the episodes are held out")
        problem = Problem(mine, objective=objective, constraints=[limit], discount=mdp.discount)
        target = choose_margins(
            problem,
            lambda part, support: learned(part, support, 1e-3).policy,
            held_out=held.first_rows().size,
            confidence=1 - alpha_spent(1 - CONFIDENCE, 1),
            seed=seed,
        )
        tightened = Problem(mine, objective=objective, constraints=target.constraints, discount=mdp.discount)
        careful = learned(tightened, target.support).policy
        found = certify(
            careful, held, constraints=[limit], discount=mdp.discount, confidence=CONFIDENCE, seed=seed, look=1
        )

    def judged(values: dict[str, float], *, claimed: bool) -> dict[str, Any]:
        share = (values[objective] - behavior) / (best - behavior)
        return {"claimed": claimed, "true": values[limit.cost], "share": share}

    ways = {
        "plain": judged(mdp.values(plain.policy), claimed=plain.values[limit.cost] <= limit.limit * (1 + 1e-6)),
        "checkrein": judged(mdp.values(careful), claimed=found.verdict == "pass"),
    }
    return {"setting": name, "size": size, "seed": seed, "limit": limit.limit, "verdict": found.verdict, **ways}


def table(runs: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of one setting and size."""
    yield f"{'way':8} claims   false claims   true violations   of the possible gain (where claimed)"
    for way in ("plain", "checkrein"):
        claimed = np.array([r[way]["claimed"] for r in runs])
        broken = np.array([r[way]["true"] > r["limit"] * (1 + 1e-6) for r in runs])
        share = np.array([r[way]["share"] for r in runs])
        false = (claimed & broken).sum()
        gain = f"{share[claimed].mean():.2f}" if claimed.any() else "-"
        part = f"{false / claimed.sum():.1%}" if claimed.any() else "-"
        yield (
            f"{way:8} {claimed.mean():6.1%}   {false:3d} = {part:>6} of them   {broken.mean():10.1%}   "
            f"{share.mean():10.2f} ({gain})"
        )


def main() -> None:
    """Run what is missing, then print the tables."""
    chosen = options(__doc__, SETTINGS, runs=200, out="headline.jsonl")
    for name in chosen.only:
        for size in SETTINGS[name][0]:
            runs = finished(run, name, size, chosen)
            print(f"\n{name}, {size} episodes, {len(runs)} seeds", *table(runs), sep="\n", flush=True)


if __name__ == "__main__":
    main()
