"""Refitted evaluation under other weights of the episodes: many refits at once, and what each episode adds to the fit.

The bootstrap weighs episodes by how often a replicate draws them. In classes with a closed form a refit is a small
linear system, so replicates are solved together, for all costs and from the same sums over the log.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.base.errors import ArgumentError
from checkrein.evaluation.linear_refits import LinearRefit
from checkrein.evaluation.tabular_refits import Occupancy, TabularRefit
from checkrein.functions import Linear, Tabular
from checkrein.policies import Support, members_of
from checkrein.problem import Episodes, Problem
from checkrein.protocols import FunctionClass, Policy

CHUNK = 1 << 20  # numbers that a block of replicates may take
FAINT = 1e-7  # weight that an episode keeps in every replicate: a pair that none of those drawn shows stays what it was


class Refitted(NamedTuple):
    """What refits say."""

    values: FloatArray  # (B, 1 + m)
    errors: FloatArray  # (B, 1 + m) standard errors by the influence of each episode, or cluster of them


class Member(Protocol):
    """One policy whose evaluation can be refitted under any weights of the episodes."""

    size: int  # numbers that one replicate takes
    k: int

    def refit(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return values (B, k) and the influence (B, e, k) of each episode, of weights (B, e)."""
        ...


@runtime_checkable
class FixedPointMethod(Protocol):
    """A direct method that solves for its fixed point in a function class, so that it can be refitted."""

    @property
    def refitted(self) -> FunctionClass | None:
        """The class; None where only so many iterations are made."""
        ...

    @property
    def support(self) -> Support:
        """What it takes for evidence."""
        ...


@dataclass(frozen=True, eq=False)
class Refits:
    """The fitted values of a policy as a function of how much each episode counts; a mixture's members are weighed."""

    members: tuple[tuple[Member, float], ...]
    episodes: Episodes

    @classmethod
    def of(cls, problem: Problem, policy: Policy, functions: FunctionClass, support: Support | None = None) -> "Refits":
        """Gather all that does not depend on the weights."""
        evidence = (support or Support()).of(problem)
        episodes = Episodes.of(problem)

        def build(member: Policy) -> Member:
            if isinstance(functions, Tabular):
                return TabularRefit(problem, member, evidence)
            if isinstance(functions, Linear):
                return LinearRefit(problem, member, functions, evidence)
            raise ArgumentError(
                f"{type(functions).__name__} has no closed form to refit many times at once: "
                "use Tabular or Linear, or a method that does not bootstrap"
            )

        built = tuple((build(member), weight) for member, weight in members_of(policy) if weight > 0)
        return cls(built, episodes)

    @property
    def weights(self) -> FloatArray:
        """(e,) of the episodes, as logged."""
        return self.episodes.weights

    def point(self) -> tuple[FloatArray, FloatArray]:
        """Return the values (k,) and the influence (e, k) of each episode, of mean zero, of the log as it is."""
        values, influence = self._refit(self.weights[None])
        return values[0], influence[0]

    def occupancy(self) -> Occupancy:
        """Return where the policy goes, each member by its share; only tables tell."""
        parts = [
            (member.occupancy(self.weights), share)
            for member, share in self.members
            if isinstance(member, TabularRefit)
        ]
        weighed = [found._replace(occupancy=share * found.occupancy) for found, share in parts]
        return Occupancy(*(np.concatenate(columns) for columns in zip(*weighed, strict=True)))

    def errors(self, drawn: FloatArray, influence: FloatArray) -> FloatArray:
        """(B, k) standard errors of refits with multiplicities (B, u) of units, and influence (B, e, k)."""
        pulls = self.episodes.by_unit(self.weights[:, None] * influence, axis=1)
        squares = np.einsum("bu,buk->bk", drawn, pulls**2)  # drawn twice: not fourfold
        return np.asarray(np.sqrt(squares) / (drawn @ self.episodes.unit_weights)[:, None])

    def __call__(self, drawn: FloatArray) -> Refitted:
        """Refit under multiplicities (B, u) of the units: of clusters, all episodes come together."""
        if len(drawn) == 0:
            none = np.empty((0, self.members[0][0].k))
            return Refitted(none, none)
        values, errors = [], []
        block = max(1, CHUNK // max(member.size for member, _ in self.members))
        for start in range(0, len(drawn), block):
            times = self.episodes.of_units(drawn[start : start + block]) + FAINT
            value, influence = self._refit(times * self.weights)
            values.append(value)
            errors.append(self.errors(drawn[start : start + block], influence))
        return Refitted(np.concatenate(values), np.concatenate(errors))

    def _refit(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        parts = [(share, *member.refit(weights)) for member, share in self.members]
        return (
            np.asarray(sum(share * value for share, value, _ in parts)),
            np.asarray(sum(share * influence for share, _, influence in parts)),
        )


def fit_influence(problem: Problem, policy: Policy, direct: object) -> FloatArray | None:
    """(e, k) how far each episode moves what a direct method fits; None where it has no closed form."""
    if not isinstance(direct, FixedPointMethod) or not isinstance(direct.refitted, Tabular | Linear):
        return None
    return Refits.of(problem, policy, direct.refitted, direct.support).point()[1]
