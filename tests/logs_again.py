"""Logs made of other logs' episodes, and small worlds whose episodes are equal by right."""

import numpy as np

from checkrein import Dataset, TabularPolicy
from checkrein_studies import frozen_lake
from checkrein_studies.random_cmdps import random_cmdp


def with_episodes(log, chosen, *, clusters=None):
    """The chosen episodes of a log, by their places and in this order, under the numbers 0, 1, ..."""
    labels, place = np.unique(log.episodes, return_inverse=True)
    rows = [np.flatnonzero(place == one) for one in range(labels.size)]
    order = np.concatenate([rows[one] for one in chosen])
    new = np.repeat(np.arange(len(chosen)), [rows[one].size for one in chosen])
    return Dataset.from_arrays(
        states=log.states[order],
        actions=log.actions[order],
        next_states=log.next_states[order],
        costs={name: log.cost(name)[order] for name in log.cost_names},
        terminals=log.terminals[order],
        next_observed=log.next_observed[order],
        episodes=new,
        steps=log.steps[order],
        n_actions=log.n_actions,
        clusters=None if clusters is None else np.asarray(clusters)[new],
        **({} if log.n_states is None else {"n_states": log.n_states}),
    )


def count(log):
    return np.unique(log.episodes).size


def random_world(episodes, seed, *, n_states=50):
    mdp = random_cmdp(0, n_constraints=1, n_states=n_states, ending=0.1)
    uniform = TabularPolicy.uniform(n_states, 4)
    log = mdp.simulate(uniform, episodes=episodes, max_steps=40, rng=np.random.default_rng(seed))
    return with_episodes(log, np.arange(episodes))


def lake(episodes, seed, *, slippery=True):
    mdp = frozen_lake.lake(slippery=slippery)
    return frozen_lake.log(mdp, frozen_lake.behavior(mdp), episodes=episodes, seed=seed)


def bandit(episodes, seed, *, contexts=3):
    """One step each: twelve different episodes at three contexts."""
    rng = np.random.default_rng(seed)
    states, actions = rng.integers(0, contexts, episodes), rng.integers(0, 2, episodes)
    costs = (rng.random(episodes) < 0.2 + 0.2 * actions).astype(float)
    ends, steps = np.ones(episodes, bool), np.zeros(episodes, int)
    return Dataset.from_arrays(
        states=states,
        actions=actions,
        next_states=states,
        costs={"c": costs},
        terminals=ends,
        episodes=np.arange(episodes),
        steps=steps,
    )


def arms(episodes, seed, *, steps=40):
    """One of three actions for a whole episode, and nothing else that is random: three different episodes."""
    actions = np.repeat(np.random.default_rng(seed).integers(0, 3, episodes), steps)
    step = np.tile(np.arange(steps), episodes)
    return Dataset.from_arrays(
        states=step,
        actions=actions,
        next_states=step + 1,
        costs={"c": 1.0 * actions},
        terminals=step == steps - 1,
        episodes=np.repeat(np.arange(episodes), steps),
        steps=step,
    )


def hidden_kinds(episodes, seed, *, kinds=20, n_states=20, steps=15):
    """Deterministic, once it is known which of the hidden kinds an episode is; behavior departs seldom."""
    following = np.random.default_rng(99).integers(0, n_states, (kinds, n_states, 2))
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, kinds, episodes)
    actions = (rng.random((episodes, steps)) < 0.1).astype(int)
    states = np.zeros((episodes, steps + 1), int)
    for step in range(steps):
        states[:, step + 1] = following[kind, states[:, step], actions[:, step]]
    step = np.tile(np.arange(steps), episodes)
    return Dataset.from_arrays(
        states=states[:, :-1].ravel(),
        actions=actions.ravel(),
        next_states=states[:, 1:].ravel(),
        costs={"c": 1.0 * states[:, 1:].ravel()},
        terminals=step == steps - 1,
        episodes=np.repeat(np.arange(episodes), steps),
        steps=step,
    )


def features(episodes, seed):
    """Continuous observations, but for the first, which is always the same; many episodes are a single step."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 9, episodes)
    begins = np.cumsum(lengths) - lengths
    step = np.arange(lengths.sum()) - np.repeat(begins, lengths)
    states = rng.normal(size=(step.size, 3)) * (step > 0)[:, None]
    return Dataset.from_arrays(
        states=states,
        actions=rng.integers(0, 2, step.size),
        next_states=np.roll(states, -1, axis=0),
        costs={"c": rng.integers(0, 2, step.size)},
        terminals=np.append(step[1:] == 0, True),
        episodes=np.repeat(np.arange(episodes), lengths),
        steps=step,
    )


WORLDS = {
    "random MDP": random_world,
    "small random MDP": lambda n, seed: random_world(n, seed, n_states=6),
    "lake": lake,
    "lake without slipping": lambda n, seed: lake(n, seed, slippery=False),
    "bandit": bandit,
    "bandit with sixty contexts": lambda n, seed: bandit(n, seed, contexts=60),
    "arms": arms,
    "hidden kinds": hidden_kinds,
    "features": features,
}
