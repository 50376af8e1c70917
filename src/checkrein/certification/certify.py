"""certify: judge a policy once, on episodes that did not choose it."""

import hashlib
import math
from collections.abc import Sequence

import numpy as np

from checkrein.base.errors import ArgumentError, DivergenceError, EndlessPolicyError
from checkrein.certification.assumptions import assumption_checks, calibration_checks
from checkrein.certification.bounds import BootstrapFQE, EpisodeScoreBound, Guarantee, Method, method_of
from checkrein.certification.certificate import Certificate, JudgedConstraint, Verdict
from checkrein.certification.diagnostics import ROUNDED, Check, copies_check, diagnose, like_episodes, zero_variance
from checkrein.certification.intervals import Interval
from checkrein.certification.objective import ByEpisode, JudgedObjective, judge_objective
from checkrein.certification.rare import allow_for_missed, visits_allowed_for
from checkrein.data.dataset import Dataset
from checkrein.evaluation.shrinkage import Shrinkage
from checkrein.policies import members_of, probabilities_of
from checkrein.problem import AtMost, Episodes, Problem
from checkrein.problem.outcomes import ends_of, outcomes_of
from checkrein.protocols import Cost, Policy

SHOWN = 10_000  # rows whose states tell one policy from another
FIRST = 0.8  # of the permitted error is for the first look at held-out data; all later ones share the rest


def certify(
    policy: Policy,
    dataset: Dataset,
    *,
    constraints: Sequence[AtMost],
    discount: float,
    objective: str | Cost | None = None,
    confidence: float = 0.95,
    method: str | Method | None = None,
    seed: int = 0,
    look: int | None = None,
) -> Certificate:
    """Judge whether a policy keeps its limits; `dataset` must not have been used to choose it.

    A pass is wrong with probability 1 - confidence at the most, all constraints together, as far as the method's
    guarantee goes. A mixture is judged as a mixture, which draws one member per episode. Where the dataset has
    `clusters`, these are what is independent: they are resampled whole, and counted in place of episodes. Episodes that
    are copies of others count once, and the certificate says so.

    objective: what is minimised; the certificate then says whether it is better than behavior's on the same episodes
        (at the same confidence, as a claim of its own)
    method: a name from `checkrein.certification.METHODS`, or a method; default: studentised refits of tabular FQE in
        finite states, studentised cross-fitted DR elsewhere
    look: the how-many-th use of these episodes; None says that there will be no other. The first of several may err
        with 4/5 of 1 - confidence, each later one with half of what is left, so that all together keep to it
    """
    if not 0.5 < confidence < 1:
        raise ArgumentError(f"confidence is {confidence}: it must lie above 0.5 and below 1")
    if not constraints:
        raise ArgumentError("there is nothing to certify: give at least one constraint")
    copies, dataset = dataset.copies, dataset.counted_once
    problem = Problem(dataset, objective=objective, constraints=constraints, discount=discount)
    chosen = method_of(method, problem)
    alpha = alpha_spent(1 - confidence, look)
    bounds_rng, checks_rng, objective_rng = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(3))
    checks = [*copies_check(copies), *diagnose(problem, policy, chosen, checks_rng)]
    checks += [*assumption_checks(problem), *calibration_checks(problem, chosen)]
    try:
        interval, plain = _bounded(problem, policy, chosen, alpha, bounds_rng)
    except (DivergenceError, EndlessPolicyError):  # the diagnostics say so
        interval = plain = Interval(*(np.full(problem.n_constraints, np.nan) for _ in Interval._fields))
    checks += zero_variance(problem, policy, interval, alpha, lambda: like_episodes(problem, policy, chosen, checks))
    judged = None
    if objective is not None and np.isfinite(interval.estimates).all():
        usual = BootstrapFQE() if dataset.n_states is not None else EpisodeScoreBound()
        by_episode = chosen if isinstance(chosen, ByEpisode) else usual
        believed = all(check.ok for check in checks)
        judged = judge_objective(problem, policy, by_episode, alpha=alpha, believed=believed, rng=objective_rng)
    return certificate_of(
        policy,
        problem,
        interval,
        checks,
        objective=judged,
        plain=plain,
        method=chosen.name,
        guarantee=chosen.guarantee(problem),
        confidence=confidence,
        look=look,
        seed=seed,
    )


def _bounded(
    problem: Problem, policy: Policy, method: Method, alpha: float, rng: np.random.Generator
) -> tuple[Interval, Interval | None]:
    """Bound all constraints; in finite states with what rare events the log may have missed, and then also without."""
    interval = method(problem, policy, alpha=alpha, rng=rng)
    visits = visits_allowed_for(problem, policy, method)
    if visits is None:
        return interval, None
    each = alpha / problem.n_constraints
    return allow_for_missed(interval, Shrinkage.of(problem).both(visits, slice(1, None)), each), interval


def certificate_of(
    policy: Policy,
    problem: Problem,
    interval: Interval,
    checks: list[Check],
    *,
    objective: JudgedObjective | None = None,
    plain: Interval | None = None,
    method: str,
    guarantee: Guarantee,
    confidence: float,
    look: int | None,
    seed: int,
) -> Certificate:
    """Hold bounds against the limits; a check that fails forbids a verdict.

    plain: the bounds without what they allow for rare events, where they do
    """
    failed = [check for check in checks if not check.ok]
    episodes = Episodes.of(problem)
    judged = [_judge(c, interval, i, episodes, believed=not failed) for i, c in enumerate(problem.constraints)]
    possible = (outcome.range for outcome in outcomes_of(problem)[1:])
    judged = [
        c.model_copy(update={"range": ends_of(one.sign, ends)})
        for c, one, ends in zip(judged, problem.constraints, possible, strict=True)
    ]
    if plain is not None:
        missed = [float(upper) - float(before) for upper, before in zip(interval.upper, plain.upper, strict=True)]
        judged = [c.model_copy(update={"missed": _number(m)}) for c, m in zip(judged, missed, strict=True)]
    verdict, reason = _together(judged, failed)
    return Certificate(
        verdict=verdict,
        reason=reason,
        advice=[check.advice for check in failed] + [c.advice for c in judged if c.advice],
        guarantee=guarantee,
        method=method,
        confidence=confidence,
        alpha=alpha_spent(1 - confidence, look),
        look=look or 1,
        episodes=len(episodes),
        clusters=None if problem.dataset.clusters is None else episodes.n_units,
        constraints=judged,
        objective=objective,
        checks=checks,
        seed=seed,
        dataset=problem.dataset.fingerprint,
        policy=fingerprint(policy, problem.dataset),
    )


def alpha_spent(alpha: float, look: int | None) -> float:
    """Return what a look at held-out data may err by, so that all looks together keep to `error`."""
    if look is None:
        return alpha
    if look < 1:
        raise ArgumentError(f"look is {look}: the first is 1")
    return FIRST * alpha if look == 1 else (1 - FIRST) * alpha / 2 ** (look - 1)


def fingerprint(policy: Policy, dataset: Dataset) -> str:
    """SHA-256 of what a policy does in the states of a log; where they are numbers, in those of some of its rows."""
    digest = hashlib.sha256()
    if dataset.n_states is not None:
        states = np.arange(dataset.n_states)
    else:
        states = dataset.states[:: max(1, len(dataset.states) // SHOWN)]
    for member, weight in members_of(policy):
        digest.update(np.float64(weight).tobytes())
        digest.update(np.round(probabilities_of(member, states, dataset.n_actions), 9).tobytes())
    return digest.hexdigest()


def _judge(constraint: AtMost, interval: Interval, i: int, episodes: Episodes, *, believed: bool) -> JudgedConstraint:
    """Judge one constraint; inside, less is better and limits are upper limits."""
    sign = constraint.sign
    estimate, standard_error, lower, upper = (float(column[i]) for column in interval)
    limit, side = sign * constraint.limit, "upper" if sign > 0 else "lower"
    rounded = limit + ROUNDED * (abs(limit) + abs(estimate))
    at, most, least, allowed = (f"{sign * value:.4g}" for value in (estimate, upper, lower, limit))
    verdict: Verdict = "inconclusive"
    advice = f"a limit of {_outward(sign * upper, sign)} would pass"
    if not math.isfinite(upper):
        reason, advice = "no bound could be had", ""
    elif upper <= rounded:
        verdict = "pass" if believed else "inconclusive"
        reason, advice = f"its {side} bound {most} keeps the limit {allowed}", ""
    elif lower > rounded:
        verdict = "fail" if believed else "inconclusive"
        reason = f"even its other bound, {least}, breaks the limit {allowed}"
        advice += "; or learn again with more margin, and judge on new episodes"
    else:
        reason = f"it is estimated at {at}, but its {side} bound {most} breaks the limit {allowed}"
        if estimate < limit:
            there, name = episodes.n_units, f"{episodes.unit_name}s"
            needed = math.ceil(there * ((upper - estimate) / (limit - estimate)) ** 2)
            advice = f"about {needed:,} {name} like these {there:,} would show it, if it is; {advice}"
    return JudgedConstraint(
        name=constraint.name,
        words="at most" if sign > 0 else "at least",
        limit=constraint.limit,
        estimate=_number(sign * estimate),
        standard_error=_number(standard_error),
        bound=_number(sign * upper),
        other_bound=_number(sign * lower),
        verdict=verdict,
        reason=f"{constraint.name}: {reason}",
        advice=f"{constraint.name}: {advice}" if advice and believed else "",
    )


def _number(value: float) -> float | None:
    return value + 0.0 if math.isfinite(value) else None


def _outward(value: float, sign: float) -> str:
    """Round to three digits, away from what would not pass."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - 2)
    return f"{(math.ceil if sign > 0 else math.floor)(value / unit) * unit:.3g}"


def _together(judged: list[JudgedConstraint], failed: list[Check]) -> tuple[Verdict, str]:
    if failed:
        return "inconclusive", "these episodes cannot tell: " + "; ".join(check.words for check in failed)
    verdicts: tuple[Verdict, ...] = ("fail", "inconclusive", "pass")
    verdict = next(v for v in verdicts if any(c.verdict == v for c in judged))
    return verdict, "; ".join(c.reason for c in judged if c.verdict == verdict)
