"""Do bounds hold as often as they say? Every method on environments whose truth is known exactly.

python benchmarks/coverage.py [--runs 400] [--jobs 2] [--only NAME ...] [--out FILE]

Each run draws a log, takes a policy that the log did not choose, bounds its cost at 95 % by every method, and compares
with the exact value. Finished runs are kept in FILE (one line each) and not run again. The table says for each method:
how often it answered, how often the bound covered, the mean excess of the bound over the truth, how often limits were
passed, and how often wrongly where they were broken. `checkrein` is the default as `checkrein fit` uses it: a first
look, and its diagnostics; other methods answer always, and are also shown on the runs that the default answered.
Environments called `rare-...` are the families of `rare.py`, which also says what `learn_certified` does there.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from checkrein import FQE, FQI, AtMost, CuttingPlane, Dataset, Problem, Support, Tabular, TabularPolicy, solve
from checkrein.certification.bounds import BootstrapFQE, EpisodeScoreBound, Replicates
from checkrein.certification.certify import certify
from checkrein.data.split import split_episodes
from checkrein.functions import Linear
from checkrein.protocols import Policy
from checkrein_studies import frozen_lake, graph, random_cmdps
from rare import FAMILIES, at_limits, tight
from rare_worlds import log as rare_log
from resumable import finished, options

ERROR = 0.05
DEFAULT = "checkrein"


class Drawn(NamedTuple):
    """A policy, a log that did not choose it, and the truth."""

    policy: Policy
    dataset: Dataset
    constraint: AtMost
    discount: float
    truth: float
    largest_weight: float | None = None


@dataclass(frozen=True)
class Environment:
    """Draws runs by seed and size."""

    sizes: tuple[int, ...]
    draw: Callable[[int, int], Drawn]


def learned(dataset: Dataset, objective: str, constraint: AtMost, discount: float, min_count: float) -> Policy:
    """Learn at the limit itself, as a user without margin would."""
    problem = Problem(dataset, objective=objective, constraints=[constraint], discount=discount)
    players: dict[str, Any] = {
        "best_response": FQI(Tabular(), support=Support(min_count)),
        "evaluator": FQE(Tabular()),
        "learner": CuttingPlane(100.0),
    }
    return solve(problem, **players, tolerance=1e-4, max_rounds=40).policy


def lake(seed: int, episodes: int) -> Drawn:
    """Slippery FrozenLake with a binding limit, the policy learned on as many other episodes."""
    mdp = frozen_lake.lake()
    log = frozen_lake.log(mdp, frozen_lake.behavior(mdp), episodes=2 * episodes, seed=seed)
    mine, held = split_episodes(log, holdout=0.5, seed=seed)
    limit = AtMost("hole", frozen_lake.HOLE_LIMIT, range=(0, 1))
    policy = learned(mine, "goal", limit, mdp.discount, min_count=5)
    return Drawn(policy, held, limit, mdp.discount, mdp.values(policy)["hole"])


def cmdps(seed: int, episodes: int) -> Drawn:
    """Random constrained MDPs, another one each run, the policy learned on as many other episodes."""
    mdp = random_cmdps.goal_cmdp(seed)
    behavior = random_cmdps.skilled_behavior(mdp, 0.1)
    log = mdp.simulate(behavior, episodes=2 * episodes, max_steps=50, rng=np.random.default_rng(seed))
    mine, held = split_episodes(log, holdout=0.5, seed=seed)
    limit = AtMost("cost", 0.1, range=(0, 1))
    policy = learned(mine, "loss", limit, mdp.discount, min_count=5)
    return Drawn(policy, held, limit, mdp.discount, mdp.values(policy)["cost"])


def around(truth: float, seed: int) -> float:
    """Return a limit that the truth just breaks (even seeds), or keeps with a tenth to spare."""
    return truth * (0.999 if seed % 2 == 0 else 1.1)


def slipping_graph(seed: int, episodes: int, horizon: int = 6) -> Drawn:
    """Slip on the Graph, with a fixed stochastic policy not far from behavior: made for weighing."""
    mdp = graph.graph(horizon, slip=0.1)
    log = graph.log(mdp, graph.constant_policy(mdp, 0.5), episodes=episodes, rng=np.random.default_rng(seed))
    log = log.with_costs({"upper": 0.5 * (log.cost("reward") + 1)})
    policy = graph.constant_policy(mdp, 0.65)
    most = sum(mdp.discount**t for t in range(horizon))
    truth = 0.5 * (mdp.values(policy)["reward"] + most)
    limit = AtMost("upper", around(truth, seed), range=(0, most))
    return Drawn(policy, log, limit, mdp.discount, truth, largest_weight=1.3**horizon)


def deterministic(seed: int, episodes: int, horizon: int = 8) -> Drawn:
    """Slip on the Graph, with a policy that never varies: few logged episodes do all that it would."""
    mdp = graph.graph(horizon, slip=0.2)
    log = graph.log(mdp, graph.constant_policy(mdp, 0.6), episodes=episodes, rng=np.random.default_rng(seed))
    log = log.with_costs({"lower": 0.5 * (1 - log.cost("reward"))})
    policy = graph.constant_policy(mdp, 1.0)
    most = sum(mdp.discount**t for t in range(horizon))
    truth = 0.5 * (most - mdp.values(policy)["reward"])
    limit = AtMost("lower", around(truth, seed), range=(0, most))
    return Drawn(policy, log, limit, mdp.discount, truth, largest_weight=(1 / 0.6) ** horizon)


@dataclass(frozen=True, eq=False)
class Tilted:
    """A stochastic policy over feature vectors, one score per action."""

    scores: np.ndarray  # (d, A)

    def probabilities(self, states: np.ndarray) -> np.ndarray:
        """(n, A)"""  # noqa: D400, D415
        exponentials = np.exp(states @ self.scores)
        return exponentials / exponentials.sum(axis=1, keepdims=True)


def misspecified(seed: int, episodes: int) -> Drawn:
    """Twelve states seen through one feature that does not tell their costs: a linear Q is 10 % too low."""
    rng = np.random.default_rng(31)  # one environment for all runs
    mdp = random_cmdps.random_cmdp(31, n_constraints=1, n_states=12, n_actions=2, successors=2, ending=0.5)
    features = rng.standard_normal((12, 1))
    mdp = replace(mdp, costs={"cost": 1.0 * (rng.random((12, 2)) < 0.3)})
    behavior, policy = Tilted(0.2 * rng.standard_normal((1, 2))), Tilted(0.6 * rng.standard_normal((1, 2)))
    tables = [TabularPolicy(p.probabilities(features)) for p in (behavior, policy)]
    log = mdp.simulate(tables[0], episodes=episodes, max_steps=200, rng=np.random.default_rng(seed))
    log = replace(
        log,
        states=features[log.states],
        next_states=features[log.next_states],
        initial_states=features[log.initial_states],
        n_states=None,
    )
    truth = mdp.values(tables[1])["cost"]
    limit = AtMost("cost", around(truth, seed))
    return Drawn(policy, log, limit, mdp.discount, truth)


def rare(name: str, seed: int, episodes: int) -> Drawn:
    """Rare events, the policy learned on as many other episodes; even seeds: a limit that the truth just breaks."""
    world = FAMILIES[name](seed)
    mine, held = split_episodes(rare_log(world, seed, 2 * episodes), holdout=0.5, seed=seed)
    policy, limit = at_limits(mine, world), world.constraints[0]
    truth = world.mdp.values(policy)[limit.name]
    limit = limit if seed % 2 else tight(limit, truth)
    if limit.sign < 0:  # a benefit: what is bounded here from above is what it lacks
        held = held.with_costs({"lacking": -held.cost(limit.name)})
        limit, truth = AtMost("lacking", -limit.limit, range=(-1, 0)), -truth
    return Drawn(policy, held, limit, world.mdp.discount, truth)


ENVIRONMENTS = {
    "frozen-lake": Environment((500, 1500, 3000), lake),
    "random-cmdps": Environment((100, 300, 1000), cmdps),
    "graph-slip": Environment((50, 200, 1000), slipping_graph),
    "deterministic": Environment((100, 400, 1600), deterministic),
    "misspecified": Environment((200, 800, 3200), misspecified),
    **{f"rare-{name}": Environment((draw(0).episodes // 2,), partial(rare, name)) for name, draw in FAMILIES.items()},
}


@dataclass(frozen=True)
class Keeping(BootstrapFQE):
    """The default of finite states, which keeps its replicates for the other kinds."""

    kept: list[Replicates] = field(default_factory=list, compare=False)

    def replicate(self, problem: Problem, policy: Policy, *, alpha: float, rng: np.random.Generator) -> Replicates:
        """Refit, and keep."""
        self.kept.append(super().replicate(problem, policy, alpha=alpha, rng=rng))
        return self.kept[-1]


def bounds(drawn: Drawn, seed: int, *, default: bool) -> Iterator[tuple[str, float, bool, bool]]:
    """Yield each method's name, its bound, and whether it answered and passed the limit; default: of that one alone."""
    constraints, limit = [drawn.constraint], drawn.constraint.limit
    finite = drawn.dataset.n_states is not None
    functions, rng = Tabular() if finite else Linear(), np.random.default_rng(seed)
    keeping = Keeping(functions=functions)
    problem = Problem(drawn.dataset, objective=None, constraints=constraints, discount=drawn.discount)
    if not finite:
        keeping.replicate(problem, drawn.policy, alpha=ERROR, rng=rng)
    found = certify(
        drawn.policy,
        drawn.dataset,
        constraints=constraints,
        discount=drawn.discount,
        method=keeping if finite else None,
        seed=seed,
        look=1,
    )
    answered = all(check.ok for check in found.checks)
    upper = found.bounds[drawn.constraint.name]
    yield DEFAULT, upper if np.isfinite(upper) else np.inf, answered and np.isfinite(upper), found.verdict == "pass"
    if default:
        return
    for kind in ("studentised", "pivotal", "bias-corrected", "t"):
        fitted = BootstrapFQE(kind, functions)
        upper = float(fitted.bound(keeping.kept[0], ERROR).upper[0])
        yield fitted.name, upper, True, upper <= limit
    for estimator in ("dr", "pdis"):
        for kind in ("studentised", "t", "bernstein", "betting"):
            if kind in ("bernstein", "betting") and drawn.largest_weight is None:
                continue
            method = EpisodeScoreBound(estimator, kind, functions, largest_weight=drawn.largest_weight)
            upper = float(method(problem, drawn.policy, alpha=ERROR, rng=rng).upper[0])
            yield method.name, upper, True, upper <= limit


def run(name: str, size: int, seed: int, *, default: bool) -> dict[str, Any]:
    """Do one run."""
    with threadpool_limits(1):
        drawn = ENVIRONMENTS[name].draw(seed, size)
        methods = {m: [bound, answered, passed] for m, bound, answered, passed in bounds(drawn, seed, default=default)}
    return {
        "setting": name,
        "size": size,
        "seed": seed,
        "truth": drawn.truth,
        "limit": drawn.constraint.limit,
        "methods": {name: [bound, bool(own), bool(passed)] for name, (bound, own, passed) in methods.items()},
    }


def table(runs: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of one environment and size."""
    truth, limit = (np.array([r[key] for r in runs]) for key in ("truth", "limit"))
    answered = np.array([r["methods"][DEFAULT][1] for r in runs])
    broken = truth > limit
    yield f"{'':20} {'all runs':^23} | where checkrein answers |"
    yield f"{'method':20} answers  covers  excess |   covers   excess    | passes  wrong of {broken.sum()}"
    for method in runs[0]["methods"]:
        bound, own, passed = (np.array([r["methods"][method][i] for r in runs]) for i in range(3))
        own, passed = own.astype(bool), passed.astype(bool)
        covers, excess = bound >= truth, bound - truth

        def mean(values: np.ndarray, of: np.ndarray) -> str:
            counted = values[of][np.isfinite(values[of])]  # a bound that is none covers, and has no excess
            return f"{counted.mean():7.4f}" if counted.size else "      -"

        yield (
            f"{method:20} {own.mean():7.3f} {mean(covers, own)} {mean(excess, own)} | {mean(covers, answered)} "
            f" {mean(excess, answered)}    | {passed.mean():6.3f} {mean(passed, broken)}"
        )


def main() -> None:
    """Run what is missing, then print the tables."""
    flags = {"default": "judge by the default alone, into a file of its own"}
    chosen = options(__doc__, ENVIRONMENTS, runs=400, out="coverage.jsonl", flags=flags)
    for name in chosen.only:
        for size in ENVIRONMENTS[name].sizes:
            runs = finished(partial(run, default=chosen.default), name, size, chosen)
            print(f"\n{name}, {size} episodes, {len(runs)} runs", *table(runs), sep="\n", flush=True)


if __name__ == "__main__":
    main()
