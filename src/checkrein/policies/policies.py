"""Policies: tables, greedy and softmin policies of a Q-function, and mixtures that draw one member per episode."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

import numpy as np

from checkrein.base import storage
from checkrein.base.arrays import Array, FloatArray, IntArray, finite_vector, frozen, owned, require_positive
from checkrein.base.errors import ArgumentError, DataError, StorageError
from checkrein.base.storage import storable
from checkrein.protocols import ActionMask, Policy, QFunction

TIE = 1e-10  # actions whose values differ by less, relatively, are the same to a greedy policy: the first is taken
SUM = 1e-9  # how far probabilities may miss one

P = TypeVar("P", bound=Policy)


@storable
@dataclass(frozen=True, eq=False)
class TabularPolicy:
    """Probabilities written out for each finite state."""

    table: FloatArray  # (S, A)

    def __post_init__(self) -> None:
        table = owned(self.table).astype(np.float64, copy=False)
        if table.ndim != 2:
            raise ArgumentError(f"a tabular policy needs an (S, A) table, but its shape is {table.shape}")
        wrong = (np.abs(table.sum(axis=1) - 1) > SUM) | ~(table >= 0).all(axis=1)
        if wrong.any():
            state = int(np.argmax(wrong))
            raise ArgumentError(f"the probabilities in state {state} are {table[state]}: they must sum to 1")
        object.__setattr__(self, "table", frozen(table))

    @classmethod
    def uniform(cls, n_states: int, n_actions: int) -> "TabularPolicy":
        """Every action with the same probability."""
        return cls(np.full((n_states, n_actions), 1.0 / n_actions))

    def probabilities(self, states: Array) -> FloatArray:
        """(n, A)"""  # noqa: D400, D415
        return cast(FloatArray, rows_of(self.table, states))


@storable
@dataclass(frozen=True, eq=False)
class GreedyPolicy:
    """The action of least value, among those that `support` allows; where it allows none, the first.

    (Such a state was never left in the log: whatever is done there is valued at its worst.)
    """

    q: QFunction  # one cost
    support: ActionMask | None = None

    def actions(self, states: Array) -> IntArray:
        """(n,) the chosen actions; of nearly equal ones the first."""
        values = self.q(states)[..., 0]
        tie = TIE * np.abs(values).max(axis=1, keepdims=True)
        if self.support is not None:
            values = np.where(self.support.allowed(states), values, np.inf)
        return np.argmax(values <= values.min(axis=1, keepdims=True) + tie, axis=1)

    def probabilities(self, states: Array) -> FloatArray:
        """(n, A) one-hot."""
        actions = self.actions(states)
        return np.asarray(actions[:, None] == np.arange(self.q(states[:1]).shape[1]), dtype=np.float64)


@storable
@dataclass(frozen=True, eq=False)
class SoftminPolicy:
    """Probabilities proportional to exp(-Q / temperature), among the actions that `support` allows."""

    q: QFunction  # one cost
    temperature: float
    support: ActionMask | None = None

    def __post_init__(self) -> None:
        require_positive(temperature=self.temperature)

    def probabilities(self, states: Array) -> FloatArray:
        """(n, A)"""  # noqa: D400, D415
        scaled = -self.q(states)[..., 0] / self.temperature
        if self.support is not None:
            allowed = self.support.allowed(states)
            scaled = np.where(allowed | ~allowed.any(axis=1, keepdims=True), scaled, -np.inf)
        exponentials = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        return exponentials / exponentials.sum(axis=1, keepdims=True)


@storable
@dataclass(frozen=True, eq=False)
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

    def probabilities(self, states: Array) -> FloatArray:
        """(n, A) of the first action of an episode; later ones depend on the member that was drawn."""
        return np.asarray(sum(w * p.probabilities(states) for p, w in zip(self.members, self.weights, strict=True)))

    def draw(self, rng: np.random.Generator) -> Policy:
        """Return the member to follow for one episode."""
        return self.members[rng.choice(len(self.members), p=self.weights)]


def rows_of(table: Array, states: Array) -> Array:
    """Return the rows of a table for finite states, or say which state it does not have."""
    states = np.asarray(states)
    if states.ndim != 1 or states.dtype.kind not in "iu":
        raise DataError(f"finite states are a column of integers, but these are {states.dtype} of shape {states.shape}")
    if states.size and not 0 <= states.min() <= states.max() < len(table):
        row = int(np.argmax((states < 0) | (states >= len(table))))
        raise DataError(f"state {states[row]} in row {row}, but the table has only {len(table)} states")
    return table[states]


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
    if not hasattr(policy, "probabilities"):
        raise StorageError(f"{path} holds a {type(policy).__name__}, not a policy")
    return cast(Policy, policy)
