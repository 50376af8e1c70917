"""Where to aim so that a policy has a chance to pass: limits and a support rule chosen inside the learning part.

A policy learned at a limit lies above it on other episodes half of the time or more: chance favoured it where it was
chosen, and a bound asks for room. Learning on some of the episodes and judging on others shows how much.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy  # its parts are loaded when first used

from checkrein.base.arrays import FloatArray, require_counts
from checkrein.base.errors import ArgumentError, DivergenceError, EndlessPolicyError
from checkrein.certification.bounds import Method, method_of
from checkrein.certification.intervals import Interval
from checkrein.certification.rare import allow_for_missed, visits_allowed_for
from checkrein.evaluation.shrinkage import Shrinkage
from checkrein.policies import Support
from checkrein.problem import AtMost, Episodes, Problem
from checkrein.protocols import Policy
from checkrein.selection.folds import parts_of, require_folds, tightened

COUNTS = (1.0, 3.0, 10.0, 30.0, 100.0)  # occurrences that an action may need in a finite state
CHANCES = (0.01, 0.05, 0.2)  # and the behavior probability that it may need elsewhere
POWER = 0.9  # the chance to pass that is aimed at
CLOSE = 0.25  # standard errors that a prediction may keep from the limit
ADJUSTMENTS, FEWER = 4, 2  # times that the margin is measured anew: tables are quick, other classes are not

Learn = Callable[[Problem, Support], Policy]


@dataclass(frozen=True)
class MarginChoice:
    """What to learn with: a support rule, and constraints with room under their limits."""

    support: Support
    constraints: tuple[AtMost, ...]  # to aim at
    predicted: dict[str, float]  # the bounds that are then expected, with a chance of POWER not to be exceeded
    predicted_to_pass: bool  # whether these keep the limits


@dataclass(frozen=True, eq=False)
class _Trial:
    """One support rule, judged by cross-validation."""

    support: Support
    margins: FloatArray  # (m,)
    objective: float
    predicted: FloatArray  # (m,)
    excess: float  # of the worst constraint, in standard errors; at most 0 where all are predicted to pass


def choose_margins(
    problem: Problem,
    learn: Learn,
    *,
    held_out: int,
    confidence: float = 0.95,
    method: str | Method | None = None,
    supports: Sequence[Support] | None = None,
    folds: int = 2,
    adjustments: int | None = None,
    seed: int = 0,
) -> MarginChoice:
    """Choose the support rule and the margins under which policies do best among those that are likely to pass.

    problem: the learning part alone
    learn: returns a policy for a problem and a support rule
    held_out: how many episodes (clusters, where the log has them) the policy will be judged on
    supports: to choose from; by default several thresholds
    adjustments: times that the margin is measured anew; by default several, more of them in finite states
    """
    require_counts(held_out=held_out)
    require_folds(problem, folds, confidence)
    chosen = method_of(method, problem)
    tries = _tries(problem, adjustments)
    share = (1 - confidence) / problem.n_constraints
    ratio = held_out / Episodes.of(problem).n_units  # what is measured here errs, too, by as much as these are fewer
    width = float(scipy.stats.norm.ppf(1 - share) + scipy.stats.norm.ppf(POWER) * np.sqrt(1 + ratio))
    parts = parts_of(problem, folds, seed)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
    trials: list[_Trial] = []
    for support in supports if supports is not None else _candidates(problem):
        trial = _try(
            problem, learn, support, parts, chosen, share=share, width=width, held_out=held_out, tries=tries, rng=rng
        )
        trials += [] if trial is None else [trial]
    if not trials:
        raise ArgumentError("no support rule leads to policies that can be valued on other episodes: log more")
    best = min(trials, key=_rank)
    return MarginChoice(
        support=best.support,
        constraints=tightened(problem, best.margins),
        predicted={c.name: float(c.sign * bound) for c, bound in zip(problem.constraints, best.predicted, strict=True)},
        predicted_to_pass=best.excess <= 0,
    )


def most_attempts(
    problem: Problem, supports: Sequence[Support] | None = None, folds: int = 2, adjustments: int | None = None
) -> int:
    """Return how often `choose_margins` learns at the most; arguments as there."""
    rules = _candidates(problem) if supports is None else supports
    return _tries(problem, adjustments) * folds * len(rules)


def _tries(problem: Problem, adjustments: int | None) -> int:
    """Return how often a margin is measured under one rule, at the most."""
    usual = FEWER if problem.dataset.n_states is None else ADJUSTMENTS
    return 1 + (usual if adjustments is None else adjustments)


def _try(
    problem: Problem,
    learn: Learn,
    support: Support,
    parts: list[tuple[Problem, Problem]],
    method: Method,
    *,
    share: float,
    width: float,
    held_out: int,
    tries: int,
    rng: np.random.Generator,
) -> _Trial | None:
    """Learn on all folds but one and judge on that one, widening the margins until the predicted bounds fit.

    What a policy loses on episodes that did not choose it shrinks as more do: on all, by the share that a fold lacks.
    """
    margins, best = np.zeros(problem.n_constraints), None
    for _ in range(tries):
        judged = []
        for mine, others in parts:
            scale = len(Episodes.of(mine)) / len(Episodes.of(problem))
            rule = replace(support, min_count=max(scale * support.min_count, min(support.min_count, 1.0)))
            try:
                policy = learn(replace(mine, constraints=tightened(mine, margins)), rule)
                values, errors = method.estimate(others, policy, rng=rng)
                chosen_for, _ = method.estimate(mine, policy, rng=rng)
                missed = _missed(others, policy, method, errors[1:], share)
            except (DivergenceError, EndlessPolicyError):
                return best
            expected = chosen_for + scale * (values - chosen_for)
            fewer = Episodes.of(others).n_units / held_out
            judged.append((expected, errors * np.sqrt(fewer), missed * fewer**2))  # what a pair lacks is soon there
        values, errors, missed = (np.mean(column, axis=0) for column in zip(*judged, strict=True))
        predicted = values[1:] + width * errors[1:] + missed
        over = predicted - problem.limits
        excess = float((over / np.where(errors[1:] > 0, errors[1:], 1.0)).max())
        trial = _Trial(support, margins, float(values[0]), predicted, excess)
        best = trial if best is None else min(best, trial, key=_rank)
        if -CLOSE <= excess <= 0:
            break
        margins = np.maximum(margins + over, 0)  # less, too, where there was more room than needed
        if (margins == trial.margins).all():
            break
    return best


def _missed(problem: Problem, policy: Policy, method: Method, errors: FloatArray, alpha: float) -> FloatArray:
    """(m,) what a bound with these standard errors will allow for rare events."""
    visits, nothing = visits_allowed_for(problem, policy, method), np.zeros_like(errors)
    if visits is None:
        return nothing
    plain = Interval(nothing, errors, nothing, nothing)
    return allow_for_missed(plain, Shrinkage.of(problem).both(visits, slice(1, None)), alpha).upper


def _rank(trial: _Trial) -> tuple[float, float]:
    """Order trials: those predicted to pass by their objective, then the others by how far they are from it."""
    return (0.0, trial.objective) if trial.excess <= 0 else (1.0, trial.excess)


def _candidates(problem: Problem) -> list[Support]:
    if problem.dataset.n_states is None:
        return [Support(min_probability=chance) for chance in CHANCES]
    return [Support(min_count=count) for count in COUNTS]
