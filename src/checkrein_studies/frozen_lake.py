"""FrozenLake 8x8: reach the goal (cost -1 there), and seldom fall into a hole (cost 1 there)."""

from typing import Any

import numpy as np

from checkrein.base.arrays import Array, frozen
from checkrein.data.dataset import Dataset
from checkrein.data.encoding import Encoding, StateColumn
from checkrein.policies import TabularPolicy
from checkrein.protocols import Policy
from checkrein.tabular_mdp import TabularMDP

DISCOUNT = 0.99  # of the binding problem
HOLE_LIMIT = 0.03  # which the unconstrained optimum, at 0.05466, exceeds
SIDE = 8
ACTIONS = ("left", "down", "right", "up")  # as Gymnasium numbers them
MAX_STEPS = 200  # of a logged episode, as in Gymnasium's FrozenLake8x8-v1


def environment(*, slippery: bool) -> Any:
    """Return Gymnasium's own environment."""
    import gymnasium  # noqa: PLC0415  # listing the studies needs none

    return gymnasium.make("FrozenLake-v1", map_name="8x8", is_slippery=slippery).unwrapped


def tiles() -> Array:
    """(64,) the letters of the map: S, F, H and G."""
    letters: Array = environment(slippery=False).desc.ravel().astype(str)
    return letters


def lake(*, slippery: bool = True, discount: float = DISCOUNT) -> TabularMDP:
    """Return the exact MDP with costs `goal` and `hole`, read off Gymnasium's table of transitions."""
    source, letters = environment(slippery=slippery), tiles()
    transitions = np.zeros((letters.size, int(source.action_space.n), letters.size))
    for state in np.flatnonzero((letters == "S") | (letters == "F")):
        for action, outcomes in source.P[state].items():
            for probability, following, _reward, _terminated in outcomes:
                transitions[state, action, following] += probability
    arriving = {
        name: transitions[:, :, letters == letter].sum(axis=2) for name, letter in (("goal", "G"), ("hole", "H"))
    }
    costs = {"goal": -arriving["goal"], "hole": arriving["hole"]}
    return TabularMDP(transitions, costs, np.asarray(source.initial_state_distrib, dtype=np.float64), discount)


def words() -> Encoding:
    """Return what states and actions are called: rows and columns are counted from the upper left corner."""
    numbers = tuple(map(str, range(1, SIDE + 1)))
    places = np.stack(np.divmod(np.arange(SIDE**2), SIDE), axis=1)
    return Encoding(ACTIONS, (StateColumn("row", numbers), StateColumn("column", numbers)), frozen(places))


def behavior(mdp: TabularMDP, skill: float = 0.5) -> TabularPolicy:
    """Return a policy that takes the unconstrained optimum's action with probability `skill`, else any."""
    expert = mdp.optimum(objective="goal").policy.table
    return TabularPolicy(skill * expert + (1 - skill) / mdp.n_actions)


def log(mdp: TabularMDP, policy: Policy, *, episodes: int, seed: int, max_steps: int = MAX_STEPS) -> Dataset:
    """Log episodes; the costs are what happened, not what was to be expected."""
    dataset = mdp.simulate(policy, episodes=episodes, max_steps=max_steps, rng=np.random.default_rng(seed))
    arrived = tiles()[dataset.next_states]
    return dataset.with_costs({"goal": -1.0 * (arrived == "G"), "hole": 1.0 * (arrived == "H")})
