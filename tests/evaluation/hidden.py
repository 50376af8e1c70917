"""Small worlds with a hidden factor: what a log would show of them, and what is true."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from checkrein import Dataset, TabularMDP, TabularPolicy


@dataclass(frozen=True)
class HiddenWorld:
    """S states, A actions, and a hidden factor of two values, drawn anew at each step; the last outcome is the end."""

    factor: np.ndarray  # (S, 2) how likely each value is
    behavior: np.ndarray  # (S, 2, A)
    moves: np.ndarray  # (S, 2, A, S + 1)
    cost: np.ndarray  # (S, A, S + 1) of a step, by where it leads
    initial: np.ndarray  # (S,)

    @classmethod
    def draw(cls, rng, states=3, actions=2):
        """Any world that ends."""
        moves = rng.dirichlet(np.full(states + 1, 0.7), size=(states, 2, actions))
        moves = 0.8 * moves
        moves[..., -1] += 0.2
        factor = rng.dirichlet([2.0, 2.0], size=states)
        behavior = rng.dirichlet(np.full(actions, 3.0), size=(states, 2))
        return cls(factor, behavior, moves, rng.uniform(0, 1, (states, actions, states + 1)), np.eye(states)[0])

    @property
    def marginal(self):
        """(S, A) how often behavior takes an action, as a log shows it."""
        return np.einsum("su,sua->sa", self.factor, self.behavior)

    @property
    def observed(self):
        """(S, A, S + 1) where actions lead, as a log shows it."""
        joint = np.einsum("su,sua,suat->sat", self.factor, self.behavior, self.moves)
        return joint / self.marginal[..., None]

    @property
    def odds(self):
        """By how much the factor changes the odds of an action at most."""
        ratio = self.behavior / (1 - self.behavior) * ((1 - self.marginal) / self.marginal)[:, None]
        return float(np.maximum(ratio, 1 / ratio).max())

    def truth(self, policy, discount):
        """What a policy that does not see the factor costs: an MDP over states and values of the factor."""
        states, actions = self.marginal.shape
        onward = np.einsum("suat,tv->suatv", self.moves[..., :-1], self.factor)
        step = np.einsum("suat,sat->sua", self.moves, self.cost)
        mdp = TabularMDP(
            onward.reshape(2 * states, actions, 2 * states),
            {"cost": step.reshape(2 * states, actions)},
            (self.initial[:, None] * self.factor).ravel(),
            discount,
        )
        return mdp.values(TabularPolicy(np.repeat(policy.table, 2, axis=0)))["cost"]

    def log(self):
        """Every outcome once, as its own episode, weighed by how often it is observed."""
        chances = (self.marginal[..., None] * self.observed).ravel()
        states, actions, outcomes = (index.ravel() for index in np.indices(self.observed.shape))
        ends = outcomes == len(self.marginal)
        return Dataset.from_arrays(
            states=states,
            actions=actions,
            next_states=np.where(ends, 0, outcomes),
            costs={"cost": self.cost.ravel()},
            terminals=ends,
            episodes=np.arange(states.size),
            weights=1000 * chances,
            initial_states=np.flatnonzero(self.initial),
            initial_weights=self.initial[self.initial > 0],
            n_states=len(self.marginal),
            n_actions=actions.max() + 1,
        )


def worst_mean(outcomes, shares, propensity, odds):
    """The largest mean of outcomes under weights within the bounds, by linear programming; and the weighted shares."""
    low, high = propensity + (1 - propensity) / odds, propensity + (1 - propensity) * odds
    bounds = [(low * share, high * share) for share in shares]
    found = linprog(-outcomes, A_eq=np.ones((1, len(outcomes))), b_eq=[1.0], bounds=bounds, method="highs")
    return -found.fun, found.x


def worst_value(world, policy, discount, odds, sweeps=400):
    """The robust value from the first state by value iteration, an LP for each pair; and the values of all states."""
    states = len(world.marginal)
    values = np.zeros(states)
    for _ in range(sweeps):
        new = np.zeros(states)
        for s in range(states):
            for a in np.flatnonzero(policy.table[s]):
                ahead = world.cost[s, a] + discount * np.append(values, 0.0)
                new[s] += policy.table[s, a] * worst_mean(ahead, world.observed[s, a], world.marginal[s, a], odds)[0]
        if np.abs(new - values).max() < 1e-9:
            break
        values = new
    return float(world.initial @ new), new


def worst_world(world, policy, discount, odds):
    """Hide a factor of this strength that is worst for a deterministic policy, and leave no trace of it in the log.

    Where the factor is 1, behavior avoids the policy's action, which leads to the worst outcomes there.
    """
    _, values = worst_value(world, policy, discount, odds)
    states, actions = world.marginal.shape
    factor, behavior = np.zeros((states, 2)), np.zeros((states, 2, actions))
    moves = np.repeat(world.observed[:, None], 2, axis=1)
    for s in range(states):
        a = int(policy.table[s].argmax())
        p = world.marginal[s, a]
        low, high, tail = p + (1 - p) / odds, p + (1 - p) * odds, 1 / (1 + odds)
        ahead = world.cost[s, a] + discount * np.append(values, 0.0)
        order, left = np.argsort(-ahead), tail
        above = np.zeros(states + 1)
        for outcome in order:
            above[outcome] = min(world.observed[s, a, outcome], left)
            left -= above[outcome]
        moves[s, 1, a], moves[s, 0, a] = above / tail, (world.observed[s, a] - above) / (1 - tail)
        factor[s] = low * (1 - tail), high * tail
        others = world.marginal[s] / (1 - p)
        for u, chance in enumerate((p / low, p / high)):
            behavior[s, u] = others * (1 - chance)
            behavior[s, u, a] = chance
        # what other actions lead to does not depend on the factor
    return HiddenWorld(factor, behavior, moves, world.cost, world.initial)
