"""Judging policies by folds: each by the episodes that it was not learned from, all together as one mixture."""

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from checkrein.base.arrays import FloatArray, frozen
from checkrein.certification.assumptions import assumption_checks, known_weights_checks
from checkrein.certification.certificate import Certificate
from checkrein.certification.certify import alpha_spent, certificate_of
from checkrein.certification.diagnostics import (
    Check,
    enough_episodes,
    influence_concentration,
    little_beyond,
    mean_weight,
    seldom_unsupported,
    zero_variance,
)
from checkrein.certification.intervals import johnson_t
from checkrein.certification.objective import JudgedObjective, judge_objectives
from checkrein.certification.rare import allow_for_missed
from checkrein.evaluation.estimate import standard_errors
from checkrein.evaluation.known_weights import known_propensities
from checkrein.evaluation.one_step import ScoresFrom
from checkrein.evaluation.scores import Exposure, JudgedScores
from checkrein.evaluation.shrinkage import Shrinkage
from checkrein.policies import MixturePolicy, members_of
from checkrein.problem import Episodes, Problem
from checkrein.protocols import Policy
from checkrein.selection.judged_episodes import PAIRED, JudgedEpisodes

METHOD = "one-step"
DECIDING = 10.0  # the effective sample size that a spread must rest on ...
CLEAR = 5.0  # ... unless so many standard errors lie between an estimate and its limit ...
INFORMED = 20.0  # ... or so many pairs say what the log may have missed
AT_THE_LIMIT = 1e-6  # of it: "100% of behavior" is computed in another way than what these episodes say of behavior


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

    remembered: FloatArray | None  # (e, 1 + m) what time and the past tell of behavior beyond its states, where asked

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


def ask_all(problem: Problem) -> None:
    """Find out what all candidates are held against, of finite states, before folds fill the memory."""
    if problem.dataset.n_states is not None:
        assumption_checks(problem)
        known_weights_checks(problem)
        Shrinkage.of(problem)


class Scores(NamedTuple):
    """What all episodes say of policies, one for each fold, that were learned without them."""

    policy: MixturePolicy  # draws one of them for each episode
    weights: FloatArray  # (u,) of units: of episodes, or of clusters, which folds hold whole
    scores: FloatArray  # (u, 1 + m)
    behavior: FloatArray  # (u, 1 + m) what they say of behavior
    remembered: FloatArray | None  # (u, 1 + m) and, where asked, what time and the past tell of it beyond its states
    exposure: Exposure  # what single rows count for
    unsupported: float
    max_density_ratio: float
    known_weights: FloatArray | None  # (u,) of single decisions whose propensities were logged
    episodes: JudgedEpisodes  # the same, before clusters are put together

    @classmethod
    def of(cls, parts: Sequence[JudgedFold], policies: Sequence[Policy]) -> "Scores":
        """Score each fold's policy by the fold's episodes."""
        scored = [part.score(one) for part, one in zip(parts, policies, strict=True)]
        judging = [Episodes.of(part.others) for part in parts]
        shares = np.array([episodes.weights.sum() for episodes in judging])
        shares = shares / shares.sum()
        weights, behavior = _behavior(parts)
        by_episode = np.concatenate([one.scores for one in scored])
        by_unit = (
            by_episode
            if all(log.problem.dataset.clusters is None for log in judging)
            else np.concatenate([log.unit_means(one.scores) for log, one in zip(judging, scored, strict=True)])
        )
        exposures = [one.exposure.times(share) for share, one in zip(shares.tolist(), scored, strict=True)]
        return cls(
            _mixed(policies, shares),
            weights,
            by_unit,
            behavior,
            _remembered(parts),
            reduce(lambda one, other: one + other, exposures),
            float(shares @ [one.unsupported for one in scored]),
            max(one.max_density_ratio for one in scored),
            _known_weights(judging, scored),
            JudgedEpisodes(
                judging, by_episode, [part.behavior_scores for part in parts], _from_states(parts, policies)
            ),
        )

    @property
    def values(self) -> FloatArray:
        """(1 + m,) of the objective and every constraint."""
        return np.asarray(self.weights @ self.scores / self.weights.sum())

    def judge(self, problem: Problem, level: Level) -> Certificate:
        """Hold all constraints against their limits."""
        finite = problem.dataset.n_states is not None
        missed, values = self.exposure.missed(problem, slice(1, None)), self.values
        influence = (self.scores - values)[:, 1:]
        shared = level.alpha / problem.n_constraints
        each = shared if finite else level.alpha  # a pass needs all bounds: it is wrong as seldom as each of them
        plain = johnson_t(influence, values[1:], self.weights, each)
        plain = plain._replace(lower=johnson_t(influence, values[1:], self.weights, shared).lower)  # a fail needs one
        plain = plain.widened(PAIRED)
        interval = allow_for_missed(plain, missed, each)
        words = f"{self.unsupported:.2%} of the policies' decisions have no evidence where they were learned"
        checks: list[Check] = [enough_episodes(problem), seldom_unsupported(self.unsupported, words)]
        close = problem.limits - interval.estimates < CLEAR * interval.standard_errors
        alone = close & (np.max([one.informed for one in missed], axis=0) < INFORMED)
        if alone.any():
            checks.append(influence_concentration((self.weights[:, None] * influence)[:, alone], DECIDING))
        checks += zero_variance(
            problem, self.policy, interval, level.alpha, lambda: len(self.weights) / max(self.max_density_ratio, 1.0)
        )
        checks += assumption_checks(problem)
        if self.known_weights is not None:
            checks += [mean_weight(self.known_weights, self.weights), *known_weights_checks(problem)]
        if not finite:
            spread = self.behavior - self.weights @ self.behavior / self.weights.sum()
            checks.append(little_beyond(problem, self.remembered, standard_errors(spread, self.weights)))
        return certificate_of(
            self.policy,
            problem,
            interval,
            checks,
            plain=plain,
            method=METHOD,
            guarantee="asymptotic" if finite or known_propensities(problem) is not None else "heuristic",
            confidence=level.confidence,
            look=level.look,
            seed=level.seed,
        )


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
    rng = np.random.default_rng(np.random.SeedSequence(level.seed, spawn_key=(2,)))
    gains = np.column_stack([one.scores[:, 0] - one.behavior[:, 0] for one in scored])
    estimates = np.array([one.values[0] for one in scored])
    missed = [one.exposure.missed(problem, slice(1)) for one in scored]
    return judge_objectives(
        problem, gains, estimates, scored[0].weights, missed, alpha=level.alpha, rng=rng, widen=PAIRED
    )


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
        if np.isclose(value, limit, rtol=AT_THE_LIMIT):
            found.append(f"behavior itself lies at the limit on {constraint.name}: what stays near it has no room")
        elif value > limit:
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


def _remembered(parts: Sequence[JudgedFold]) -> FloatArray | None:
    found = [Episodes.of(part.others).unit_means(part.remembered) for part in parts if part.remembered is not None]
    return np.concatenate(found) if len(found) == len(parts) else None


def _known_weights(judging: Sequence[Episodes], scored: Sequence[JudgedScores]) -> FloatArray | None:
    """(u,) of all folds' units; None where weights are estimated."""
    known = [one.known_weights for one in scored if one.known_weights is not None]
    if len(known) < len(scored):
        return None
    return np.concatenate([log.unit_means(one) for log, one in zip(judging, known, strict=True)])


def _mixed(policies: Sequence[Policy], shares: FloatArray) -> MixturePolicy:
    members = [
        (member, share * weight)
        for policy, share in zip(policies, shares, strict=True)
        for member, weight in members_of(policy)
        if weight > 0
    ]
    return MixturePolicy(tuple(member for member, _ in members), frozen(np.array([weight for _, weight in members])))
