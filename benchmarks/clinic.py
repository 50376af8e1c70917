"""A made-up clinic with a known truth: four measurements, four treatments, three costs, one of them rare."""

from dataclasses import dataclass

import numpy as np

from checkrein import Dataset

DISCOUNT = 0.95
COSTS = ("burden", "distance", "event")
RARE = 10.0  # what an event costs
DRIFT = np.array([[0.9, 0.1, 0.0, 0.0], [-0.1, 0.9, 0.0, 0.0], [0.0, 0.0, 0.85, 0.1], [0.0, 0.0, 0.0, 0.8]])
PUSH = 0.1 * np.array([[0, 0, 0, 0], [-1, 0, 1, 0], [0, -1, 0, 1], [1, 1, -1, -1]])


@dataclass(frozen=True, eq=False)
class Linear:
    """The treatment of least linear score."""

    weights: np.ndarray  # (4, 4)
    offset: np.ndarray  # (4,)

    def actions(self, states: np.ndarray) -> np.ndarray:
        """(n,)"""  # noqa: D400, D415
        return np.argmin(states @ self.weights + self.offset, axis=1)

    def probabilities(self, states: np.ndarray) -> np.ndarray:
        """(n, A)"""  # noqa: D400, D415
        return np.eye(4)[self.actions(states)]


def target(seed: int = 0) -> Linear:
    """Return the policy to evaluate."""
    rng = np.random.default_rng(seed)
    return Linear(rng.normal(size=(4, 4)), rng.normal(size=4) * 0.3)


def starts(count: int, rng: np.random.Generator) -> np.ndarray:
    """(count, 4)"""  # noqa: D400, D415
    return rng.normal(size=(count, 4))


def step(states: np.ndarray, actions: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Return costs (n, 3), next states (n, 4) and whether episodes end (n,)."""
    risk = 0.2 / (1 + np.exp(-states[:, 0] - 0.5 * (actions == 3)))
    costs = np.column_stack(
        [0.2 * actions + 0.1 * states[:, 1] ** 2, np.abs(states).mean(axis=1), RARE * (rng.random(len(states)) < risk)]
    )
    following = states @ DRIFT.T + PUSH[actions] + 0.3 * rng.normal(size=states.shape)
    return costs, following, rng.random(len(states)) < 0.02


def log(rows: int, seed: int, length: int = 50) -> Dataset:
    """Log episodes of treatments drawn at random, cut off after `length` steps."""
    rng = np.random.default_rng(seed)
    states, steps = starts(rows // length, rng), []
    episodes, alive = np.arange(len(states)), np.ones(len(states), dtype=bool)
    while sum(len(s[0]) for s in steps) < rows:
        for t in range(length):
            x, e = states[alive], episodes[alive]
            actions = rng.integers(0, 4, len(x))
            costs, following, ends = step(x, actions, rng)
            steps.append((x, actions, costs, following, ends, e, np.full(len(x), t)))
            states[alive] = following
            alive[alive] = ~ends
        states, alive = starts(len(states), rng), np.ones(len(states), dtype=bool)
        episodes = episodes + len(states)
    x, actions, costs, following, ends, e, t = (np.concatenate(column)[:rows] for column in zip(*steps, strict=True))
    return Dataset.from_arrays(
        states=x,
        actions=actions,
        next_states=following,
        costs=dict(zip(COSTS, costs.T, strict=True)),
        terminals=ends,
        episodes=e,
        steps=t,
        n_actions=4,
    )


def truth(policy: Linear, initial: np.ndarray, episodes: int = 200_000, seed: int = 1) -> np.ndarray:
    """(3,) the mean discounted sums of simulated episodes from these initial states."""
    rng = np.random.default_rng(seed)
    states = np.repeat(initial, -(-episodes // len(initial)), axis=0)
    total, factor, alive = np.zeros((len(states), len(COSTS))), 1.0, np.ones(len(states), dtype=bool)
    while factor > 1e-4 and alive.any():
        costs, following, ends = step(states[alive], policy.actions(states[alive]), rng)
        total[alive] += factor * costs
        states[alive] = following
        alive[alive] = ~ends
        factor *= DISCOUNT
    return total.mean(axis=0)
