"""Linear programs with few rows, by the simplex method: solved several times while a general solver is being called.

A basis is believed only if both sides of the program agree on it, computed anew from the given numbers. Where they do
not, nothing is returned, and a general solver is to be asked.
"""

from typing import NamedTuple

import numpy as np

from checkrein.base.arrays import FloatArray, IntArray

PIVOTS = 40  # for each row: who needs more is circling
TINY = 1e-11  # relative to the program's own numbers, which should be about one: less is nothing
EXACT = 1e-10  # how closely both sides must agree
TRACE = 1e-9  # by which right sides are larger where the basis is sought


class Optimum(NamedTuple):
    """The solution of a linear program, and of its dual."""

    x: FloatArray  # (n,)
    y: FloatArray  # (r,)


def minimise(costs: FloatArray, matrix: FloatArray, right: FloatArray) -> Optimum | None:
    """Return the least costs @ x over {matrix @ x = right, x >= 0}; None where it is not found, or not proven.

    The search is for right sides a trace larger: no two rows are then as tight, which keeps it from circling, and of
    several dual solutions it finds the one for limits a trace wider, which charges the least.

    costs: (n,); matrix: (r, n); right: (r,), not negative
    """
    r, n = matrix.shape
    tableau = np.zeros((r + 1, n + r + 1))  # the last row: reduced costs; then r columns that must go, and the right
    traced = right + TRACE * np.arange(1, r + 1) / r
    tableau[:r, :n], tableau[:r, n : n + r], tableau[:r, -1] = matrix, np.eye(r), traced
    tableau[r, :n], tableau[r, -1] = -matrix.sum(axis=0), -traced.sum()
    basis = np.arange(n, n + r)
    if not _improve(tableau, basis, n) or tableau[r, -1] < -TINY:
        return None
    if (basis >= n).any():  # rows that say the same
        return None
    tableau[r] = 0.0
    tableau[r, :n] = costs
    tableau[r] -= costs[basis] @ tableau[:r]
    return _proven(costs, matrix, right, basis) if _improve(tableau, basis, n) else None


def _improve(tableau: FloatArray, basis: IntArray, n: int) -> bool:
    """Pivot until no reduced cost of the first n columns is negative; False where that does not end."""
    r = len(basis)
    for _ in range(PIVOTS * r):
        entering = int(np.argmin(tableau[r, :n]))
        if tableau[r, entering] >= -TINY:
            return True
        column = tableau[:r, entering]
        able = column > TINY
        if not able.any():  # unbounded
            return False
        ratios = np.divide(tableau[:r, -1], column, out=np.full(r, np.inf), where=able)
        _pivot(tableau, basis, int(np.argmin(ratios)), entering)
    return False


def _pivot(tableau: FloatArray, basis: IntArray, row: int, column: int) -> None:
    tableau[row] /= tableau[row, column]
    others = tableau[:, column].copy()
    others[row] = 0.0
    tableau -= np.outer(others, tableau[row])
    basis[row] = column


def _proven(costs: FloatArray, matrix: FloatArray, right: FloatArray, basis: IntArray) -> Optimum | None:
    """Solve for both sides of a basis anew; None unless each keeps its own conditions."""
    chosen = matrix[:, basis]
    try:
        inside, y = np.linalg.solve(chosen, right), np.linalg.solve(chosen.T, costs[basis])
    except np.linalg.LinAlgError:
        return None
    if inside.min() < -TRACE or (costs - y @ matrix).min() < -EXACT * (1 + np.abs(y).max()):
        return None
    x = np.zeros(costs.size)
    x[basis] = np.maximum(inside, 0.0)
    return Optimum(x, np.asarray(y, np.float64))
