"""Moments that are zero where an assumption holds: how far the strongest lies from zero, counted over units."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy  # its parts are loaded when first used

from checkrein.base.arrays import BoolArray, FloatArray, IntArray
from checkrein.certification.given import Known
from checkrein.problem import Episodes

SUSPECT = 0.01  # a p-value below is worth saying
CLEAR = 1e-4  # one below forbids a pass
LEAST = 15.0  # effective units: what rests on fewer is not tested
PARTS = 4
STILL = 1e-12  # relative size of rounding: less is no variation
AT_ONCE = 1 << 24  # numbers: of more, columns are held against their means in turns


class Compared(NamedTuple):
    """What must not depend on what."""

    outcomes: FloatArray  # (n, k)
    own: list[FloatArray]  # j times (n, k): each column for the outcome in its place
    shared: FloatArray  # (n, i): each for all outcomes


Build = Callable[[BoolArray], Compared]


class Tested(NamedTuple):
    """Scores of moments (m,), in standard errors, and their p-values; NaN where too few units tell."""

    scores: FloatArray
    p_values: FloatArray

    @property
    def comparisons(self) -> int:
        """How many could be tested."""
        return int(np.isfinite(self.p_values).sum())

    @property
    def adjusted(self) -> FloatArray:
        """(m,) p-values of each when all are looked at (Bonferroni)."""
        return np.minimum(self.comparisons * self.p_values, 1.0)

    @property
    def strongest(self) -> int:
        """The place of the smallest p-value."""
        return int(np.nanargmin(self.p_values))

    @property
    def p(self) -> float:
        """The p-value of all together."""
        return float(self.adjusted[self.strongest])


def measured(contributions: FloatArray, variances: FloatArray | None = None) -> Tested:
    """Test that sums over units (u, m) are zero; each unit's part has mean zero and is independent of the others.

    The sum is measured by the root of the parts' squares. Student's degrees of freedom are the effective number of
    units, as many as would make the sum of squares with equal shares, so that a few large parts show nothing.

    variances: (m,) of the sums, where they are known: squares that happen to be less are not believed
    """
    largest = np.abs(contributions).max(axis=0, initial=0.0)
    parts = contributions / np.where(largest > STILL, largest, 1.0)
    squares = (parts**2).sum(axis=0)
    fourth = (parts**4).sum(axis=0)
    effective = np.divide(squares**2, fourth, out=np.zeros_like(fourth), where=(fourth > 0) & (largest > STILL))
    told = effective >= LEAST
    if variances is not None:
        squares = np.maximum(squares, variances / np.where(largest > STILL, largest, 1.0) ** 2)
    scores = np.divide(parts.sum(axis=0), np.sqrt(squares), out=np.full_like(squares, np.nan), where=told)
    p_values = 2 * scipy.stats.t.sf(np.abs(scores), np.maximum(effective, 2.0) - 1)
    return Tested(scores, np.asarray(p_values))


def orthogonal(episodes: Episodes, used: BoolArray, given: Known, build: Build) -> FloatArray:
    """(u, j k + i k) sums over each unit's rows of (outcome - its mean given what is known) (instrument - its mean).

    The mean is zero where outcomes do not depend on instruments, given what is known, whatever is estimated: units fall
    into four parts, and for each of them the outcome's mean is estimated on a second, the instrument's on a third, and
    all that both are made of on a fourth (Neyman orthogonality; Chernozhukov et al. 2018, with a part for each
    nuisance, without which errors of the two means would be correlated in every small cell).

    used: (n,) the rows whose outcome is known
    build: makes what is compared from the rows (n,) that it may learn from
    """
    part = parts_of(episodes, PARTS)
    sums = np.zeros((len(episodes), 0))
    for one in range(PARTS):
        roles = [used & (part == (one + i) % PARTS) for i in range(PARTS)]
        if not all(rows.any() for rows in roles):
            return np.zeros((episodes.n_units, 0))
        places, found = _judged(episodes, roles, given, build)
        if sums.shape[1] == 0:
            sums = np.zeros((len(episodes), found.shape[1]))
        sums[places] = found
    return episodes.by_unit(sums)


def _judged(episodes: Episodes, roles: Sequence[BoolArray], given: Known, build: Build) -> tuple[IntArray, FloatArray]:
    """Return some episodes (e,) and their sums (e, j k + i k) over the rows of one part, by the three others."""
    judged, first, second, other = roles
    outcomes, own, shared = build(other)
    k = outcomes.shape[1]
    expected, known = given.mean(first, outcomes)
    rows, also_known = np.flatnonzero(judged & known), np.ones_like(known)
    left = episodes.weights[episodes.episode[rows], None] * (outcomes[rows] - expected[rows])
    del outcomes, expected
    right = []
    for columns in _together([*own, shared]):
        usual, also_known = given.mean(second, columns)
        right.append(columns[rows] - usual[rows])
    kept = also_known[rows]
    rows, left, apart = rows[kept], left[kept], np.hstack(right)[kept]
    mine, theirs = apart[:, : len(own) * k].reshape(rows.size, len(own), k), apart[:, len(own) * k :]
    products = np.concatenate([mine * left[:, None, :], theirs[:, :, None] * left[:, None, :]], axis=1)
    products = products.reshape(rows.size, (len(own) + shared.shape[1]) * k)
    if rows.size == 0:
        return rows, products
    episode = episodes.episode[rows]
    begins = np.flatnonzero(np.diff(episode, prepend=-1))
    return episode[begins], np.add.reduceat(products, begins, axis=0)


def _together(columns: list[FloatArray]) -> list[FloatArray]:
    """Return all columns as one array, but where that would be a very large one."""
    return [np.hstack(columns)] if sum(one.size for one in columns) <= AT_ONCE else columns


def parts_of(episodes: Episodes, count: int) -> IntArray:
    """(n,) the part of each row: whole units, by chance, the same each time."""
    return (np.random.default_rng(0).permutation(episodes.n_units) % count)[episodes.unit][episodes.episode]
