"""The Graph of the off-policy evaluation study of Voloshin et al. (2021): how estimators fare as the horizon grows.

From a start, each step leads to the upper (action 0) or lower (action 1) of the next layer's two nodes and earns +1 or
-1 there; the last step, whatever the action, earns once more what the node stands for.
"""

import numpy as np

from checkrein.base.errors import ArgumentError
from checkrein.data.dataset import Dataset
from checkrein.policies import TabularPolicy
from checkrein.protocols import Policy
from checkrein.tabular_mdp import TabularMDP

DISCOUNT = 0.98
REWARD = "reward"


def graph(horizon: int, *, slip: float = 0.0) -> TabularMDP:
    """Return the MDP of `horizon` steps: state 0 is the start, then 2 i - 1 and 2 i are the nodes of layer i.

    slip: the probability that a step leads to the other node. The one cost, `reward`, has the study's own sign.
    """
    if horizon < 2:
        raise ArgumentError(f"horizon is {horizon}: it must be at least 2, a step into the layers and one out")
    if not 0 <= slip <= 1:
        raise ArgumentError(f"slip is {slip}: it must lie in [0, 1]")
    n_states = 2 * horizon - 1
    state = np.arange(n_states - 2)  # those that lead on
    upper = 2 * ((state + 1) // 2) + 1
    transitions, reward = np.zeros((n_states, 2, n_states)), np.zeros((n_states, 2))
    for action in (0, 1):
        transitions[state, action, upper + action] = 1 - slip
        transitions[state, action, upper + 1 - action] = slip
        reward[state, action] = (1 - 2 * action) * (1 - 2 * slip)
    reward[-2:] = [[1.0, 1.0], [-1.0, -1.0]]
    return TabularMDP(transitions, {REWARD: reward}, np.eye(n_states)[0], DISCOUNT)


def constant_policy(mdp: TabularMDP, probability: float) -> TabularPolicy:
    """Return the policy that takes action 0 with the same probability everywhere."""
    return TabularPolicy(np.tile([probability, 1 - probability], (mdp.n_states, 1)))


def log(mdp: TabularMDP, policy: Policy, *, episodes: int, rng: np.random.Generator) -> Dataset:
    """Log whole episodes with the rewards that were earned, not those that were to be expected."""
    horizon = (mdp.n_states + 1) // 2
    dataset = mdp.simulate(policy, episodes=episodes, max_steps=horizon, rng=rng)
    node = np.where(dataset.terminals, dataset.states, dataset.next_states)
    return dataset.with_costs({REWARD: np.where(node % 2 == 1, 1.0, -1.0)})
