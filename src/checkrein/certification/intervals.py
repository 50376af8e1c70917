"""One-sided bounds on the mean of independent units, of one column each; (u, k) in, (k,) out.

Units are episodes, or clusters of them: `Episodes.unit_means` and `Episodes.unit_weights` make the one of the other.

Asymptotic: Student's t, and the studentised bootstrap, which allows for skewness. Finite-sample: empirical Bernstein
(Maurer & Pontil 2009) and betting (Waudby-Smith & Ramdas 2024); these take a declared range, never the sample's own.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import scipy  # its parts are loaded when first used

from checkrein.base.arrays import FloatArray, IntArray
from checkrein.base.errors import ArgumentError
from checkrein.evaluation.estimate import standard_errors

STAKE = 0.75  # of what could be lost in one bet
NO_SPREAD = 1e-9  # of a standard error: a replicate with less, of values that vary, shows none
STILL = 1e-12  # of an estimate: a standard error this small is rounding
BEYOND = 10  # replicates that must lie beyond a quantile which is read off them
TOO_FAR = 1e4  # standard errors: a bound beyond is none
HALVINGS = 50  # of an interval in search of a bound


class Interval(NamedTuple):
    """What is believed of each mean, and how far from above and from below, each by itself."""

    estimates: FloatArray  # (k,)
    standard_errors: FloatArray  # (k,)
    lower: FloatArray  # (k,)
    upper: FloatArray  # (k,)

    def widened(self, factor: float) -> "Interval":
        """Return it with every standard error, and so every distance to a bound, that many times as large."""
        estimates, errors, lower, upper = self
        down, up = factor * (estimates - lower), factor * (upper - estimates)
        return Interval(estimates, factor * errors, estimates - down, estimates + up)


def student(estimates: FloatArray, errors: FloatArray, weights: FloatArray, alpha: float) -> Interval:
    """Trust the normal limit, with as many degrees of freedom as there are units of equal weight, less one."""
    width = errors * _quantile(weights, alpha)
    return Interval(estimates, errors, estimates - width, estimates + width)


def johnson_t(influence: FloatArray, estimates: FloatArray, weights: FloatArray, alpha: float) -> Interval:
    """Trust the normal limit and the first correction of it, by the skewness of (u, k): wider where a tail is long.

    (Johnson 1978. Rare costs make an estimate and its standard error small together.)
    """
    plain = student(estimates, standard_errors(influence, weights), weights, alpha)
    pull = weights[:, None] * influence
    squares = (pull**2).sum(axis=0)
    tilt = np.divide((pull**3).sum(axis=0), squares**1.5, out=np.zeros_like(squares), where=squares > 0)
    beyond = plain.standard_errors * (1 + 2 * _quantile(weights, alpha) ** 2) / 6
    return plain._replace(
        lower=plain.lower - beyond * np.maximum(-tilt, 0), upper=plain.upper + beyond * np.maximum(tilt, 0)
    )


def _quantile(weights: FloatArray, alpha: float) -> float:
    return float(scipy.stats.t.ppf(1 - alpha, max(weights.sum() ** 2 / (weights @ weights) - 1, 1.0)))


def studentised(
    estimates: FloatArray, errors: FloatArray, replicates: FloatArray, replicate_errors: FloatArray, alpha: float
) -> Interval:
    """Measure each replicate's distance (B, k) in its own standard errors, and allow for what these show.

    `alpha` is that of all columns together: each is given the same level, the largest at which all hold at once in
    the replicates. (Beran 1988; never less than Bonferroni's, and more where columns move together.)
    """
    varies = errors > STILL * np.abs(estimates)
    if not varies.any():
        return Interval(estimates, errors, estimates, estimates)
    theirs = np.maximum(replicate_errors, NO_SPREAD * errors)  # one without spread is as far away as can be
    distances = np.divide(replicates - estimates, theirs, out=np.zeros_like(replicates), where=varies)
    up, down = (_farthest(side, _joint_level(side[:, varies], alpha)) for side in (distances, -distances))
    width_up, width_down = (errors * np.clip(np.where(w > TOO_FAR, np.inf, w), 0, None) for w in (up, down))
    return Interval(estimates, errors, estimates - width_down, estimates + width_up)


def bootstrap_t(scores: FloatArray, weights: FloatArray, drawn: FloatArray, alpha: float) -> Interval:
    """Bound the weighted means of (u, k) by the studentised bootstrap, units drawn (B, u) times."""
    return bootstraps_t([scores], weights, [drawn], alpha)[0]


def bootstraps_t(
    several: Sequence[FloatArray],
    weights: FloatArray,
    blocks: Iterable[FloatArray],
    alpha: float,
    *,
    drawn: IntArray | None = None,
) -> list[Interval]:
    """Bound the means of several (u, k), each for itself, by the same draws (b, g), of which there may be many blocks.

    drawn: (g,) the units that stand for all that are like them; None: each for itself
    """
    chosen = slice(None) if drawn is None else drawn
    parts = [[_resampled(scores[chosen], weights[chosen], block) for scores in several] for block in blocks]
    found = []
    for scores, mine in zip(several, zip(*parts, strict=True), strict=True):
        replicates, errors = (np.concatenate(columns) for columns in zip(*mine, strict=True))
        values = weights @ scores / weights.sum()
        found.append(studentised(values, standard_errors(scores - values, weights), replicates, errors, alpha))
    return found


def _resampled(scores: FloatArray, weights: FloatArray, drawn: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the weighted means (B, k) of (u, k), units drawn (B, u) times, and their standard errors (B, k)."""
    counted = drawn * weights
    total = counted.sum(axis=1, keepdims=True)
    replicates = counted @ scores / total
    squared = counted * weights
    squares = (
        squared @ scores**2 - 2 * replicates * (squared @ scores) + replicates**2 * squared.sum(axis=1, keepdims=True)
    )
    return replicates, np.sqrt(np.maximum(squares, 0)) / total


def _farthest(distances: FloatArray, level: float) -> FloatArray:
    """(k,) minus the quantiles of distances (B, k); beyond what replicates show, as far as a normal tail of the width.

    What lies so far out of 1000 replicates that hardly any does is not read off them.
    """
    shown = max(level, BEYOND / len(distances))
    stretch = float(scipy.stats.norm.ppf(level) / scipy.stats.norm.ppf(shown))
    return np.asarray(-stretch * np.quantile(distances, shown, axis=0))


def _joint_level(distances: FloatArray, alpha: float) -> float:
    """Return the level of each column at which the lowest `alpha` of replicates lie under any of their quantiles."""
    count, k = distances.shape
    ranks = (scipy.stats.rankdata(distances, axis=0) - 0.5) / count
    return float(np.clip(np.quantile(ranks.min(axis=1), alpha), alpha / k, alpha))


def bernstein(scores: FloatArray, low: FloatArray, high: FloatArray, alpha: float) -> Interval:
    """Bound means of values known to lie in [low, high] (k,), from two or more (Maurer & Pontil 2009, Theorem 4)."""
    n = len(scores)
    mean, variance = scores.mean(axis=0), scores.var(axis=0, ddof=1)
    log = np.log(2 / alpha)
    width = np.sqrt(2 * variance * log / n) + 7 * (high - low) * log / (3 * (n - 1))
    return Interval(mean, np.sqrt(variance / n), np.maximum(mean - width, low), np.minimum(mean + width, high))


def betting(scores: FloatArray, low: FloatArray, high: FloatArray, alpha: float) -> Interval:
    """Bound means of values known to lie in [low, high] (k,): a mean is refuted by winning against it."""
    scaled = (scores - low) / (high - low)
    upper = np.array([1 - _refuted_below(1 - column, alpha) for column in scaled.T])
    lower = np.array([_refuted_below(column, alpha) for column in scaled.T])
    mean, errors = scores.mean(axis=0), scores.std(axis=0, ddof=1) / np.sqrt(len(scores))
    return Interval(mean, errors, low + lower * (high - low), low + upper * (high - low))


def _refuted_below(values: FloatArray, alpha: float) -> float:
    """Return the largest mean that bets on a greater one refute, of values in [0, 1] (or above 0, with no end)."""
    n = values.size
    counts = np.arange(1, n + 1)
    means = (0.5 + np.cumsum(values)) / (1 + counts)
    variances = (0.25 + np.cumsum((values - means) ** 2)) / (1 + counts)
    before = np.append(0.25, variances[:-1])  # each bet knows only what came before
    bets = np.sqrt(2 * np.log(1 / alpha) / (n * before))

    def refuted(mean: float) -> bool:
        gains = np.log1p(np.minimum(bets, STAKE / mean) * (values - mean))
        return bool(np.maximum.accumulate(np.cumsum(gains))[-1] >= np.log(1 / alpha))

    low, high = 0.0, float(values.mean())
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if middle <= 0 or not refuted(middle):
            high = middle
        else:
            low = middle
    return low


def require_inside(scores: FloatArray, low: FloatArray, high: FloatArray, names: list[str]) -> None:
    """Raise where an episode lies outside of what was declared: then the declaration is wrong, and so is the bound."""
    for column, name in enumerate(names):
        for value, wrong in ((scores[:, column].min(), "below"), (scores[:, column].max(), "above")):
            slack = 1e-9 * (high[column] - low[column])
            if value < low[column] - slack or value > high[column] + slack:
                raise ArgumentError(
                    f"an episode has a (weighed) sum of {value:.6g} of {name!r}, {wrong} the declared range "
                    f"[{low[column]:.6g}, {high[column]:.6g}]: declare a range that every episode keeps"
                )
