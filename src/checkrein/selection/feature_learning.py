"""Learning inside a fold where states are numbers: policies near behavior, which the fold's own episodes then judge.

What the episodes that a policy was learned from do not themselves show to keep the limits, and to be better than
behavior, is left out: others would hardly show it.
"""

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.certification.intervals import johnson_t, student
from checkrein.certification.rare import allow_for_missed
from checkrein.evaluation.estimate import standard_errors
from checkrein.evaluation.feature_choice import choose_features
from checkrein.evaluation.feature_one_step import FeatureRows
from checkrein.evaluation.feature_scores import behavior_scores, score
from checkrein.evaluation.known_weights import known_propensities
from checkrein.evaluation.scores import JudgedScores
from checkrein.problem import Episodes, Problem
from checkrein.protocols import Policy
from checkrein.selection.judging import CLEAR, DECIDING
from checkrein.selection.learning import Aim
from checkrein.selection.tilting import Tilting


class FeatureFold:
    """A part of the episodes, and policies learned from all others."""

    remembered: FloatArray | None

    def __init__(self, mine: Problem, others: Problem, seed: int, alpha: float = 0.05) -> None:
        self.mine, self.others, self.alpha = mine, others, alpha
        self.rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(3,)))
        learning, judging = len(Episodes.of(mine)), len(Episodes.of(others))
        self.share = learning / (learning + judging)
        self.trouble = ""

    def begun(self) -> "FeatureFold":
        """Return it with features and behavior learned."""
        features = choose_features(self.mine, self.rng)
        self.learner = Tilting(self.mine, features, self.share, self.rng)
        self.judged = FeatureRows.of(self.others, features)
        behavior = behavior_scores(self.learner.nuisances, self.judged)
        self.behavior_scores, self.remembered = behavior.scores, behavior.remembered
        return self

    @property
    def ready(self) -> bool:
        """Whether policies can be learned."""
        return True

    def loosen(self) -> bool:
        """There is no other rule."""
        return False

    def score(self, policy: Policy) -> JudgedScores:
        """Let the fold's own episodes judge."""
        return _judged(self.learner, self.judged, policy)

    def learned(self, aim: Aim) -> Policy | None:
        """Learn a policy; None where the aim cannot be met, or the learning episodes themselves would not pass it."""
        policy = self.learner.learned(aim)
        return None if policy is None or not self._promising(policy) else policy

    def _promising(self, policy: Policy) -> bool:
        """Say whether the learning episodes would pass a policy, were they as many as will judge."""
        rows, limits = self.learner.nuisances.rows, self.mine.limits
        weights, behavior = rows.log.unit_weights, rows.log.unit_means(self.learner.behavior_scores)
        scored = _judged(self.learner, rows, policy)
        missed = scored.exposure.missed(self.mine, slice(1, None))
        scores, values = rows.log.unit_means(scored.scores), rows.log.mean(scored.scores)
        plain = johnson_t((scores - values)[:, 1:], values[1:], weights, self.alpha)
        width = np.sqrt(self.share) * (allow_for_missed(plain, missed, self.alpha).upper - values[1:])
        told = _rests(weights[:, None] * (scores - values)[:, 1:]) >= self.share * DECIDING
        told |= limits - values[1:] >= CLEAR * plain.standard_errors
        if not ((values[1:] + width <= limits) & told).all():
            return False
        if self.mine.objective is None:
            return True
        gain = scores[:, :1] - behavior[:, :1]
        mean = weights @ gain / weights.sum()
        return bool(student(mean, standard_errors(gain - mean, weights), weights, self.alpha).upper[0] < 0)


def _judged(learner: Tilting, rows: FeatureRows, policy: Policy) -> JudgedScores:
    found = score(learner.nuisances, rows, policy)
    known = None if known_propensities(rows.log.problem) is None else found.weights
    return JudgedScores(found.scores, found.exposure, known_weights=known)


def _rests(pulls: FloatArray) -> FloatArray:
    """(m,) how many units with equal shares would make a variance (u, m) what it is."""
    squares = pulls**2
    fourth = (squares**2).sum(axis=0)
    return np.divide(squares.sum(axis=0) ** 2, fourth, out=np.full(fourth.shape, np.inf), where=fourth > 0)
