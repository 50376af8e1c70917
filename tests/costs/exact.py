"""Answers by other means: convex programs by bisection, linear programs over occupancies written out by hand."""

import numpy as np
from scipy.optimize import brentq, linprog


def soft_values(mdp, costs, prior, temperature, sweeps=20_000):
    """The soft optimum of a table of costs (S, A), by plain value iteration: its policy (S, A)."""
    values = np.zeros(mdp.n_states)
    for _ in range(sweeps):
        q = costs + mdp.discount * mdp.transitions @ values
        least = q.min(axis=1, keepdims=True)
        weights = prior * np.exp(-(q - least) / temperature)
        new = least[:, 0] - temperature * np.log(weights.sum(axis=1))
        if np.abs(new - values).max() < 1e-14:
            break
        values = new
    return weights / weights.sum(axis=1, keepdims=True)


def expected_sum(mdp, table, per_state):
    """The expected discounted sum of a cost per state (S,) under a table of probabilities."""
    chain = np.einsum("sa,sat->st", table, mdp.transitions)
    return float(mdp.initial @ np.linalg.solve(np.eye(mdp.n_states) - mdp.discount * chain, per_state))


def divergence(table, prior):
    return (table * np.log(np.maximum(table, 1e-300) / prior)).sum(axis=1)


def kl_optimum(mdp, prior, limit):
    """Objective, temperature and policy of min C subject to KL(policy | prior) <= limit, by bisection."""

    def excess(log_temperature):
        table = soft_values(mdp, mdp.costs["c"], prior, np.exp(log_temperature))
        return expected_sum(mdp, table, divergence(table, prior)) - limit

    temperature = float(np.exp(brentq(excess, np.log(0.02), np.log(1e3), xtol=1e-12)))
    table = soft_values(mdp, mdp.costs["c"], prior, temperature)
    return expected_sum(mdp, table, (table * mdp.costs["c"]).sum(axis=1)), temperature, table


def variation_optimum(mdp, reference, limit):
    """Least C subject to the total variation from a reference, by a linear program over occupancies d and slacks u.

    sum over a of |d(s, a) - d(s) reference(a | s)| / 2 <= limit, d being the occupancy.
    """
    n, k = mdp.n_states, mdp.n_actions
    flow = np.zeros((n, n * k))
    for state in range(n):
        for action in range(k):
            flow[state, state * k + action] += 1
            flow[:, state * k + action] -= mdp.discount * mdp.transitions[state, action]
    deviation = np.zeros((n * k, n * k))
    for state in range(n):
        block = slice(state * k, (state + 1) * k)
        deviation[block, block] = np.eye(k) - reference[state][:, None]
    slack = np.eye(n * k)
    upper = np.vstack(
        [
            np.hstack([deviation, -slack]),
            np.hstack([-deviation, -slack]),
            np.append(np.zeros(n * k), 0.5 * np.ones(n * k)),
        ]
    )
    found = linprog(
        np.append(mdp.costs["c"].ravel(), np.zeros(n * k)),
        A_ub=upper,
        b_ub=np.append(np.zeros(2 * n * k), limit),
        A_eq=np.hstack([flow, np.zeros((n, n * k))]),
        b_eq=mdp.initial,
    )
    assert found.success, found.message
    return float(found.fun), -float(found.ineqlin.marginals[-1])
