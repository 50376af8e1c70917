"""learn_certified: certify policies from the safest to the boldest, each by the episodes that it was not learned from.

Every fold of the episodes is judged by a policy learned without it; what is deployed draws one of these policies for
each episode. Candidates are tested in order, each at the full level, up to the first that does not pass: in a fixed
sequence of tests the chance that any pass is wrong is that of one test (Angelopoulos et al. 2021). With folds the
sequence is fixed but for what each fold adds to the learning of the others, so it must not be too dense. A bolder
policy costs no confidence then, and no room under the limits has to be guessed beforehand.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Protocol

import numpy as np

from checkrein import engine
from checkrein.base.arrays import FloatArray, frozen, require_seed
from checkrein.base.errors import ArgumentError, DivergenceError, EndlessPolicyError
from checkrein.best_response import FQI
from checkrein.certification.certificate import Certificate
from checkrein.certification.certify import alpha_spent, certificate_of
from checkrein.certification.diagnostics import (
    EPISODES,
    Check,
    enough_episodes,
    influence_concentration,
    seldom_unsupported,
    zero_variance,
)
from checkrein.certification.intervals import Interval, johnson_t
from checkrein.evaluation import FQE
from checkrein.evaluation.one_step import TabularNuisances
from checkrein.functions import Tabular
from checkrein.game import Round, Solution, Status, solve
from checkrein.online import CuttingPlane
from checkrein.policies import MixturePolicy, Support, members_of
from checkrein.problem import Episodes, Problem
from checkrein.protocols import Policy
from checkrein.selection.folds import parts_of, require_folds, tightened

METHOD = "one-step"
FOLDS = 5
COUNTS = (30.0, 20.0, 10.0, 5.0)  # occurrences in all folds that an action may need, the strictest first
MARGINS = (12.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.5, 3.0, 2.5, 2.0, 1.5, 1.0, 0.5, 0.0)  # standard errors under the limits
APART = 0.5  # the least between two: with folds, what is tried ever so often passes once
USUAL = 4.0  # standard errors of room that a support rule should allow
DECIDING = 10.0  # the effective sample size that a spread must rest on ...
CLEAR = 5.0  # ... unless so many standard errors lie between an estimate and its limit


class Learn(Protocol):
    """Solves a problem under a support rule."""

    def __call__(self, problem: Problem, support: Support, known: Sequence[Round]) -> Solution:
        """Solve; known: the rounds of a solution from the same data under the same rule, with other limits."""
        ...


@dataclass(frozen=True)
class TabularLearning:
    """FQI and FQE with tables, prices by cutting planes.

    generous: times the price at which a constraint's usual variation outweighs the objective's: the most to ask for
    """

    tolerance: float = 1e-4
    max_rounds: int = 30
    generous: float = 100.0

    def __call__(self, problem: Problem, support: Support, known: Sequence[Round]) -> Solution:
        """Solve."""
        scales = tuple((problem.spread[1:] / problem.spread[0]).tolist())
        return solve(
            problem,
            best_response=FQI(Tabular(), support=support),
            evaluator=FQE(Tabular()),
            learner=CuttingPlane(self.generous, scales=scales),
            tolerance=self.tolerance,
            max_rounds=self.max_rounds,
            known=known,
        )


@dataclass(frozen=True, eq=False)
class Candidate:
    """Policies that aimed at the same room under the limits, one for each fold, and how they were judged together."""

    rule: int  # times that the support rule was loosened before
    margin: float  # in standard errors
    policy: MixturePolicy  # draws one of them for each episode
    objective: float  # as these episodes say
    certificate: Certificate

    @property
    def passed(self) -> bool:
        """Say whether it keeps all limits."""
        return self.certificate.verdict == "pass"


@dataclass(frozen=True, eq=False)
class CertifiedPolicy:
    """The candidates that were tried, in order; only the last may not have passed."""

    candidates: tuple[Candidate, ...]
    explanation: str  # how far it went, and why no farther

    @property
    def passed(self) -> Candidate | None:
        """The boldest candidate that passed; of several support rules, the one that promises most."""
        boldest = {candidate.rule: candidate for candidate in self.candidates if candidate.passed}
        return min(boldest.values(), key=lambda candidate: candidate.objective, default=None)

    @property
    def policy(self) -> MixturePolicy | None:
        """Its policy; None where nothing passed: keep to the policy that wrote the log."""
        return None if self.passed is None else self.passed.policy

    @property
    def certificate(self) -> Certificate | None:
        """Its certificate, or that of the candidate that did not pass; None where no policy could be tried."""
        shown = self.passed or next(iter(self.candidates), None)
        return None if shown is None else shown.certificate


class _Fold:
    """A part of the episodes, and policies learned from all others."""

    def __init__(self, mine: Problem, others: Problem, learn: Learn, rules: Sequence[Support]) -> None:
        self.mine, self.others, self.learn = mine, others, learn
        learning, judging = len(Episodes.of(mine)), len(Episodes.of(others))
        self.episodes, share = learning + judging, learning / (learning + judging)
        self.rules = [replace(r, min_count=max(share * r.min_count, min(r.min_count, 1.0))) for r in rules]
        self.errors: FloatArray = np.zeros(mine.n_constraints)  # (m,) expected of all folds together
        self.trouble = ""  # why nothing could be learned
        self.ready = False  # whether it has a rule that meets the limits

    def begun(self) -> "_Fold":
        """Return it with a rule to begin with, if there is one."""
        self.ready = self._begin()
        return self

    def _begin(self) -> bool:
        """Take the strictest rule that leaves the usual room under the limits, or else the loosest that meets them."""
        meets = None
        while self.rules:
            rule = self.rules[0]
            if self.loosen():
                meets = rule
                if self.learned(USUAL * self.errors) is not None:
                    return True
        self.rules = [] if meets is None else [meets]
        return self.loosen()

    def loosen(self) -> bool:
        """Go on to the next rule; False where there is none, or it cannot meet the limits."""
        if not self.rules:
            return False
        self.support = self.rules.pop(0)
        self.tables = TabularNuisances.of(self.mine, self.support)
        self.rounds: Sequence[Round] = ()
        policy = self.learned(np.zeros(self.mine.n_constraints))
        if policy is None:
            return False
        self.errors = self.tables.score(self.mine, policy).scores[:, 1:].std(axis=0) / np.sqrt(self.episodes)
        return True

    def learned(self, margins: FloatArray) -> Policy | None:
        """Learn with margins (m,) under the limits; None where these cannot be met."""
        aimed = replace(self.mine, constraints=tightened(self.mine, margins))
        try:
            solution = self.learn(aimed, self.support, self.rounds)
        except (DivergenceError, EndlessPolicyError) as reason:
            self.trouble = f"without one of its folds, {reason}"
            return None
        self.rounds = solution.rounds
        return None if solution.status is Status.INFEASIBLE else solution.policy


def learn_certified(
    problem: Problem,
    *,
    learn: Learn | None = None,
    supports: Sequence[Support] | None = None,
    folds: int = FOLDS,
    confidence: float = 0.95,
    margins: Sequence[float] = MARGINS,
    look: int | None = None,
    seed: int = 0,
) -> CertifiedPolicy:
    """Learn and judge bolder and bolder policies until one does not pass; finite states only.

    All episodes serve to learn and to judge, none of them both for the same policy. With probability `confidence` the
    policy that is returned keeps all limits, as far as an asymptotic guarantee goes. When the path under one support
    rule has passed to its end, it goes on under the next.

    learn: by default FQI and FQE with tables, prices by cutting planes
    supports: rules to choose from inside each learning part, the strictest first
    margins: how far under the limits to aim, in standard errors, the farthest first; not too close to each other
    look: as in `certify`; all candidates together are one look
    """
    _require_sensible(problem, folds, confidence, margins, supports)
    require_seed(seed)
    alpha_spent(1 - confidence, look)  # says what is wrong with a look
    if len(Episodes.of(problem)) < EPISODES:
        return CertifiedPolicy((), f"nothing was tried: fewer than {EPISODES} episodes prove nothing, log more")
    rules = supports if supports is not None else [Support(min_count=least) for least in COUNTS]
    learning, most = learn or TabularLearning(), len(Episodes.of(problem)) // 2
    parts = [_Fold(*part, learning, rules) for part in parts_of(problem, min(folds, most), seed)]
    parts = list(engine.current().map(_Fold.begun, parts))
    for part in parts:
        if not part.ready:
            why = part.trouble or "by what the log supports, no policy meets the limits in some fold of it"
            return CertifiedPolicy((), f"nothing was tried: {why}")
    candidates: list[Candidate] = []
    for rule, margin, policies in _path(parts, margins):
        policy = _mixed(policies, _shares(parts))
        certificate, objective = _judged(problem, parts, policy, policies, confidence=confidence, look=look, seed=seed)
        candidates.append(Candidate(rule, margin, policy, objective, certificate))
        if not candidates[-1].passed:
            break
    return CertifiedPolicy(tuple(candidates), _explanation(candidates))


def _require_sensible(
    problem: Problem, folds: int, confidence: float, margins: Sequence[float], supports: Sequence[Support] | None
) -> None:
    require_folds(problem, folds, confidence)
    if problem.dataset.n_states is None:
        raise ArgumentError(
            "learn_certified judges by tables: it needs finite states; elsewhere split, learn and certify"
        )
    if supports is not None and not supports:
        raise ArgumentError("supports is empty: give at least one rule, or leave it out")
    if not margins or not (np.isfinite(margins).all() and (-np.diff(margins) >= APART).all()):
        raise ArgumentError(
            f"margins is {tuple(margins)}: give the farthest from the limits first, {APART:g} or more from the next"
        )


def _path(parts: list[_Fold], margins: Sequence[float]) -> Iterator[tuple[int, float, list[Policy]]]:
    """Yield the policies of all folds, the safest first; what cannot be aimed at is left out."""
    for rule in count():
        for margin in (margin for margin in margins if rule == 0 or margin <= USUAL):
            policies: list[Policy] = []
            for place, (part, policy) in enumerate(engine.current().map(partial(_learned, margin=margin), parts)):
                parts[place] = part
                if policy is None:
                    break
                policies.append(policy)
            else:
                yield rule, margin, policies
        if not all(part.loosen() for part in parts):
            return


def _learned(part: _Fold, margin: float) -> tuple[_Fold, Policy | None]:
    """Return the fold with all that it found, and the policy that aims so far under the limits."""
    return part, part.learned(margin * part.errors)


def _judged(
    problem: Problem,
    parts: Sequence[_Fold],
    policy: MixturePolicy,
    policies: Sequence[Policy],
    *,
    confidence: float,
    look: int | None,
    seed: int,
) -> tuple[Certificate, float]:
    """Return the certificate of the policy that draws one of several for each episode, and its objective."""
    scored = [part.tables.score(part.others, one) for part, one in zip(parts, policies, strict=True)]
    weights = np.concatenate([Episodes.of(part.others).weights for part in parts])
    scores, alpha = np.concatenate([one.scores for one in scored]), alpha_spent(1 - confidence, look)
    values = weights @ scores / weights.sum()
    interval = johnson_t((scores - values)[:, 1:], values[1:], weights, alpha / problem.n_constraints)
    share = float(_shares(parts) @ [one.unsupported for one in scored])
    checks = [
        enough_episodes(problem),
        seldom_unsupported(share, f"{share:.2%} of the policies' decisions have no evidence where they were learned"),
        *_influence_concentration(problem, weights[:, None] * (scores - values)[:, 1:], interval),
    ]
    checks += zero_variance(
        problem, policy, interval, alpha, lambda: len(weights) / max(*(one.max_density_ratio for one in scored), 1.0)
    )
    certificate = certificate_of(
        policy,
        problem,
        interval,
        checks,
        method=METHOD,
        guarantee="asymptotic",
        confidence=confidence,
        look=look,
        seed=seed,
    )
    return certificate, float(values[0])


def _influence_concentration(problem: Problem, influence: FloatArray, interval: Interval) -> list[Check]:
    """Ask what spreads rest on, of the constraints that they decide."""
    close = problem.limits - interval.estimates < CLEAR * interval.standard_errors
    return [influence_concentration(influence[:, close], DECIDING)] if close.any() else []


def _shares(parts: Sequence[_Fold]) -> FloatArray:
    """(folds,) how much each fold counts."""
    sizes = np.array([Episodes.of(part.others).weights.sum() for part in parts])
    return np.asarray(sizes / sizes.sum())


def _explanation(candidates: Sequence[Candidate]) -> str:
    if not candidates:
        return "nothing was tried: no aim under the limits can be met"
    last = candidates[-1]
    if last.passed:
        return f"all {len(candidates)} candidates pass, up to {last.margin:g} standard errors under the limits"
    return (
        f"{len(candidates) - 1} candidates pass; the next, {last.margin:g} standard errors under the limits, does not: "
        + last.certificate.reason
    )


def _mixed(policies: Sequence[Policy], shares: FloatArray) -> MixturePolicy:
    members = [
        (member, share * weight)
        for policy, share in zip(policies, shares, strict=True)
        for member, weight in members_of(policy)
        if weight > 0
    ]
    return MixturePolicy(tuple(member for member, _ in members), frozen(np.array([weight for _, weight in members])))
