"""What judging episodes say of a policy that was learned without them, whatever it was valued by."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.evaluation.shrinkage import Missed, Shrinkage
from checkrein.problem import Problem


class Exposure(Protocol):
    """What a policy's value rests on: how much single rows of the log count."""

    def times(self, share: float) -> Self:
        """Return it for a member of a mixture, which is drawn so often."""
        ...

    def __add__(self, other: Self) -> Self:
        """Return it for two members together."""
        ...

    def missed(self, problem: Problem, values: slice) -> Sequence[Missed]:
        """Return what the log may have missed of some values, in one or more ways."""
        ...


@dataclass(frozen=True, eq=False)
class PairVisits:
    """Of finite states: how often a policy comes to each pair."""

    visits: FloatArray  # (S A,) expected, discounted

    def times(self, share: float) -> "PairVisits":
        """Return a share of it."""
        return PairVisits(share * self.visits)

    def __add__(self, other: "PairVisits") -> "PairVisits":
        return PairVisits(self.visits + other.visits)

    def missed(self, problem: Problem, values: slice) -> Sequence[Missed]:
        """Return what pairs may have missed, if they are alike and if they are not."""
        return Shrinkage.of(problem).both(self.visits, values, chosen=True)


@dataclass(frozen=True, eq=False)
class RowWeights:
    """Of features: sums of powers of what rows weigh (`leading`), and how far their TD errors lie from zero."""

    fourth: float  # sum over rows of weight^4
    fifth: float  # sum over rows of |weight|^5
    errors: FloatArray  # (2, 2, k) sums of weight^2 times squared, then cubed TD errors, above and below zero

    def times(self, share: float) -> "RowWeights":
        """Return it for rows that all weigh so much of what they do."""
        return RowWeights(share**4 * self.fourth, share**5 * self.fifth, share**2 * self.errors)

    def __add__(self, other: "RowWeights") -> "RowWeights":
        return RowWeights(self.fourth + other.fourth, self.fifth + other.fifth, self.errors + other.errors)

    def missed(self, problem: Problem, values: slice) -> Sequence[Missed]:
        """Return what one event more would come to (Fay & Feuer 1997): a leading weight times how far errors lie."""
        del problem
        weight = self.fifth / self.fourth if self.fourth > 0 else 0.0
        squares, cubes = self.errors
        apart = np.divide(cubes, squares, out=np.zeros_like(cubes), where=squares > 0).sum(axis=0)
        return (Missed.one_more(weight * apart[values]),)


@dataclass(frozen=True, eq=False)
class JudgedScores:
    """What episodes say of a policy."""

    scores: FloatArray  # (e, k)
    exposure: Exposure
    unsupported: float = 0.0  # share of the policy's decisions without evidence where it was valued
    max_density_ratio: float = 1.0  # times that the policy comes to a row for each that the log does, the most
    known_weights: FloatArray | None = None  # (e,) how much likelier the policy made what was done, where that is known
