"""Trees and networks on Gymnasium's CartPole and FrozenLake: values against the truth, policies against d3rlpy.

python benchmarks/domains.py [values | policies ...] [--seeds 5]

values    FQE with `Trees` and `Neural` for three policies of each domain; truth: 10,000 simulated episodes of CartPole,
          exact values of FrozenLake, whose states are read as (row, column); claimed: CartPole's own reward (steps) and
          FrozenLake's costs within 5 %
policies  FQI on a CartPole log against d3rlpy's DQN and discrete CQL with their defaults on the same log
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import gymnasium
import numpy as np

from bridle import FQE, FQI, AtMost, Dataset, Neural, Problem, Support, Trees
from bridle.studies import frozen_lake
from functions import RESULTS, peer_python

DISCOUNT = 0.99
STEPS = 900  # of a simulated episode: what follows counts for little
EVERYTHING = Support(0, 0)


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


def cart_log(episodes: int, seed: int, length: int = 500) -> Dataset:
    """Log episodes that are driven each in a way of its own, cut off after `length` steps."""
    rng = np.random.default_rng(seed)
    random, attention = rng.uniform(0.2, 1.0, episodes), rng.uniform(0, [0.1, 0.5, 1.0, 0.6], (episodes, 4))
    attention[:, 2] = 1.0
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


def cart_truth(policy: Any, episodes: int = 10_000) -> np.ndarray:
    """(2,) the mean discounted sums of simulated episodes: steps, distance."""
    rng = np.random.default_rng(1)
    states, total, going = rng.uniform(-0.05, 0.05, (episodes, 4)), np.zeros((episodes, 2)), np.arange(episodes)
    for step in range(STEPS):
        actions = (rng.random(going.size) < policy.probabilities(states)[:, 1]).astype(int)
        following, fallen = pole(states, actions)
        total[going] += DISCOUNT**step * np.column_stack([np.ones(going.size), np.abs(states[:, 0])])
        states, going = following[~fallen], going[~fallen]
    return total.mean(axis=0)


def values() -> None:
    classes = {
        "Trees": lambda: FQE(Trees(50, min_leaf=20, freeze_after=8), iterations=300, support=EVERYTHING),
        "Neural": lambda: FQE(Neural(steps=150), iterations=12, support=EVERYTHING, last_layer=1.0),
    }
    log = cart_log(800, seed=0)
    problem = Problem(log, objective="fall", constraints=[AtMost("distance", 1.0)], discount=DISCOUNT)
    print(f"CartPole, {len(log):,} transitions")
    for target, policy in TARGETS.items():
        tell(classes, target, problem, policy, cart_truth(policy))
    mdp = frozen_lake.lake()
    behaviour = frozen_lake.behaviour(mdp)
    finite = frozen_lake.log(mdp, behaviour, episodes=4000, seed=0)
    place = np.array([[i // 8, i % 8] for i in range(mdp.n_states)], dtype=float)
    given = {"states": place[finite.states], "next_states": place[finite.next_states], "actions": finite.actions}
    costs = {name: finite.cost(name) for name in finite.cost_names}
    log = Dataset.from_arrays(
        **given, costs=costs, terminals=finite.terminals, episodes=finite.episodes, steps=finite.steps, n_actions=4
    )
    problem = Problem(log, objective="goal", constraints=[AtMost("hole", 1.0)], discount=mdp.discount)
    print(f"FrozenLake, {len(log):,} transitions")
    uniform = np.full((mdp.n_states, 4), 0.25)
    table = behaviour.probabilities(np.arange(mdp.n_states))
    for share in (0.0, 0.2, 0.5):
        mixed = (1 - share) * table + share * uniform
        exact = mdp.values(type("Mixed", (), {"probabilities": lambda _, s, t=mixed: t[s]})())
        policy = type("Placed", (), {"probabilities": lambda _, s, t=mixed: t[(8 * s[:, 0] + s[:, 1]).astype(int)]})()
        tell(classes, f"behaviour, {share:.0%} at random", problem, policy, np.array([exact["goal"], exact["hole"]]))


def tell(classes: dict[str, Any], target: str, problem: Problem, policy: Any, truth: np.ndarray) -> None:
    """Print the relative errors of each class."""
    words = []
    for name, make in classes.items():
        found = make()(problem, policy, rng=np.random.default_rng(0))
        errors = np.append(found.objective, found.constraints) / truth - 1
        words.append(f"{name} {errors[0]:+.3f}, {errors[1]:+.3f}")
    print(f"  {target:24} truth {np.round(truth, 4)}: relative errors {'; '.join(words)}", flush=True)


def policies(seeds: int, steps: int = 10_000) -> None:
    python = peer_python()
    print("CartPole, mean discounted falls and steps until one (at most 500) of 1000 episodes")
    for seed in range(seeds):
        log = cart_log(300, seed)
        problem = Problem(log, objective="fall", constraints=[], discount=DISCOUNT)
        words = []
        for name, functions, kw in (
            ("Trees", Trees(50, min_leaf=10, freeze_after=10), {"iterations": 300}),
            ("Neural", Neural(steps=60), {"iterations": 120}),
        ):
            policy = FQI(functions, support=Support(min_probability=0.05), **kw)(
                problem, np.zeros(0), rng=np.random.default_rng(seed)
            )
            words.append(f"{name} {lasting(policy):.0f}")
        words += [f"d3rlpy {a} {peer_lasting(python, log, a, steps, seed):.0f}" for a in ("dqn", "cql")]
        print(
            f"  seed {seed}, {len(log):,} transitions, behaviour {lasting(BEHAVIOUR):.0f}: {', '.join(words)}",
            flush=True,
        )


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
    chosen = [name for name in sys.argv[1:] if name in ("values", "policies")] or ["values", "policies"]
    count = int(sys.argv[sys.argv.index("--seeds") + 1]) if "--seeds" in sys.argv else 5
    if "values" in chosen:
        values()
    if "policies" in chosen:
        policies(count)
