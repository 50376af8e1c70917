"""Where states are numbers: how often other ways claim falsely that limits are kept, and end up worse than behavior.

python benchmarks/continuous_peers.py [--runs 10] [--jobs 2] [--only NAME ...] [--peer PYTHON] [--out FILE]

NAME is a world of `continuous_worlds.py`. Each run draws a log without propensities, and each way learns from it:

learn_certified  what `checkrein fit` does by default; it claims where a candidate passes
paper            the paper's Algorithm 2 with FQI and FQE over quadratic terms, all on the same log; it claims where FQE
                 says that the limits are kept
linear, trees, neural
                 `certificate = "holdout"` with these classes: a margin chosen on one half, judged on the other; it
                 claims where the certificate passes
cql              with --peer, the Python of an environment that has d3rlpy: discrete CQL on the objective alone, and
                 its FQE of every cost; it claims where FQE says that the limits are kept. d3rlpy knows no limits

claims   logs in which it says that all limits are kept; false: of these, the truth breaks one
worse    policies whose true objective is worse than behavior's, of all that were learned, where behavior keeps the
         limits; with "claimed", of those that were claimed. Truth by 50,000 rollouts
gain     of what is deployed, behavior where nothing was claimed: 0 is behavior's objective, 1 that of a tuned rule
Finished runs are kept in FILE and not run again.
"""

import os
import subprocess  # the peer runs in an environment of its own
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from checkrein import FQE, FQI, Dataset, ExponentiatedGradient, Linear, Problem, certify, learn_certified, solve
from checkrein.base.errors import CheckreinError
from checkrein.data.split import split_episodes
from checkrein.functions import Polynomial
from checkrein.policies import Support
from checkrein.problem import Episodes
from checkrein.protocols import Policy
from checkrein.runs.players import functions_of, light_functions, players_for
from checkrein.runs.sections import Learn
from checkrein.selection.margins import choose_margins
from continuous import known, over, share
from continuous_rollouts import World
from continuous_worlds import WORLDS, log, truth
from resumable import finished, options

ROUNDS = 30
SIDE = Path(__file__).with_name("d3rlpy_side.py")


class Claim(NamedTuple):
    """A policy, and whether it is said to keep the limits."""

    policy: Policy | None
    claimed: bool


def ours(problem: Problem, seed: int) -> Claim:
    """Learn and certify by folds."""
    found = learn_certified(problem, folds=3, seed=seed)
    return Claim(found.policy, found.policy is not None)


def paper(problem: Problem, seed: int) -> Claim:
    """Play the paper's game on one log, and believe it."""
    functions, spread = Linear(Polynomial(2)), problem.spread
    bound = 10.0 * float((spread[0] / spread[1:]).max())
    found = solve(
        problem,
        best_response=FQI(functions),
        evaluator=FQE(functions),
        learner=ExponentiatedGradient(bound, 1.0 / float(spread[1:].max())),
        tolerance=1e-3 * float(spread[0]),
        max_rounds=ROUNDS,
        seed=seed,
    )
    kept = [c.sign * (found.values[c.name] - c.limit) <= 1e-6 * abs(c.limit) for c in problem.constraints]
    return Claim(found.policy, all(kept))


def held_out(functions: str, problem: Problem, seed: int) -> Claim:
    """Choose a margin on one half of the episodes, learn with it, and certify on the other."""
    learn = Learn(functions=functions, certificate="holdout", seed=seed)
    mine, held = split_episodes(problem.dataset, holdout=0.5, seed=seed)
    if held is None:
        raise SystemExit("half of the episodes are held out")
    asked: dict[str, Any] = {"objective": problem.objective, "discount": problem.discount}
    learning = Problem(mine, constraints=problem.constraints, **asked)

    def played(part: Problem, support: Support, *, light: bool = False) -> Policy:
        chosen = light_functions(learn) if light else functions_of(learn)
        players = players_for(learn, chosen, part, support)
        return players.play(part, tolerance=1e-2, max_rounds=ROUNDS, on_round=lambda _: None).policy

    judging = len(Episodes.of(Problem(held, constraints=problem.constraints, **asked)))
    margins = choose_margins(learning, partial(played, light=True), held_out=judging, seed=seed)
    policy = played(Problem(mine, constraints=margins.constraints, **asked), margins.support)
    verdict = certify(
        policy, held, constraints=problem.constraints, discount=problem.discount, seed=seed, look=1
    ).verdict
    return Claim(policy, verdict == "pass")


@dataclass(frozen=True, eq=False)
class Network:
    """The greedy policy of a network of rectified units, as d3rlpy left it."""

    layers: tuple[tuple[np.ndarray, np.ndarray], ...]

    def probabilities(self, states: np.ndarray) -> np.ndarray:
        """(n, A)."""
        hidden = np.asarray(states, np.float64)
        for weights, bias in self.layers[:-1]:
            hidden = np.maximum(hidden @ weights.T + bias, 0.0)
        weights, bias = self.layers[-1]
        values = hidden @ weights.T + bias
        return np.asarray(np.eye(len(bias))[values.argmax(axis=1)], np.float64)


def cql(python: str, problem: Problem, seed: int) -> Claim:
    """Let d3rlpy learn by conservative Q-learning and value by FQE."""
    log_of, data = Episodes.of(problem), problem.dataset
    ends = np.zeros(len(log_of.rows), bool)
    ends[log_of.last] = True
    scale = data.states.std(axis=0)
    centre, scale = data.states.mean(axis=0), np.where(scale > 0, scale, 1.0)
    names = [str(problem.objective), *(str(c.cost) for c in problem.constraints)]
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "log.npz", Path(folder) / "found.npz"
        np.savez(
            given,
            states=((data.states - centre) / scale)[log_of.rows],
            actions=data.actions[log_of.rows],
            next_states=((data.next_states - centre) / scale)[log_of.rows],
            terminals=data.terminals[log_of.rows],
            episode_ends=ends,
            costs=np.column_stack([data.cost(name) for name in names])[log_of.rows],
            discount=problem.discount,
        )
        subprocess.run([python, str(SIDE), "constrained", str(given), str(found), "--seed", str(seed)], check=True)
        with np.load(found) as kept:
            layers = [(kept[f"W{i}"].astype(np.float64), kept[f"b{i}"].astype(np.float64)) for i in range(3)]
            values = kept["estimates"]
    first, bias = layers[0]
    layers[0] = first / scale, bias - first @ (centre / scale)
    keeps = [c.sign * (value - c.limit) <= 0 for c, value in zip(problem.constraints, values[1:], strict=True)]
    return Claim(Network(tuple(layers)), all(keeps))


WAYS: dict[str, Callable[[Problem, int], Claim]] = {
    "learn_certified": ours,
    "paper": paper,
    "linear": partial(held_out, "linear"),
    "trees": partial(held_out, "trees"),
    "neural": partial(held_out, "neural"),
}


def run(name: str, size: int, seed: int, *, peer: str | None) -> dict[str, Any]:
    """Do one run."""
    ways = WAYS if peer is None else {**WAYS, "cql": partial(cql, peer)}
    world = WORLDS[name]
    with threadpool_limits(1):
        dataset = log(world, size, seed)
        found = {way: judged(world, dataset, learn, seed) for way, learn in ways.items()}
    return {"setting": name, "size": size, "seed": seed, "ways": found}


def processor_seconds() -> float:
    """Return what this process and those it waited for have used."""
    return sum(os.times()[:4])


def judged(world: World, dataset: Dataset, learn: Callable[[Problem, int], Claim], seed: int) -> dict[str, Any]:
    """Learn in one way, and hold the policy against the truth."""
    behavior, best = known(world.name)
    problem = Problem(dataset, objective=world.objective, constraints=world.constraints, discount=world.discount)
    began = processor_seconds()
    try:
        claim, trouble = learn(problem, seed), ""
    except CheckreinError as reason:
        claim, trouble = Claim(None, claimed=False), f"{type(reason).__name__}: {reason}"
    seconds = processor_seconds() - began
    values = behavior if claim.policy is None else truth(world, claim.policy, seed=1000 + seed)
    worth = values[world.objective]
    return {
        "learned": claim.policy is not None,
        "claimed": claim.claimed,
        "broken": [str(c.cost) for c in world.constraints if over(c.sign, values[str(c.cost)], c.limit)],
        "worse": over(1.0, worth, behavior[world.objective][0]),
        "lawful": not any(over(c.sign, behavior[str(c.cost)], c.limit) for c in world.constraints),
        "gain": (behavior[world.objective][0] - worth[0]) / (behavior[world.objective][0] - best[world.objective][0]),
        "trouble": trouble,
        "seconds": seconds,
    }


def lines(name: str, size: int, runs: Sequence[dict[str, Any]]) -> list[str]:
    """Return a line for each way."""
    found = []
    for way in runs[0]["ways"]:
        each = [r["ways"][way] for r in runs]
        claims = [one for one in each if one["claimed"]]
        policies = [one for one in each if one["learned"] and one["lawful"]]
        gains = [one["gain"] if one["claimed"] else 0.0 for one in each]
        mine = [one for one in claims if one["lawful"]]
        trouble = sum(bool(one["trouble"]) for one in each)
        found.append(
            f"{name:9} {size:5} {way:15} {f'{len(claims)} of {len(each)}':>9} "
            f"{share(sum(bool(one['broken']) for one in claims), len(claims))} "
            f"{share(sum(one['worse'] for one in policies), len(policies))} "
            f"{share(sum(one['worse'] for one in mine), len(mine))} {np.mean(gains):6.2f} "
            f"{np.mean([one['seconds'] for one in each]):7.1f}{f'  {trouble} ended in an error' if trouble else ''}"
        )
    return found


def main() -> None:
    """Run what is missing, and print the table."""
    chosen = options(
        __doc__, WORLDS, runs=10, out="continuous-peers.jsonl", sizes=(2000,), values={"peer": "Python with d3rlpy"}
    )
    print(
        f"{'world':9} {'size':>5} {'way':15} {'claims':>9} {'false, of claims':>22} {'worse, of learned':>22} "
        f"{'worse, of claimed':>22} {'gain':>6} {'seconds':>7}"
    )
    for name in chosen.only:
        for size in chosen.sizes:
            runs = finished(partial(run, peer=chosen.peer), name, size, chosen)
            print(*lines(name, size, runs), sep="\n", flush=True)


if __name__ == "__main__":
    main()
