"""Where states are numbers: how far values by several kinds of weights lie from the truth, and how much they spread.

python benchmarks/weights.py [--runs 4] [--jobs 2] [--only NAME ...] [--out FILE]

Each run learns policies at three distances from behavior on 2000 episodes of a world of `continuous_worlds.py`, and
values them by 8000 others with the nuisances of the first. Truth by 40,000 rollouts. Weights of a row:

state       the density ratio of the state two steps before, times the ratios of decisions since: enough if the state is
everything  the product of all ratios since the start
ours        as `state`, with what was done before to first order: what `learn_certified` uses

bias: mean distance from the truth, in standard errors that 2000 episodes would have (those of `state`), the worst of
all costs, beside what chance and rollouts make of it; spread: standard errors over those of `state`, the largest of all
costs. Finished runs are kept in FILE and not run again.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from checkrein import Problem
from checkrein.evaluation import feature_one_step, feature_scores
from checkrein.evaluation.feature_one_step import FeatureNuisances, FeatureRows, come_before
from checkrein.evaluation.feature_scores import score
from checkrein.problem import Episodes
from checkrein.protocols import Policy
from checkrein.selection.feature_learning import FeatureFold
from checkrein.selection.learning import Aim
from continuous_worlds import WORLDS, World, log, truth
from resumable import finished, options

DISTANCES, MARGIN = (1 / 32, 1 / 8, 1 / 2), 3.0
SMALL, LARGE, ROLLOUTS = 2000, 8000, 40_000

Array = np.ndarray


def without_past(log: Episodes, ratios: Array) -> Array:  # noqa: ARG001
    """(n,) nothing: all is left to the density."""
    return np.zeros(len(log.rows))


def everything(nuisances: FeatureNuisances, rows: FeatureRows, policy: Policy) -> Array:
    """(e, k) with the product of all ratios since the start."""
    weigh = feature_scores._weights
    feature_scores._weights = lambda log, ratios, _: log.factors * log.products(ratios)
    try:
        return score(nuisances, rows, policy).scores
    finally:
        feature_scores._weights = weigh


def by_state(nuisances: FeatureNuisances, rows: FeatureRows, policy: Policy) -> Array:
    """(e, k) without what was done before."""
    feature_scores.come_before = feature_one_step.come_before = without_past
    try:
        return score(nuisances, rows, policy).scores
    finally:
        feature_scores.come_before = feature_one_step.come_before = come_before


def problem_of(world: World, episodes: int, seed: int) -> Problem:
    drawn = log(world, episodes, seed)
    return Problem(drawn, objective=world.objective, constraints=world.constraints, discount=world.discount)


def run(name: str, size: int, seed: int) -> dict[str, Any]:
    """Do one run."""
    world = WORLDS[name]
    with threadpool_limits(1):
        fold = FeatureFold(problem_of(world, size, seed), problem_of(world, LARGE, 5000 + seed), seed).begun()
        found = [valued(world, fold, distance) for distance in DISTANCES]
    return {"setting": name, "size": size, "seed": seed, "found": [one for one in found if one is not None]}


def valued(world: World, fold: FeatureFold, distance: float) -> dict[str, Any] | None:
    """Value one policy by all weights; None where it cannot keep the limits with the margin."""
    policy = fold.learner.learned(Aim(distance, MARGIN))
    if policy is None:
        return None
    signs = np.array([1.0, *(constraint.sign for constraint in world.constraints)])
    known = truth(world, policy, ROLLOUTS, seed=8)
    values, errors = (signs**power * [known[cost][i] for cost in world.cost_names] for i, power in ((0, 1), (1, 0)))
    nuisances, rows = fold.learner.nuisances, fold.judged
    ways = {
        "state": by_state(nuisances, rows, policy),
        "everything": everything(nuisances, rows, policy),
        "ours": score(nuisances, rows, policy).scores,
    }
    units = {way: rows.log.unit_means(scores) for way, scores in ways.items()}
    spread = {way: scores.std(axis=0) / len(scores) ** 0.5 for way, scores in units.items()}
    return {
        "distance": distance,
        "bias": {way: (rows.log.mean(scores) - values).tolist() for way, scores in ways.items()},
        "spread": {way: one.tolist() for way, one in spread.items()},
        "rollouts": errors.tolist(),
    }


def lines(name: str, runs: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each distance."""
    for distance in DISTANCES:
        found = [one for r in runs for one in r["found"] if one["distance"] == distance]
        if not found:
            continue
        unit = np.array([one["spread"]["state"] for one in found]) * np.sqrt(LARGE / SMALL)
        cells = []
        for way in ("state", "everything", "ours"):
            bias, spread = (np.array([one[kind][way] for one in found]) for kind in ("bias", "spread"))
            chance = np.hypot(spread, [one["rollouts"] for one in found]) / unit / np.sqrt(len(found))
            worst = np.argmax(np.abs((bias / unit).mean(axis=0)))
            cells.append(
                f"{(bias / unit).mean(axis=0)[worst]:6.1f} +-{chance.mean(axis=0)[worst]:4.1f}"
                f" {(2 * spread / unit).mean(axis=0).max():6.2f}"
            )
        yield f"{name:9} {distance:8.3f} {len(found):4} " + "   ".join(cells)


def main() -> None:
    """Run what is missing, and print the table."""
    chosen = options(__doc__, WORLDS, runs=4, out="weights.jsonl")
    print(f"{'':9} {'':8} {'':4} {'state':^21}   {'everything':^21}   {'ours':^21}")
    print(f"{'world':9} {'distance':>8} {'logs':>4} " + "   ".join([f"{'bias':>12} {'spread':>8}"] * 3))
    for name in chosen.only:
        for line in lines(name, list(finished(run, name, SMALL, chosen))):
            print(line, flush=True)


if __name__ == "__main__":
    main()
