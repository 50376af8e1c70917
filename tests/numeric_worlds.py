"""A small world whose states are numbers: three decisions for patients who are more or less ill."""

import numpy as np

from checkrein import AtMost, Dataset, Problem
from checkrein.policies import members_of

STEPS = 3


def rolled(policy, episodes, rng, *, hidden=0.0, steps=STEPS):
    """Follow a policy (a function of states (n, 2) to (n, 2) probabilities); yields what happens at each step.

    A patient's illness falls under treatment, which costs `dose`; hidden: how strongly a trait, which no state shows,
    drives illness up.
    """
    illness, trait = rng.normal(0.0, 1.0, episodes), rng.normal(0.0, 1.0, episodes)
    for step in range(steps):
        states = np.column_stack([illness, np.full(episodes, float(step))])
        actions = (rng.random(episodes) < policy(states)[:, 1]).astype(int)
        following = 0.8 * illness - 0.6 * actions + hidden * trait + 0.3 * rng.normal(size=episodes)
        costs = {"ill": np.exp(0.5 * following), "dose": actions * (1.0 + 0.3 * (illness < 0))}
        yield states, actions, np.column_stack([following, np.full(episodes, step + 1.0)]), costs
        illness = following


def behavior(states):
    chance = 1 / (1 + np.exp(-0.4 * states[:, 0]))
    return np.column_stack([1 - chance, chance])


def logged(seed, episodes, *, hidden=0.0, limit=2.2, propensities=False, steps=STEPS):
    """A log of behavior, and what is asked of it."""
    rows = list(rolled(behavior, episodes, np.random.default_rng(seed), hidden=hidden, steps=steps))
    states, actions, following = (np.concatenate([row[i] for row in rows]) for i in range(3))
    chosen = behavior(states)[np.arange(len(states)), actions]
    dataset = Dataset.from_arrays(
        states=states,
        actions=actions,
        next_states=following,
        costs={name: np.concatenate([row[3][name] for row in rows]) for name in ("ill", "dose")},
        terminals=np.repeat(np.arange(steps) == steps - 1, episodes),
        episodes=np.tile(np.arange(episodes), steps),
        steps=np.repeat(np.arange(steps), episodes),
        propensities=chosen if propensities else None,
        n_actions=2,
    )
    return Problem(dataset, objective="ill", constraints=[AtMost("dose", limit)], discount=1.0)


def true_values(policy, *, hidden=0.0, episodes=200_000, steps=STEPS):
    """(2,) the sums of "ill" and "dose"; policy None is behavior, a mixture draws a member for each episode."""
    rng = np.random.default_rng(77)
    members = [(1.0, behavior)] if policy is None else _functions(policy)
    total = np.zeros(2)
    for weight, follow in members:
        count = max(int(weight * episodes), 1)
        sums = sum(
            np.column_stack([c["ill"], c["dose"]]) for *_, c in rolled(follow, count, rng, hidden=hidden, steps=steps)
        )
        total += weight * sums.mean(axis=0)
    return total


def _functions(policy):
    return [(weight, member.probabilities) for member, weight in members_of(policy)]
