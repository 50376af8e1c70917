"""Good policies to compare with: behavior tilted by a rule that was tuned on the simulator itself, limits kept."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from checkrein.protocols import Policy
from continuous_constants import FOUND
from continuous_rollouts import Array, World, log, returns

BOUND = 2.0  # a policy near behavior makes nothing more likely or less by more than exp(BOUND)
FREE = 10.0  # the same for a policy that need not stay near
MARGIN = 1.5  # standard errors that stay free under a limit while tuning


@dataclass(frozen=True, eq=False)
class Tilted:
    """Behavior times exp(score), the score being bilinear in what sets actions apart and in standardised features.

    weights: (k, 1 + d)
    bound: what the score stays within, as bound * tanh(score / bound)
    """

    world: World
    weights: Array
    bound: float

    def probabilities(self, states: Array) -> Array:
        """(n, A)."""
        center, scale = _standard(self.world)
        inputs = np.column_stack([np.ones(len(states)), np.clip((states - center) / scale, -4, 4)])
        scores = inputs @ self.weights.T @ self.world.levels.T
        behavior = self.world.behavior(states, states)
        base = np.log(behavior)
        scores = scores - (behavior * scores).sum(axis=1, keepdims=True)
        tilted = base + self.bound * np.tanh(scores / self.bound)
        weights = np.exp(tilted - tilted.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)


@cache
def _standard(world: World) -> tuple[Array, Array]:
    states = log(world, 300, seed=0).states
    return states.mean(axis=0), states.std(axis=0)


def tuned(world: World, *, near: bool = False) -> Policy:
    """Return the policy that `python benchmarks/continuous_worlds.py tune NAME` found; or one near behavior."""
    kind = "near" if near or "free" not in FOUND[world.name] else "free"
    return Tilted(world, np.array(FOUND[world.name][kind]), BOUND if kind == "near" else FREE)


def search(
    world: World,
    *,
    near: bool,
    start: Array | None = None,
    seed: int = 0,
    rounds: int = 10,
    candidates: int = 40,
    trials: int = 200,
) -> Array:
    """(k, 1 + d) weights of least objective within the limits.

    The cross-entropy method (Rubinstein 1999) comes first, then a (1+1) evolution strategy (Rechenberg 1973). Every
    candidate of a round meets the same random numbers, those of the next round are others; all trials the same.
    """
    rng = np.random.default_rng([seed, 6161])
    shape = (world.levels.shape[1], 1 + len(world.features))
    center = np.zeros(shape) if start is None else start
    spread = np.full(shape, 0.5 if start is None else 0.3)
    rollouts = 1000 if world.cut_off else 4000
    bound = BOUND if near else FREE
    for number in range(rounds):
        drawn = center + spread * rng.normal(size=(candidates, *shape))
        drawn[0] = center
        scores = [score(Tilted(world, weights, bound), rollouts, seed + number) for weights in drawn]
        best = drawn[np.argsort(scores)[: candidates // 5]]
        center, spread = 0.3 * center + 0.7 * best.mean(axis=0), 0.3 * spread + 0.7 * best.std(axis=0) + 0.02
    least, width, rollouts = np.inf, 0.1, 2 * rollouts
    for number in range(trials):
        trial = center + (number > 0) * width * rng.normal(size=shape) * (rng.random(shape) < 0.5)
        found = score(Tilted(world, trial, bound), rollouts, seed + rounds)
        width *= 1.5 if found < least else 0.9  # the rule of one success in five
        if found < least:
            center, least = trial, found
    return center


def score(policy: Tilted, rollouts: int, seed: int) -> float:
    """Return the objective, in standard deviations, and much more where a limit is broken."""
    world = policy.world
    sums, _, _ = returns(world, policy, rollouts=rollouts, seed=seed)
    means, scale = sums.mean(axis=0), _spread(world)
    errors = sums.std(axis=0) / rollouts**0.5
    broken = [
        max(0.0, constraint.sign * (mean - constraint.limit) + MARGIN * error) / abs(constraint.limit)
        for constraint, mean, error in zip(world.constraints, means[1:], errors[1:], strict=True)
    ]
    return float(means[0] / scale + 20 * sum(broken))


@cache
def _spread(world: World) -> float:
    return float(returns(world, None, rollouts=2000, seed=0)[0][:, 0].std())
