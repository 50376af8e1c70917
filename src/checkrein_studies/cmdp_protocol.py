"""The protocol by which offline constrained learning is compared on random MDPs (Lee et al. 2022, COptiDICE)."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from checkrein import AtMost, Dataset, Problem, TabularMDP, TabularPolicy
from checkrein.base.arrays import FloatArray
from checkrein.protocols import Policy
from checkrein_studies.optidice import Model, chi_square

LOSS, COST = "loss", "cost"
BINDS = 1e-4  # a limit that is missed by less at the optimum
COLDEST, COOLING = 1e-3, 0.9  # temperatures of behavior


def binding_cmdp(
    seed: int, *, n_states: int = 50, n_actions: int = 4, discount: float = 0.95, limit: float = 0.1
) -> TabularMDP:
    """Return an MDP whose episodes begin in state 0 and end after a goal; on the way they pay, and the limit binds.

    Every pair has four random successors. The goal is the state that the best policy takes longest to reach; there
    `loss` is -1. `cost` is Beta(.2, .2) per step, times 1 - discount; one action of each state is free. Costs are drawn
    until the limit binds.
    n_states: with termination, which is left out of the MDP
    """
    rng = np.random.default_rng(seed)
    alive = n_states - 1
    moves, loss = np.zeros((alive, n_actions, alive)), np.zeros((alive, n_actions))
    for pair in np.ndindex(alive, n_actions):
        moves[(*pair, rng.choice(alive, 4, replace=False))] = rng.dirichlet(np.ones(4))
    goal = int(np.argmin([_arrival(moves, state, discount) for state in range(alive)]))
    moves[goal], loss[goal] = 0.0, -1.0
    while True:
        costs = rng.beta(0.2, 0.2, (alive, n_actions))
        costs[np.arange(alive), rng.integers(n_actions, size=alive)] = 0.0
        mdp = TabularMDP(moves, {LOSS: loss, COST: (1 - discount) * costs}, np.eye(alive)[0], discount)
        if best_within(mdp, limit)[COST] >= limit - BINDS:
            return mdp


def best_within(mdp: TabularMDP, limit: float) -> dict[str, float]:
    """Return the values of the constrained optimum."""
    return mdp.optimum(objective=LOSS, constraints=[AtMost(COST, limit)]).values


def _arrival(moves: FloatArray, goal: int, discount: float) -> float:
    """Return what arriving in a state is worth from state 0, at best."""
    values = np.zeros(len(moves))
    while True:
        better = discount * (moves @ values).max(axis=1)
        better[goal] = 1.0
        if np.abs(better - values).max() < 1e-8:
            return float(better[0])
        values = better


def skilled_behavior(mdp: TabularMDP, *, limit: float = 0.09, skill: float = 0.9) -> TabularPolicy:
    """Return a softmax of the constrained optimum's Q, as warm as leaves it `skill` of the way from uniform to optimal.

    Each is moved as little as makes it keep the limit, by chi-square divergence.
    """
    best = mdp.optimum(objective=LOSS, constraints=[AtMost(COST, limit)])
    uniform = TabularPolicy.uniform(mdp.n_states, mdp.n_actions)
    wanted = (1 - skill) * mdp.values(uniform)[LOSS] + skill * best.values[LOSS]
    q = mdp.costs[LOSS] + mdp.discount * mdp.transitions @ mdp.state_values(best.policy)[:, list(mdp.costs).index(LOSS)]
    model = Model.of(mdp)
    aimless = replace(model, rewards=np.zeros_like(model.rewards))
    temperature = COLDEST
    while True:
        temperature /= COOLING
        soft = np.exp((q.min(axis=1, keepdims=True) - q) / temperature)
        warm = TabularPolicy(soft / soft.sum(axis=1, keepdims=True))
        policy = chi_square(aimless, warm, alpha=1.0, limit=limit)
        if mdp.values(policy)[LOSS] >= wanted:
            return policy


def moves_of(log: Dataset, n_states: int) -> FloatArray:
    """(S, A, S) the likeliest transitions; what was never tried terminates."""
    counts = np.zeros((n_states, log.n_actions, n_states + 1))
    np.add.at(counts, (log.states, log.actions, np.where(log.terminals, n_states, log.next_states)), 1.0)
    return np.asarray(counts[:, :, :-1] / np.maximum(counts.sum(axis=2, keepdims=True), 1))


def plug_in(mdp: TabularMDP, moves: FloatArray, limit: float) -> TabularPolicy:
    """Take transitions (S, A, S) for the truth, costs being known, and solve the linear program."""
    probabilities = TabularMDP(moves, mdp.costs, mdp.initial, mdp.discount)
    return probabilities.optimum(objective=LOSS, constraints=[AtMost(COST, limit)]).policy


@dataclass(frozen=True, eq=False)
class Case:
    """A random MDP, who acted in it, and what can be gained."""

    mdp: TabularMDP
    behavior: TabularPolicy
    logged: float  # loss of behavior: a return of 0
    best: float  # loss of the constrained optimum: a return of 1
    limit: float

    @classmethod
    def draw(
        cls,
        seed: int,
        *,
        n_states: int,
        n_actions: int,
        discount: float,
        limit: float,
        behavior_limit: float,
        skill: float,
    ) -> Self:
        """Return the case of a seed."""
        mdp = binding_cmdp(seed, n_states=n_states, n_actions=n_actions, discount=discount, limit=limit)
        behavior = skilled_behavior(mdp, limit=behavior_limit, skill=skill)
        return cls(mdp, behavior, mdp.values(behavior)[LOSS], best_within(mdp, limit)[LOSS], limit)

    def problem(self, episodes: int, max_steps: int, rng: np.random.Generator) -> Problem:
        """Log episodes of behavior, and ask for the least loss within the limit."""
        log = self.mdp.simulate(self.behavior, episodes=episodes, max_steps=max_steps, rng=rng)
        limits = [AtMost(COST, self.limit, range=(0, 1))]
        return Problem(log, objective=LOSS, constraints=limits, discount=self.mdp.discount)

    def judged(self, policy: Policy) -> dict[str, float]:
        """Return a policy's true `return`, between 0 (behavior) and 1 (optimum), and true `cost`."""
        values = self.mdp.values(policy)
        return {"return": (values[LOSS] - self.logged) / (self.best - self.logged), COST: values[COST]}
