"""What an estimator makes of a log: values, and what each episode added to them."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import scipy  # its parts are loaded when first used

from checkrein.base.arrays import FloatArray
from checkrein.evaluation.propensities import Propensities
from checkrein.problem import Problem
from checkrein.protocols import Policy


def standard_errors(influence: FloatArray, weights: FloatArray) -> FloatArray:
    """(k,) of a weighted mean whose episodes each add influence (e, k), on average nothing; of one, not a number."""
    shares = weights / weights.sum()
    lost = 1 - shares @ shares  # of e equal weights, 1 - 1 / e
    if lost <= 0:
        return np.full(influence.shape[1:], np.nan)
    return np.asarray(np.sqrt((shares**2) @ influence**2 / lost))


@dataclass(frozen=True, eq=False)
class Estimate:
    """The values of all costs, and what each episode added to them beyond the mean."""

    values: FloatArray  # (1 + m,) signed as in the problem
    influence: FloatArray | None = None  # (e, 1 + m) of weighted mean zero; None: not known
    weights: FloatArray | None = None  # (e,) of the episodes
    effective: float | None = None  # episodes that as many equal weights would stand for
    largest: float | None = None  # the largest share of a single episode in all weights
    note: str = ""

    def standard_errors(self) -> FloatArray:
        """(1 + m,) sqrt(sum influence^2) / e with e - 1 degrees of freedom; not a number where it is not known."""
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
