"""What rare events the log may have missed where a policy goes.

What is shrunk are behavior's TD errors: by how much a row's cost and what follows it exceed what was to be expected of
its state, so that a rare move into a state where the cost is paid later counts like a rare cost. Levels are events,
each at or above a threshold, of which the sum is made: costs need not be 0 or 1. Of levels that are neither seldom
reached nor seldom missed the rows themselves say enough; the others are left to `event_rates`.

That takes pairs for alike. `one_more` does not: it adds one event to those that were logged, rare or not, as intervals
for weighted sums of rare counts do (Fay & Feuer 1997; Tiwari et al. 2006).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import sparse

from checkrein.base.arrays import BoolArray, FloatArray, IntArray
from checkrein.evaluation.event_rates import Posterior, Rows, posterior
from checkrein.problem import Episodes, Problem

LEVELS = 8  # of TD errors, equally far apart
RARE = 0.1  # of all rows: what happens in more of them, and fails to in more, shows its own spread
NOTHING, SETTLED = 1e-9, 1e-6


class Missed(NamedTuple):
    """What may have been missed of some values (k,) of a policy."""

    expected: FloatArray  # (k,) posterior mean less what the rows show
    variance: FloatArray  # (k,) beyond the sampling variance
    third: FloatArray  # (k,) central moment
    informed: FloatArray  # (k,) pairs that say how much pairs differ, the fewest of all levels; 0 where nothing is rare

    @classmethod
    def one_more(cls, event: FloatArray) -> "Missed":
        """Return what it is to have missed one event, which would have come to (k,)."""
        return cls(event, event**2, event**3, np.zeros_like(event))


class Level(NamedTuple):
    """A rare event, and how much more it costs than what is one level below."""

    step: float
    rates: Posterior


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """The rare events of a problem's log, for the objective and every constraint."""

    levels: tuple[tuple[Level, ...], ...]  # 1 + m
    counts: FloatArray  # (S A,) rows of each pair
    sizes: FloatArray  # (1 + m,) of an event: how far apart the rows of a pair are

    @classmethod
    def of(cls, problem: Problem) -> "Shrinkage":
        """Find what is rare in a problem's log of finite states; computed once."""
        return problem.once("shrinkage", lambda: _shrink(problem))

    @property
    def shift(self) -> FloatArray:
        """(S A, 1 + m) what is to be added to the mean of each pair's rows."""
        found = np.zeros((self.counts.size, len(self.levels)))
        for i, levels in enumerate(self.levels):
            for step, rates in levels:
                found[:, i] += step * rates.shift
        return found

    def both(self, visits: FloatArray, values: slice = slice(None), *, chosen: bool = False) -> tuple[Missed, Missed]:
        """Return what may have been missed, if pairs are alike, and if they are not; chosen: as in `one_more`."""
        return self.missed(visits, values), self.one_more(visits, values, chosen=chosen)

    def missed(self, visits: FloatArray, values: slice = slice(None)) -> Missed:
        """Return what may have been missed of a policy that comes to pairs (S A,) so often."""
        found = np.array([_missed(levels, visits) for levels in self.levels[values]])
        return Missed(*found.reshape(-1, len(Missed._fields)).T)

    def one_more(self, visits: FloatArray, values: slice = slice(None), *, chosen: bool = False) -> Missed:
        """Return what one event more would come to, for a policy that comes to pairs (S A,) so often.

        Each of a pair's rows weighs visits / count. Weights and sizes are averaged as they enter the variance, so that
        one pair which was seldom logged, and which the policy leans on, is not outweighed by many that tell nothing.

        chosen: whether the policy was learned from this very log: then it leans on pairs that were lucky in it, and the
            largest weights count for nearly all
        """
        seen = (self.counts > 0) & (visits > 0)
        weight = leading(visits[seen] / self.counts[seen], self.counts[seen], power=4 if chosen else 2)
        return Missed.one_more(weight * self.sizes[values])


def leading(weights: FloatArray, counts: FloatArray, *, power: int) -> float:
    """Return the mean of weights, each of so many rows, by a power of themselves: the higher, the larger."""
    powers = counts * weights**power
    total = powers.sum()
    return float(weights @ powers / total) if total > 0 else 0.0


def _missed(levels: tuple[Level, ...], visits: FloatArray) -> tuple[float, float, float, float]:
    expected = deviation = third = 0.0
    for step, rates in levels:
        shift, variance, third_moment, prior = rates.visited(visits)  # each (K,), by each prior
        mean = float(rates.weights @ shift)
        each = variance + prior**2 * rates.uncertainty + (shift - mean) ** 2
        expected += step * mean
        deviation += step * math.sqrt(rates.weights @ each)  # levels go together: their deviations add up
        third += step**3 * float(rates.weights @ third_moment)
    informed = min((level.rates.informed for level in levels), default=0.0)
    return expected, deviation**2, third, informed


def _shrink(problem: Problem) -> Shrinkage:
    log = Episodes.of(problem)
    known = np.flatnonzero((log.terminals | log.next_observed) & (log.weights[log.episode] > 0))
    n_states, n_actions = int(problem.dataset.n_states or 0), log.n_actions
    pair = (log.states * n_actions + log.actions)[known]
    following, weights = np.where(log.terminals, -1, log.next_states)[known], log.weights[log.episode][known]
    if problem.dataset.clusters is not None:
        weights = weights / _shared(log.unit[log.episode][known], log.episode[known], pair)
    rows = Rows(pair, following, weights, n_states, n_actions)
    costs = log.row_costs[known]
    sizes = np.abs(costs).max(axis=0, initial=0)
    td_errors = _td_errors(rows, _uncertain(rows, costs, sizes), log.continuation[known], log.horizon)
    levels = [
        tuple(
            Level(step, posterior(rows, happens)) for happens, step in _rare_levels(td_error, rows.weights, float(size))
        )
        for td_error, size in zip(td_errors.T, sizes, strict=True)
    ]
    return Shrinkage(tuple(levels), rows.counts, _event_sizes(rows, td_errors, sizes))


def _uncertain(rows: Rows, costs: FloatArray, sizes: FloatArray) -> FloatArray:
    """(n, k) costs; of those that never vary within a pair, what their state costs on average.

    One row tells what such a step costs (a dose, a price): only where it leads is left to be missed.
    """
    found = costs.copy()
    own, usual = rows.means(rows.pair, costs), rows.means(rows.pair // rows.n_actions, costs)
    fixed = np.abs(costs - own).max(axis=0, initial=0) <= NOTHING * sizes
    found[:, fixed] = usual[:, fixed]
    return found


def _event_sizes(rows: Rows, td_errors: FloatArray, sizes: FloatArray) -> FloatArray:
    """(k,) how far apart TD errors (n, k) above and below the mean of their pair are, as these add to the variance.

    Costs of 0 and 1 give 1, whatever their probability; costs that never vary within a pair give nothing.

    sizes: (k,) of the largest costs
    """
    beyond = td_errors - rows.means(rows.pair, td_errors)
    apart = np.zeros(len(sizes))
    for side in (beyond, -beyond):
        far = np.where(side > NOTHING * sizes, side, 0.0)
        squares = rows.weights @ far**2
        apart += np.divide(rows.weights @ far**3, squares, out=np.zeros_like(squares), where=squares > 0)
    return apart


def _shared(unit: IntArray, episode: IntArray, pair: IntArray) -> FloatArray:
    """(n,) how many episodes of a row's cluster come to its pair: together they count once."""
    visited = np.unique(np.stack([unit, pair, episode]), axis=1)
    _, first, count = np.unique(visited[:2], axis=1, return_index=True, return_counts=True)
    key, known = unit * (pair.max() + 1) + pair, visited[0, first] * (pair.max() + 1) + visited[1, first]
    return np.asarray(count[np.searchsorted(known, key)], np.float64)


def _td_errors(rows: Rows, costs: FloatArray, continuation: FloatArray, horizon: int) -> FloatArray:
    """(n, k) of each row by behavior's values: its cost and what follows, less what its state is worth.

    horizon: the steps that are looked ahead
    """
    state, ahead = rows.pair // rows.n_actions, rows.weights * continuation
    left = np.bincount(state, rows.weights, rows.n_states)
    shown = np.where(left > 0, left, 1.0)
    after = np.maximum(rows.following, 0)
    moves = sparse.csr_array((ahead / shown[state], (state, after)), shape=(rows.n_states,) * 2)
    sums = np.stack([np.bincount(state, rows.weights * cost, rows.n_states) for cost in costs.T], axis=1)
    immediate = sums / shown[:, None]
    values = np.zeros_like(immediate)
    for _ in range(horizon):
        before, values = values, immediate + moves @ values
        if np.allclose(values, before, rtol=SETTLED, atol=0):
            break
    return np.asarray(costs + continuation[:, None] * values[after] - values[state])


def _rare_levels(td_error: FloatArray, weights: FloatArray, size: float) -> Iterator[tuple[BoolArray, float]]:
    """Yield the rows that reach each rare level, and how far it is above the one before.

    size: of the largest cost
    """
    low, high = float(td_error.min(initial=np.inf)), float(td_error.max(initial=-np.inf))
    if high - low <= NOTHING * size:  # of rounding, or of no row at all
        return
    level = np.minimum((LEVELS * (td_error - low) / (high - low) + NOTHING).astype(np.int64), LEVELS - 1)
    mass = np.bincount(level, weights, LEVELS)
    means = np.bincount(level, weights * td_error, LEVELS) / np.where(mass > 0, mass, 1.0)
    reached = np.cumsum(mass[::-1])[::-1] / mass.sum()  # the share of rows at or above each level
    for before, here in pairwise(np.flatnonzero(mass > 0)):
        if min(reached[here], 1 - reached[here]) <= RARE:
            yield level >= here, float(means[here] - means[before])
