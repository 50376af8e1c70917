"""Do certificates hold where episodes come in clusters? Several stays of each of a few patients, who differ.

python benchmarks/clusters.py [--runs 200] [--jobs 2] [--only fixed learned learn_certified] [--out FILE]

A ward: stays of four days, three severities, two treatments. How often a day does harm is a matter of severity and
treatment, times a frailty that a patient keeps in all stays, and each has a way of arriving ill of his own. Neither is
logged. Both are drawn, each by itself, from a known finite population, so the truth is exact: values are linear in
either, so that means over the population make one MDP, whose state is severity and day.

fixed            a policy that is given, judged on all stays
learned          a policy learned on as many stays again, of other patients with the key. Without it the log is split by
                 stays: patients are on both sides
learn_certified  on the whole log, at nine tenths of behavior's harm; a pass is wrong where the truth breaks the limit

wrong: passes at a limit a thousandth under the truth. right: passes at one and a half times the truth; of
learn_certified, all passes.
Each with the key `clusters` and without, by the default method (fqe-studentised) and by dr-t.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from checkrein import AtMost, Dataset, Problem, Support, TabularMDP, TabularPolicy, certify, learn_certified
from checkrein.base.arrays import FloatArray, IntArray
from checkrein.data.split import split_episodes
from checkrein.protocols import Policy
from checkrein.selection.learning import TabularLearning
from rare import share
from resumable import finished, options

SETTINGS = ("fixed", "learned", "learn_certified")
STAYS = {30: 20, 100: 6, 300: 4}  # of each patient, by how many patients there are
METHODS: dict[str, str | None] = {"default": None, "dr-t": "dr-t"}
SEVERITIES, DAYS, DISCOUNT = 3, 4, 0.95
POPULATION = np.linspace(-1, 1, 201)  # how far its members are from the average
HARM = np.tile([[0.10, 0.25], [0.20, 0.40], [0.30, 0.50]], (DAYS, 1))  # of an average patient, by day and severity
BETTER, WORSE = (0.2, 0.5), (0.3, 0.1)  # chances of each treatment to lower or raise severity
BEHAVIOR = TabularPolicy(np.full((DAYS * SEVERITIES, 2), 0.5))
GIVEN = TabularPolicy(np.tile([[0.7, 0.3], [0.5, 0.5], [0.35, 0.65]], (DAYS, 1)))
JUST, ROOM, AIM = 1e-3, 1.5, 0.9


def frailty() -> FloatArray:
    """(P,) times that each member of the population is harmed, of an average one; their mean is 1."""
    return np.asarray(1 + 0.8 * POPULATION)


def arrivals() -> FloatArray:
    """(P, S) how ill each of them arrives."""
    chances = np.exp(-0.5 * (np.arange(SEVERITIES) - 1 - POPULATION[:, None]) ** 2)
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def ward() -> TabularMDP:
    """Return the mean of all members, which values policies as the population does."""
    moves = np.zeros((DAYS * SEVERITIES, 2, DAYS * SEVERITIES))
    for day, severity, treatment in product(range(DAYS - 1), range(SEVERITIES), range(2)):
        row = moves[day * SEVERITIES + severity, treatment, (day + 1) * SEVERITIES : (day + 2) * SEVERITIES]
        row[max(severity - 1, 0)] += BETTER[treatment]
        row[min(severity + 1, SEVERITIES - 1)] += WORSE[treatment]
        row[severity] += 1 - BETTER[treatment] - WORSE[treatment]
    illness = np.tile(np.arange(SEVERITIES, dtype=float)[:, None], (DAYS, 2))
    initial = np.append(arrivals().mean(axis=0), np.zeros((DAYS - 1) * SEVERITIES))
    return TabularMDP(moves, {"illness": illness, "harm": HARM}, initial, DISCOUNT)


def truth(policy: Policy) -> float:
    """Return what harm a policy does to the population."""
    return ward().values(policy)["harm"]


def log(patients: int, stays: int, seed: int) -> Dataset:
    """Log stays of patients who are drawn from the population."""
    rng, world = np.random.default_rng([seed, patients, stays]), ward()
    whose = np.repeat(np.arange(patients), stays)
    frail, arriving = rng.integers(0, POPULATION.size, (2, patients))
    state, days = _draw(arrivals()[arriving][whose], rng), []
    for day in range(DAYS):
        action = rng.integers(0, 2, whose.size)
        following = state if day == DAYS - 1 else _draw(world.transitions[state, action], rng)
        days.append((state, action, following))
        state = following
    states, actions, following = (np.ravel(column, order="F") for column in zip(*days, strict=True))
    episode, steps = np.repeat(np.arange(whose.size), DAYS), np.tile(np.arange(DAYS), whose.size)
    chance = HARM[states, actions] * frailty()[frail][whose][episode]
    return Dataset.from_arrays(
        states=states,
        actions=actions,
        next_states=following,
        costs={"illness": states % SEVERITIES, "harm": 1.0 * (rng.random(states.size) < chance)},
        terminals=steps == DAYS - 1,
        episodes=episode,
        steps=steps,
        propensities=np.full(states.size, 0.5),
        n_actions=2,
        n_states=DAYS * SEVERITIES,
        clusters=whose[episode],
    )


def _draw(chances: FloatArray, rng: np.random.Generator) -> IntArray:
    """(n,) a column of each row (n, k) of chances."""
    return np.asarray((rng.random((len(chances), 1)) > np.cumsum(chances, axis=1)[:, :-1]).sum(axis=1))


def at_limit(dataset: Dataset) -> Policy:
    """Learn at the limit itself."""
    limits = [AtMost("harm", AIM * truth(BEHAVIOR))]
    problem = Problem(dataset, objective="illness", constraints=limits, discount=DISCOUNT)
    return TabularLearning()(problem, Support(min_count=5.0), ()).policy


def judge(policy: Policy, dataset: Dataset, seed: int) -> dict[str, Any]:
    """Certify at a limit that is just broken; the same bounds and checks say whether one with room would pass."""
    found, harm = {}, truth(policy)
    for name, method in METHODS.items():
        limit = AtMost("harm", (1 - JUST) * harm)
        judged = certify(policy, dataset, constraints=[limit], discount=DISCOUNT, method=method, seed=seed)
        found[f"{name} wrong"] = judged.verdict == "pass"
        believed = all(check.ok for check in judged.checks)
        found[f"{name} right"] = bool(believed and judged.bounds["harm"] <= ROOM * harm)
    return found


def learn(dataset: Dataset, seed: int) -> dict[str, Any]:
    """Run `learn_certified`."""
    limit = AIM * truth(BEHAVIOR)
    limits = [AtMost("harm", limit)]
    found = learn_certified(
        Problem(dataset, objective="illness", constraints=limits, discount=DISCOUNT), improvement="not asked", seed=seed
    )
    passed = found.policy is not None
    return {"one-step right": passed, "one-step wrong": passed and truth(found.policy) > limit}


def run(name: str, size: int, seed: int) -> dict[str, Any]:
    """Do one run, with the key and without."""
    found: dict[str, Any] = {"setting": name, "size": size, "seed": seed}
    with threadpool_limits(1):
        patients = 2 * size if name == "learned" else size
        clustered = log(patients, STAYS[size], seed)
        for key, dataset in (("with", clustered), ("without", replace(clustered, clusters=None))):
            if name == "learn_certified":
                found[key] = learn(dataset, seed)
            elif name == "fixed":
                found[key] = judge(GIVEN, dataset, seed)
            else:
                mine, held = split_episodes(dataset, holdout=0.5, seed=seed)
                found[key] = judge(at_limit(mine), held, seed)
    return found


def table(name: str, size: int, runs: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each method."""
    for method in dict.fromkeys(label.rsplit(" ", 1)[0] for label in runs[0]["with"]):
        cells = []
        for key in ("without", "with"):
            wrong, right = (sum(r[key][f"{method} {kind}"] for r in runs) for kind in ("wrong", "right"))
            cells.append(f"{share(wrong, len(runs))} {right / len(runs):6.0%}")
        yield f"{name:16} {f'{size} x {STAYS[size]}':9} {method:9} {cells[0]:>30}   {cells[1]:>30}"


def main() -> None:
    """Run what is missing, and print the table."""
    chosen = options(__doc__, SETTINGS, runs=200, out="clusters.jsonl")
    print(f"{'policy':16} {'patients':9} {'method':9} {'without: wrong, right':>30}   {'with: wrong, right':>30}")
    for name in chosen.only:
        for size in STAYS:
            for line in table(name, size, finished(run, name, size, chosen)):
                print(line, flush=True)


if __name__ == "__main__":
    main()
