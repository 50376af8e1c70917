"""Finite worlds in which what must be limited happens seldom: their exact truth, and logs of what did happen.

Every end of an episode is a state of its own (a death is not a goal). A cost of one step is made of a fixed part, of a
part that depends on where the step led, and of an amount drawn beside that; the MDP has their exact means.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from checkrein import AtMost, Dataset, TabularMDP, TabularPolicy

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Charge:
    """A cost of one step: each part may be left out."""

    fixed: Array | float = 0.0  # (S, A)
    moving: Array | float = 0.0  # (S,) of arriving there, or (S, A, S)
    amounts: tuple[float, ...] = ()  # K of them, one drawn per step, independently of where the step leads ...
    chances: Array | None = None  # ... with these probabilities (S, A, K); what they lack to one draws nothing

    def mean(self, moves: Array) -> Array:
        """(S, A) the expected cost of the step."""
        table = self.fixed + (moves * self.moving).sum(axis=2)
        return table if self.chances is None else table + self.chances @ np.array(self.amounts)

    def drawn(self, log: Dataset, moves: Array, rng: np.random.Generator) -> Array:
        """(n,) what each logged step cost."""
        states, actions = log.states, log.actions
        fixed = np.broadcast_to(self.fixed, moves.shape[:2])[states, actions]
        cost: Array = fixed + np.broadcast_to(self.moving, moves.shape)[states, actions, log.next_states]
        if self.chances is None:
            return cost
        which = (rng.random(len(log))[:, None] > self.chances.cumsum(axis=2)[states, actions]).sum(axis=1)
        return cost + np.append(self.amounts, 0.0)[which]


@dataclass(frozen=True, eq=False)
class World:
    """An MDP whose truth is exact, who logs it and how much, and what is asked; the rare limit comes first."""

    mdp: TabularMDP
    charges: Mapping[str, Charge]
    behavior: TabularPolicy
    objective: str
    constraints: tuple[AtMost, ...]
    episodes: int
    max_steps: int


def mdp_of(moves: Array, charges: Mapping[str, Charge], initial: Array, discount: float) -> TabularMDP:
    """Return the MDP of expected costs; rows of `moves` sum to one, or to zero where a state is an end."""
    total = moves.sum(axis=2)
    ends = ~moves.any(axis=(1, 2))
    if not np.allclose(total[~ends], 1.0):
        raise ValueError("every end is a state of its own: rows must sum to one")
    live = ~ends[:, None]
    costs = {name: np.where(live, charge.mean(moves), 0.0) for name, charge in charges.items()}
    return TabularMDP(moves, costs, initial, discount)


def log(world: World, seed: int, episodes: int | None = None) -> Dataset:
    """Log episodes of behavior; the costs are what happened, not what was to be expected."""
    rng = np.random.default_rng([seed, 1515])
    asked = world.episodes if episodes is None else episodes
    dataset = world.mdp.simulate(world.behavior, episodes=asked, max_steps=world.max_steps, rng=rng)
    moves = np.asarray(world.mdp.transitions)
    return dataset.with_costs({name: charge.drawn(dataset, moves, rng) for name, charge in world.charges.items()})


def weighed(mdp: TabularMDP, weights: Mapping[str, float]) -> Array:
    """(S, A) the sum of costs times weights."""
    return np.sum([weight * mdp.costs[name] for name, weight in weights.items()], axis=0)


def soft(mdp: TabularMDP, weights: Mapping[str, float], *, temperature: float, chance: float) -> TabularPolicy:
    """Return softmin of the optimal Q of the weighed costs, with uniform choice mixed in.

    temperature: in standard deviations of Q within a state, on average
    """
    cost, moves = weighed(mdp, weights), np.asarray(mdp.transitions)
    q = cost
    for _ in range(3000):
        before, q = q, cost + mdp.discount * moves @ q.min(axis=1)
        if np.abs(q - before).max() < 1e-10:
            break
    excess = q - q.min(axis=1, keepdims=True)
    scale = temperature * q.std(axis=1).mean()
    table = np.exp(-excess / scale)
    return TabularPolicy((1 - chance) * table / table.sum(axis=1, keepdims=True) + chance / mdp.n_actions)


def good(mdp: TabularMDP, weights: Mapping[str, float]) -> dict[str, float]:
    """Return the values of the policy that is best for the weighed costs: limits are set by it."""
    both = TabularMDP(mdp.transitions, {**mdp.costs, "_": weighed(mdp, weights)}, mdp.initial, mdp.discount)
    return both.optimum(objective="_").values


def grid(rows: int, columns: int, goal: int, *, slip: float, walls: tuple[int, ...] = ()) -> Array:
    """(S, 4, S) moves up, right, down, left, sideways with probability `slip`; the last state is death, an end."""
    cells = rows * columns
    moves = np.zeros((cells + 1, 4, cells + 1))
    steps = ((-1, 0), (0, 1), (1, 0), (0, -1))

    def led(cell: int, way: int) -> int:
        row, column = cell // columns + steps[way][0], cell % columns + steps[way][1]
        inside = 0 <= row < rows and 0 <= column < columns
        return row * columns + column if inside and row * columns + column not in walls else cell

    for cell in range(cells):
        if cell == goal:
            continue
        for action in range(4):
            for turn, probability in ((0, 1 - slip), (1, slip / 2), (3, slip / 2)):
                moves[cell, action, led(cell, (action + turn) % 4)] += probability
    return moves


def killing(moves: Array, kills: Array, death: int = -1) -> Array:
    """Return moves that lead to `death` with probability `kills` (S, A), else where they led before."""
    alive = moves * (1 - kills)[:, :, None]
    alive[:, :, death] += kills * moves.any(axis=2)
    return alive


def scattered(rng: np.random.Generator, shape: tuple[int, int], successors: int) -> Array:
    """(S, A, S) random moves, a few successors for each pair."""
    moves = np.zeros((*shape, shape[0]))
    for pair in np.ndindex(*shape):
        moves[(*pair, rng.choice(shape[0], successors, replace=False))] = rng.dirichlet(np.ones(successors))
    return moves


def ending(moves: Array, probability: float | Array, ends: int = 1) -> Array:
    """Append states that are ends; the first of them is reached with a probability per step, number or (S, A)."""
    n, actions = moves.shape[:2]
    larger = np.zeros((n + ends, actions, n + ends))
    stop = np.broadcast_to(probability, (n, actions))
    larger[:n, :, :n] = moves * (1 - stop)[:, :, None]
    larger[:n, :, n] = stop
    return larger


def at(n: int, *states: int) -> Array:
    """(n,) one in these states, else zero."""
    flags = np.zeros(n)
    flags[list(states)] = 1.0
    return flags
