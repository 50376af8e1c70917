"""What the bootstrap of fitted evaluation costs, each claim as a ratio measured in one run on one thread.

Tabular FQE of three costs on 100 thousand transitions (50 states, 2000 episodes of 50 steps), 1000 replicates with
their standard errors:

(a) all replicates / one replicate, which gathers the log and fits once: at most 100
(b) all replicates / a loop of 1000 fits on episodes drawn anew: at most 0.1 (20 such fits are timed, and scaled up)

Run: python benchmarks/evaluation.py [--replicates 1000]; ends with an error where a limit is broken.
"""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from checkrein import FQE, AtMost, Dataset, Problem, Tabular, TabularPolicy
from checkrein.evaluation.draws import draws
from checkrein.evaluation.refits import Refits
from checkrein_studies.random_cmdps import random_cmdp

STATES, EPISODES, STEPS = 50, 2000, 50
LOOPED = 20  # fits of the loop that are timed
REPEATS = 3
MOST_ONE, MOST_LOOP = 100.0, 0.1


def best_seconds(call: Callable[[], object], repeats: int = REPEATS) -> float:
    """Return the least of several runs: what the machine can do when it is not busy with something else."""
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return min(taken)


def logged() -> tuple[Dataset, TabularPolicy]:
    """Return a log of a uniform policy, and another policy to value."""
    mdp = random_cmdp(0, n_constraints=2, n_states=STATES)
    rng = np.random.default_rng(0)
    dataset = mdp.simulate(TabularPolicy.uniform(STATES, mdp.n_actions), episodes=EPISODES, max_steps=STEPS, rng=rng)
    return dataset, TabularPolicy(rng.dirichlet(np.ones(mdp.n_actions), size=STATES))


def problem_of(dataset: Dataset) -> Problem:
    """Return three costs to value; a new problem has gathered nothing yet."""
    return Problem(dataset, objective="c", constraints=[AtMost("g0", 0.0), AtMost("g1", 0.0)], discount=0.95)


def drawn_anew(dataset: Dataset, counts: np.ndarray) -> Dataset:
    """Return the log in which each episode counts as often as it was drawn."""
    weights = counts[dataset.episodes]
    return replace(dataset, weights=weights, initial_weights=counts)


def main() -> None:
    """Measure, print and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=1000)
    replicates = parser.parse_args().replicates
    with threadpool_limits(1):
        dataset, policy = logged()
        rng = np.random.default_rng(1)
        counts = draws(EPISODES, replicates, rng)
        fqe = FQE(Tabular())

        def fit(times: np.ndarray) -> np.ndarray:
            values = fqe(problem_of(drawn_anew(dataset, times)), policy, rng=rng)
            return values.row

        one = best_seconds(lambda: Refits.of(problem_of(dataset), policy, Tabular())(counts[:1]), 2 * REPEATS)
        every = best_seconds(lambda: Refits.of(problem_of(dataset), policy, Tabular())(counts))
        loop = best_seconds(lambda: [fit(times) for times in counts[:LOOPED]]) * replicates / LOOPED
        apart = np.abs(Refits.of(problem_of(dataset), policy, Tabular())(counts[:1]).values[0] - fit(counts[0])).max()
    found = {"(a) all / one": (every / one, MOST_ONE), "(b) all / loop": (every / loop, MOST_LOOP)}
    print(f"{len(dataset):,} transitions, {STATES} states, 3 costs, one thread; largest difference {apart:.1e}")
    print(f"one replicate {one * 1e3:.1f} ms, {replicates} replicates {every:.2f} s")
    print(f"a loop of {replicates} fits {loop:.1f} s (scaled up from {LOOPED})")
    for words, (ratio, most) in found.items():
        print(f"{words}: {ratio:.3g} (at most {most:g}){'' if ratio <= most else ' BROKEN'}")
    sys.exit(any(ratio > most for ratio, most in found.values()))


if __name__ == "__main__":
    main()
