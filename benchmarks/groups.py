"""How often the intervals of a report's groups hold the truth, on the ward whose exact values are known.

For each log, `learn_certified` learns and judges; then each starting severity's difference to behavior is compared with
the exact difference of the same policies. The four intervals of a cost are meant to hold together at 95% on each side,
so each of them at about 97.5% on both. "all" is what the report shows: all episodes correct the tables; "own" is what
the group's own episodes say by the certificate's scores.

    python benchmarks/groups.py [LOGS] [PATIENTS]
"""

import sys
from collections import Counter
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
    begun = [np.where(severity == k, ward.initial, 0.0) for k in range(len(icu.SEVERITIES))]
    wards = [replace(ward, initial=initial / initial.sum()) for initial in begun]
    held: Counter[str] = Counter()
    for seed in range(logs):
        dataset = icu.log(patients=patients, seed=1000 + seed)
        limits = [AtMost("vasopressor hours", 3.3), AtMost("litres of fluid", 2.5)]
        found = learn_certified(Problem(dataset, objective="death", constraints=limits, discount=1.0), seed=seed)
        if found.episodes is None:
            continue
        held["logs"] += 1
        policy = (found.passed or found.candidates[-1]).policy
        first = dataset.first_rows()
        begins = severity[dataset.states[first]][np.searchsorted(dataset.episodes[first], found.episodes.labels)]
        groups = [begins == k for k in range(len(wards))]
        exact = [(world.values(policy), world.values(clinicians)) for world in wards]
        for way, judged in (("all", found.episodes), ("own", replace(found.episodes, from_states=None))):
            intervals = judged.differences_by(ALPHA / len(wards), groups)
            for cost, place in PLACES.items():
                truth = [after[cost] - before[cost] for after, before in exact]
                below = [one.lower[place] <= value for one, value in zip(intervals, truth, strict=True)]
                above = [one.upper[place] >= value for one, value in zip(intervals, truth, strict=True)]
                held[f"{way}, {cost}"] += sum(b and a for b, a in zip(below, above, strict=True))
                held[f"{way}, {cost}, from below"] += all(below)
                held[f"{way}, {cost}, from above"] += all(above)
    print(f"{held['logs']} logs of {patients:,} patients, {len(wards)} groups each")
    print(f"{'':28}{'intervals':>12}{'all, from below':>18}{'from above':>12}")
    for way in ("all", "own"):
        for cost in PLACES:
            name = f"{way}, {cost}"
            one = held[name] / (held["logs"] * len(wards))
            sides = [held[f"{name}, from {side}"] / held["logs"] for side in ("below", "above")]
            print(f"{name:28}{one:>12.1%}{sides[0]:>18.1%}{sides[1]:>12.1%}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60, int(sys.argv[2]) if len(sys.argv) > 2 else 2500)
