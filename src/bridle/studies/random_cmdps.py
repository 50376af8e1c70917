"""Random constrained MDPs, by seed: what a method does on average, against exact optima."""

import numpy as np

from bridle.problem import AtMost
from bridle.tabular_mdp import TabularMDP


def random_cmdp(
    seed: int,
    *,
    n_constraints: int,
    n_states: int = 50,
    n_actions: int = 4,
    successors: int = 4,
    discount: float = 0.95,
    ending: float = 0.0,
) -> TabularMDP:
    """Return an MDP with costs `c` and `g0`, `g1`, ... uniform in [0, 1], and a few random successors per pair.

    ending: the probability that a step is the last
    """
    rng = np.random.default_rng(seed)
    transitions = np.zeros((n_states, n_actions, n_states))
    for pair in np.ndindex(n_states, n_actions):
        reached = rng.choice(n_states, successors, replace=False)
        transitions[(*pair, reached)] = (1 - ending) * rng.dirichlet(np.ones(successors))
    names = ["c", *(f"g{i}" for i in range(n_constraints))]
    costs = {name: rng.random((n_states, n_actions)) for name in names}
    initial = np.zeros(n_states)
    initial[:3] = rng.dirichlet(np.ones(3))
    return TabularMDP(transitions, costs, initial, discount)


def binding_limits(mdp: TabularMDP, *, tightness: float = 0.5) -> list[AtMost]:
    """Return limits between what the unconstrained optimum incurs and what the policy of least total does."""
    names = [name for name in mdp.costs if name != "c"]
    total = np.sum([mdp.costs[name] for name in names], axis=0)
    judged = TabularMDP(mdp.transitions, {**mdp.costs, "total": total}, mdp.initial, mdp.discount)
    least, free = judged.optimum(objective="total").values, mdp.optimum(objective="c").values
    return [AtMost(name, least[name] + tightness * max(free[name] - least[name], 0.05)) for name in names]
