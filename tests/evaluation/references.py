"""Importance sampling in plain loops, and small worlds to try estimators in."""

import numpy as np

from checkrein import AtMost, Problem, TabularMDP, TabularPolicy
from checkrein.functions.tabular import TabularQ
from checkrein.policies import members_of
from checkrein_studies.random_cmdps import random_cmdp

COSTS = ["c", "g0"]


def world(seed=0, *, ending=0.3, discount=0.9, n_states=5, n_actions=3):
    """A small MDP that starts in one of three states."""
    return random_cmdp(
        seed,
        n_constraints=1,
        n_states=n_states,
        n_actions=n_actions,
        successors=3,
        discount=discount,
        ending=ending,
    )


def policy_near_uniform(mdp, seed, mildness=0.5):
    table = np.random.default_rng(seed).dirichlet(np.ones(mdp.n_actions), size=mdp.n_states)
    return TabularPolicy(mildness / mdp.n_actions + (1 - mildness) * table)


def log_of(mdp, *, episodes, seed, max_steps=1000):
    uniform = TabularPolicy.uniform(mdp.n_states, mdp.n_actions)
    return mdp.simulate(uniform, episodes=episodes, max_steps=max_steps, rng=np.random.default_rng(seed))


def problem_of(dataset, discount=0.9, costs=COSTS):
    return Problem(dataset, objective=None, constraints=[AtMost(cost, 0.0) for cost in costs], discount=discount)


def exact_q(mdp, policy):
    """The true Q in the columns of `problem_of`: nothing, then the costs."""
    values = mdp.state_values(policy)
    costs = np.stack([mdp.costs[name] for name in mdp.costs], axis=2)
    q = costs + mdp.discount * np.einsum("sat,tk->sak", mdp.transitions, values)
    return TabularQ(np.concatenate([np.zeros((*q.shape[:2], 1)), q], axis=2))


def deterministic(mdp):
    """The same MDP, every pair leading to its likeliest successor; the last state ends."""
    moves = np.zeros_like(mdp.transitions)
    states, actions = np.indices(moves.shape[:2])
    moves[states, actions, mdp.transitions.argmax(axis=2)] = 1.0
    moves[-1] = 0.0
    return TabularMDP(moves, mdp.costs, mdp.initial, mdp.discount)


def histories(dataset, policy):
    """For each episode by number: its costs (T, k), its cumulative weights (T,), and whether it ended."""
    for label in np.unique(dataset.episodes):
        rows = [i for i in range(len(dataset)) if dataset.episodes[i] == label]
        rows.sort(key=lambda i: i if dataset.steps is None else dataset.steps[i])
        weights = np.zeros(len(rows))
        for member, share in members_of(policy):
            product = 1.0
            for t, i in enumerate(rows):
                probabilities = member.probabilities(dataset.states[i : i + 1])[0, dataset.actions[i]]
                product *= probabilities / dataset.propensities[i]
                weights[t] += share * product
        yield dataset.costs[rows], weights, bool(dataset.terminals[rows[-1]])


def by_loops(dataset, policy, discount):
    """Every importance-weighted estimate, for every cost, by its textbook sum."""
    logged = list(histories(dataset, policy))
    horizon = max(len(weights) for _, weights, _ in logged)
    returns = [sum(discount**t * cost for t, cost in enumerate(costs)) for costs, _, _ in logged]
    whole = [weights[-1] for _, weights, _ in logged]
    weighed = [w * g for w, g in zip(whole, returns, strict=True)]
    decisions = [
        sum(discount**t * w * c for t, (w, c) in enumerate(zip(weights, costs, strict=True)))
        for costs, weights, _ in logged
    ]
    stepwise = np.zeros(dataset.costs.shape[1])
    for t in range(horizon):
        above, below = np.zeros(dataset.costs.shape[1]), 0.0
        for costs, weights, ended in logged:
            if t < len(weights):
                above = above + weights[t] * costs[t]
                below += weights[t]
            elif ended:
                below += weights[-1]
        stepwise += discount**t * above / below
    return {
        "naive": np.mean(returns, axis=0),
        "is": np.mean(weighed, axis=0),
        "pdis": np.mean(decisions, axis=0),
        "wis": np.sum(weighed, axis=0) / np.sum(whole),
        "cwpdis": stepwise,
    }
