"""The worst that a factor outside the log can have made of what it shows, in finite states.

The marginal sensitivity model (Tan 2006): in each state, a hidden factor changes the odds of each action by at most a
factor `odds`, and may change what follows as well. What would follow an action that is given regardless of it then
has a density within [p + (1 - p) / odds, p + (1 - p) odds] of the one observed, p being how often behavior takes the
action in the state. The worst mean of an outcome takes the upper end for the worst 1 / (1 + odds) of what was observed
and the lower end for the rest (Dorn & Guo 2022). Applied to a cost and the worst value of the next state it is a robust
Bellman equation (Kallus & Zhou 2020; Bruns-Smith & Zhou 2023): the factor is drawn anew at each step.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
from scipy import sparse

from checkrein.base.arrays import FloatArray, IntArray
from checkrein.base.chain import DENSE_STATES, SparseChain
from checkrein.base.errors import DivergenceError
from checkrein.evaluation.tabular_refits import TabularRefit
from checkrein.policies import Support, members_of
from checkrein.problem import Episodes, Problem
from checkrein.protocols import Policy

SETTLED = 1e-11  # of the largest value
SWEEPS = 1000  # a handful are needed
NOTHING = 1e-12  # of a share


class Worst(NamedTuple):
    """The worst value of one cost, and what it rests on."""

    value: float
    influence: FloatArray  # (e,) of each episode, of mean zero
    exposure: FloatArray | None  # (S A,) visits to each pair, times how much a rare outcome may weigh there


class Confounded(Protocol):
    """A policy's value under a hidden factor of any strength."""

    def worst(self, column: int, odds: float) -> Worst:
        """Value the objective (0) or a constraint (1 and on) at its worst, signed so that less is better."""
        ...


class Tilt(NamedTuple):
    """The worst distribution of outcomes in each group."""

    shares: FloatArray  # (o,)
    thresholds: FloatArray  # (g,) outcomes above it weigh the most that they may, those below the least
    tails: FloatArray  # (g,) the mean of the worst 1 / (1 + odds) of what was observed


def tilt(outcomes: FloatArray, shares: FloatArray, groups: IntArray, propensities: FloatArray, odds: float) -> Tilt:
    """Shift shares (o,), which sum to 1 in each group, to the worst outcomes (o,), as far as propensities (g,) allow.

    groups: (o,) from 0, none empty
    """
    order = np.lexsort((-outcomes, groups))
    group, share, outcome = groups[order], shares[order], outcomes[order]
    begins = np.searchsorted(group, np.arange(propensities.size))
    before = np.cumsum(share) - share
    before -= before[begins][group]
    tail = 1 / (1 + odds)
    above = np.clip(tail - before, 0, share)
    least = propensities + (1 - propensities) / odds
    spread = (1 - propensities) * (odds - 1 / odds)
    tilted = np.empty_like(share)
    tilted[order] = least[group] * share + spread[group] * above
    last = begins + np.bincount(group, before < tail - NOTHING, propensities.size).astype(np.int64) - 1
    return Tilt(tilted, outcome[last], np.bincount(group, above * outcome, propensities.size) / tail)


def _visits(system: FloatArray, initial: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.solve(system.T, initial), np.float64)


class ConfoundedTables:
    """A policy over finite states; each member of a mixture is taken at its own worst."""

    def __init__(self, problem: Problem, policy: Policy) -> None:
        self.members = [(_Member(problem, member), share) for member, share in members_of(policy) if share > 0]

    def worst(self, column: int, odds: float) -> Worst:
        """Solve the robust Bellman equation of each member."""
        found = [(member.worst(column, odds), share) for member, share in self.members]
        return Worst(
            sum(share * one.value for one, share in found),
            np.asarray(sum(share * one.influence for one, share in found)),
            np.asarray(sum(share * one.exposure for one, share in found if one.exposure is not None)),
        )


class _Outcomes(NamedTuple):
    """What rows led to, of one cost: equal ones merged."""

    of_row: IntArray  # (n,)
    pair: IntArray  # (o,)
    share: FloatArray  # (o,) in its pair
    cost: FloatArray  # (o,)
    next: IntArray  # (o,)
    continuation: FloatArray  # (o,)


class _Member:
    """A policy that is no mixture; rows, pairs and states are those that it comes to."""

    def __init__(self, problem: Problem, policy: Policy) -> None:
        log = Episodes.of(problem)
        self.refit = refit = TabularRefit(problem, policy, Support().of(problem))
        self.log, self.weights = log, log.weights[log.episode]
        n_states, n_actions = int(problem.dataset.n_states or 0), log.n_actions
        self.every_pair = log.states * n_actions + log.actions
        counts = np.bincount(self.every_pair, self.weights, n_states * n_actions).reshape(n_states, n_actions)
        self.visits = counts.sum(axis=1)  # (S,) of behavior
        self.behavior = counts / np.where(self.visits > 0, self.visits, 1.0)[:, None]  # (S, A)
        self.propensities = self.behavior.ravel()[refit.pairs]
        place = np.minimum(np.searchsorted(refit.pairs, self.every_pair), max(refit.pairs.size - 1, 0))
        known = (log.terminals | log.next_observed) & (self.weights > 0)
        used = known & (refit.pairs[place] == self.every_pair) if refit.pairs.size else np.zeros_like(known)
        self.rows = np.flatnonzero(used)
        self.pair = place[self.rows]
        states = np.zeros(n_states, dtype=np.int64)
        states[refit.reached] = np.arange(refit.n_states)
        self.following = np.where(log.terminals[self.rows], 0, states[log.next_states[self.rows]])
        self.continuation = log.continuation[self.rows]
        self.costs = log.costs(policy)[self.rows]
        begun = np.bincount(refit.start, refit.starts.initial_distribution(log.weights[None])[0], refit.n_states)
        self.initial = np.asarray(begun, np.float64)
        self._outcomes: dict[int, _Outcomes] = {}
        self._values: dict[int, FloatArray] = {}  # of the last worst, to begin with

    def worst(self, column: int, odds: float) -> Worst:
        """Improve the factor until it is at its worst everywhere, as policy iteration does a policy."""
        if column not in self._outcomes:
            self._outcomes[column] = merged = self._merged(column)
            self._values[column], _ = self._solve(merged, merged.share, column)
        outcomes, values = self._outcomes[column], self._values[column]
        for _ in range(SWEEPS):
            ahead = outcomes.cost + outcomes.continuation * values[outcomes.next]
            tilted = tilt(ahead, outcomes.share, outcomes.pair, self.propensities, odds)
            before, (values, occupancy_from) = values, self._solve(outcomes, tilted.shares, column)
            if np.abs(values - before).max(initial=0) <= SETTLED * (1 + np.abs(values).max(initial=0)):
                break
        else:
            raise DivergenceError(f"the worst value did not settle in {SWEEPS} sweeps")
        self._values[column] = values
        occupancy = occupancy_from(self.initial)
        value, visits = float(self.initial @ values), occupancy[self.refit.state] * self.refit.probabilities
        influence = self._influence(outcomes, values, tilted, visits, odds)
        influence += self._starts(values, value)
        exposure = visits * (self.propensities + (1 - self.propensities) * odds)
        every = np.bincount(self.refit.pairs, exposure, self.behavior.size)
        return Worst(value, influence, np.asarray(every, np.float64))

    def _merged(self, column: int) -> _Outcomes:
        cost, levels = np.unique(self.costs[:, column], return_inverse=True)
        size = self.refit.n_states + 1
        after = np.where(self.continuation > 0, self.following + 1, 0)
        _, first, of_row = np.unique(
            (self.pair * size + after) * max(cost.size, 1) + levels, return_index=True, return_inverse=True
        )
        count = np.bincount(of_row, self.weights[self.rows], first.size)
        pair = self.pair[first]
        share = count / np.bincount(pair, count, self.propensities.size)[pair]
        return _Outcomes(
            of_row, pair, share, self.costs[first, column], self.following[first], self.continuation[first]
        )

    def _solve(
        self, outcomes: _Outcomes, shares: FloatArray, column: int
    ) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
        """Return values (S,) with V = c + P V, where outcomes have these shares, and visits (S,) by beginnings (S,)."""
        size, state = self.refit.n_states, self.refit.state[outcomes.pair]
        amounts = self.refit.probabilities[outcomes.pair] * shares
        sums = np.bincount(state, amounts * outcomes.cost, size)
        immediate = np.asarray(sums + self.refit.unsupported[:, column], np.float64)
        flows = amounts * outcomes.continuation
        if size > DENSE_STATES:
            chain = SparseChain(sparse.csr_array((flows, (state, outcomes.next)), shape=(size, size)))
            return chain.solve(immediate), chain.solve_transposed
        moves = np.bincount(state * size + outcomes.next, flows, size**2)
        system = np.eye(size) - moves.reshape(size, size)
        return np.asarray(np.linalg.solve(system, immediate), np.float64), partial(_visits, system)

    def _influence(
        self, outcomes: _Outcomes, values: FloatArray, tilted: Tilt, visits: FloatArray, odds: float
    ) -> FloatArray:
        """(e,) what rows add: of outcomes in each pair, and of how often behavior takes each action."""
        pairs, pair = self.propensities.size, outcomes.pair
        ahead = outcomes.cost + outcomes.continuation * values[outcomes.next]
        least = self.propensities + (1 - self.propensities) / odds
        spread = (1 - self.propensities) * (odds - 1 / odds)
        mean, worst = (np.bincount(pair, each * ahead, pairs) for each in (outcomes.share, tilted.shares))
        above = ahead - tilted.thresholds[pair]
        each = least[pair] * above + spread[pair] * np.maximum(above, 0) + (tilted.thresholds - worst)[pair]
        total = self.log.weights.sum()
        ratio = visits * total / np.bincount(self.pair, self.weights[self.rows], pairs)
        by_row = np.zeros(self.every_pair.size)
        by_row[self.rows] = (ratio[pair] * each)[outcomes.of_row]
        slope = np.zeros(self.behavior.size)  # of the value, in each propensity
        slope[self.refit.pairs] = -visits * (1 - 1 / odds) * (tilted.tails - mean)
        centred = slope - np.repeat(
            (slope.reshape(self.behavior.shape) * self.behavior).sum(axis=1), self.log.n_actions
        )
        by_row += centred[self.every_pair] * total / np.where(self.visits > 0, self.visits, 1.0)[self.log.states]
        return self.log.sums(by_row)

    def _starts(self, values: FloatArray, value: float) -> FloatArray | float:
        found = self.refit.starts.influence(values[self.refit.start][None, :, None], np.array([[value]]))
        return found if isinstance(found, float) else found[0, :, 0]
