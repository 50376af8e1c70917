"""The linear program over the policies found so far: their best mixture and its prices."""

from typing import NamedTuple

import numpy as np
import scipy  # its parts are loaded when first used

from checkrein.base.arrays import FloatArray, frozen
from checkrein.base.errors import CheckreinError
from checkrein.online.simplex import minimise

EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
NOISE = 1e-9  # a smaller relative spread is rounding
NEGLIGIBLE = 1e-6  # a cost whose charge varies by less than this share of the largest
DUST = 1e-12  # a smaller weight is none


class Mixture(NamedTuple):
    """The best mixture of the policies found, against the worst multipliers within bounds."""

    weights: FloatArray  # (t,)
    prices: FloatArray  # (m,) the multipliers that answer it
    value: float  # its objective plus the worst multipliers times its violation


def best_mixture(objectives: FloatArray, violations: FloatArray, bounds: FloatArray) -> Mixture:
    """Minimise the mixture's objective, with violations charged at `bounds` per unit of the worst one.

    Where a mixture meets all limits and the bounds exceed the prices, it meets them.

    objectives: (t,); violations: (t, m); bounds: (m,) of {multipliers >= 0, sum_i multipliers_i / bounds_i <= 1}
    """
    t, m = violations.shape
    least = float(objectives.min())
    if m == 0:
        weights = (np.arange(t) == np.argmin(objectives)).astype(np.float64)
        return Mixture(frozen(weights), frozen(np.zeros(0)), least)
    size, units = sizes(objectives, violations, bounds)
    reach = size / bounds / units  # the last variable is the worst violation, in the unit that makes this at most one
    charge = np.append((objectives - least) / size, 1.0 / reach.max())
    excess = np.hstack([violations.T / units[:, None], -(reach / reach.max())[:, None]])
    shares, marginals = _solved(charge, excess)
    weights = np.where(shares[:-1] > DUST, shares[:-1], 0.0)
    prices = np.maximum(-marginals, 0.0) * size / units
    return Mixture(frozen(weights / weights.sum()), frozen(prices), float(charge @ shares * size + least))


def _solved(charge: FloatArray, excess: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the least charge @ x over {excess @ x <= 0, x >= 0}, all but the last x summing to one; and marginals."""
    m, n = excess.shape
    one = np.append(np.ones(n - 1), 0.0)
    rows = np.block([[excess, np.eye(m)], [one[None], np.zeros((1, m))]])
    found = minimise(np.append(charge, np.zeros(m)), rows, np.append(np.zeros(m), 1.0))
    if found is not None:
        return found.x[:n], found.y[:m]
    asked = {"A_ub": excess, "b_ub": np.zeros(m), "A_eq": one[None], "b_eq": [1.0]}
    solver = scipy.optimize.linprog(charge, **asked, method="highs", options=EXACT)
    if not solver.success:
        raise CheckreinError(f"the linear program over {n - 1} policies was not solved: {solver.message}")
    return np.asarray(solver.x), np.asarray(solver.ineqlin.marginals)


def sizes(objectives: FloatArray, violations: FloatArray, bounds: FloatArray) -> tuple[float, FloatArray]:
    """Return units in which costs vary by about one, so that the solver's tolerances are relative."""
    units = np.array([_size(column) for column in violations.T])
    charges = bounds * units
    units = np.maximum(charges, NEGLIGIBLE * charges.max(initial=0.0)) / bounds  # one that never varies is no unit
    return max(_size(objectives), NEGLIGIBLE * float((bounds * units).min(initial=np.inf))), units


def _size(column: FloatArray) -> float:
    spread, largest = float(np.ptp(column)), float(np.abs(column).max())
    return spread if spread > NOISE * largest else largest or 1.0
