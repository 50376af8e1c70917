"""Small logs whose truth is known, to judge policies on."""

import numpy as np

from checkrein import AtMost, Dataset, TabularPolicy
from checkrein.certification import certify
from checkrein.certification.bounds import BootstrapFQE
from checkrein_studies import graph

QUICK = BootstrapFQE(replicates=200)


def coin_log(episodes, *, chance=0.3, seed=0, costs=None, propensity=0.5, logged=0.5):
    """One state, one step: action 1 costs `chance` on average, action 0 nothing."""
    rng = np.random.default_rng(seed)
    actions = 1 * (rng.random(episodes) < logged)
    paid = 1.0 * (rng.random(episodes) < chance) * actions if costs is None else costs
    return Dataset.from_arrays(
        states=np.zeros(episodes, dtype=int),
        actions=actions,
        next_states=np.zeros(episodes, dtype=int),
        costs={"harm": paid, "benefit": 1.0 - paid},
        terminals=np.ones(episodes, dtype=bool),
        episodes=np.arange(episodes),
        propensities=np.full(episodes, propensity),
        n_actions=2,
        n_states=1,
    )


def coin(chance):
    """Take action 1 with this chance."""
    return TabularPolicy(np.array([[1 - chance, chance]]))


def graph_log(episodes, *, horizon=5, slip=0.1, up=0.5, seed=0):
    """The Graph with slip, whose cost counts the upper nodes; and the MDP."""
    mdp = graph.graph(horizon, slip=slip)
    log = graph.log(mdp, graph.constant_policy(mdp, up), episodes=episodes, rng=np.random.default_rng(seed))
    return mdp, log.with_costs({"upper": 0.5 * (log.cost("reward") + 1)})


def upper_value(mdp, policy):
    """What the policy pays for upper nodes, exactly."""
    horizon = (mdp.n_states + 1) // 2
    return 0.5 * (mdp.values(policy)["reward"] + sum(mdp.discount**t for t in range(horizon)))


class Tilted:
    """A stochastic policy over feature vectors, one score per action."""

    def __init__(self, scores):
        self.scores = np.asarray(scores)  # (d, A)

    def probabilities(self, states):
        exponentials = np.exp(states @ self.scores)
        return exponentials / exponentials.sum(axis=1, keepdims=True)


def bandit_log(episodes, *, seed=0, bend=0.0, propensities=True):
    """One step: the cost of action 1 grows with the feature, and bends with its square."""
    rng = np.random.default_rng(seed)
    states = rng.standard_normal((episodes, 1))
    behavior = Tilted([[0.0, 0.5]]).probabilities(states)
    actions = 1 * (rng.random(episodes) < behavior[:, 1])
    costs = 1.0 + actions * (states[:, 0] + bend * states[:, 0] ** 2) + 0.5 * rng.standard_normal(episodes)
    stated = {"propensities": behavior[np.arange(episodes), actions]} if propensities else {}
    return Dataset.from_arrays(
        states=states,
        actions=actions,
        next_states=states,
        costs={"harm": costs},
        terminals=np.ones(episodes, dtype=bool),
        episodes=np.arange(episodes),
        n_actions=2,
        **stated,
    )


def judged(policy, dataset, *constraints, discount=1.0, method=QUICK, **settings):
    return certify(policy, dataset, constraints=constraints, discount=discount, method=method, **settings)


def failed(certificate):
    return {check.name for check in certificate.checks if not check.ok}


def harm(limit, **settings):
    return AtMost("harm", limit, **settings)


def circling(episodes=60):
    """Two states that lead to each other under action 0; action 1 ends."""
    rng = np.random.default_rng(0)
    steps = np.tile([0, 1, 2], episodes)
    return Dataset.from_arrays(
        states=steps % 2,
        actions=1 * (steps == 2),
        next_states=(steps + 1) % 2,
        costs={"harm": rng.random(steps.size)},
        terminals=steps == 2,
        episodes=np.repeat(np.arange(episodes), 3),
        steps=steps,
        n_actions=2,
    )
