"""Empirical Bayes for how often an event follows each pair of state and action.

A pair that was logged 40 times without the event may still show it once in a hundred. Each pair's rate is taken for a
draw from a prior whose mean and strength the whole log suggests (Robbins 1956; Efron & Morris 1975). The mean is that
of all pairs, of the pair's state, of its action, of actions that are chosen about as often where they are (who knows a
danger avoids it), or of the states that it leads to (danger lies in places). No single choice of mean and strength is
believed: all are kept, each by the beta-binomial likelihood of the log.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy  # its parts are loaded when first used
from scipy import sparse

from checkrein.base.arrays import BoolArray, FloatArray, IntArray

LOCAL = (1.0, 10.0, 100.0)  # rows that the mean of all pairs counts for in a local one
CHOSEN = (0.02, 0.05, 0.15, 0.4)  # how often an action is chosen in its state: ends of classes
STRENGTHS = tuple(np.geomspace(0.03, 3000.0, 11))  # rows that a prior counts for
STEPS = 30  # of the search for what states contribute
LEAST, MOST = 0.01, 40  # priors less likely than so much of the likeliest are left out, and all but so many
NOTHING = 1e-9
REMEMBERED, BLOCK = 20_000, 1 << 19  # pairs: of more, beliefs are computed when asked for, so many numbers at once


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows that say what follows."""

    pair: IntArray  # (n,)
    following: IntArray  # (n,) -1 where the episode ended
    weights: FloatArray  # (n,)
    n_states: int
    n_actions: int

    @cached_property
    def counts(self) -> FloatArray:
        """(S A,) how many each pair has."""
        return np.asarray(np.bincount(self.pair, self.weights, self.n_states * self.n_actions), np.float64)

    @cached_property
    def seen(self) -> IntArray:
        """(p,) the pairs that have any."""
        return np.flatnonzero(self.counts > 0)

    @cached_property
    def counts_seen(self) -> FloatArray:
        """(p,) how many these have."""
        return np.asarray(self.counts[self.seen])

    def means(self, group: IntArray, columns: FloatArray) -> FloatArray:
        """(n, k) of each row, the mean of columns (n, k) over the rows of its group (n,)."""
        total = np.bincount(group, self.weights)
        sums = np.stack([np.bincount(group, self.weights * column) for column in columns.T], axis=1)
        return np.asarray((sums / np.where(total > 0, total, 1.0)[:, None])[group])


class Believed(NamedTuple):
    """What some of K priors make of each pair's rate."""

    shift: FloatArray  # (K, S A) posterior mean less the share of the pair's own rows
    variance: FloatArray  # (K, S A) posterior variance beyond that of the rows' own share
    third: FloatArray  # (K, S A) third central moment of the posterior
    prior: FloatArray  # (K, S A) what of the posterior mean is the prior's


class Visited(NamedTuple):
    """The same, summed over the pairs that a policy comes to: the shift, its moments, and what is the prior's."""

    shift: FloatArray  # (K,)
    variance: FloatArray  # (K,)
    third: FloatArray  # (K,)
    prior: FloatArray  # (K,)


@dataclass(frozen=True, eq=False)
class Posterior:
    """What is believed of each pair's rate, by each of K priors; of many pairs it is computed when asked for."""

    weights: FloatArray  # (K,) of the priors
    means: Sequence[FloatArray]  # K times (p,), of the pairs that were seen; several priors share one
    strengths: FloatArray  # (K,)
    happened: IntArray  # (j,) those of them with events
    events: FloatArray  # (j,) how many
    counts: FloatArray  # (p,)
    seen: IntArray  # (p,) which of the pairs they are
    size: int  # S A
    uncertainty: float  # all pairs share the prior's scale, which is known up to this relative variance
    informed: float  # pairs that would have shown the event at its overall rate: what the priors were learned from

    @property
    def shift(self) -> FloatArray:
        """(S A,) posterior mean less the share of the pair's own rows, over all priors."""
        return np.asarray(sum(self.weights[priors] @ one.shift for priors, one in self._blocks()))

    def visited(self, visits: FloatArray) -> Visited:
        """Sum over pairs that a policy comes to so often (S A,)."""
        found = [
            (one.shift @ visits, one.variance @ visits**2, one.third @ visits**3, one.prior @ visits)
            for _, one in self._blocks()
        ]
        return Visited(*(np.concatenate(columns) for columns in zip(*found, strict=True)))

    def _blocks(self) -> Iterator[tuple[slice, Believed]]:
        """Yield all priors at once where that is remembered, else a few at a time."""
        if self.size <= REMEMBERED:
            yield slice(None), self._remembered
            return
        few = max(1, BLOCK // self.size)
        for begin in range(0, len(self.weights), few):
            priors = slice(begin, begin + few)
            yield priors, self._believed(priors)

    @cached_property
    def _remembered(self) -> Believed:
        return self._believed(slice(None))

    def _believed(self, priors: slice) -> Believed:
        n, x, seen, size = self.counts, np.zeros_like(self.counts), self.seen, self.size
        x[self.happened] = self.events
        mean, strength = np.stack(self.means[priors]), self.strengths[priors, None]
        a, b = x + strength * mean, n - x + strength * (1 - mean)
        total, own = a + b, x / n
        variance = a * b / (total**2 * (total + 1))
        third = 2 * (b - a) * variance / (total * (total + 2))  # of a beta distribution
        return Believed(
            _everywhere(a / total - own, seen, size),
            _everywhere(np.maximum(variance - own * (1 - own) / n, 0.0), seen, size),
            _everywhere(third, seen, size),
            _everywhere(strength * mean / total, seen, size),
        )


def posterior(rows: Rows, happens: BoolArray) -> Posterior:
    """Return what to believe of an event, which happened in these rows (n,) and in some others did not."""
    size, counts, seen, n = rows.n_states * rows.n_actions, rows.counts, rows.seen, rows.counts_seen
    events = np.asarray(np.bincount(rows.pair, rows.weights * happens, size), np.float64)
    x, overall = events[seen], float(events.sum() / counts.sum())
    found: list[tuple[float, FloatArray, float]] = []
    likeliest = len(STRENGTHS) // 2
    for every in _prior_means(rows, happens, counts, events):
        mean = np.clip(every[seen], 1e-3 * overall, 1 - 1e-3 * (1 - overall))
        known = _around_the_likeliest(x, n, mean, likeliest)
        likeliest = max(known, key=lambda k: known[k])
        found += [(known[k], mean, STRENGTHS[k]) for k in sorted(known)]
    likelihood = np.array([one[0] for one in found])
    weights = np.exp(likelihood - likelihood.max())
    weights = np.where(weights < LEAST, 0.0, weights)
    kept = np.argsort(-np.round(weights, 6), kind="stable")[: min(MOST, np.count_nonzero(weights))]  # ties by order
    return Posterior(
        weights[kept] / weights[kept].sum(),
        [found[k][1] for k in kept],
        np.array([found[k][2] for k in kept]),
        np.flatnonzero(x),
        x[x != 0],
        n,
        seen,
        size,
        (1 - overall) / float(x.sum()),
        float(-np.expm1(-n * min(overall, 1 - overall)).sum()),
    )


def _everywhere(values: FloatArray, seen: IntArray, size: int) -> FloatArray:
    table = np.zeros((len(values), size))
    table[:, seen] = values
    return table


def _prior_means(rows: Rows, happens: BoolArray, counts: FloatArray, events: FloatArray) -> Iterator[FloatArray]:
    """Yield prior means (S A,) of each kind; a pair's own rows have no part in its own."""
    overall = float(events.sum() / counts.sum())
    yield np.full(counts.size, overall)
    x, n = (column.reshape(rows.n_states, rows.n_actions) for column in (events, counts))
    left = n.sum(axis=1, keepdims=True)
    chosen = np.digitize(n / np.where(left > 0, left, 1.0) + NOTHING, CHOSEN)
    state, action = np.indices(n.shape)
    for group in (state, action, chosen):
        others = [np.bincount(group.ravel(), column.ravel())[group] - column for column in (x, n)]
        for m in LOCAL:
            yield ((others[0] + m * overall) / (others[1] + m)).ravel()
    yield from _successor_means(rows, happens, counts, events)


def _successor_means(rows: Rows, happens: BoolArray, counts: FloatArray, events: FloatArray) -> Iterator[FloatArray]:
    """Yield P h: what the states that a pair leads to contribute, h by EM with the overall rate worth m rows."""
    calm = ~happens & (rows.following >= 0)  # where the event led is not where the pair leads
    leads = sparse.csr_array(
        (rows.weights[calm], (rows.pair[calm], rows.following[calm])), shape=(counts.size, rows.n_states)
    )
    leads.sum_duplicates()
    total = np.asarray(leads.sum(axis=1)).ravel()
    if not total.any():
        return
    overall = float(events.sum() / counts.sum())
    at = np.repeat(np.arange(counts.size), np.diff(leads.indptr))
    to, share = leads.indices, leads.data / total[at]
    rows_at = counts[at] * share
    reached = np.bincount(to, rows_at, rows.n_states)
    for m in LOCAL:
        h = np.full(rows.n_states, overall)
        for _ in range(STEPS):
            f = np.bincount(at, share * h[to], counts.size)
            part = h[to] * share * np.divide(events, f, out=np.zeros_like(f), where=f > 0)[at]
            explained = np.bincount(to, part, rows.n_states)
            h = (explained + m * overall) / (reached + m)
        without = (explained[to] - part + m * overall) / np.maximum(reached[to] - rows_at + m, NOTHING)
        yield np.where(total > 0, np.bincount(at, share * without, counts.size), overall)


def _around_the_likeliest(x: FloatArray, n: FloatArray, mean: FloatArray, start: int) -> dict[int, float]:
    """Return log-likelihoods by strength: from where to start up to the likeliest, and on both sides of it.

    There is one peak; beyond it, nothing is looked at that comes after what counts for nothing.
    """
    known: dict[int, float] = {}

    def at(k: int) -> float:
        if k not in known:
            known[k] = _log_likelihood(x, n, STRENGTHS[k] * mean, STRENGTHS[k])
        return known[k]

    for step in (1, -1):
        k = start
        while 0 <= k < len(STRENGTHS) and at(k) >= max(known.values()) + np.log(LEAST):
            k += step
    return known


def _log_likelihood(x: FloatArray, n: FloatArray, a: FloatArray, strength: float) -> float:
    """Return the beta-binomial's of x events in n rows, up to what does not depend on the prior."""
    gammaln, b, some = scipy.special.gammaln, strength - a, x > 0
    return float(
        (gammaln(x[some] + a[some]) - gammaln(a[some])).sum()
        + (gammaln(n - x + b) - gammaln(b) - gammaln(n + strength) + gammaln(strength)).sum()
    )
