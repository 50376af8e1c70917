"""Trees and networks on Gymnasium's CartPole and FrozenLake: values against the truth, policies against d3rlpy.

python benchmarks/domains.py [values | policies | caution ...] [--seeds 5]

values    FQE with `Trees` and `Neural` for three policies of each domain; truth: 10,000 simulated episodes of CartPole,
          exact values of FrozenLake, whose states are read as (row, column); claimed: CartPole's own reward (steps) and
          FrozenLake's costs within 5 %
policies  FQI on a CartPole log against d3rlpy's DQN and discrete CQL with their defaults on the same log
caution   what the support rule, conservatism and a pessimistic ensemble do for a network on a narrow log: its driver
          does the same in nearly every state; the value that FQI claims beside the true one
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import gymnasium
import numpy as np

from checkrein import FQE, FQI, AtMost, Dataset, Ensemble, FrozenFeatures, Neural, Problem, Support, Trees
from checkrein.policies import TabularPolicy
from checkrein_studies import frozen_lake
from functions import EVERYTHING, RESULTS, cpu, peer_python

DISCOUNT, NEAR = 0.99, 0.98
STEPS = 900  # of a simulated episode: what follows counts for little


class Controller:
    """Pushes against a weighed sum of the cart's state; with some probability at random."""

    def __init__(self, weights: list[float], random: float) -> None:
        self.weights, self.random = np.array(weights), random

    def probabilities(self, states: np.ndarray) -> np.ndarray:
        """(n, 2)"""  # noqa: D400, D415
        right = (np.asarray(states) @ self.weights > 0).astype(float)
        right = (1 - self.random) * right + 0.5 * self.random
        return np.column_stack([1 - right, right])


TARGETS = {
    "careful": Controller([0.1, 0.4, 1.0, 0.6], 0.3),
    "hasty": Controller([0.0, 0.0, 1.0, 0.3], 0.4),
    "at random": Controller([0.0, 0.0, 1.0, 0.0], 0.8),
}


def pole(states: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the next states and falls of CartPole-v1, for many carts at once, by its own equations."""
    x, speed, angle, turning = states.T
    force = np.where(actions == 1, 10.0, -10.0)
    sine, cosine = np.sin(angle), np.cos(angle)
    push = (force + 0.05 * turning**2 * sine) / 1.1
    spin = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
    drive = push - 0.05 * spin * cosine / 1.1
    following = np.column_stack([x + 0.02 * speed, speed + 0.02 * drive, angle + 0.02 * turning, turning + 0.02 * spin])
    fallen = (np.abs(following[:, 0]) > 2.4) | (np.abs(following[:, 2]) > 12 * 2 * np.pi / 360)
    return following, fallen


def check_pole() -> None:
    """Hold the equations against Gymnasium's own."""
    env = gymnasium.make("CartPole-v1")
    state, _ = env.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(200):
        action = int(rng.integers(2))
        following, fallen = pole(np.asarray(state, dtype=np.float64)[None], np.array([action]))
        state, _, ended, _, _ = env.step(action)
        if not (np.allclose(following[0], state, atol=1e-5) and ended == fallen[0]):
            raise SystemExit("these are not CartPole's equations")
        if ended:
            state, _ = env.reset()


def cart_log(episodes: int, seed: int, length: int = 500, driver: Controller | None = None) -> Dataset:
    """Log episodes that are driven each in a way of its own, or all by one driver, cut off after `length` steps."""
    rng = np.random.default_rng(seed)
    random, attention = rng.uniform(0.2, 1.0, episodes), rng.uniform(0, [0.1, 0.5, 1.0, 0.6], (episodes, 4))
    attention[:, 2] = 1.0
    if driver is not None:
        random[:], attention[:] = driver.random, driver.weights
    states, going, rows = rng.uniform(-0.05, 0.05, (episodes, 4)), np.arange(episodes), []
    for step in range(length):
        right = (np.einsum("nd,nd->n", states, attention[going]) > 0) * (1 - random[going]) + 0.5 * random[going]
        actions = (rng.random(going.size) < right).astype(int)
        following, fallen = pole(states, actions)
        rows.append((states, actions, following, fallen, going, np.full(going.size, step)))
        states, going = following[~fallen], going[~fallen]
    x, actions, following, fallen, episode, step = (np.concatenate(column) for column in zip(*rows, strict=True))
    costs = {"steps": np.ones(len(x)), "distance": np.abs(x[:, 0]), "fall": 1.0 * fallen}
    given = {"states": x, "actions": actions, "next_states": following, "costs": costs, "terminals": fallen}
    return Dataset.from_arrays(**given, episodes=episode, steps=step, n_actions=2)


def cart_truth(policy: Any, discount: float, episodes: int = 10_000) -> np.ndarray:
    """(2,) the mean discounted sums of simulated episodes: steps, distance."""
    rng = np.random.default_rng(1)
    states, total, going = rng.uniform(-0.05, 0.05, (episodes, 4)), np.zeros((episodes, 2)), np.arange(episodes)
    for step in range(STEPS):
        actions = (rng.random(going.size) < policy.probabilities(states)[:, 1]).astype(int)
        following, fallen = pole(states, actions)
        total[going] += discount**step * np.column_stack([np.ones(going.size), np.abs(states[:, 0])])
        states, going = following[~fallen], going[~fallen]
    return total.mean(axis=0)


def values() -> None:
    cart_values()
    lake_values()


def cart_values() -> None:
    """Read trees on directions besides the four axes: the dynamics are not aligned with these."""
    log = cart_log(1000, seed=0)
    problem = Problem(log, objective="steps", constraints=[], discount=NEAR)
    print(f"CartPole, {len(log):,} transitions, discount {NEAR}: its own reward, the steps until a fall")
    directions = np.random.default_rng(5).normal(size=(4, 12)) / log.states.std(axis=0)[:, None]
    trees = Trees(30, min_leaf=3, freeze_after=128)
    oblique = FrozenFeatures(lambda states: np.column_stack([states, states @ directions]), trees)
    neural = FQE(Neural(steps=300), support=EVERYTHING, last_layer=1.0)
    for target, policy in TARGETS.items():
        classes = {"Trees": FQE(oblique, support=EVERYTHING), "Neural": neural}
        tell(classes, target, problem, policy, cart_truth(policy, NEAR)[:1])
    print(f"the same at discount {DISCOUNT}, steps and distance from the middle")
    far = Problem(log, objective="steps", constraints=[AtMost("distance", 1.0)], discount=DISCOUNT)
    for target, policy in TARGETS.items():
        tell({"Neural": neural}, target, far, policy, cart_truth(policy, DISCOUNT))


def lake_values() -> None:
    """Read equal rows as one with a weight: states are features now, but there are few."""
    mdp = frozen_lake.lake()
    behavior = frozen_lake.behavior(mdp, skill=0.8)
    logged = frozen_lake.log(mdp, behavior, episodes=20_000, seed=0)
    rows = logged.compressed()
    place = np.array([[i // 8, i % 8] for i in range(mdp.n_states)], dtype=float)
    log = Dataset.from_arrays(
        states=place[rows.states],
        actions=rows.actions,
        next_states=place[rows.next_states],
        costs={name: rows.cost(name) for name in rows.cost_names},
        terminals=rows.terminals,
        weights=rows.weights,
        initial_states=place[rows.initial_states],
        n_actions=4,
    )
    problem = Problem(log, objective="goal", constraints=[AtMost("hole", 1.0)], discount=mdp.discount)
    print(f"FrozenLake, {len(logged):,} transitions, discount {mdp.discount}: goal and hole")
    classes = {
        "Trees": FQE(Trees(30, min_leaf=3, freeze_after=64), support=EVERYTHING),
        "Neural": FQE(Neural(steps=300), support=EVERYTHING, last_layer=1e-3),
    }
    uniform = np.full((mdp.n_states, 4), 0.25)
    table = behavior.probabilities(np.arange(mdp.n_states))
    for share in (0.0, 0.2, 0.5):
        mixed = TabularPolicy((1 - share) * table + share * uniform)
        exact = mdp.values(mixed)
        policy = Placed(mixed)
        tell(classes, f"behavior, {share:.0%} at random", problem, policy, np.array([exact["goal"], exact["hole"]]))


@dataclass(frozen=True)
class Placed:
    """A policy of the lake's finite states, asked with rows and columns."""

    policy: TabularPolicy

    def probabilities(self, states: np.ndarray) -> np.ndarray:
        """(n, 4)"""  # noqa: D400, D415
        return self.policy.probabilities((8 * states[:, 0] + states[:, 1]).astype(int))


def tell(classes: dict[str, Any], target: str, problem: Problem, policy: Any, truth: np.ndarray) -> None:
    """Print the relative errors of each class."""
    words = []
    for name, evaluate in classes.items():
        seconds, found = cpu(evaluate, problem, policy, rng=np.random.default_rng(0))
        errors = found.row / truth - 1
        words.append(f"{name} {', '.join(f'{error:+.3f}' for error in errors)} ({seconds:.0f} s)")
    print(f"  {target:24} truth {np.round(truth, 4)}: relative errors {'; '.join(words)}", flush=True)


def policies(seeds: int, steps: int = 10_000) -> None:
    python = peer_python()
    support = Support(min_probability=0.05)
    players = {
        "Neural, conservatism=1": FQI(Neural(steps=60), 120, support=support, conservatism=1.0),
        "Trees": FQI(Trees(30, freeze_after=64), 200, support=support),
    }
    print(f"CartPole, mean steps until a fall (at most 500); d3rlpy with {steps:,} steps of training")
    for seed in range(seeds):
        log = cart_log(300, seed)
        problem = Problem(log, objective="fall", constraints=[], discount=DISCOUNT)
        words = []
        for name, player in players.items():
            words.append(f"{name} {lasting(player(problem, np.zeros(0), rng=np.random.default_rng(seed))):.0f}")
        words += [f"d3rlpy {a} {peer_lasting(python, log, a, steps, seed):.0f}" for a in ("dqn", "cql")]
        logged = len(log) / log.first_rows().size
        print(f"  seed {seed}, {len(log):,} transitions, logged {logged:.0f}: {', '.join(words)}", flush=True)


def caution(seeds: int) -> None:
    narrow = Controller([0.0, 0.0, 1.0, 0.3], 0.2)
    network = Neural(steps=60)
    players = {
        "nothing": FQI(network, 120, support=EVERYTHING),
        "Support(min_probability=0.05)": FQI(network, 120, support=Support(min_probability=0.05)),
        "Support(min_probability=0.2)": FQI(network, 120, support=Support(min_probability=0.2)),
        "conservatism=0.1": FQI(network, 120, support=EVERYTHING, conservatism=0.1),
        "conservatism=1": FQI(network, 120, support=EVERYTHING, conservatism=1.0),
        "Ensemble(5, quantile=0.9)": FQI(Ensemble(network, 5, quantile=0.9), 120, support=EVERYTHING),
    }
    print("CartPole, one driver; mean steps until a fall (at most 500), claimed and true discounted falls")
    for seed in range(seeds):
        log = cart_log(60, seed, driver=narrow)
        problem = Problem(log, objective="fall", constraints=[], discount=DISCOUNT)
        print(f"  seed {seed}, {len(log):,} transitions, driver {lasting(narrow):.0f}", flush=True)
        for name, player in players.items():
            policy = player(problem, np.zeros(0), rng=np.random.default_rng(seed))
            starts = log.initial_states
            claimed = float((policy.probabilities(starts) * policy.q(starts)[..., 0]).sum(axis=1).mean())
            true = 1 - (1 - DISCOUNT) * cart_truth(policy, DISCOUNT, 1000)[0]
            print(f"    {name:30} {lasting(policy):4.0f}, falls {claimed:.3f} claimed, {true:.3f} true", flush=True)


def lasting(policy: Any, episodes: int = 1000) -> float:
    """Return the mean steps until the pole falls, at most 500."""
    rng = np.random.default_rng(2)
    states, steps = rng.uniform(-0.05, 0.05, (episodes, 4)), 0
    for _ in range(500):
        steps += len(states)
        actions = (rng.random(len(states)) < policy.probabilities(states)[:, 1]).astype(int)
        following, fallen = pole(states, actions)
        states = following[~fallen]
        if not len(states):
            break
    return steps / episodes


def peer_lasting(python: Path, log: Dataset, algo: str, steps: int, seed: int) -> float:
    """Train the peer with its defaults on the same log, and return what its policy scores in Gymnasium."""
    order = log.order()
    given, taken = RESULTS / "cartpole.npz", RESULTS / f"{algo}.npz"
    np.savez(
        given,
        states=log.states[order],
        actions=log.actions[order],
        next_states=log.next_states[order],
        rewards=1.0 - log.cost("fall")[order],
        terminals=log.terminals[order],
        episode_ends=np.append(np.diff(log.episodes[order]) != 0, True),
    )
    call = [
        python,
        "benchmarks/d3rlpy_side.py",
        "train",
        given,
        taken,
        "--algo",
        algo,
        "--steps",
        steps,
        "--seed",
        seed,
    ]
    subprocess.run([str(part) for part in call], check=True, stdout=subprocess.DEVNULL)
    return float(np.load(taken)["mean_return"])


if __name__ == "__main__":
    check_pole()
    parts = {"values": lambda _: values(), "policies": policies, "caution": caution}
    count = int(sys.argv[sys.argv.index("--seeds") + 1]) if "--seeds" in sys.argv else 5
    for name in [name for name in sys.argv[1:] if name in parts] or list(parts):
        parts[name](count)
