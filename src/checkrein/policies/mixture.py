"""Mixtures draw one member per episode; what any policy is asked for, and how it is kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from checkrein.base import storage
from checkrein.base.arrays import Array, FloatArray, finite_vector
from checkrein.base.brief import brief
from checkrein.base.errors import ArgumentError, StorageError
from checkrein.base.storage import storable
from checkrein.policies.tabular import SUM
from checkrein.protocols import Policy


@storable
@dataclass(frozen=True, eq=False, repr=False)
class MixturePolicy:
    """Draws one member per episode and follows it to the end, so its values are the members' weighted values."""

    members: tuple[Policy, ...]
    weights: FloatArray  # (members,)

    def __post_init__(self) -> None:
        members = tuple(self.members)
        weights = finite_vector(self.weights, "weights")
        if len(members) != weights.size or not members:
            raise ArgumentError(f"a mixture of {len(members)} members needs as many weights, but has {weights.size}")
        if (weights < 0).any() or abs(weights.sum() - 1) > SUM:
            raise ArgumentError(f"mixture weights {weights} must not be negative and must sum to 1")
        object.__setattr__(self, "members", members)
        object.__setattr__(self, "weights", weights)

    def __repr__(self) -> str:
        kinds = sorted({type(member).__name__ for member in self.members})
        return f"MixturePolicy({len(self.members)} of {', '.join(kinds)}, weights {brief(self.weights)})"

    def probabilities(self, states: Array) -> FloatArray:
        """(n, A) of the first action of an episode; later ones depend on the member that was drawn."""
        return np.asarray(sum(w * p.probabilities(states) for p, w in zip(self.members, self.weights, strict=True)))

    def draw(self, rng: np.random.Generator) -> Policy:
        """Return the member to follow for one episode."""
        return self.members[rng.choice(len(self.members), p=self.weights)]


def probabilities_of(policy: Policy, states: Array, n_actions: int) -> FloatArray:
    """(n, A) of a policy, checked to know as many actions as there are."""
    probabilities = policy.probabilities(states)
    if probabilities.shape != (len(states), n_actions):
        raise ArgumentError(
            f"the policy's probabilities have shape {probabilities.shape}, not {(len(states), n_actions)}"
        )
    return probabilities


def members_of(policy: Policy) -> Sequence[tuple[Policy, float]]:
    """Return the policies that an episode may follow, and how likely each is."""
    if isinstance(policy, MixturePolicy):
        pairs = zip(policy.members, policy.weights, strict=True)
        return [(inner, float(weight) * part) for member, weight in pairs for inner, part in members_of(member)]
    return [(policy, 1.0)]


def save_policy(policy: Policy, path: str | Path) -> None:
    """Write a policy to one .npz file without pickle."""
    storage.save(policy, Path(path))


def load_policy(path: str | Path) -> Policy:
    """Read a policy that `save_policy` wrote."""
    policy = storage.load(Path(path))
    if not isinstance(policy, Policy):
        raise StorageError(f"{path} holds a {type(policy).__name__}, not a policy")
    return policy
