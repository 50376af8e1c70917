"""Slow, plain answers to compare with: loops over rows, dense matrices, nothing shared with the library."""

import numpy as np


def empirical_mdp(dataset):
    """Mean costs (S, A, k), transition shares (S, A, S), and which pairs were logged, by a loop over rows."""
    shape = dataset.n_states, dataset.n_actions
    weight = np.zeros(shape)
    costs = np.zeros((*shape, dataset.costs.shape[1]))
    moves = np.zeros((*shape, dataset.n_states))
    for row in range(len(dataset)):
        x, a, w = dataset.states[row], dataset.actions[row], dataset.weights[row]
        weight[x, a] += w
        costs[x, a] += w * dataset.costs[row]
        if not dataset.terminals[row]:
            moves[x, a, dataset.next_states[row]] += w
    logged = weight > 0
    safe = np.where(logged, weight, 1.0)
    return costs / safe[..., None], moves / safe[..., None], logged


def evaluate(dataset, policy, discount, sweeps=4000):
    """Expected discounted sums (k,) of a policy that only takes logged actions, by repeated sweeps."""
    costs, moves, _ = empirical_mdp(dataset)
    probabilities = policy.probabilities(np.arange(dataset.n_states))
    values = np.zeros((dataset.n_states, costs.shape[2]))
    for _ in range(sweeps):
        values = np.einsum("sa,sak->sk", probabilities, costs + discount * np.einsum("sat,tk->sak", moves, values))
    return dataset.initial_weights @ values[dataset.initial_states] / dataset.initial_weights.sum()


def least_lagrangians(objectives, violations, visited):
    """(s,) min over all policies at each multiplier, by the definition."""
    return [min(c + lam @ v for c, v in zip(objectives, violations, strict=True)) for lam in visited]


def least_cost(dataset, mix, discount, sweeps=2000):
    """The least expected sum of `costs @ mix` over policies that only take logged actions, by value iteration."""
    costs, moves, logged = empirical_mdp(dataset)
    values = np.zeros(dataset.n_states)
    for _ in range(sweeps):
        q = np.where(logged, costs @ mix + discount * moves @ values, np.inf)
        values = np.where(logged.any(axis=1), q.min(axis=1), 0.0)
    return dataset.initial_weights @ values[dataset.initial_states] / dataset.initial_weights.sum()
