"""Rollouts: what a policy earns in a Gymnasium environment, for those who have one."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from checkrein.base.arrays import BoolArray, FloatArray, IntArray, frozen, require_positive
from checkrein.base.errors import ArgumentError, DataError
from checkrein.data.encoding import Encoding
from checkrein.deploy.deployed import DeployedPolicy, pick
from checkrein.deploy.environments import action_names, made_environment, require_fit, state_reader
from checkrein.policies import members_of
from checkrein.protocols import Policy

REWARD = "reward"  # what the sums of the environment's own reward are called


@dataclass(frozen=True, eq=False)
class RolloutResult:
    """Sums over each episode: of the reward, then of each named cost."""

    names: tuple[str, ...]
    sums: FloatArray  # (episodes, k)
    discounted: FloatArray  # (episodes, k)
    discount: float
    lengths: IntArray  # (episodes,) steps
    cut_off: BoolArray  # (episodes,) ended by max_steps or by the environment's own limit on time
    members: IntArray  # (episodes,) which member of the mixture was followed

    def mean(self, name: str = REWARD, *, discounted: bool = True) -> float:
        """Average one sum over the episodes."""
        return float(self._column(name, discounted).mean())

    def standard_error(self, name: str = REWARD, *, discounted: bool = True) -> float:
        """Estimate how far the mean may be from the expectation; NaN for a single episode."""
        column = self._column(name, discounted)
        return float(column.std(ddof=1) / sqrt(column.size)) if column.size > 1 else float("nan")

    def table(self) -> pl.DataFrame:
        """Return a row per name: mean and standard error of the plain and of the discounted sum."""
        rows = [
            {
                "name": name,
                "mean": self.mean(name, discounted=False),
                "standard_error": self.standard_error(name, discounted=False),
                "discounted_mean": self.mean(name),
                "discounted_standard_error": self.standard_error(name),
            }
            for name in self.names
        ]
        return pl.DataFrame(rows)

    def _column(self, name: str, discounted: bool) -> FloatArray:
        if name not in self.names:
            raise ArgumentError(f"nothing is called {name!r}: there are sums of {', '.join(self.names)}")
        return (self.discounted if discounted else self.sums)[:, self.names.index(name)]


def rollout(
    policy: Policy | DeployedPolicy,
    environment: str | Any,
    *,
    episodes: int,
    seed: int,
    max_steps: int,
    costs: Sequence[str] | None = None,
    discount: float = 1.0,
) -> RolloutResult:
    """Play episodes, one member of the mixture in each from start to end.

    environment: a Gymnasium environment or its id; Discrete observations are finite states, Box ones are features
    seed: each episode's chance comes from it and the episode's number alone, so more episodes begin with the same ones
    max_steps: where an episode is cut off that has not ended by then; a policy with a horizon ends there
    costs: keys of `info` to sum beside the reward; each must be there at every step
    """
    require_positive(episodes=episodes, max_steps=max_steps)
    if not 0 < discount <= 1:
        raise ArgumentError(f"the discount is {discount}: it must lie in (0, 1]")
    names = (REWARD, *(costs or ()))
    if len(set(names)) < len(names):
        raise ArgumentError(f"the sums would be called {', '.join(names)}: each needs a name of its own")
    given, encoding = (policy.policy, policy.encoding) if isinstance(policy, DeployedPolicy) else (policy, None)
    if encoding is not None and encoding.memory is not None:
        raise ArgumentError(
            "the policy remembers what happened earlier in an episode, which rollouts do not tell it yet"
        )
    made = made_environment(environment)
    try:
        stage = _Stage(made, _Members(given, encoding, made), max_steps, names, discount)
        played = [
            stage.play(episode, np.random.SeedSequence(seed, spawn_key=(episode,))) for episode in range(episodes)
        ]
    finally:
        if made is not environment:
            made.close()
    sums, discounted, lengths, cut_off, members = (frozen(np.array(part)) for part in zip(*played, strict=True))
    return RolloutResult(names, sums, discounted, discount, lengths, cut_off, members)


class _Members:
    """The members of a mixture, in the environment's language; what finite states ask for is worked out once."""

    def __init__(self, policy: Policy, encoding: Encoding | None, environment: Any) -> None:
        from gymnasium import spaces  # noqa: PLC0415  # slow to import

        self.pairs = members_of(policy)
        self.state_of = state_reader(environment.observation_space, encoding)
        self.actions = action_names(environment.action_space, encoding)
        require_fit([member for member, _ in self.pairs], environment, encoding, self.state_of)
        self.finite = isinstance(environment.observation_space, spaces.Discrete)
        self.horizon = None if encoding is None else encoding.horizon
        self.known: dict[tuple[int, int, int], FloatArray] = {}

    def draw(self, rng: np.random.Generator) -> int:
        return int(pick(np.array([[weight for _, weight in self.pairs]]), rng.random(1))[0])

    def act(self, member: int, observation: Any, step: int, rng: np.random.Generator) -> int:
        """Choose in a step, counted from 1."""
        return self.actions[int(pick(self._probabilities(member, observation, step), rng.random(1))[0])]

    def _probabilities(self, member: int, observation: Any, step: int) -> FloatArray:
        if not self.finite:
            return self.pairs[member][0].probabilities(self.state_of(observation, step))
        key = (member, int(observation), 0 if self.horizon is None else step)
        if key not in self.known:
            self.known[key] = self.pairs[member][0].probabilities(self.state_of(observation, step))
        return self.known[key]


class _Played(NamedTuple):
    sums: FloatArray  # (k,)
    discounted: FloatArray  # (k,)
    length: int
    cut_off: bool
    member: int


@dataclass(frozen=True, eq=False)
class _Stage:
    environment: Any
    members: _Members
    max_steps: int
    names: tuple[str, ...]
    discount: float

    def play(self, episode: int, chance: np.random.SeedSequence) -> _Played:
        """Play one episode; the environment's chance and the policy's are independent of each other."""
        rng = np.random.default_rng(chance)
        observation, _ = self.environment.reset(seed=int(chance.spawn(1)[0].generate_state(1)[0]))
        member = self.members.draw(rng)
        sums, discounted, factor = np.zeros(len(self.names)), np.zeros(len(self.names)), 1.0
        horizon = self.members.horizon
        for step in range(self.max_steps if horizon is None else min(self.max_steps, horizon)):
            action = self.members.act(member, observation, step + 1, rng)
            observation, reward, terminated, truncated, info = self.environment.step(action)
            paid = np.array([reward, *(_cost(info, name, episode, step) for name in self.names[1:])], dtype=np.float64)
            sums += paid
            discounted += factor * paid
            factor *= self.discount
            if terminated or truncated or step + 1 == horizon:
                return _Played(sums, discounted, step + 1, truncated and not terminated, member)
        return _Played(sums, discounted, self.max_steps, True, member)


def _cost(info: dict[str, Any], name: str, episode: int, step: int) -> float:
    if name not in info:
        there = ", ".join(map(str, info)) or "nothing"
        raise DataError(f"info has no {name!r} in step {step} of episode {episode}: it has {there}")
    return float(info[name])
