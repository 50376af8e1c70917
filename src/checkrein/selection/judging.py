"""Judging policies by folds: each by the episodes that it was not learned from, all together as one mixture."""

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from checkrein.base.arrays import FloatArray, frozen
from checkrein.certification.assumptions import assumption_checks
from checkrein.certification.certificate import Certificate
from checkrein.certification.certify import alpha_spent, certificate_of
from checkrein.certification.diagnostics import (
    Check,
    enough_episodes,
    influence_concentration,
    little_beyond,
    seldom_unsupported,
    zero_variance,
)
from checkrein.certification.intervals import Interval, johnson_t
from checkrein.certification.objective import JudgedObjective, judge_objectives
from checkrein.certification.rare import allow_for_missed
from checkrein.evaluation.one_step import ScoresFrom
from checkrein.evaluation.scores import Exposure, JudgedScores
from checkrein.policies import MixturePolicy, members_of
from checkrein.problem import Episodes, Problem
from checkrein.protocols import Policy
from checkrein.selection.judged_episodes import JudgedEpisodes

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


class JudgedFold(Protocol):
    """A part of the episodes, and policies learned from all others."""

    @property
    def others(self) -> Problem:
        """The part itself, whose episodes judge."""
        ...

    @property
    def behavior_scores(self) -> FloatArray:
        """(e, 1 + m) what its episodes say of behavior."""
        ...

    def score(self, policy: Policy) -> JudgedScores:
        """Let its episodes judge a policy that was learned without them."""
        ...


@runtime_checkable
class FoldOfStates(Protocol):
    """A part of finite states: it can value a policy from some of them on."""

    def score_from(self, policy: Policy) -> ScoresFrom:
        """Let its episodes judge a policy from some states on."""
        ...


class Scores(NamedTuple):
    """What all episodes say of policies, one for each fold, that were learned without them."""

    policy: MixturePolicy  # draws one of them for each episode
    weights: FloatArray  # (u,) of units: of episodes, or of clusters, which folds hold whole
    ways: tuple[FloatArray, ...]  # each (u, 1 + m): scores by one or more ways to weigh; a claim must hold by all
    behavior: FloatArray  # (u,) what they say of behavior's objective
    exposure: Exposure  # what single rows count for
    unsupported: float
    max_density_ratio: float
    episodes: JudgedEpisodes  # the same, before clusters are put together

    @classmethod
    def of(cls, parts: Sequence[JudgedFold], policies: Sequence[Policy]) -> "Scores":
        """Score each fold's policy by the fold's episodes."""
        scored = [part.score(one) for part, one in zip(parts, policies, strict=True)]
        judging = [Episodes.of(part.others) for part in parts]
        shares = np.array([episodes.weights.sum() for episodes in judging])
        shares = shares / shares.sum()
        ways = list(zip(*(one.ways for one in scored), strict=True))
        weights, behavior = _behavior(parts)
        by_episode = tuple(np.concatenate(way) for way in ways)
        by_unit = (
            by_episode
            if all(log.problem.dataset.clusters is None for log in judging)
            else tuple(
                np.concatenate([log.unit_means(one) for log, one in zip(judging, way, strict=True)]) for way in ways
            )
        )
        exposures = [one.exposure.times(share) for share, one in zip(shares.tolist(), scored, strict=True)]
        return cls(
            _mixed(policies, shares),
            weights,
            by_unit,
            behavior[:, 0],
            reduce(lambda one, other: one + other, exposures),
            float(shares @ [one.unsupported for one in scored]),
            max(one.max_density_ratio for one in scored),
            JudgedEpisodes(
                judging, by_episode, [part.behavior_scores for part in parts], _from_states(parts, policies)
            ),
        )

    @property
    def values(self) -> FloatArray:
        """(1 + m,) of the objective and every constraint."""
        return self._mean(self.ways[0])

    def _mean(self, scores: FloatArray) -> FloatArray:
        return np.asarray(self.weights @ scores / self.weights.sum())

    def judge(self, problem: Problem, level: Level) -> Certificate:
        """Hold all constraints against their limits."""
        finite = problem.dataset.n_states is not None
        each = level.alpha / (problem.n_constraints if finite else 1)  # that all pass is wrong as seldom as each
        missed = self.exposure.missed(problem, slice(1, None))
        plain = self._widest(
            [johnson_t((way - self._mean(way))[:, 1:], self._mean(way)[1:], self.weights, each) for way in self.ways]
        )
        interval = allow_for_missed(plain, missed, each)
        words = f"{self.unsupported:.2%} of the policies' decisions have no evidence where they were learned"
        checks: list[Check] = [enough_episodes(problem), seldom_unsupported(self.unsupported, words)]
        close = problem.limits - interval.estimates < CLEAR * interval.standard_errors
        alone = close & (np.max([one.informed for one in missed], axis=0) < INFORMED)
        if alone.any():
            pulls = self.weights[:, None] * (self.ways[0] - self.values)
            checks.append(influence_concentration(pulls[:, 1:][:, alone], DECIDING))
        checks += zero_variance(
            problem, self.policy, interval, level.alpha, lambda: len(self.weights) / max(self.max_density_ratio, 1.0)
        )
        checks += assumption_checks(problem)
        checks += [] if finite else [little_beyond(problem)]
        return certificate_of(
            self.policy,
            problem,
            interval,
            checks,
            plain=plain,
            method=METHOD,
            guarantee="asymptotic" if finite else "heuristic",
            confidence=level.confidence,
            look=level.look,
            seed=level.seed,
        )

    @staticmethod
    def _widest(found: Sequence[Interval]) -> Interval:
        """Return the first interval, with the bounds that all of them are within."""
        lower, upper = np.min([one.lower for one in found], axis=0), np.max([one.upper for one in found], axis=0)
        return found[0]._replace(lower=lower, upper=upper)


def _from_states(parts: Sequence[JudgedFold], policies: Sequence[Policy]) -> Callable[[], Sequence[ScoresFrom]] | None:
    """Return how folds value their policies from some states on, where they can; nothing is computed yet."""
    able = [part for part in parts if isinstance(part, FoldOfStates)]
    if len(able) < len(parts):
        return None
    return partial(_scores_from, able, policies)


def _scores_from(parts: Sequence[FoldOfStates], policies: Sequence[Policy]) -> list[ScoresFrom]:
    return [part.score_from(one) for part, one in zip(parts, policies, strict=True)]


def objectives_of(problem: Problem, scored: Sequence[Scores], level: Level) -> list[JudgedObjective]:
    """Hold the objectives of several policies against behavior's; what is said of them holds of all at once."""
    found: list[list[JudgedObjective]] = []
    for way in range(len(scored[0].ways)):
        rng = np.random.default_rng(np.random.SeedSequence(level.seed, spawn_key=(2,)))
        gains = np.column_stack([one.ways[way][:, 0] - one.behavior for one in scored])
        estimates = np.array([one.weights @ one.ways[way][:, 0] / one.weights.sum() for one in scored])
        missed = [one.exposure.missed(problem, slice(1)) for one in scored]
        weights = scored[0].weights
        found.append(judge_objectives(problem, gains, estimates, weights, missed, alpha=level.alpha, rng=rng))
    return [_by_all(ways) for ways in zip(*found, strict=True)]


def _by_all(ways: Sequence[JudgedObjective]) -> JudgedObjective:
    """Return the first, with the bounds that all ways to weigh are within."""
    lower, upper = min(one.lower for one in ways), max(one.upper for one in ways)
    return ways[0].within(lower, upper)


def breaks_a_limit(problem: Problem, parts: Sequence[JudgedFold], level: Level) -> bool:
    """Say whether behavior itself is shown to break a limit."""
    weights, behavior = _behavior(parts)
    scores = behavior[:, 1:]
    values = weights @ scores / weights.sum()
    interval = johnson_t(scores - values, values, weights, level.alpha / problem.n_constraints)
    return bool((interval.lower > problem.limits).any())


def needed_by_behavior(problem: Problem, parts: Sequence[JudgedFold], level: Level) -> str:
    """Say how many episodes would show that behavior keeps its limits: what stays near it needs about as many."""
    log = Episodes.of(problem)
    weights, behavior = _behavior(parts)
    scores = behavior[:, 1:]
    values = np.asarray(weights @ scores / weights.sum())
    width = johnson_t(scores - values, values, weights, level.alpha).upper - values
    found = []
    for constraint, limit, value, wide in zip(problem.constraints, problem.limits, values, width, strict=True):
        if value >= limit:
            found.append(f"behavior itself is estimated to break {constraint.name}")
        elif value + wide > limit:
            count = math.ceil(log.n_units * (wide / (limit - value)) ** 2)
            found.append(
                f"behavior itself would need about {count:,} {log.unit_name}s to be shown to keep {constraint.name}"
            )
    return "; ".join(found)


def _behavior(parts: Sequence[JudgedFold]) -> tuple[FloatArray, FloatArray]:
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
