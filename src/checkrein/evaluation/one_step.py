"""Values of finite states, corrected by episodes that had no part in them (Kallus & Uehara 2020).

Tables of one part of a log say what a policy is worth, and how much more often it comes to each pair than the log did.
Each episode of another part adds what it saw beyond that, so often. What is wrong with the tables then enters only as a
product of two errors, and a pair that the other part does not show needs no evidence in it.

A policy that was chosen by the same tables makes both errors at once: it looks cheap, and as if it came to few places.
So where the policy comes to is corrected as well, by other episodes of the other part: a second term of the same
expansion (Robins et al. 2008). What is left is what three errors make of each other, and what the tables have wrong
about how often a pair was logged makes of the first.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import sparse

from checkrein.base.arrays import BoolArray, FloatArray, IntArray
from checkrein.base.chain import chain_of
from checkrein.base.errors import ArgumentError
from checkrein.evaluation.behavior_value import behavior_scores
from checkrein.evaluation.known_weights import known_propensities
from checkrein.evaluation.starts import Starts
from checkrein.policies import Support, Supported, TabularPolicy, members_of, probabilities_of
from checkrein.problem import Episodes, Problem
from checkrein.protocols import Policy

BLOCKS = 10  # of judging episodes, each corrected by the others
NOTHING = 1e-9  # of evidence
SETTLED, SETTLING = 1e-6, 50  # of the worst that may follow


@dataclass(frozen=True, eq=False)
class EpisodeScores:
    """What episodes say of a policy, by tables of other episodes (or of their own)."""

    scores: FloatArray  # (e, k)
    unsupported: float  # share of the policy's decisions without evidence in the tables, where these or episodes begin
    max_density_ratio: (
        float  # times that the policy comes to a pair for each that the log does, of the pair where that is most
    )
    visits: FloatArray  # (S A,) expected, discounted, to each pair
    known_weights: FloatArray | None = None  # (e,) that corrections were weighed by; None: by tables


def require_finite(problem: Problem) -> int:
    """Return how many finite states there are; raise where states are not finite."""
    n_states = problem.dataset.n_states
    if n_states is None:
        raise ArgumentError("one-step values are made of tables: they need finite states")
    return n_states


@dataclass(frozen=True, eq=False)
class TabularNuisances:
    """What one part of a log says of each pair of state and action."""

    problem: Problem
    counts: FloatArray  # (S A,) how much each pair counts, per episode
    moves: sparse.csr_array  # (S A, S) where it leads, times the discount
    evidence: BoolArray  # (S, A) what may be followed
    initial_distribution: FloatArray  # (S,) where episodes begin

    @classmethod
    def of(cls, problem: Problem, support: Support) -> "TabularNuisances":
        """Count; support says which pairs have evidence."""
        n_states, n_actions = require_finite(problem), problem.dataset.n_actions
        log = Episodes.of(problem)
        size = n_states * n_actions
        known = np.flatnonzero(_known(log))
        pair, weights = _pairs(log)[known], log.weights[log.episode][known]
        counts = np.bincount(pair, weights, size)
        shown = np.where(counts > 0, counts, 1.0)
        ahead = weights * log.continuation[known] / shown[pair]
        starts = Starts(problem, log)
        return cls(
            problem=problem,
            counts=counts / log.weights.sum(),
            moves=sparse.csr_array((ahead, (pair, log.next_states[known])), shape=(size, n_states)),
            evidence=support.choices(problem).allowed(np.arange(n_states)) & (counts > 0).reshape(n_states, n_actions),
            initial_distribution=np.asarray(
                np.bincount(starts.states, starts.initial_distribution(log.weights[None])[0], n_states), np.float64
            ),
        )

    def costs(self, policy: Policy) -> "PairCosts":
        """Return what pairs cost under a policy that is no mixture; counted once where that does not matter."""
        if self.problem.policy_costs:
            return PairCosts.of(self.problem, policy)
        return self.problem.once("costs of pairs", lambda: PairCosts.of(self.problem, policy))

    def score(self, problem: Problem, policy: Policy) -> EpisodeScores:
        """Value a policy by these tables, corrected by each episode of a problem."""
        log = Episodes.of(problem)
        starts = Starts(problem, log)
        found = [self._scored(member, weight, log, starts) for member, weight in members_of(policy) if weight > 0]
        scores, unsupported, density_ratio, visits, known = zip(*found, strict=True)
        return EpisodeScores(
            np.asarray(sum(scores)),
            float(sum(unsupported)),
            float(np.max(sum(density_ratio))),
            np.asarray(sum(visits)),
            None if known_propensities(problem) is None else np.asarray(sum(known)),
        )

    def _scored(
        self, policy: Policy, share: float, log: Episodes, starts: Starts
    ) -> tuple[FloatArray, float, FloatArray, FloatArray, FloatArray | float]:
        """Return what one member of a mixture has of the whole: no other is kept meanwhile."""
        member = _Member(self, policy)
        part = _Corrections(member, log, starts)
        known = 0.0 if part.weighs_by_tables else share * part.density_ratio
        begun = starts.initial_distribution(log.weights[None])[0] @ member.lost[starts.states]
        return (
            share * part.scores(),
            share * max(member.unsupported, float(begun / member.occupancy.sum())),
            share * member.density_ratio,
            share * member.visits,
            known,
        )

    def scores_from(self, problem: Problem, policy: Policy) -> "ScoresFrom":
        """Value a policy where episodes begin in some states, corrected by each episode of a problem."""
        members = [(weight, _Member(self, member)) for member, weight in members_of(policy) if weight > 0]
        return ScoresFrom(self, Episodes.of(problem), members)

    def behavior_scores(self, problem: Problem) -> FloatArray:
        """(e, k) what episodes say of who wrote them: their own sums; where cut off, what follows by these tables."""
        log, n_actions = Episodes.of(problem), problem.dataset.n_actions
        counts = self.counts.reshape(-1, n_actions)
        total = counts.sum(axis=1, keepdims=True)
        behavior = TabularPolicy(np.where(total > 0, counts, 1.0) / np.where(total > 0, total, n_actions))
        tables = replace(self, evidence=counts > 0)  # what behavior does has evidence
        if not Starts(problem, log).own:
            return tables.score(problem, behavior).scores
        values = _Member(tables, behavior).values
        return behavior_scores(log, log.costs(behavior), lambda cut: cut.values(lambda states: values[states]))


class PairCosts(NamedTuple):
    """What each pair of state and action costs."""

    immediate: FloatArray  # (S A, k) at once, on average
    dearest: FloatArray  # (k,) step without evidence
    worst: FloatArray  # (k,) sum from there on

    @classmethod
    def of(cls, problem: Problem, policy: Policy) -> "PairCosts":
        """Average over the rows that say what follows."""
        log = Episodes.of(problem)
        known, size = np.flatnonzero(_known(log)), int(problem.dataset.n_states or 0) * log.n_actions
        pair, weights, costs = _pairs(log)[known], log.weights[log.episode][known], log.costs(policy)
        counts = np.bincount(pair, weights, size)
        sums = np.stack([np.bincount(pair, weights * cost, size) for cost in costs[known].T], axis=1)
        immediate = sums / np.where(counts > 0, counts, 1.0)[:, None]
        dearest = np.maximum(costs.max(axis=0), 0.0)
        dearest[list(problem.known_costs)] = 0.0  # such a step is known: only what comes after is not
        return cls(immediate, dearest, problem.worst_after(policy))


class _Member:
    """A policy that is no mixture: what the tables say of it."""

    def __init__(self, tables: TabularNuisances, policy: Policy) -> None:
        n_states, n_actions = tables.evidence.shape
        probabilities = probabilities_of(policy, np.arange(n_states), n_actions)
        split = Supported.split(probabilities, tables.evidence)
        supported, unsupported_mass = split.probabilities, split.unsupported_mass
        costs = tables.costs(policy)
        state = np.repeat(np.arange(n_states), n_actions)
        choice = sparse.csr_array((supported.ravel(), (state, np.arange(state.size))), shape=(n_states, state.size))
        self.tables, self.policy, self.supported = tables, policy, supported
        self.chain = chain_of(choice @ tables.moves)
        immediate = choice @ costs.immediate
        for i, steps in tables.problem.known_steps(policy, np.arange(n_states), where=unsupported_mass > 0):
            immediate[:, i] += (split.unsupported * steps).sum(axis=1)
        solved = self.chain.solve(np.column_stack([immediate, unsupported_mass]))
        self.lost = solved[:, -1]  # (S,) decisions without evidence that follow
        self.values = _with_worst(solved[:, :-1], solved[:, -1:], unsupported_mass, costs)  # (S, k)
        self.q = costs.immediate + tables.moves @ self.values  # (S A, k)
        self.occupancy = self.occupancy_from(tables.initial_distribution)  # (S,)
        self.choice_ratio = np.divide(
            supported.ravel(), tables.counts, out=np.zeros(state.size), where=tables.counts > 0
        )
        self.density_ratio = np.repeat(self.occupancy, n_actions) * self.choice_ratio  # (S A,)
        self.visits = np.repeat(self.occupancy, n_actions) * supported.ravel()  # (S A,)
        self.unsupported = float(self.occupancy @ unsupported_mass / self.occupancy.sum())

    def occupancy_from(self, initial: FloatArray) -> FloatArray:
        """(S,) how often the policy comes to each state, discounted, where episodes begin so."""
        return self.chain.solve_transposed(initial)


@dataclass(frozen=True, eq=False)
class ScoresFrom:
    """What episodes say of a policy from some states on: all of them correct what tables say of where it goes."""

    tables: TabularNuisances
    log: Episodes
    members: list[tuple[float, _Member]]

    @property
    def worth(self) -> FloatArray:
        """(e, k) what the tables say of the state in which each episode began."""
        states = self.log.states[self.log.begins]
        return np.asarray(sum(weight * member.values[states] for weight, member in self.members))

    def corrections(self, begin: BoolArray) -> FloatArray:
        """(e, k) what each episode adds for those that begin in some states (S,): these lead to its rows so often."""
        initial = np.where(begin, self.tables.initial_distribution, 0.0)
        if initial.sum() == 0:
            return np.full((len(self.log), self.log.n_values), np.nan)
        return np.asarray(sum(weight * self._added(m, initial / initial.sum()) for weight, m in self.members))

    def _added(self, member: _Member, initial: FloatArray) -> FloatArray:
        pair, log = _pairs(self.log), self.log
        visits = np.repeat(member.occupancy_from(initial), log.n_actions) * member.choice_ratio
        ahead = log.continuation[:, None] * member.values[log.next_states]
        td_error = log.costs(member.policy) + ahead - member.q[pair]
        return log.sums((visits[pair] * _known(log))[:, None] * td_error)


class _Corrections:
    """What the rows of other episodes add to what the tables say of a policy."""

    def __init__(self, member: _Member, log: Episodes, starts: Starts) -> None:
        self.member, self.log, self.starts = member, log, starts
        self.pair = _pairs(log)
        self.choice_ratio = member.choice_ratio[self.pair] * _known(
            log
        )  # (n,) of the row's action, for each time it is logged
        self.density_ratio = member.density_ratio[self.pair] * _known(
            log
        )  # (n,) times that the policy comes to the row
        ahead = log.continuation[:, None] * member.values[log.next_states]
        known = known_propensities(log.problem)
        if known is not None:
            self.density_ratio = member.supported.ravel()[self.pair] / known
        self.weighs_by_tables = known is None
        self.td_error = log.costs(member.policy) + ahead - member.q[self.pair]  # (n, k)

    def scores(self) -> FloatArray:
        """(e, k) of each episode."""
        values = self.member.values[self.starts.states]
        worth = values if self.starts.own else self.starts.shares @ values
        scores = worth + self.log.sums(self.density_ratio[:, None] * self.td_error)
        return np.asarray(scores + self._occupancy_corrections() if self.weighs_by_tables else scores)

    def _occupancy_corrections(self) -> FloatArray:
        """(e, k) what other episodes than each say of how often the policy comes to its rows, and the other way round.

        With `flows` (S,) by which arrivals exceed what the tables expect, and `gains` (S, k) by which costs do, the
        second term is flows @ (I - P)^-1 @ gains, the two from different blocks of episodes.
        """
        tables, log, k = self.member.tables, self.log, self.td_error.shape[1]
        n_states, count = tables.initial_distribution.size, min(BLOCKS, log.n_units)
        if count < 2:
            return np.zeros((len(log), k))
        block = log.unit % count  # of whole clusters, where there are any
        rows, weights = block[log.episode], log.weights[log.episode]
        gains = _by_block(rows, log.states, (weights * self.choice_ratio)[:, None] * self.td_error, count, n_states)
        flows = _by_block(
            rows, log.next_states, (weights * self.density_ratio * log.continuation)[:, None], count, n_states
        )
        pairs = _by_block(rows, self.pair, (weights * self.density_ratio)[:, None], count, tables.counts.size)
        flows = flows[..., 0] - (tables.moves.T @ pairs[..., 0].T).T
        sizes = np.bincount(block, log.weights)
        if self.starts.own:
            begun = _by_block(block, self.starts.states, log.weights[:, None], count, n_states)[..., 0]
            flows += begun - sizes[:, None] * tables.initial_distribution
        others = log.weights.sum() - sizes
        gain = (gains.sum(axis=0) - gains) / others[:, None, None]  # (blocks, S, k) of the other blocks
        flow = (flows.sum(axis=0) - flows) / others[:, None]  # (blocks, S)
        flat = gain.transpose(1, 0, 2).reshape(n_states, -1)
        del gains, gain, pairs
        ahead = self.member.chain.solve(flat)  # (S, blocks k)
        later, ahead = (tables.moves @ ahead).reshape(-1, count, k), ahead.reshape(n_states, count, k)
        occupancy = self.member.chain.solve_transposed(flow.T)  # (S, blocks) beyond those expected
        arrivals = log.continuation[:, None] * ahead[log.next_states, rows] - later[self.pair, rows]
        mine = log.sums(self.density_ratio[:, None] * arrivals)
        if self.starts.own:
            mine += ahead[self.starts.states, block] - np.einsum("s,sbk->bk", tables.initial_distribution, ahead)[block]
        theirs = log.sums((occupancy[log.states, rows] * self.choice_ratio)[:, None] * self.td_error)
        return np.asarray(mine + theirs - log.mean(mine))


def _with_worst(
    immediate_cost: FloatArray, given_up: FloatArray, unsupported_mass: FloatArray, costs: PairCosts
) -> FloatArray:
    """(S, k) values; what has no evidence costs the dearest step, and then what the worst state with evidence does.

    immediate_cost: (S, k) without what has no evidence; given_up: (S, 1) how often that comes up
    """
    seen, worst = unsupported_mass < 1 - NOTHING, costs.worst
    for _ in range(SETTLING if seen.any() else 0):
        lower = np.minimum(worst, costs.dearest + (immediate_cost + given_up * worst)[seen].max(axis=0))
        if np.allclose(lower, worst, rtol=SETTLED, atol=0):
            break
        worst = lower
    return np.asarray(immediate_cost + given_up * worst)


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
