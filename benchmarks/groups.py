"""How often the intervals of a report's groups hold the truth, on the ward whose exact values are known.

For each log, `learn_certified` learns and judges; then each starting severity's difference to behavior, by the same
episodes' scores, is compared with the exact difference of the same policies. The four intervals of a cost are meant to
hold together at 95% on each side.

    python benchmarks/groups.py [LOGS] [PATIENTS]
"""

import sys
from dataclasses import replace

import numpy as np

from checkrein import AtMost, Problem, learn_certified
from checkrein_studies import icu

ALPHA = 0.05
PLACES = {"death": 0, "vasopressor hours": 1, "litres of fluid": 2}


def main(logs: int, patients: int) -> None:
    """Print how many intervals hold the truth, by cost and by side."""
    ward, clinicians = icu.ward(), icu.clinicians()
    severity = np.arange(len(ward.initial)) // len(icu.LACTATES)
    groups = range(len(icu.SEVERITIES))
    begun = [np.where(severity == k, ward.initial, 0.0) for k in groups]
    wards = [replace(ward, initial=initial / initial.sum()) for initial in begun]
    held = {cost: {"one": 0, "together": [0, 0]} for cost in PLACES}
    for seed in range(logs):
        dataset = icu.log(patients=patients, seed=1000 + seed)
        limits = [AtMost("vasopressor hours", 3.3), AtMost("litres of fluid", 2.5)]
        problem = Problem(dataset, objective="death", constraints=limits, discount=1.0)
        found = learn_certified(problem, seed=seed)
        if found.episodes is None:
            continue
        policy = (found.passed or found.candidates[-1]).policy
        first = dataset.first_rows()
        begins = severity[dataset.states[first]][np.searchsorted(dataset.episodes[first], found.episodes.labels)]
        intervals = found.episodes.differences_by(ALPHA / len(wards), [begins == k for k in groups])
        exact = [(world.values(policy), world.values(clinicians)) for world in wards]
        for cost, place in PLACES.items():
            truth = [after[cost] - before[cost] for after, before in exact]
            below = [one.lower[place] <= value for one, value in zip(intervals, truth, strict=True)]
            above = [one.upper[place] >= value for one, value in zip(intervals, truth, strict=True)]
            held[cost]["one"] += sum(b and a for b, a in zip(below, above, strict=True))
            held[cost]["together"][0] += all(below)
            held[cost]["together"][1] += all(above)
        print(f"{seed + 1} of {logs}", held, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20, int(sys.argv[2]) if len(sys.argv) > 2 else 2500)
