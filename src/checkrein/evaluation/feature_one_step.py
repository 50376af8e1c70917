"""Values over features, corrected by episodes that had no part in them (Kallus & Uehara 2020).

The nuisances are linear in features of the state: Q by fitted evaluation, with one weight vector for each action and
cost, and the density ratio of the policy's states to the log's, in closed form (the dual of LSTDQ). Each episode of
another part adds its TD errors, as often as the policy comes to their rows (`feature_scores`). What is wrong with the
nuisances then enters only as a product of two errors.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from checkrein.base.arrays import Array, BoolArray, FloatArray, IntArray
from checkrein.evaluation.starts import Starts
from checkrein.functions.learned_features import LearnedFeatures
from checkrein.policies import probabilities_of
from checkrein.policies.logistic import LogisticPolicy, fit_logistic
from checkrein.policies.tilted import TiltedPolicy
from checkrein.problem import Episodes, Problem
from checkrein.protocols import Policy

SHARED, OWN = 1.0, 20.0  # rows' worth of ridge on what actions have in common, and on what each has of its own
ITERATIONS, SETTLED = 100, 1e-3  # of fitted evaluation with values held inside; in units of how much costs vary
BEYOND, SELDOM = 0.1, 0.01  # values are held inside where more than so few are so far, of their range, outside of it
DIVERGED = 1e4  # times the immediate costs
LEFT = 1e-3  # of the value that may lie beyond the steps looked ahead
CHUNK = 10_000_000  # numbers at once


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """The rows of a log as features, mapped once: a next state that is the next row's state is not mapped again."""

    log: Episodes
    states: Array  # (N, d) the rows' states, then next and initial states that no row begins in
    features: FloatArray  # (N, q) of these
    following: IntArray  # (n,) the place of each row's next state
    starts: IntArray  # (s,) the place of each initial state
    known: BoolArray  # (n,) rows that say what follows

    @classmethod
    def of(cls, problem: Problem, features: LearnedFeatures) -> "FeatureRows":
        """Map a problem's log."""
        log = Episodes.of(problem)
        n = len(log.rows)
        following = np.arange(n) + 1
        same = np.zeros(n, bool)
        inside = np.flatnonzero(np.diff(log.episode) == 0)
        same[inside] = (log.next_states[inside] == log.states[inside + 1]).all(axis=1)
        others = np.flatnonzero(~same)
        following[others] = n + np.arange(others.size)
        starts, places = Starts(problem, log), log.begins
        states = [log.states, log.next_states[others]]
        if not starts.own:
            places = n + others.size + np.arange(len(starts.states))
            states.append(starts.states)
        every = np.concatenate(states)
        return cls(log, every, features(every), following, places, log.terminals | log.next_observed)

    @property
    def own(self) -> FloatArray:
        """(n, q) of the rows' states."""
        return self.features[: len(self.following)]

    @cached_property
    def start_weights(self) -> FloatArray:
        """(s,) how likely each initial state is."""
        starts = Starts(self.log.problem, self.log)
        return np.asarray(starts.initial_distribution(self.log.weights[None])[0])

    @cached_property
    def row_weights(self) -> FloatArray:
        """(n,) how much each row counts; nothing where it does not say what follows."""
        return self.log.weights[self.log.episode] * self.known


@dataclass(frozen=True, eq=False)
class Followed:
    """A policy that is no mixture, as one part of a log values it."""

    policy: Policy
    weights: FloatArray  # (A, q, k) of Q
    density: FloatArray  # (q,) of the policy's states to the log's, per episode
    ratios: FloatArray  # (n,) policy / behavior of what was done in the part's rows


class FeatureNuisances:
    """What one part of a log says of policies, over features that were learned from it."""

    def __init__(self, problem: Problem, features: LearnedFeatures) -> None:
        self.problem, self.features = problem, features
        self.rows = FeatureRows.of(problem, features)
        log = self.rows.log
        self.episodes = float(log.weights.sum())
        weights = log.weights[log.episode]
        self.behavior = LogisticPolicy(features, fit_logistic(self.rows.own, log.actions, weights, log.n_actions))
        self._kept: dict[int, tuple[Policy, Followed]] = {}
        self._regressions: dict[int, tuple[BoolArray, FloatArray, FloatArray]] = {}

    @cached_property
    def _regression(self) -> tuple[list[IntArray], list[FloatArray]]:
        """Rows and weighted features of each action."""
        log, own = self.rows.log, self.rows.own
        blocks = [np.flatnonzero((log.actions == a) & self.rows.known) for a in range(log.n_actions)]
        return blocks, [own[block] * self.rows.row_weights[block, None] for block in blocks]

    @cached_property
    def _inverse(self) -> FloatArray:
        """(A q, A q) the inverse of all actions' Gram matrices with their ridge."""
        own = self.rows.own
        a, q = self.rows.log.n_actions, own.shape[1]
        pull = OWN * np.eye(a) - OWN**2 / (OWN * a + SHARED)
        gram = np.kron(pull, np.eye(q)).reshape(a, q, a, q)
        for action, (block, part) in enumerate(zip(*self._regression, strict=True)):
            gram[action, :, action] += part.T @ own[block]
        return np.linalg.inv(gram.reshape(a * q, a * q))

    @cached_property
    def _inverses(self) -> tuple[FloatArray, FloatArray]:
        """(A, q, q) each action's part of it, and (q, q) what they share: all that one fit needs."""
        own = self.rows.own
        a, q = self.rows.log.n_actions, own.shape[1]
        shared = OWN**2 / (OWN * a + SHARED)
        grams = [part.T @ own[block] + OWN * np.eye(q) for block, part in zip(*self._regression, strict=True)]
        each = np.linalg.inv(np.stack(grams))
        return each, shared * np.linalg.inv(np.eye(q) - shared * each.sum(axis=0))

    def _fitted(self, moments: FloatArray) -> FloatArray:
        """Return the regression (A, q, k) of moments (A, q, k)."""
        if self.steps > 1:
            a, q, k = moments.shape
            return np.asarray((self._inverse @ moments.reshape(a * q, k)).reshape(a, q, k))
        each, together = self._inverses
        found = each @ moments
        return np.asarray(found + each @ (together @ found.sum(axis=0)))

    def value_range(self, policy: Policy) -> tuple[FloatArray, FloatArray]:
        """(k,) the least and the largest value that costs and the horizon allow."""
        log = self.rows.log
        costs = log.costs(policy)
        low, high = np.minimum(costs.min(axis=0), 0.0), np.maximum(costs.max(axis=0), 0.0)
        gamma = log.discount
        if gamma < 1:
            steps = 1 / (1 - gamma) if not log.ended.all() else (1 - gamma**log.horizon) / (1 - gamma)
        else:
            steps = float(log.horizon)
        return low * steps, high * steps

    def follow(self, policy: Policy, start: Followed | None = None) -> Followed:
        """Value a policy that is no mixture, once; start: one that is near."""
        if id(policy) not in self._kept:
            probabilities = probabilities_at(policy, self.rows, self.features)
            weights = self._evaluate(policy, probabilities, None if start is None else start.weights)
            own = policy is self.behavior
            ratios = np.ones(len(self.rows.following)) if own else self.ratios(self.rows, probabilities)
            density = self._density(ratios, self.rows.known)
            self._kept[id(policy)] = policy, Followed(policy, weights, density, ratios)
        return self._kept[id(policy)][1]

    def beyond_first_order(self, followed: Followed, lag: int) -> FloatArray:
        """(q,) how much more often a policy comes to states than `come_before` says of them on average, to the log's.

        Of states that `lag` more rows follow, or the end.
        """
        log = self.rows.log
        used, weighted, gram = self._followed_by(lag)
        density = followed.density if log.ended.all() else self._density(followed.ratios, used)
        return np.asarray(density - np.linalg.solve(gram, weighted.T @ come_before(log, followed.ratios)))

    def _followed_by(self, lag: int) -> tuple[BoolArray, FloatArray, FloatArray]:
        """(n,) rows that `lag` more follow, or the end; their weighted features (n, q) and what these make (q, q)."""
        if lag not in self._regressions:
            log, own, used = self.rows.log, self.rows.own, self.rows.known
            if not log.ended.all():
                left = np.repeat(log.lengths, log.lengths) - log.step  # rows from each to the last of its episode
                used = used & (log.ended[log.episode] | (left > lag))
            weighted = own * (self.rows.row_weights * used)[:, None]
            self._regressions[lag] = used, weighted, weighted.T @ own + np.eye(own.shape[1])
        return self._regressions[lag]

    def _evaluate(self, policy: Policy, probabilities: FloatArray, start: FloatArray | None) -> FloatArray:
        """Return Q (A, q, k) by fitted evaluation; where values leave what costs allow, with values held inside."""
        low, high = self.value_range(policy)
        weights = self._iterated(policy, probabilities)
        if weights is not None:
            values = expected(self.rows.features, probabilities, weights)
            room = BEYOND * (high - low)
            if ((values < low - room) | (values > high + room)).mean(axis=0).max() <= SELDOM:
                return weights
            start = weights
        return self._held_inside(policy, probabilities, low, high, start)

    def _iterated(self, policy: Policy, probabilities: FloatArray) -> FloatArray | None:
        """Iterate w <- immediate + M w as often as the horizon asks, by doubling; None where that diverges."""
        log, features, following = self.rows.log, self.rows.features, self.rows.following
        blocks, weighted = self._regression
        a, q = log.n_actions, features.shape[1]
        costs = log.costs(policy)
        moments = np.stack([part.T @ costs[block] for block, part in zip(blocks, weighted, strict=True)])
        immediate = self._fitted(moments)
        if self.steps == 1:
            return immediate
        crossed = np.zeros((a, q, a, q))
        for action, (block, part) in enumerate(zip(blocks, weighted, strict=True)):
            for rows in np.array_split(np.arange(block.size), max(1, block.size * a * q // CHUNK)):
                at = following[block[rows]]
                ahead = features[at] * log.continuation[block[rows], None]
                each = (probabilities[at][:, :, None] * ahead[:, None, :]).reshape(rows.size, a * q)
                crossed[action] += (part[rows].T @ each).reshape(q, a, q)
        power = self._inverse @ crossed.reshape(a * q, a * q)
        found = immediate.reshape(a * q, -1)
        largest = np.abs(found).max()
        for _ in range(math.ceil(math.log2(self.steps))):
            found, power = found + power @ found, power @ power
            if not np.abs(found).max() <= DIVERGED * largest:
                return None
        return np.asarray(found.reshape(a, q, -1))

    @property
    def steps(self) -> int:
        """How many steps values look ahead: to the end of the longest episode, or until little is left."""
        log = self.rows.log
        if log.ended.all() or log.discount == 1:
            return log.horizon
        return max(log.horizon, math.ceil(math.log(LEFT) / math.log(log.discount)))

    def _held_inside(
        self, policy: Policy, probabilities: FloatArray, low: FloatArray, high: FloatArray, start: FloatArray | None
    ) -> FloatArray:
        """Return Q (A, q, k) by fitted evaluation whose targets never leave what costs allow."""
        log, features, following = self.rows.log, self.rows.features, self.rows.following
        blocks, weighted = self._regression
        costs, ahead = log.costs(policy), log.continuation[:, None]
        a, q, k = log.n_actions, features.shape[1], costs.shape[1]
        spread = np.where(costs.std(axis=0) > 0, costs.std(axis=0), 1.0)
        w = np.zeros((a, q, k)) if start is None else start
        used = np.unique(following)
        place = np.searchsorted(used, following)
        there, chances = features[used], probabilities[used]
        for _ in range(min(self.steps, ITERATIONS)):
            values = np.clip(expected(there, chances, w), low, high)
            targets = costs + ahead * values[place]
            moments = np.stack([part.T @ targets[block] for part, block in zip(weighted, blocks, strict=True)])
            before, w = w, self._fitted(moments)
            if np.abs((w - before) / spread).max() < SETTLED:
                break
        return w

    def ratios(self, rows: FeatureRows, probabilities: FloatArray) -> FloatArray:
        """(n,) policy / behavior of what was done; logged propensities where there are any."""
        log, n = rows.log, len(rows.following)
        chosen = probabilities[np.arange(n), log.actions]
        logged = log.problem.dataset.propensities
        if logged is not None:
            return np.asarray(chosen / logged[log.rows])
        behavior = probabilities_at(self.behavior, rows, self.features)[np.arange(n), log.actions]
        return np.asarray(chosen / np.maximum(behavior, 1e-4))

    def _density(self, ratios: FloatArray, used: BoolArray) -> FloatArray:
        """Solve for the density ratio to the rows used: discounted arrivals equal departures in every feature."""
        rows = self.rows
        weighted = rows.own * (rows.row_weights * used)[:, None] / self.episodes
        ahead = rows.features[rows.following] * (rows.log.continuation * ratios)[:, None]
        chain = weighted.T @ (rows.own - ahead) + np.eye(rows.own.shape[1]) / self.episodes
        begins = rows.start_weights @ rows.features[rows.starts]
        return np.asarray(np.linalg.solve(chain.T, begins), np.float64)


def come_before(log: Episodes, ratios: FloatArray) -> FloatArray:
    """(n,) the discount since the start, times one and what the ratios before each row exceed one by."""
    excess = np.cumsum(ratios - 1.0) - (ratios - 1.0)  # before each row, of all episodes before as well
    return np.asarray(log.factors * (1.0 + excess - np.repeat(excess[log.begins], log.lengths)))


def probabilities_at(policy: Policy, rows: FeatureRows, features: LearnedFeatures) -> FloatArray:
    """(N, A) of a policy; one over the same features is not asked to map states again."""
    if isinstance(policy, LogisticPolicy | TiltedPolicy) and policy.features is features:
        return policy.of_features(rows.features)
    return probabilities_of(policy, rows.states, rows.log.n_actions)


def expected(
    features: FloatArray,
    probabilities: FloatArray,
    weights: FloatArray,
    within: tuple[FloatArray, FloatArray] | None = None,
) -> FloatArray:
    """(n, k) values of a policy: sum_a pi(a | s) Q(s, a); within: (k,) what each Q is held inside.

    A score is unbiased only if V is the policy's mean of the very Q that is subtracted: so Q is held inside, never V.
    """
    found = np.zeros((len(features), weights.shape[2]))
    for action, chances in zip(weights, probabilities.T, strict=True):
        q = features @ action
        found += chances[:, None] * (q if within is None else np.clip(q, *within))
    return found
