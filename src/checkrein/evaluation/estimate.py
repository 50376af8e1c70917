"""What an estimator makes of a log: values, and what each episode, or cluster of them, added to them."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import scipy  # its parts are loaded when first used

from checkrein.base.arrays import FloatArray
from checkrein.evaluation.propensities import Propensities
from checkrein.problem import Episodes, Problem
from checkrein.protocols import Policy


def standard_errors(influence: FloatArray, weights: FloatArray) -> FloatArray:
    """(k,) of a weighted mean whose units each add influence (u, k), on average nothing; of one, not a number.

    Units are episodes, or clusters of them: `Episodes.unit_means` and `Episodes.unit_weights`.
    """
    shares = weights / weights.sum()
    lost = 1 - shares @ shares  # of u equal weights, 1 - 1 / u
    if lost <= 0:
        return np.full(influence.shape[1:], np.nan)
    return np.asarray(np.sqrt((shares**2) @ influence**2 / lost))


def concentration(episodes: Episodes, importance_weights: FloatArray) -> tuple[float, float]:
    """Return the effective number of units (Kish) of weights (e,), and the largest share of one of them."""
    weights = episodes.by_unit(episodes.weights * importance_weights)
    total = weights.sum()
    return (float(total**2 / (weights @ weights)), float(weights.max() / total)) if total > 0 else (0.0, 0.0)


@dataclass(frozen=True, eq=False)
class Estimate:
    """The values of all costs, and what each unit (an episode, or a cluster of them) added to them beyond the mean."""

    values: FloatArray  # (1 + m,) signed as in the problem
    influence: FloatArray | None = None  # (u, 1 + m) of weighted mean zero; None: not known
    weights: FloatArray | None = None  # (u,) of the units
    effective: float | None = None  # units that as many equal weights would stand for
    largest: float | None = None  # the largest share of a single unit in all weights
    note: str = ""

    @classmethod
    def of(
        cls,
        episodes: Episodes,
        values: FloatArray,
        influence: FloatArray,
        importance_weights: FloatArray | None = None,
        note: str = "",
    ) -> "Estimate":
        """Count by unit what each episode adds (e, 1 + m) and how much likelier (e,) the policy makes it."""
        effective, largest = (None, None) if importance_weights is None else concentration(episodes, importance_weights)
        return cls(values, episodes.unit_means(influence), episodes.unit_weights, effective, largest, note)

    def standard_errors(self) -> FloatArray:
        """(1 + m,) sqrt(sum influence^2) / u with u - 1 degrees of freedom; not a number where it is not known."""
        if self.influence is None or self.weights is None:
            return np.full(self.values.shape, np.nan)
        return standard_errors(self.influence, self.weights)

    def interval(self, confidence: float) -> tuple[FloatArray, FloatArray]:
        """Return the two-sided Student-t interval of each value."""
        errors = self.standard_errors()
        if self.weights is None or np.isnan(errors).all():
            return errors, errors
        freedom = self.weights.sum() ** 2 / (self.weights @ self.weights) - 1
        width = errors * float(scipy.stats.t.ppf((1 + confidence) / 2, freedom))
        return self.values - width, self.values + width


@runtime_checkable
class Estimator(Protocol):
    """A way to value a policy from the log of another."""

    @property
    def name(self) -> str:
        """What its row in a table is called."""
        ...

    @property
    def weighs(self) -> bool:
        """Whether it needs propensities."""
        ...

    def __call__(
        self, problem: Problem, policy: Policy, propensities: Propensities | None, *, rng: np.random.Generator
    ) -> Estimate:
        """Estimate all costs at once."""
        ...
