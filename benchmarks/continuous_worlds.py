"""The worlds of benchmarks/continuous.py: what each is like, what behavior is worth there, and what could be had.

python benchmarks/continuous_worlds.py [NAME ...] [--rollouts 50000]      the table
python benchmarks/continuous_worlds.py tune [NAME ...]                    search anew for continuous_constants.py
"""

import argparse
import json

from checkrein.protocols import Policy
from continuous_complete import offers, reactor, shock
from continuous_control import epidemic, pole, servers
from continuous_medical import glucose, hiv, oncology, stays
from continuous_rollouts import Decisions, World, as_observed, followed, log, play, returns, truth, values
from continuous_tuned import BOUND, FREE, Tilted, score, search, tuned

__all__ = ["WORLDS", "Decisions", "World", "as_observed", "followed", "log", "play", "returns", "truth", "tuned"]

EVERY = (glucose, hiv, epidemic, servers, pole, stays, oncology, shock, reactor, offers)
WORLDS = {world.name: world for world in EVERY}


def keeps(world: World, found: dict[str, tuple[float, float]]) -> bool:
    """Whether all limits are kept by these values."""
    return all(c.sign * (found[str(c.cost)][0] - c.limit) <= 0 for c in world.constraints)


def rows(world: World, rollouts: int) -> list[list[str]]:
    """Return the lines of the table for one world: the objective, then each limit."""
    policies: dict[str, Policy | None] = {"behavior": None, "near": tuned(world, near=True), "tuned": tuned(world)}
    found, decisions = {}, 0.0
    for name, policy in policies.items():
        sums, clusters, length = returns(world, policy, rollouts=rollouts, seed=1)
        found[name] = values(world, sums, clusters)
        decisions = length if policy is None else decisions
    own = [world.name, len(world.features), world.n_actions, f"{decisions:.1f}", f"{world.discount:g}"]
    kept = ["yes" if keeps(world, one) else "no" for one in found.values()]
    asked = ["minimise", *(f"{c.words} {c.limit:g}" for c in world.constraints)]
    lines = []
    for number, (cost, what) in enumerate(zip(world.cost_names, asked, strict=True)):
        first = [*map(str, own), *kept] if number == 0 else [""] * 8
        measured = [f"{one[cost][0]:.4g} ({one[cost][1]:.1g})" for one in found.values()]
        share = "" if number == 0 else f"{world.constraints[number - 1].limit / found['behavior'][cost][0]:.0%}"
        lines.append([*first[:5], cost, *measured, what, share, "/".join(first[5:]) if number == 0 else ""])
    return lines


def table(worlds: list[World], rollouts: int) -> None:
    """Print one world after the other: values (standard errors), limits, and who keeps them."""
    head = ["world", "features", "actions", "decisions", "discount", "cost", "behavior", "near behavior", "tuned"]
    print("| " + " | ".join([*head, "asked", "of behavior's", "kept by behavior/near/tuned"]) + " |")
    print("|" + "---|" * 12)
    for world in worlds:
        for line in rows(world, rollouts):
            print("| " + " | ".join(line) + " |", flush=True)


def tune(worlds: list[World]) -> None:
    """Print the weights of tuned policies as continuous_constants.py has them."""
    for world in worlds:
        close = search(world, near=True)
        free = search(world, near=False, start=close)
        found = {"near": close.round(2).tolist()}
        scores = [score(Tilted(world, *one), 20_000, seed=99) for one in ((close, BOUND), (free, FREE))]
        if scores[1] < scores[0]:  # else the search found nothing better than near behavior
            found["free"] = free.round(2).tolist()
        print(f'    "{world.name}": {json.dumps(found)},', flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="tune, and names of worlds; by default all")
    parser.add_argument("--rollouts", type=int, default=50_000)
    chosen = parser.parse_args()
    worlds = [WORLDS[name] for name in chosen.names if name != "tune"] or list(WORLDS.values())
    if "tune" in chosen.names:
        tune(worlds)
    else:
        table(worlds, chosen.rollouts)


if __name__ == "__main__":
    main()
