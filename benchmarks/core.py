"""The core's claims about speed, each as a ratio measured in one run.

(a) compressing 10 million transitions over 64 states / one weighted np.bincount over the same rows: at most 5
(b) seconds per round at 10 million rows / at 100 thousand: at most 1.2
(c) rounds to gap 1e-3 on the binding FrozenLake, exponentiated gradient at its best rate / cutting plane: at least 20
(d) rounds to gap 1e-5 on random constrained MDPs, cutting planes at the centre and at the price: at most 10 (m + 1)
(e) seconds of the linear program over the policies found / of scipy's HiGHS on the same programs: at most 0.5

Run: python benchmarks/core.py [a b c d e]
"""

import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import islice

import numpy as np
from scipy.optimize import linprog

from checkrein import FQE, FQI, AtMost, CuttingPlane, Dataset, ExponentiatedGradient, Problem, Tabular, rounds
from checkrein.game.loop import Weighting
from checkrein.online.master import best_mixture
from checkrein_studies import frozen_lake
from checkrein_studies.random_cmdps import binding_limits, random_cmdp

PLAYERS = {"best_response": FQI(Tabular()), "evaluator": FQE(Tabular())}
MILLION = 1_000_000


def best_seconds(call: Callable[[], object], repeats: int) -> float:
    """Return the least of several runs: what the machine can do when it is not busy with something else."""
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return min(taken)


def lake_rows(n: int, seed: int = 0) -> Dataset:
    """N uniform transitions of slippery FrozenLake."""
    mdp, rng = frozen_lake.lake(), np.random.default_rng(seed)
    states = rng.choice(np.flatnonzero(mdp.transitions.any(axis=(1, 2))), n)
    actions = rng.integers(0, 4, n)
    outcomes = np.argsort(-mdp.transitions, axis=2)[:, :, :3]
    odds = np.cumsum(np.take_along_axis(mdp.transitions, outcomes, axis=2), axis=2)
    column = (rng.random(n)[:, None] >= odds[states, actions]).sum(axis=1).clip(max=2)
    next_states = outcomes[states, actions, column]
    arrived = frozen_lake.tiles()[next_states]
    return Dataset.from_arrays(
        states=states,
        actions=actions,
        next_states=next_states,
        costs={"goal": -1.0 * (arrived == "G"), "hole": 1.0 * (arrived == "H")},
        terminals=np.isin(arrived, ["G", "H"]),
        initial_states=[0],
    )


def lake_problem(dataset: Dataset) -> Problem:
    limit = AtMost("hole", frozen_lake.HOLE_LIMIT)
    return Problem(dataset, objective="goal", constraints=[limit], discount=frozen_lake.DISCOUNT)


def compression() -> None:
    dataset = lake_rows(10 * MILLION)
    key = (dataset.states * 4 + dataset.actions) * 64 + dataset.next_states
    weight = dataset.cost("goal")
    limit = best_seconds(lambda: np.bincount(key, weight), 7)
    ours = best_seconds(dataset.compressed, 7)
    print(
        f"(a) compress 10^7 transitions, 2 costs: {ours:.3f} s; one weighted bincount: {limit:.3f} s; "
        f"ratio {ours / limit:.2f} (at most 5)"
    )


def seconds_per_round(n: int) -> float:
    problem = lake_problem(lake_rows(n))
    learner = ExponentiatedGradient(1.0, 1.0)
    game = rounds(problem, **PLAYERS, learner=learner, weighting="uniform")
    for _ in range(20):  # the first round compresses; multipliers that still move differ between logs
        next(game)
    return best_seconds(lambda: [next(game) for _ in range(20)], 9) / 20


def round_time() -> None:
    small, large = seconds_per_round(MILLION // 10), seconds_per_round(10 * MILLION)
    print(
        f"(b) seconds per round at 10^7 rows: {large * 1e3:.2f} ms, at 10^5: {small * 1e3:.2f} ms; "
        f"ratio {large / small:.2f} (at most 1.2)"
    )


def rounds_to_gap() -> None:
    problem, bound, most = lake_problem(frozen_lake.lake().exact_log()), 30.0, 1000
    rates = [1, 2, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 60, 80, 100]
    planes = taken(problem, CuttingPlane(bound), 1e-3, most)
    ways = {
        "uniform mixture, our lower bound (at least 20)": lambda learner: taken(
            problem, learner, 1e-3, most, "uniform"
        ),
        "uniform mixture, the paper's lower bound": lambda learner: taken_by_paper(problem, learner, 1e-3, most),
        "mixture of the linear program": lambda learner: taken(problem, learner, 1e-3, most),
    }
    print(f"(c) rounds to gap 1e-3 on the binding FrozenLake, bound {bound:g}: cutting plane {planes}")
    for words, count in ways.items():
        found = {rate: count(ExponentiatedGradient(bound, rate)) for rate in rates}
        rate = min(found, key=lambda key: found[key])
        print(f"    exponentiated gradient, best rate {rate}: {found[rate]}, ratio {found[rate] / planes:.1f}: {words}")


def taken(
    problem: Problem,
    learner: CuttingPlane | ExponentiatedGradient,
    gap: float,
    most: int,
    weighting: Weighting = "best",
) -> int:
    game = rounds(problem, **PLAYERS, learner=learner, weighting=weighting)
    return next((played.index for played in islice(game, most) if played.gap <= gap), most)


def taken_by_paper(problem: Problem, learner: ExponentiatedGradient, gap: float, most: int) -> int:
    """Count rounds by the paper's stopping test: L_min is that of a best response to the averaged multipliers."""
    total, rng = np.zeros(problem.n_constraints), np.random.default_rng(0)
    for played in islice(rounds(problem, **PLAYERS, learner=learner, weighting="uniform"), most):
        total += played.multipliers
        average = total / played.index
        answer = PLAYERS["evaluator"](problem, PLAYERS["best_response"](problem, average, rng=rng), rng=rng)
        if played.upper - (answer.objective + average @ (answer.constraints - problem.limits)) <= gap:
            return played.index
    return most


def rounds_by_constraints(seeds: int = 8) -> None:
    print("(d) rounds to gap 1e-5 on random constrained MDPs, mean and largest of", seeds, "seeds:")
    for m in (1, 3, 8):
        counts: dict[bool, list[int]] = {True: [], False: []}
        for seed in range(seeds):
            mdp = random_cmdp(seed, n_constraints=m)
            limits = binding_limits(mdp, tightness=(0.3, 0.5, 0.7)[seed % 3])
            problem = Problem(mdp.exact_log(), objective="c", constraints=limits, discount=mdp.discount)
            for central, found in counts.items():
                found.append(taken(problem, CuttingPlane(20.0, central=central), 1e-5, 300))
        centre, price = ((np.mean(found), max(found)) for found in counts.values())
        print(
            f"    m = {m}: at the centre {centre[0]:.1f}, {centre[1]}; at the price {price[0]:.1f}, {price[1]} "
            f"(at most {10 * (m + 1)})"
        )


def linear_programs(programs: int = 50) -> None:
    print("(e) linear programs over policies found, random ones:")
    for m, t in ((1, 10), (2, 30), (3, 60), (8, 60)):
        ours, theirs = 0.0, 0.0
        for seed in range(programs):
            rng = np.random.default_rng([seed, m, t])
            objectives, violations, bounds = rng.random(t), rng.normal(size=(t, m)), np.full(m, 10.0)
            excess, one = np.hstack([violations.T, -np.ones((m, 1)) / 10]), np.append(np.ones(t), 0.0)
            peer = partial(linprog, np.append(objectives, 1.0), excess, np.zeros(m), one[None], [1.0], method="highs")
            ours += best_seconds(partial(best_mixture, objectives, violations, bounds), 3)
            theirs += best_seconds(peer, 3)
        print(
            f"    m = {m}, {t} policies: {1e3 * ours / programs:.2f} ms, HiGHS {1e3 * theirs / programs:.2f} ms; "
            f"ratio {ours / theirs:.2f} (at most 0.5)"
        )


if __name__ == "__main__":
    parts = {
        "a": compression,
        "b": round_time,
        "c": rounds_to_gap,
        "d": rounds_by_constraints,
        "e": linear_programs,
    }
    for part in sys.argv[1:] or parts:
        parts[part]()
