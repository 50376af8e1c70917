"""Behavior, tilted towards less cost as far as an aim allows, by what one part of a log says.

A tilt is minus Q of the objective and of every constraint, each at a price: the best response to these prices with
behavior as prior. Prices of constraints are found by what a policy near the last one would be worth, to first order;
then it is valued, and tilted once more.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.evaluation.estimate import standard_errors
from checkrein.evaluation.feature_one_step import FeatureNuisances, Followed, probabilities_at
from checkrein.evaluation.feature_scores import behavior_scores, score
from checkrein.functions.learned_features import LearnedFeatures
from checkrein.policies.tilted import TiltedPolicy, fading, tilted
from checkrein.problem import Problem
from checkrein.protocols import Policy
from checkrein.selection.learning import Aim

BOLDEST = 8.0  # standard deviations of advantages in log-odds: the price of the objective at distance 1
DEAREST = 64.0  # and the most that a constraint may be priced
ROUNDS = 2  # of valuing and tilting
SWEEPS, HALVINGS = 3, 8  # of the search for prices
DENSE = 0.95  # share of rows in whose states tilts count in full
SAMPLED = 6_000  # rows that the search looks at


class Valued(NamedTuple):
    """What learning episodes say of a policy."""

    values: FloatArray  # (k,)
    errors: FloatArray  # (k,) as all episodes together would have them


class Tilting:
    """One part of a log, from which policies near behavior are learned; share: what part of all episodes it has."""

    def __init__(self, problem: Problem, features: LearnedFeatures, share: float, rng: np.random.Generator) -> None:
        self.problem, self.share = problem, share
        self.nuisances = FeatureNuisances(problem, features)
        self.behavior = self.nuisances.follow(self.nuisances.behavior)
        own = self.nuisances.rows.own
        norms = np.einsum("nq,nq->n", own, own)
        self.dense = float(np.quantile(norms, DENSE))
        n = len(norms)
        self.sampled = np.arange(n) if n <= SAMPLED else np.sort(rng.choice(n, SAMPLED, replace=False))
        self.behavior_scores = behavior_scores(self.nuisances, self.nuisances.rows).scores
        self.begin = self._valued(self.behavior_scores)

    def learned(self, aim: Aim) -> Policy | None:
        """Learn a policy; None where the aim cannot be met."""
        base, found = self.behavior, self.begin
        for _ in range(ROUNDS):
            target = self.problem.limits - aim.margin * found.errors[1:]
            tilt = self._tilt(base, aim.distance * BOLDEST, target - found.values[1:])
            if tilt is None:
                return None
            last, before = base, found
            base, found = self._tilted(tilt, last)
        missed = found.values[1:] - target
        if (missed > found.errors[1:]).any():  # once more from where the last step began, by so much farther
            tilt = self._tilt(last, aim.distance * BOLDEST, target - before.values[1:] - np.maximum(missed, 0))
            if tilt is None:
                return None
            base, _ = self._tilted(tilt, last)
        return base.policy

    def _tilted(self, tilt: FloatArray, start: Followed) -> tuple[Followed, Valued]:
        """Value behavior with a tilt."""
        policy = TiltedPolicy(self.nuisances.features, self.nuisances.behavior.weights, tilt, self.dense)
        followed = self.nuisances.follow(policy, start=start)
        return followed, self._valued(score(self.nuisances, self.nuisances.rows, policy).scores)

    def _valued(self, scores: FloatArray) -> Valued:
        log, values = self.nuisances.rows.log, self.nuisances.rows.log.mean(scores)
        errors = standard_errors(log.unit_means(scores - values), log.unit_weights)
        return Valued(values, np.sqrt(self.share) * errors)

    def _tilt(self, followed: Followed, price: float, room: FloatArray) -> FloatArray | None:
        """(q, A) the tilt that takes up to `room` (m,) more of each constraint than a policy does; None: none does."""
        nuisances, rows = self.nuisances, self.sampled
        features = nuisances.rows.own[rows]
        behavior = nuisances.behavior.of_features(features)
        now = probabilities_at(followed.policy, nuisances.rows, nuisances.features)[rows]
        a, q, k = followed.weights.shape
        each = (features @ followed.weights.transpose(1, 0, 2).reshape(q, a * k)).reshape(-1, a, k)
        centred = each - np.einsum("na,nak->nk", behavior, each)[:, None]
        visits = np.maximum(features @ followed.density, 0.0) * nuisances.rows.row_weights[rows]
        visits *= len(nuisances.rows.own) / len(rows) / nuisances.episodes
        base = nuisances.rows.row_weights[rows]
        variances = np.einsum("n,na,nak->k", base, behavior, centred**2) / base.sum()
        scales = np.sqrt(np.where(variances > 0, variances, 1.0))
        gains = (visits[:, None, None] * centred).reshape(-1, k)
        counts, before = fading(features, self.dense), now.ravel() @ gains

        def change(prices: FloatArray) -> FloatArray:
            chances = tilted(behavior, -(centred @ (prices / scales)), counts)
            return np.asarray((chances.ravel() @ gains - before)[1:])

        prices = np.append(price if self.problem.objective is not None else 0.0, np.zeros(k - 1))
        for _ in range(SWEEPS):
            for i in range(1, k):
                prices[i] = _least(partial(_keeps, change, prices.copy(), i, room[i - 1]))
        if not (change(prices) <= room + 1e-9 * np.abs(room)).all():
            return None
        return -np.einsum("aqk,k->qa", followed.weights, prices / scales)


def _keeps(change: Callable[[FloatArray], FloatArray], prices: FloatArray, i: int, room: float, price: float) -> bool:
    """Say whether a constraint stays within its room at a price of its own, all others given."""
    prices[i] = price
    return bool(change(prices)[i - 1] <= room)


def _least(keeps: Callable[[float], bool]) -> float:
    """Return the least price that keeps a limit, to a few digits; the dearest where none does."""
    if keeps(0.0):
        return 0.0
    low, high = 0.0, 0.25
    while not keeps(high):
        if high >= DEAREST:
            return DEAREST
        low, high = high, 2 * high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return high
