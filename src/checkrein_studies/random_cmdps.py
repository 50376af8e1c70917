"""Random constrained MDPs, by seed: what a method does on average, against exact optima."""

import numpy as np
import scipy  # its parts are loaded when first used

from checkrein.policies import TabularPolicy
from checkrein.problem import AtMost
from checkrein.tabular_mdp import TabularMDP


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


def goal_cmdp(
    seed: int, *, n_states: int = 50, n_actions: int = 4, discount: float = 0.95, limit: float = 0.1
) -> TabularMDP:
    """Return an MDP of the kind that offline constrained learning is compared on: reach a goal, and pay little.

    Every pair has four random successors. Episodes begin in state 0 and end in the state that is hardest to reach,
    where `loss` is -1. `cost` is Beta(.2, .2) per step, times 1 - discount: an average, between 0 and 1.
    limit: on `cost`, which some policy can keep: where none can, another MDP is drawn
    """
    rng = np.random.default_rng(seed)
    while True:
        mdp = _draw_goal_cmdp(rng, n_states, n_actions, discount)
        if mdp.optimum(objective="cost").values["cost"] <= limit:
            return mdp


def _draw_goal_cmdp(rng: np.random.Generator, n_states: int, n_actions: int, discount: float) -> TabularMDP:
    transitions = np.zeros((n_states, n_actions, n_states))
    for pair in np.ndindex(n_states, n_actions):
        transitions[(*pair, rng.choice(n_states, 4, replace=False))] = rng.dirichlet(np.ones(4))
    costs = rng.beta(0.2, 0.2, (n_states, n_actions))
    occupancy = np.linalg.inv(np.eye(n_states) - discount * transitions.mean(axis=1))[0]
    goal = int(occupancy.argmin())
    reached = transitions[:, :, goal].copy()
    transitions[goal], reached[goal], costs[goal] = 0.0, 0.0, 0.0
    initial = np.eye(n_states)[0]
    return TabularMDP(transitions, {"loss": -reached, "cost": (1 - discount) * costs}, initial, discount)


def skilled_behavior(mdp: TabularMDP, limit: float, skill: float = 0.9) -> TabularPolicy:
    """Return the constrained optimum, with chance mixed in until it is `skill` of the way from uniform to optimal."""
    uniform = TabularPolicy.uniform(mdp.n_states, mdp.n_actions)
    optimum = mdp.optimum(objective="loss", constraints=[AtMost("cost", limit)])
    worst, best = mdp.values(uniform)["loss"], optimum.values["loss"]

    def mixed(chance: float) -> TabularPolicy:
        return TabularPolicy((1 - chance) * optimum.policy.table + chance * uniform.table)

    missing = lambda chance: mdp.values(mixed(chance))["loss"] - (worst + skill * (best - worst))  # noqa: E731
    return mixed(float(scipy.optimize.brentq(missing, 0.0, 1.0)))
