"""Logs whose truth is known exactly, for contracts to compare with."""

import numpy as np

from checkrein import AtLeast, AtMost, Dataset, MixturePolicy, Problem, TabularMDP, TabularPolicy
from problems import random_log, rows_of

DISCOUNT = 0.8
LAYERS, WIDTH, ACTIONS = 3, 2, 2
SIGNS = np.array([1.0, 1.0, -1.0])  # of c, g0 and g1 inside a problem


def layered_mdp():
    """Three steps at the most through two states a step; some episodes end early; every cost tells its own story."""
    rng = np.random.default_rng(3)
    n_states = LAYERS * WIDTH
    moves = np.zeros((n_states, ACTIONS, n_states))
    for state in range(n_states - WIDTH):
        layer = state // WIDTH + 1
        moves[state, :, layer * WIDTH : (layer + 1) * WIDTH] = 0.9 * rng.dirichlet(np.ones(WIDTH), ACTIONS)
    costs = {"c": rng.random((n_states, ACTIONS)), "g0": 3 * rng.random((n_states, ACTIONS)) + 1}
    costs["g1"] = 10 * rng.random((n_states, ACTIONS))
    initial = np.zeros(n_states)
    initial[:WIDTH] = 0.8, 0.2
    return TabularMDP(moves, costs, initial, DISCOUNT)


MDP = layered_mdp()
BEHAVIOR = TabularPolicy(np.random.default_rng(4).dirichlet(3 * np.ones(ACTIONS), MDP.n_states))
POLICY = TabularPolicy(np.random.default_rng(5).dirichlet(0.4 * np.ones(ACTIONS), MDP.n_states))
OTHER = TabularPolicy(np.random.default_rng(6).dirichlet(0.4 * np.ones(ACTIONS), MDP.n_states))
MIXTURE = MixturePolicy((POLICY, OTHER), np.array([0.4, 0.6]))


def histories(mdp, behavior):
    """Yield every episode that can be: its rows (state, action, next state, end), and its probability."""
    chosen = behavior.probabilities(np.arange(mdp.n_states))

    def onwards(state, rows, probability):
        for action in range(mdp.n_actions):
            taken = probability * chosen[state, action]
            moves = mdp.transitions[state, action]
            if (rest := 1 - moves.sum()) > 1e-12:
                yield [*rows, (state, action, state, True)], taken * rest
            for following in np.flatnonzero(moves):
                yield from onwards(following, [*rows, (state, action, following, False)], taken * moves[following])

    for state in np.flatnonzero(mdp.initial):
        yield from onwards(state, [], mdp.initial[state])


def census(mdp=MDP, behavior=BEHAVIOR):
    """The log of every episode that can be, each weighed by its probability: sample means on it are expectations."""
    episodes = list(histories(mdp, behavior))
    rows = np.array([row for history, _ in episodes for row in history])
    lengths = [len(history) for history, _ in episodes]
    states, actions = rows[:, 0], rows[:, 1]
    return Dataset.from_arrays(
        states=states,
        actions=actions,
        next_states=rows[:, 2],
        costs={name: table[states, actions] for name, table in mdp.costs.items()},
        terminals=rows[:, 3].astype(bool),
        episodes=np.repeat(np.arange(len(episodes)), lengths),
        steps=np.concatenate([np.arange(length) for length in lengths]),
        weights=1e4 * np.repeat([probability for _, probability in episodes], lengths),
        propensities=behavior.probabilities(states)[np.arange(len(rows)), actions],
        n_actions=mdp.n_actions,
        n_states=mdp.n_states,
    )


def problem_of(log, discount=DISCOUNT, limits=(2.0, 5.0)):
    """One cost to minimise, one limited from above, one from below."""
    constraints = [AtMost("g0", limits[0]), AtLeast("g1", limits[1])]
    return Problem(log, objective="c", constraints=constraints, discount=discount)


def truth_of(policy, mdp=MDP):
    """(3,) what a policy costs in an MDP, signed as in the problem."""
    return np.array(list(mdp.values(policy).values())) * SIGNS


def cut_off_log(seed=0):
    """A log of uneven weights and starts in which most episodes were cut off, and every state was left again."""
    log = random_log(seed, episodes=80, max_steps=4, ending=0.1)
    rng = np.random.default_rng(seed)
    starts = np.unique(log.initial_states)
    each = rng.uniform(0.2, 3, int(log.episodes.max()) + 1)
    return rows_of(
        log,
        weights=each[log.episodes],
        initial_states=starts,
        initial_weights=rng.uniform(0.1, 5, starts.size),
    )


def values_of(evaluator, problem, policy, seed=0):
    """(1 + m,) in the problem's own signs."""
    found = evaluator(problem, policy, rng=np.random.default_rng(seed))
    return found.row
