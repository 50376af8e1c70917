"""Worlds with numbers for states: many episodes at once, logs of them, and the truth about a policy by rollouts."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from checkrein import AtMost, Dataset
from checkrein.policies.mixture import members_of
from checkrein.protocols import Policy

Array = np.ndarray
Costs = dict[str, Array]  # name -> (n,)
Features = Callable[[Array, Array, Array], Array]  # observations, last observations, last actions (-1: none) -> (n, d')

BLOCK = 10_000  # episodes that are rolled out together: their arrays stay in the cache
NEGLIGIBLE = 5e-4  # a world that goes on is followed until its discount falls under this


@dataclass(frozen=True, eq=False)
class World:
    """Dynamics over n episodes at once, who logs them, and what is asked; h hidden numbers, d of them or less observed.

    cut_off: the world goes on beyond `horizon`, where logs stop; else it ends there by itself and time is observed
    levels: what sets the actions apart (doses, forces): tuned policies are rules about them
    """

    name: str
    discount: float
    horizon: int
    cut_off: bool
    features: tuple[str, ...]  # d
    levels: Array  # (A, k)
    objective: str
    constraints: tuple[AtMost, ...]
    begin: Callable[[int, np.random.Generator], Array]  # -> (n, h)
    observe: Callable[[Array], Array]  # (n, h) -> (n, d)
    step: Callable[[Array, Array, np.random.Generator], tuple[Array, Costs, Array]]  # -> (n, h), costs, ended (n,)
    behavior: Callable[[Array, Array], Array]  # observations (n, d), hidden (n, h) -> (n, A)
    clusters: Callable[[Array], Array] | None = None  # (n, h) -> (n,) whose episode it is

    @property
    def n_actions(self) -> int:
        """How many actions there are."""
        return len(self.levels)

    @property
    def cost_names(self) -> tuple[str, ...]:
        """The objective, then what is limited."""
        return (self.objective, *(str(constraint.cost) for constraint in self.constraints))


@dataclass(frozen=True, eq=False)
class Decisions:
    """The decisions of one moment, one row per episode that is still going on."""

    number: int  # of the moment, from 0
    episodes: Array  # (n,)
    observations: Array  # (n, d)
    actions: Array  # (n,)
    propensities: Array  # (n,)
    costs: Costs
    following: Array  # (n, d)
    ended: Array  # (n,)
    clusters: Array | None  # (n,)


def as_observed(observations: Array, last_observations: Array, last_actions: Array) -> Array:  # noqa: ARG001
    """(n, d) what a policy without memory is shown."""
    return observations


def play(
    world: World,
    policy: Policy | None,
    episodes: int,
    rng: np.random.Generator,
    *,
    steps: int,
    features: Features = as_observed,
) -> Iterator[Decisions]:
    """Follow a policy (None: behavior); of a mixture, each episode draws one member and keeps it."""
    hidden = world.begin(episodes, rng)
    members = [] if policy is None else members_of(policy)
    shares = np.array([share for _, share in members])
    drawn = np.zeros(episodes, int) if len(members) < 2 else rng.choice(len(members), episodes, p=shares / shares.sum())
    rows, observations = np.arange(episodes), world.observe(hidden)
    last, last_actions = observations, np.full(episodes, -1)
    for number in range(steps):
        if policy is None:
            probabilities = world.behavior(observations, hidden)
        else:
            shown = features(observations, last, last_actions)
            probabilities = np.empty((len(rows), world.n_actions))
            for index, (member, _) in enumerate(members):
                mine = drawn == index
                if mine.any():
                    probabilities[mine] = member.probabilities(shown[mine])
        bounds = probabilities.cumsum(axis=1)[:, :-1]
        actions = (rng.random(len(rows))[:, None] > bounds).sum(axis=1)
        clusters = None if world.clusters is None else world.clusters(hidden)
        hidden, costs, ended = world.step(hidden, actions, rng)
        following = world.observe(hidden)
        chosen = probabilities[np.arange(len(rows)), actions]
        yield Decisions(number, rows, observations, actions, chosen, costs, following, ended, clusters)
        on = ~ended
        rows, drawn, hidden, last, last_actions = rows[on], drawn[on], hidden[on], observations[on], actions[on]
        observations = following[on]
        if not rows.size:
            return


def log(world: World, episodes: int, seed: int, *, propensities: bool = False) -> Dataset:
    """Log episodes of behavior, cut off at the horizon where the world goes on; next states are always known."""
    played = list(play(world, None, episodes, np.random.default_rng([seed, 1616]), steps=world.horizon))
    numbers = np.repeat([moment.number for moment in played], [moment.episodes.size for moment in played])
    of = np.concatenate([moment.episodes for moment in played])
    order = np.lexsort((numbers, of))

    def column(name: str) -> Array:
        return np.concatenate([getattr(moment, name) for moment in played])[order]

    return Dataset.from_arrays(
        states=column("observations"),
        actions=column("actions"),
        next_states=column("following"),
        costs={name: np.concatenate([m.costs[name] for m in played])[order] for name in world.cost_names},
        terminals=column("ended"),
        episodes=of[order],
        steps=numbers[order],
        propensities=column("propensities") if propensities else None,
        clusters=None if world.clusters is None else column("clusters"),
        n_actions=world.n_actions,
    )


def followed(world: World) -> int:
    """Return how many steps of an episode tell its value: all, or until what is left is negligible."""
    if not world.cut_off:
        return world.horizon
    return max(world.horizon, math.ceil(math.log(NEGLIGIBLE) / math.log(world.discount)))


def returns(
    world: World,
    policy: Policy | None,
    *,
    rollouts: int,
    seed: int,
    features: Features = as_observed,
) -> tuple[Array, Array, float]:
    """Return discounted sums (rollouts, k) in the order of `cost_names`, clusters (rollouts,), decisions per episode.

    Decisions are counted within the horizon: as many as a log would have.
    """
    sums, clusters, decisions = np.zeros((rollouts, len(world.cost_names))), np.arange(rollouts), 0
    for start in range(0, rollouts, BLOCK):
        size, rng = min(BLOCK, rollouts - start), np.random.default_rng([seed, start, 61])
        for moment in play(world, policy, size, rng, steps=followed(world), features=features):
            at = start + moment.episodes
            decisions += at.size * (moment.number < world.horizon)
            if moment.number == 0 and moment.clusters is not None:
                clusters[at] = start + moment.clusters
            sums[at] += world.discount**moment.number * np.column_stack([moment.costs[n] for n in world.cost_names])
    return sums, clusters, decisions / rollouts


def truth(
    world: World,
    policy: Policy | None,
    rollouts: int = 50_000,
    seed: int = 0,
    *,
    features: Features = as_observed,
) -> dict[str, tuple[float, float]]:
    """Return each cost's value and its standard error (by clusters where there are any); None is behavior itself."""
    sums, clusters, _ = returns(world, policy, rollouts=rollouts, seed=seed, features=features)
    return values(world, sums, clusters)


def values(world: World, sums: Array, clusters: Array) -> dict[str, tuple[float, float]]:
    """Return means of discounted sums (n, k) and their standard errors."""
    means = sums.mean(axis=0)
    _, whose = np.unique(clusters, return_inverse=True)
    excess = np.column_stack([np.bincount(whose, weights=column) for column in (sums - means).T])
    errors = np.sqrt((excess**2).sum(axis=0)) / len(sums)
    return {
        name: (float(mean), float(error)) for name, mean, error in zip(world.cost_names, means, errors, strict=True)
    }


def softmax(scores: Array, *, uniform: float = 0.0) -> Array:
    """(n, A) probabilities of scores, with uniform choice mixed in."""
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (1 - uniform) * weights / weights.sum(axis=1, keepdims=True) + uniform / scores.shape[1]


def near(wanted: Array, levels: Array, width: float, *, uniform: float = 0.03) -> Array:
    """(n, A) of levels (A,) about the level (n,) that is wanted, as far off as `width`."""
    return softmax(-0.5 * ((levels - wanted[:, None]) / width) ** 2, uniform=uniform)
