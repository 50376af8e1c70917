"""Learning inside a fold where states are numbers: behavior, tilted towards less cost as far as an aim allows.

A tilt is minus Q of the objective and of every constraint, each at a price: the best response to these prices with
behavior as prior. Prices of constraints are found by what a policy near the last one would be worth, to first order;
then it is valued, and tilted once more.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.certification.moments import SUSPECT
from checkrein.certification.past import past_tested
from checkrein.evaluation.estimate import standard_errors
from checkrein.evaluation.feature_one_step import FeatureNuisances, FeatureRows, Followed, probabilities_at
from checkrein.evaluation.feature_scores import Remembered, behavior_scores, score
from checkrein.evaluation.scores import JudgedScores
from checkrein.functions.learned_features import learn_features
from checkrein.policies.tilted import TiltedPolicy, tilted
from checkrein.problem import Episodes, Problem
from checkrein.protocols import Policy
from checkrein.selection.learning import Aim

BOLDEST = 8.0  # standard deviations of advantages in log-odds: the price of the objective at distance 1
DEAREST = 64.0  # and the most that a constraint may be priced
ROUNDS = 2  # of valuing and tilting
SWEEPS, HALVINGS = 3, 12  # of the search for prices
DENSE = 0.95  # share of rows in whose states tilts count in full
SAMPLED = 20_000  # rows that the search looks at


def state_is_enough(problem: Problem) -> bool:
    """Say whether nothing speaks against it, as far as could be tested: the past tells no more than the state does."""
    log = Episodes.of(problem)
    if log.horizon == 1:
        return True
    found = past_tested(problem, learn_features(log, np.random.default_rng(0)))
    return found is not None and found.tested.p >= SUSPECT


class FeatureFold:
    """A part of the episodes, and policies learned from all others.

    enough: whether the state says all that matters; if not, episodes are weighed by all that was done in them
    """

    def __init__(self, mine: Problem, others: Problem, seed: int, *, enough: bool) -> None:
        self.mine, self.others = mine, others
        self.enough = enough
        self.rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(3,)))
        learning, judging = len(Episodes.of(mine)), len(Episodes.of(others))
        self.share = learning / (learning + judging)
        self.trouble = ""

    def begun(self) -> "FeatureFold":
        """Return it with features and behavior learned."""
        features = learn_features(Episodes.of(self.mine), self.rng)
        self.nuisances = FeatureNuisances(self.mine, features)
        self.judged = FeatureRows.of(self.others, features)
        self.behavior = self.nuisances.follow(self.nuisances.behavior)
        self.behavior_scores = behavior_scores(self.nuisances, self.judged)
        own = self.nuisances.rows.own
        norms = np.einsum("nq,nq->n", own, own)
        self.dense = float(np.quantile(norms, DENSE))
        n = len(norms)
        self.sampled = np.arange(n) if n <= SAMPLED else np.sort(self.rng.choice(n, SAMPLED, replace=False))
        return self

    @property
    def ready(self) -> bool:
        """Whether policies can be learned."""
        return True

    def loosen(self) -> bool:
        """There is no other rule."""
        return False

    def score(self, policy: Policy) -> JudgedScores:
        """Let the fold's own episodes judge: by weights of two kinds if the state is enough, else by all that was done.

        What forgets the past is corrected to second order, what remembers some of it need not be; each is right where
        the other may err.
        """
        kinds: list[tuple[Remembered, bool]] = [("nothing", True), ("some", False)]
        if not self.enough:
            kinds = [("everything", False)]
        found = [score(self.nuisances, self.judged, policy, past=past, second_order=second) for past, second in kinds]
        return JudgedScores(tuple(one.scores for one in found), found[0].exposure)

    def learned(self, aim: Aim) -> Policy | None:
        """Learn a policy; None where the aim cannot be met."""
        nuisances, limits = self.nuisances, self.mine.limits
        followed, policy = self.behavior, None
        for _ in range(ROUNDS):
            values, errors = self._valued(followed)
            tilt = self._tilt(followed, aim.distance * BOLDEST, limits - aim.margin * errors[1:] - values[1:])
            if tilt is None:
                return None
            policy = TiltedPolicy(nuisances.features, nuisances.behavior.weights, tilt, self.dense)
            followed = nuisances.follow(policy, start=followed)
        return policy

    def _valued(self, followed: Followed) -> tuple[FloatArray, FloatArray]:
        """Return the values (k,) of a policy as the learning episodes say, and errors to be expected of all folds."""
        log = self.nuisances.rows.log
        if followed is self.behavior:
            scores = behavior_scores(self.nuisances, self.nuisances.rows)
        else:
            past: Remembered = "some" if self.enough else "everything"
            scores = score(self.nuisances, self.nuisances.rows, followed.policy, past=past).scores
        values = log.mean(scores)
        errors = standard_errors(log.unit_means(scores - values), log.unit_weights)
        return values, np.sqrt(self.share) * errors

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
        gains = np.einsum("n,nak->nak", visits, centred)

        def change(prices: FloatArray) -> FloatArray:
            chances = tilted(features, behavior, -(centred @ (prices / scales)), self.dense)
            return np.asarray(np.einsum("na,nak->k", chances - now, gains)[1:])

        prices = np.append(price if self.mine.objective is not None else 0.0, np.zeros(k - 1))
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
