"""Values of finite states, corrected by episodes that had no part in them (Kallus & Uehara 2020).

Tables of one part of a log say what a policy is worth, and how much more often it comes to each pair than the log did.
Each episode of another part adds what it saw beyond that, so often. What is wrong with the tables then enters only as a
product of two errors, and a pair that the other part does not show needs no evidence in it.

A policy that was chosen by the same tables makes both errors at once: it looks cheap, and as if it came to few places.
So where the policy comes to is corrected as well, by other episodes of the other part: a second term of the same
expansion (Robins et al. 2008). What is left is what three errors make of each other, and what the tables have wrong
about how often a pair was logged makes of the first.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse

from bridle.arrays import BoolArray, FloatArray, IntArray
from bridle.errors import ArgumentError
from bridle.evaluation.episodes import Episodes
from bridle.evaluation.starts import Starts
from bridle.policies import members_of, probabilities_of
from bridle.problem import Problem
from bridle.protocols import Policy
from bridle.support import Support

BLOCKS = 10  # of judging episodes, each corrected by the others
NOTHING = 1e-9  # of evidence
SETTLED, SETTLING = 1e-6, 50  # of the worst that may follow


@dataclass(frozen=True, eq=False)
class Said:
    """What episodes say of a policy, by tables of other episodes (or of their own)."""

    each: FloatArray  # (e, k)
    unsupported: float  # share of the policy's decisions without evidence in the tables
    rarest: float  # times that the policy comes to a pair for each that the log does, of the pair where that is most


@dataclass(frozen=True, eq=False)
class Tables:
    """What one part of a log says of each pair of state and action."""

    counts: FloatArray  # (S A,) how much each pair counts, per episode
    paid: FloatArray  # (S A, k) at once, on average
    moves: sparse.csr_array  # (S A, S) where it leads, times the discount
    evidence: BoolArray  # (S, A) what may be followed
    starts: FloatArray  # (S,) where episodes begin
    dearest: FloatArray  # (k,) step
    worst: FloatArray  # (k,) sum

    @classmethod
    def of(cls, problem: Problem, support: Support) -> "Tables":
        """Count; support says which pairs have evidence."""
        n_states, n_actions = problem.dataset.n_states, problem.dataset.n_actions
        if n_states is None:
            raise ArgumentError("one-step values are made of tables: they need finite states")
        log = Episodes.of(problem)
        size = n_states * n_actions
        known = np.flatnonzero(_known(log))
        pair, weights = _pairs(log)[known], log.weights[log.episode][known]
        counts = np.bincount(pair, weights, size)
        shown = np.where(counts > 0, counts, 1.0)
        paid = np.stack([np.bincount(pair, weights * cost, size) for cost in log.costs[known].T], axis=1)
        ahead = weights * log.continuation[known] / shown[pair]
        begins = Starts(problem, log)
        return cls(
            counts=counts / log.weights.sum(),
            paid=paid / shown[:, None],
            moves=sparse.csr_array((ahead, (pair, log.next_states[known])), shape=(size, n_states)),
            evidence=support.choices(problem).allowed(np.arange(n_states)) & (counts > 0).reshape(n_states, n_actions),
            starts=np.asarray(np.bincount(begins.states, begins.chances(log.weights[None])[0], n_states), np.float64),
            dearest=np.maximum(log.costs.max(axis=0), 0.0),
            worst=problem.worst,
        )

    def said(self, problem: Problem, policy: Policy) -> Said:
        """Value a policy by these tables, corrected by each episode of a problem."""
        log = Episodes.of(problem)
        begins = Starts(problem, log)
        members = [(weight, _Member(self, member)) for member, weight in members_of(policy) if weight > 0]
        return Said(
            np.asarray(sum(weight * _Corrections(member, log, begins).each() for weight, member in members)),
            float(sum(weight * member.unsupported for weight, member in members)),
            float(np.max(sum(weight * member.ratios for weight, member in members))),
        )


class _Member:
    """A policy that is no mixture: what the tables say of it."""

    def __init__(self, tables: Tables, policy: Policy) -> None:
        n_states, n_actions = tables.evidence.shape
        likely = probabilities_of(policy, np.arange(n_states), n_actions)
        followed = likely * tables.evidence
        lost = likely.sum(axis=1) - followed.sum(axis=1)
        state = np.repeat(np.arange(n_states), n_actions)
        choice = sparse.csr_array((followed.ravel(), (state, np.arange(state.size))), shape=(n_states, state.size))
        self.tables = tables
        self.chain: Any = linalg.lu_factor(np.eye(n_states) - (choice @ tables.moves).toarray())
        solved = linalg.lu_solve(self.chain, np.column_stack([choice @ tables.paid, lost]))
        self.values = _with_worst(solved[:, :-1], solved[:, -1:], lost, tables)  # (S, k)
        self.q = tables.paid + tables.moves @ self.values  # (S A, k)
        self.visits = linalg.lu_solve(self.chain, tables.starts, trans=1)  # (S,)
        self.chances = np.divide(followed.ravel(), tables.counts, out=np.zeros(state.size), where=tables.counts > 0)
        self.ratios = np.repeat(self.visits, n_actions) * self.chances  # (S A,)
        self.unsupported = float(self.visits @ lost / self.visits.sum())


class _Corrections:
    """What the rows of other episodes add to what the tables say of a policy."""

    def __init__(self, member: _Member, log: Episodes, begins: Starts) -> None:
        self.member, self.log, self.begins = member, log, begins
        self.pair = _pairs(log)
        self.chance = member.chances[self.pair] * _known(log)  # (n,) of the row's action, for each time it is logged
        self.often = member.ratios[self.pair] * _known(log)  # (n,) times that the policy comes to the row
        ahead = log.continuation[:, None] * member.values[log.next_states]
        self.surprise = log.costs + ahead - member.q[self.pair]  # (n, k)

    def each(self) -> FloatArray:
        """(e, k) of each episode."""
        values = self.member.values[self.begins.states]
        worth = values if self.begins.own else self.begins.shares @ values
        return np.asarray(worth + self.log.sums(self.often[:, None] * self.surprise) + self._of_visits())

    def _of_visits(self) -> FloatArray:
        """(e, k) what other episodes than each say of how often the policy comes to its rows, and the other way round.

        With `flows` (S,) by which arrivals exceed what the tables expect, and `gains` (S, k) by which costs do, the
        second term is flows @ (I - P)^-1 @ gains, the two from different blocks of episodes.
        """
        tables, log, k = self.member.tables, self.log, self.surprise.shape[1]
        n_states, count = tables.starts.size, min(BLOCKS, len(log))
        if count < 2:
            return np.zeros((len(log), k))
        block = np.arange(len(log)) % count
        rows, weights = block[log.episode], log.weights[log.episode]
        gains = _by_block(rows, log.states, (weights * self.chance)[:, None] * self.surprise, count, n_states)
        flows = _by_block(rows, log.next_states, (weights * self.often * log.continuation)[:, None], count, n_states)
        pairs = _by_block(rows, self.pair, (weights * self.often)[:, None], count, tables.counts.size)
        flows = flows[..., 0] - (tables.moves.T @ pairs[..., 0].T).T
        sizes = np.bincount(block, log.weights)
        if self.begins.own:
            begun = _by_block(block, self.begins.states, log.weights[:, None], count, n_states)[..., 0]
            flows += begun - sizes[:, None] * tables.starts
        others = log.weights.sum() - sizes
        gain = (gains.sum(axis=0) - gains) / others[:, None, None]  # (blocks, S, k) of the other blocks
        flow = (flows.sum(axis=0) - flows) / others[:, None]  # (blocks, S)
        flat = gain.transpose(1, 0, 2).reshape(n_states, -1)
        ahead = linalg.lu_solve(self.member.chain, flat)  # (S, blocks k)
        later, ahead = (tables.moves @ ahead).reshape(-1, count, k), ahead.reshape(n_states, count, k)
        visits = linalg.lu_solve(self.member.chain, flow.T, trans=1)  # (S, blocks) beyond those expected
        arrivals = log.continuation[:, None] * ahead[log.next_states, rows] - later[self.pair, rows]
        mine = log.sums(self.often[:, None] * arrivals)
        if self.begins.own:
            mine += ahead[self.begins.states, block] - np.einsum("s,sbk->bk", tables.starts, ahead)[block]
        theirs = log.sums((visits[log.states, rows] * self.chance)[:, None] * self.surprise)
        return np.asarray(mine + theirs - log.mean(mine))


def _with_worst(paid: FloatArray, given_up: FloatArray, lost: FloatArray, tables: Tables) -> FloatArray:
    """(S, k) values; what has no evidence costs the dearest step, and then what the worst state with evidence does.

    paid: (S, k) without what has no evidence; given_up: (S, 1) how often that comes up
    """
    seen, worst = lost < 1 - NOTHING, tables.worst
    for _ in range(SETTLING if seen.any() else 0):
        lower = np.minimum(worst, tables.dearest + (paid + given_up * worst)[seen].max(axis=0))
        if np.allclose(lower, worst, rtol=SETTLED, atol=0):
            break
        worst = lower
    return np.asarray(paid + given_up * worst)


def _by_block(block: IntArray, place: IntArray, amounts: FloatArray, blocks: int, places: int) -> FloatArray:
    """(blocks, places, k) amounts (n, k), summed."""
    cell = block * places + place
    sums = [np.bincount(cell, column, blocks * places) for column in amounts.T]
    return np.asarray(np.stack(sums, axis=1).reshape(blocks, places, -1), np.float64)


def _pairs(log: Episodes) -> IntArray:
    return np.asarray(log.states * log.n_actions + log.actions)


def _known(log: Episodes) -> BoolArray:
    """(n,) rows that say what follows."""
    return np.asarray(log.terminals | log.next_observed)
