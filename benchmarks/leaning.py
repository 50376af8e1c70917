"""Policies that lean on what was seldom logged, though what it costs is common elsewhere: how often claims are wrong.

python benchmarks/leaning.py [--runs 200] [--jobs 2] [--only NAME ...] [--out FILE]

pair-...    `certify` of a policy whose first decision was logged so often on average; the limit lies just under the
            truth, so every pass is wrong. The harm is paid at once, or (later) after a rare move.
near-...    `learn_certified` where behavior is close to the best already and takes all other actions seldom. False:
            passes that break the limit. Worse: policies returned whose objective is truly worse than behavior's.

Each run draws a world (near) and a log of it. Finished runs are kept in FILE and not run again.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from checkrein import AtMost, Problem, TabularPolicy, certify, learn_certified
from rare import share, tight
from rare_worlds import Charge, World, at, ending, log, mdp_of, scattered, soft
from resumable import finished, options

ROUNDING = 1e-9


def chain(rate: float, rows: int, usual: float, *, later: bool = False, steps: int = 5) -> tuple[World, TabularPolicy]:
    """Return a world whose first step has a seldom action that harms at another rate, and a policy that takes it."""
    episodes, after, end = 500, steps, steps + 1
    moves, harm, cost = np.zeros((end + 1, 2, end + 1)), np.zeros((end + 1, 2, 1)), np.zeros((end + 1, 2))
    for step in range(steps):
        moves[step, :, step + 1 if step + 1 < steps else end] = 1.0
    moves[after, :, 1] = 1.0
    harm[:steps, :, 0], harm[0, 1, 0], cost[0, 0] = usual, rate, 1.0
    if later:
        moves[0, 1] = (1 - rate) * at(end + 1, 1) + rate * at(end + 1, after)
        harm[0, 1, 0], harm[after, :, 0] = 0.0, 1.0
    charges = {"cost": Charge(fixed=cost), "harm": Charge(amounts=(1.0,), chances=harm)}
    mdp = mdp_of(moves, charges, at(end + 1, 0), 1.0)
    table = np.full((end + 1, 2), 0.5)
    table[0] = [1 - rows / episodes, rows / episodes]
    leaning = table.copy()
    leaning[0] = [0.0, 1.0]
    limits = (AtMost("harm", 1.0),)
    return World(mdp, charges, TabularPolicy(table), "cost", limits, episodes, 2 * steps), TabularPolicy(leaning)


def near(seed: int, *, temperature: float, chance: float, actions: int = 4, kept: bool = True) -> World:
    """Return 15 states with common costs and harms, and behavior close to the best; kept: whether the limit can be."""
    rng = np.random.default_rng([seed, 101])
    n = 15
    moves = ending(scattered(rng, (n, actions), 3), 0.12)
    costs, harms = np.zeros((2, n + 1, actions, 1))
    costs[:n, :, 0], harms[:n, :, 0] = rng.uniform(0.1, 0.9, (n, actions)), rng.uniform(0.1, 0.6, (n, actions))
    charges = {"cost": Charge(amounts=(1.0,), chances=costs), "harm": Charge(amounts=(1.0,), chances=harms)}
    mdp = mdp_of(moves, charges, np.append(np.full(n, 1 / n), 0.0), 0.97)
    weights = {"cost": 1.0} if kept else {"cost": 1.0, "harm": 1.0}
    behavior = soft(mdp, weights, temperature=temperature, chance=chance)
    limit = 1.3 * mdp.values(behavior)["harm"] if kept else 0.97 * mdp.optimum(objective="harm").values["harm"]
    return World(mdp, charges, behavior, "cost", (AtMost("harm", limit),), 600, 60)


PAIRS: dict[str, Callable[[], tuple[World, TabularPolicy]]] = {
    "pair-15": lambda: chain(0.15, 15, 0.3),
    "pair-10": lambda: chain(0.2, 10, 0.3),
    "pair-20": lambda: chain(0.12, 20, 0.3),
    "pair-15-later": lambda: chain(0.15, 15, 0.3, later=True),
    "pair-20-avoided": lambda: chain(0.1, 20, 0.03),
    "pair-40": lambda: chain(0.05, 40, 0.2),
    "pair-15-common": lambda: chain(0.5, 15, 0.4),
}
NEAR: dict[str, Callable[[int], World]] = {
    "near-best": lambda seed: near(seed, temperature=0.05, chance=0.05),
    "near-best-3": lambda seed: near(seed, temperature=0.1, chance=0.03, actions=3),
    "near-wide": lambda seed: near(seed, temperature=0.25, chance=0.15),
    "near-not-kept": lambda seed: near(seed, temperature=0.05, chance=0.05, kept=False),
}


def run(name: str, size: int, seed: int) -> dict[str, Any]:
    """Do one run."""
    with threadpool_limits(1):
        found = _judged(name, seed) if name in PAIRS else _learned(NEAR[name](seed), seed)
    return {"setting": name, "size": size, "seed": seed, **found}


def _judged(name: str, seed: int) -> dict[str, Any]:
    world, policy = PAIRS[name]()
    limit = tight(world.constraints[0], world.mdp.values(policy)["harm"])
    found = certify(policy, log(world, seed), constraints=[limit], discount=1.0, seed=seed)
    return {"passed": found.verdict == "pass", "false": found.verdict == "pass", "worse": False}


def _learned(world: World, seed: int) -> dict[str, Any]:
    limits, discount = world.constraints, world.mdp.discount
    problem = Problem(log(world, seed), objective="cost", constraints=limits, discount=discount)
    policy = learn_certified(problem, seed=seed).policy
    own = world.mdp.values(world.behavior)
    truth = own if policy is None else world.mdp.values(policy)
    return {
        "passed": policy is not None,
        "false": policy is not None and truth["harm"] > limits[0].limit * (1 + ROUNDING),
        "worse": policy is not None and truth["cost"] > own["cost"] + ROUNDING,
    }


def main() -> None:
    """Run what is missing, and print the table."""
    chosen = options(__doc__, [*PAIRS, *NEAR], runs=200, out="leaning.jsonl")
    print(f"{'':16} {'passes':>9} {'false, of logs':>23} {'worse, of logs':>23}", flush=True)
    for name in chosen.only:
        runs = finished(run, name, (PAIRS[name]()[0] if name in PAIRS else NEAR[name](0)).episodes, chosen)
        passes, false, worse = (sum(found[key] for found in runs) for key in ("passed", "false", "worse"))
        print(f"{name:16} {f'{passes}/{len(runs)}':>9} {share(false, len(runs))} {share(worse, len(runs))}", flush=True)


if __name__ == "__main__":
    main()
