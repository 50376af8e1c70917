"""The estimators on the Graph study of Voloshin et al. (2021), against the figures published there.

Each published figure is a mean over 10 seeds of (estimate - truth)^2 / truth^2 from 50 episodes. Here such means are
drawn again and again: a figure agrees if, up to its rounding to two digits, it lies in the middle 90 % of ours.

Run: python benchmarks/graph.py [replications]
"""

import sys
import time

import numpy as np
from threadpoolctl import threadpool_limits

from checkrein import FQE, Support, Tabular
from checkrein.evaluation import Direct, evaluate
from checkrein_studies import graph

BEHAVIOR = 0.1
EPISODES = 50
SEEDS = 10
ESTIMATORS = ["is", "pdis", "wis", "cwpdis", "naive", Direct(FQE(Tabular(), support=Support(min_count=0)), "fqe")]
NAMES = ["is", "pdis", "wis", "cwpdis", "naive", "fqe"]
PUBLISHED = {
    (0.1246, 10): [5.6e-4, 8.4e-4, 1.4e-3, 1.4e-3, 6.1e-3, 1.8e-3],
    (0.1246, 100): [1.7e-2, 2.5e-3, 9.5e-4, 4.9e-4, 5.4e-3, 6.0e-2],
    (0.9, 10): [1.0, 0.54, 2.0, 0.97, 4.0, 0.66],
}


def errors(target: float, horizon: int, replications: int, seed: int = 0) -> np.ndarray:
    """(replications, estimators) means over seeds of the relative squared error."""
    mdp = graph.graph(horizon)
    policy, behavior = graph.constant_policy(mdp, target), graph.constant_policy(mdp, BEHAVIOR)
    truth = mdp.values(policy)[graph.REWARD]
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(replications * SEEDS):
        log = graph.log(mdp, behavior, episodes=EPISODES, rng=rng)
        estimates = evaluate(policy, log, costs=[graph.REWARD], discount=graph.DISCOUNT, estimators=ESTIMATORS)
        found.append([estimates.value(name, graph.REWARD) for name in NAMES])
    relative = (np.array(found) - truth) ** 2 / truth**2
    return relative.reshape(replications, SEEDS, -1).mean(axis=1)


def main() -> None:
    replications = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    outside = 0
    for (target, horizon), published in PUBLISHED.items():
        began = time.perf_counter()
        with threadpool_limits(1):  # the matrices are small: threads would only wait for each other
            means = errors(target, horizon, replications)
        print(f"target {target}, {horizon} steps ({time.perf_counter() - began:.1f} s)")
        print(f"  {'':8} {'median':>9} {'5 %':>9} {'95 %':>9} {'published':>10}")
        for name, ours, theirs in zip(NAMES, means.T, published, strict=True):
            low, median, high = np.quantile(ours, [0.05, 0.5, 0.95])
            rounding = 0.5 * 10.0 ** (np.floor(np.log10(theirs)) - 1)
            inside = low - rounding <= theirs <= high + rounding
            outside += not inside
            print(f"  {name:8} {median:9.2e} {low:9.2e} {high:9.2e} {theirs:10.2e} {'' if inside else 'outside'}")
    print(f"{outside} of {len(PUBLISHED) * len(NAMES)} outside")
    sys.exit(1 if outside > 1 else 0)


if __name__ == "__main__":
    main()
