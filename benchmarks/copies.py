"""Do copies of episodes fool a certificate, and is what is equal by right left alone? Worlds whose truth is known.

python benchmarks/copies.py [--runs 200] [--jobs 2] [--only NAME ...] [--out FILE]

NAME is a setting, or `alarms`. Finished runs are kept in FILE and not run again.

certify          a policy halfway between behavior and the optimum, under a limit that the truth just breaks: each pass
                 is wrong. The log is SIZE episodes: ten times over, a sample of ten times as many with replacement, or
                 with half of them exported again; blind: the same log if every episode counted.
learn_certified  on the same log, under a binding limit; a pass is wrong where the truth breaks it.
alarms           independent logs of many worlds, with few and many equal episodes: how many are called copies.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import binomtest
from threadpoolctl import threadpool_limits

from checkrein import AtMost, Dataset, Problem, TabularMDP, TabularPolicy, certify, learn_certified
from checkrein.data.copies import Copies
from checkrein_studies import frozen_lake, graph, icu, random_cmdps
from checkrein_studies.combination_lock import combination_lock
from resumable import finished, options

JUST = 1e-3  # how far the truth lies over the limit, as a share of it
ALARMS = "alarms"
SIZES = (60, 300)  # different episodes
ALARM_SIZES = (100, 600, 5000)


def ten_times(episodes: int, _: np.random.Generator) -> np.ndarray:
    return np.tile(np.arange(episodes), 10)


def sample(episodes: int, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, episodes, 10 * episodes)


def overlap(episodes: int, rng: np.random.Generator) -> np.ndarray:
    return rng.permutation(np.append(np.arange(episodes), rng.permutation(episodes)[: episodes // 2]))


def random_mdp(seed: int) -> tuple[TabularMDP, TabularPolicy, str, AtMost]:
    mdp = random_cmdps.random_cmdp(seed, n_constraints=1, n_states=10, n_actions=3, ending=0.1)
    (limit,) = random_cmdps.binding_limits(mdp)
    return mdp, TabularPolicy.uniform(10, 3), "c", limit


def lake(_: int) -> tuple[TabularMDP, TabularPolicy, str, AtMost]:
    mdp = frozen_lake.lake()
    return mdp, frozen_lake.behavior(mdp), "goal", AtMost("hole", 0.2, range=(0, 1))


WORLDS: dict[str, Callable[[int], tuple[TabularMDP, TabularPolicy, str, AtMost]]] = {"random": random_mdp, "lake": lake}
KINDS = {"ten-times": ten_times, "sample": sample, "overlap": overlap}
SETTINGS = [f"{world}-{kind}" for world in WORLDS for kind in KINDS]


def with_episodes(log: Dataset, chosen: np.ndarray) -> Dataset:
    """Return the chosen episodes under new numbers."""
    rows = np.split(np.arange(len(log)), np.flatnonzero(np.diff(log.episodes)) + 1)
    order = np.concatenate([rows[one] for one in chosen])
    new = np.repeat(np.arange(len(chosen)), [rows[one].size for one in chosen])
    names = ("states", "actions", "next_states", "terminals", "next_observed", "steps")
    return Dataset.from_arrays(
        **{name: getattr(log, name)[order] for name in names},
        costs={name: log.cost(name)[order] for name in log.cost_names},
        episodes=new,
        n_actions=log.n_actions,
        n_states=log.n_states,
    )


def believed(log: Dataset) -> Dataset:
    """Return the same log, in which every episode counts."""
    vars(log)["copies"] = Copies(0, np.zeros(0, np.int64), 0)
    return log


def run(name: str, size: int, seed: int) -> dict[str, Any]:
    with threadpool_limits(1):
        return alarms(size, seed) if name == ALARMS else copied(name, size, seed)


def copied(name: str, size: int, seed: int) -> dict[str, Any]:
    world, kind = name.split("-", 1)
    mdp, behavior, objective, limit = WORLDS[world](seed)
    rng = np.random.default_rng([seed, size])
    if world == "lake":
        log = frozen_lake.log(mdp, behavior, episodes=size, seed=seed + 10_000)
    else:
        log = mdp.simulate(behavior, episodes=size, max_steps=50, rng=rng)
    log = with_episodes(log, KINDS[kind](size, rng))
    optimum = mdp.optimum(objective=objective, constraints=[limit]).policy
    halfway = TabularPolicy((optimum.table + behavior.table) / 2)
    truth = mdp.values(halfway)[limit.name]
    broken = AtMost(limit.name, truth * (1 - JUST), range=limit.range)
    asked = {"constraints": [broken], "discount": mdp.discount, "look": 1}
    found: dict[str, Any] = {"setting": name, "size": size, "seed": seed, "dropped": len(log.copies)}
    found["certify"] = certify(halfway, log, **asked).verdict
    problem = Problem(log, objective=objective, constraints=[limit], discount=mdp.discount)
    start = time.process_time()
    learned = learn_certified(problem, look=1, improvement="not asked")
    found["seconds"] = time.process_time() - start
    found["learned"] = "none" if learned.policy is None else _judged(mdp, learned.policy, limit)
    found["blind"] = certify(halfway, believed(with_episodes(log, np.arange(log.first_rows().size))), **asked).verdict
    return found


def _judged(mdp: TabularMDP, policy: Any, limit: AtMost) -> str:
    return "wrong" if mdp.values(policy)[limit.name] > limit.limit * (1 + 1e-9) else "right"


def alarms(size: int, seed: int) -> dict[str, Any]:
    """Count what is called a copy, or nearly one, in independent logs."""
    rng = np.random.default_rng([seed, size])
    contexts, actions = rng.integers(0, 3, size), rng.integers(0, 2, size)
    one_step = Dataset.from_arrays(
        states=contexts,
        actions=actions,
        next_states=contexts,
        costs={"c": (rng.random(size) < 0.3).astype(float)},
        terminals=np.ones(size, bool),
        episodes=np.arange(size),
        steps=np.zeros(size, int),
    )
    logs = {"one step": one_step, "icu": icu.log(patients=size, seed=seed)}
    for slippery in (True, False):
        mdp = frozen_lake.lake(slippery=slippery)
        logs[f"lake {slippery}"] = frozen_lake.log(mdp, frozen_lake.behavior(mdp), episodes=size, seed=seed)
    for slip in (0.0, 0.1):
        mdp = graph.graph(8, slip=slip)
        logs[f"graph {slip}"] = graph.log(mdp, graph.constant_policy(mdp, 0.6), episodes=size, rng=rng)
    lock, cmdp = combination_lock(20, 0.99), random_cmdps.random_cmdp(seed, n_constraints=1, ending=0.1)
    still = random_cmdps.random_cmdp(seed, n_constraints=1, successors=1, ending=0.1)
    for name, mdp in (("lock", lock), ("random", cmdp), ("deterministic", still)):
        uniform = TabularPolicy.uniform(mdp.n_states, mdp.n_actions)
        logs[name] = mdp.simulate(uniform, episodes=size, max_steps=40, rng=rng)
    called = {name: [len(log.copies), log.copies.near] for name, log in logs.items()}
    return {"setting": ALARMS, "size": size, "seed": seed, "called": called}


def share(count: int, total: int) -> str:
    low, high = binomtest(count, total).proportion_ci(method="exact")
    return f"{count} of {total} ({low:.1%} to {high:.1%})"


def main() -> None:
    chosen = options(__doc__, [*SETTINGS, ALARMS], runs=200, out="copies.jsonl")
    print(
        "| log | different episodes | found copies | certify, wrong | blind, wrong | learn_certified, wrong; passes |"
    )
    print("|---|---|---|---|---|---|")
    for name in chosen.only:
        for size in ALARM_SIZES if name == ALARMS else SIZES:
            found = finished(run, name, size, chosen)
            if name == ALARMS:
                worlds = len(found[0]["called"])
                total, near = (sum(one["called"][w][i] for one in found for w in one["called"]) for i in (0, 1))
                print(f"{ALARMS}: {size} episodes, {len(found)} logs of {worlds} worlds: {total} copies, {near} near")
                continue
            cells = [share(sum(one[key] == "pass" for one in found), len(found)) for key in ("certify", "blind")]
            wrong, passed = (
                sum(one["learned"] in words for one in found) for words in (("wrong",), ("wrong", "right"))
            )
            mean = np.mean([one["dropped"] for one in found])
            print(f"| {name} | {size} | {mean:.0f} | {cells[0]} | {cells[1]} | {share(wrong, len(found))}; {passed} |")


if __name__ == "__main__":
    main()
