"""Bounds that allow for rare events which the log may have missed where the policy goes.

An estimate and its spread come from what was logged: of a pair whose rows show no harm, both say none. `Shrinkage` says
what may have been missed, in two ways; the bound moves up by what is expected beyond the rows, and is widened by what
is not known of it. The higher of the two holds.
"""

from collections.abc import Sequence

import numpy as np
import scipy  # its parts are loaded when first used

from checkrein.base.arrays import FloatArray
from checkrein.certification.bounds import Method
from checkrein.certification.intervals import Interval
from checkrein.evaluation.refits import Refits
from checkrein.evaluation.shrinkage import Missed
from checkrein.functions import Tabular
from checkrein.problem import Problem
from checkrein.protocols import Policy


def allow_for_missed(interval: Interval, ways: Sequence[Missed], alpha: float) -> Interval:
    """Raise upper bounds by what may have been missed of the values, in each of some ways; the highest holds."""
    found = [_allowing(interval, missed, alpha) for missed in ways]
    errors, upper = (np.max(columns, axis=0) for columns in zip(*found, strict=True))
    return interval._replace(standard_errors=errors, upper=upper)


def _allowing(interval: Interval, missed: Missed, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Return standard errors (k,) and upper bounds (k,) with what may have been missed.

    Its variance joins that of the episodes, and its skewness comes on top (Cornish & Fisher 1938). Episodes that had no
    part in choosing the policy are as often lucky as not: what is expected beyond them counts up to what so much luck
    may come to, and the rest says that the policy goes where rates are not those of the prior.
    """
    z = float(scipy.stats.norm.ppf(1 - alpha))
    total = interval.standard_errors**2 + missed.variance
    errors = np.sqrt(total)
    skewness = np.divide(np.maximum(missed.third, 0), total, out=np.zeros_like(total), where=total > 0)
    expected = np.clip(missed.expected, 0, z * np.sqrt(missed.variance))
    beyond = expected + z * (errors - interval.standard_errors) + (z**2 - 1) / 6 * skewness
    return errors, interval.upper + beyond


def visits_allowed_for(problem: Problem, policy: Policy, method: Method) -> FloatArray | None:
    """(S A,) visits of a policy, if what was missed there is for a method to allow for: finite-sample bounds do."""
    return None if method.guarantee(problem) == "finite-sample" else visits_of(problem, policy)


def visits_of(problem: Problem, policy: Policy) -> FloatArray | None:
    """(S A,) how often a policy comes to each pair, by tables of the log; None where states are not finite."""
    n_states, n_actions = problem.dataset.n_states, problem.dataset.n_actions
    if n_states is None:
        return None
    found = Refits.of(problem, policy, Tabular()).occupancy()
    shown = found.counts > 0
    pair = (found.states * n_actions + found.actions)[shown]
    return np.asarray(np.bincount(pair, found.occupancy[shown], n_states * n_actions), np.float64)
