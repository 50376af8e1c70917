"""A frontier of 30 limits against one solve, and against the exact frontier, on the exact ICU-Sepsis model.

python benchmarks/frontier.py [--points 30] [--repeats 15]
"""

import argparse
import time

import numpy as np

from checkrein import FQE, FQI, AtMost, CuttingPlane, Frontier, Problem, Tabular, frontier, solve
from checkrein_studies import sepsis
from checkrein_studies.sepsis import DEATH, DISCOUNT, VASOPRESSORS

PLAYERS = {"best_response": FQI(Tabular()), "evaluator": FQE(Tabular()), "learner": CuttingPlane(100.0)}
SHARE = 0.5  # of the clinicians' vasopressors: the limit of the one solve
TOLERANCE = 1e-4
FINE = 1e-6  # a tolerance at which prices are sharp


def problem() -> Problem:
    """Return the exact model as a log, with nothing prepared yet."""
    ward = sepsis.load()
    limit = AtMost(VASOPRESSORS, SHARE * ward.mdp.values(ward.clinicians)[VASOPRESSORS])
    return Problem(ward.mdp.exact_log(), objective=DEATH, constraints=[limit], discount=DISCOUNT)


def one(tolerance: float) -> tuple[float, int]:
    """Return the CPU seconds and the best responses of one solve."""
    asked, start = problem(), time.process_time()
    found = solve(asked, tolerance=tolerance, max_rounds=100, **PLAYERS)
    return time.process_time() - start, len(found.rounds)


def many(tolerance: float, points: int) -> tuple[float, Frontier]:
    """Return the CPU seconds of a frontier, its range included, and the frontier."""
    asked, start = problem(), time.process_time()
    found = frontier(asked, sweep={VASOPRESSORS: points}, tolerance=tolerance, max_rounds=100, **PLAYERS)
    return time.process_time() - start, found


def exact(limits: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the optima and the duals of the linear program over occupancies."""
    mdp = sepsis.load().mdp
    optima = [mdp.optimum(objective=DEATH, constraints=[AtMost(VASOPRESSORS, limit)]) for limit in limits]
    values, duals = zip(*((o.values[DEATH], o.multipliers[VASOPRESSORS]) for o in optima), strict=True)
    return np.array(values), np.array(duals)


def report(found: Frontier, values: np.ndarray, duals: np.ndarray, tolerance: float) -> None:
    reached = np.array([point.values.objective for point in found.points])
    prices = np.array([point.multipliers[VASOPRESSORS] for point in found.points])
    ranges = [point.prices[VASOPRESSORS] for point in found.points]
    inside = [r.low - 1e-7 <= dual <= r.high + 1e-7 for r, dual in zip(ranges, duals, strict=True)]
    sharp = np.array([not r.wide for r in ranges])
    degenerate = [k for k, r in enumerate(ranges) if not r.unique]
    print(f"tolerance {tolerance:g}")
    print(f"  largest distance to the exact frontier: {np.abs(reached - values).max():.2e}")
    print(f"  the exact dual lies in the range of the price at {sum(inside)} of {len(inside)} points")
    print(f"  the price is not unique, by the tool, at points {degenerate}, where the exact dual is", duals[degenerate])
    if sharp.any():
        apart = np.abs(prices - duals)[sharp].max()
        print(f"  the price is one number at {sharp.sum()} points: at most {apart:.1e} from the exact dual there")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--points", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    one(TOLERANCE)  # imports
    timed = [(*one(TOLERANCE), *many(TOLERANCE, options.points)) for _ in range(options.repeats)]
    alone, together = (float(np.median([run[place] for run in timed])) for place in (0, 2))
    rounds, found = timed[0][1], timed[0][3]
    print(f"one solve: {rounds} best responses, {alone:.2f} s CPU (median); tolerance {TOLERANCE:g}")
    print(f"{options.points} points, their range included: {found.asked} best responses, {together:.2f} s CPU")
    print(f"ratio: {found.asked / rounds:.2f} in best responses, {together / alone:.2f} in CPU seconds")
    values, duals = exact(found.limits[VASOPRESSORS])
    report(found, values, duals, TOLERANCE)
    _, fine = many(FINE, options.points)
    print(f"{options.points} points at tolerance {FINE:g}: {fine.asked} best responses; one solve {one(FINE)[1]}")
    report(fine, values, duals, FINE)


if __name__ == "__main__":
    main()
