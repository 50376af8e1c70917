"""Judging policies by folds: each by the episodes that it was not learned from, all together as one mixture."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from checkrein.base.arrays import FloatArray, frozen
from checkrein.certification.assumptions import assumption_checks
from checkrein.certification.certificate import Certificate
from checkrein.certification.certify import alpha_spent, certificate_of
from checkrein.certification.diagnostics import (
    Check,
    enough_episodes,
    influence_concentration,
    seldom_unsupported,
    zero_variance,
)
from checkrein.certification.intervals import johnson_t
from checkrein.certification.objective import JudgedObjective, judge_objectives
from checkrein.certification.rare import allow_for_missed
from checkrein.evaluation.one_step import EpisodeScores
from checkrein.evaluation.shrinkage import Shrinkage
from checkrein.policies import MixturePolicy, members_of
from checkrein.problem import Episodes, Problem
from checkrein.protocols import Policy
from checkrein.selection.learning import Fold

METHOD = "one-step"
DECIDING = 10.0  # the effective sample size that a spread must rest on ...
CLEAR = 5.0  # ... unless so many standard errors lie between an estimate and its limit ...
INFORMED = 20.0  # ... or so many pairs say what the log may have missed


class Level(NamedTuple):
    """How sure a verdict is to be."""

    confidence: float
    look: int | None
    seed: int
    alpha: float  # what it may err by

    @classmethod
    def of(cls, confidence: float, look: int | None, seed: int) -> "Level":
        """Spend what a look may."""
        return cls(confidence, look, seed, alpha_spent(1 - confidence, look))


class Scores(NamedTuple):
    """What all episodes say of policies, one for each fold, that were learned without them."""

    policy: MixturePolicy  # draws one of them for each episode
    weights: FloatArray  # (u,) of units: of episodes, or of clusters, which folds hold whole
    scores: FloatArray  # (u, 1 + m)
    gains: FloatArray  # (u,) by how much the objective is above behavior's
    visits: FloatArray  # (S A,)
    unsupported: float
    max_density_ratio: float

    @classmethod
    def of(cls, parts: Sequence[Fold], policies: Sequence[Policy]) -> "Scores":
        """Score each fold's policy by the fold's episodes."""
        scored: list[EpisodeScores] = [
            part.tables.score(part.others, one) for part, one in zip(parts, policies, strict=True)
        ]
        judging = [Episodes.of(part.others) for part in parts]
        shares = np.array([episodes.weights.sum() for episodes in judging])
        shares = shares / shares.sum()
        scores = np.concatenate([log.unit_means(one.scores) for log, one in zip(judging, scored, strict=True)])
        weights, behavior = _behavior(parts)
        return cls(
            _mixed(policies, shares),
            weights,
            scores,
            scores[:, 0] - behavior[:, 0],
            np.asarray(sum(share * one.visits for share, one in zip(shares, scored, strict=True))),
            float(shares @ [one.unsupported for one in scored]),
            max(one.max_density_ratio for one in scored),
        )

    @property
    def values(self) -> FloatArray:
        """(1 + m,) of the objective and every constraint."""
        return np.asarray(self.weights @ self.scores / self.weights.sum())

    def judge(self, problem: Problem, level: Level) -> Certificate:
        """Hold all constraints against their limits."""
        values, each = self.values, level.alpha / problem.n_constraints
        plain = johnson_t((self.scores - values)[:, 1:], values[1:], self.weights, each)
        shrinkage, limited = Shrinkage.of(problem), slice(1, None)
        interval = allow_for_missed(plain, shrinkage, self.visits, limited, each)
        words = f"{self.unsupported:.2%} of the policies' decisions have no evidence where they were learned"
        checks: list[Check] = [enough_episodes(problem), seldom_unsupported(self.unsupported, words)]
        close = problem.limits - interval.estimates < CLEAR * interval.standard_errors
        alone = close & (shrinkage.missed(self.visits, limited).informed < INFORMED)
        if alone.any():
            checks.append(
                influence_concentration((self.weights[:, None] * (self.scores - values))[:, 1:][:, alone], DECIDING)
            )
        checks += zero_variance(
            problem, self.policy, interval, level.alpha, lambda: len(self.weights) / max(self.max_density_ratio, 1.0)
        )
        checks += assumption_checks(problem)
        return certificate_of(
            self.policy,
            problem,
            interval,
            checks,
            plain=plain,
            method=METHOD,
            guarantee="asymptotic",
            confidence=level.confidence,
            look=level.look,
            seed=level.seed,
        )


def objectives_of(problem: Problem, scored: Sequence[Scores], level: Level) -> list[JudgedObjective]:
    """Hold the objectives of several policies against behavior's; what is said of them holds of all at once."""
    gains = np.column_stack([one.gains for one in scored])
    visits = [one.visits for one in scored]
    rng = np.random.default_rng(np.random.SeedSequence(level.seed, spawn_key=(2,)))
    estimates = np.array([one.values[0] for one in scored])
    return judge_objectives(problem, gains, estimates, scored[0].weights, visits, alpha=level.alpha, rng=rng)


def breaks_a_limit(problem: Problem, parts: Sequence[Fold], level: Level) -> bool:
    """Say whether behavior itself is shown to break a limit."""
    weights, behavior = _behavior(parts)
    scores = behavior[:, 1:]
    values = weights @ scores / weights.sum()
    interval = johnson_t(scores - values, values, weights, level.alpha / problem.n_constraints)
    return bool((interval.lower > problem.limits).any())


def _behavior(parts: Sequence[Fold]) -> tuple[FloatArray, FloatArray]:
    """Return the weights (u,) of all folds' units, and what they say (u, 1 + m) of behavior."""
    judging = [Episodes.of(part.others) for part in parts]
    scores = [log.unit_means(part.behavior_scores) for log, part in zip(judging, parts, strict=True)]
    return np.concatenate([log.unit_weights for log in judging]), np.concatenate(scores)


def _mixed(policies: Sequence[Policy], shares: FloatArray) -> MixturePolicy:
    members = [
        (member, share * weight)
        for policy, share in zip(policies, shares, strict=True)
        for member, weight in members_of(policy)
        if weight > 0
    ]
    return MixturePolicy(tuple(member for member, _ in members), frozen(np.array([weight for _, weight in members])))
