"""learn_certified: certify policies from those near behavior to the boldest, each by episodes it was not learned from.

Every fold of the episodes is judged by a policy learned without it; what is deployed draws one of these policies for
each episode. Candidates are tested in order, each at the full level, up to the first that does not pass: in a fixed
sequence of tests the chance that any pass is wrong is that of one test (Angelopoulos et al. 2021). With folds the
sequence is fixed but for what each fold adds to the learning of the others, so it must not be too dense. A bolder
policy costs no confidence then, and no room under the limits has to be guessed beforehand.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Literal, cast

import numpy as np

from checkrein import engine
from checkrein.base.arrays import require_seed
from checkrein.base.brief import numbers
from checkrein.base.errors import ArgumentError
from checkrein.certification.certificate import Certificate
from checkrein.certification.diagnostics import EPISODES, copies_check
from checkrein.policies import MixturePolicy, Support
from checkrein.problem import Episodes, Problem
from checkrein.protocols import Policy
from checkrein.selection.feature_learning import FeatureFold
from checkrein.selection.feature_path import outward
from checkrein.selection.folds import FOLDS, parts_of, require_folds
from checkrein.selection.judged_episodes import JudgedEpisodes
from checkrein.selection.judging import Level, Scores, ask_all, breaks_a_limit, needed_by_behavior, objectives_of
from checkrein.selection.learning import Aim, Fold, Learn, TabularLearning

COUNTS = (30.0, 10.0, 5.0)  # occurrences in all folds that an action may need, the strictest first
DISTANCES = (1 / 8, 1 / 2)  # from behavior, of how far the best policy at the limits goes
TILTS = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)  # the same over features, where far ones rest on little
MARGINS = (11.0, 8.0, 6.0, 5.0, 4.5, 4.0, 3.0, 2.5, 2.0, 1.5, 1.0, 0.5, 0.0)  # standard errors under the limits
WIDE = (8.5, 6.0, 4.0, 2.5)  # the same over features, where policies look as much too good as tilts are free
APART = 0.5  # the least between two: with folds, what is tried ever so often passes once
Asked = Literal["preferred", "required", "not asked"]
AnyFold = Fold | FeatureFold


@dataclass(frozen=True, eq=False, repr=False)
class Candidate:
    """Policies that aimed at the same, one for each fold, and how they were judged together."""

    rule: int  # times that the support rule was loosened before
    distance: float  # from behavior, the most, as a share of how far the best policy at the limits goes
    margin: float  # under the limits, in standard errors
    policy: MixturePolicy  # draws one of them for each episode
    objective: float  # as these episodes say
    certificate: Certificate

    def __repr__(self) -> str:
        aim = f"{100 * self.distance:.3g}% of the way, {self.margin:g} standard errors under the limits"
        found = self.certificate.verdict + ("" if self.improvement is None else f", objective {self.improvement}")
        estimates = numbers({"objective": self.objective, **self.certificate.estimates})
        return f"Candidate({aim}: {found}; {estimates})"

    @property
    def passed(self) -> bool:
        """Say whether it keeps all limits."""
        return self.certificate.verdict == "pass"

    @property
    def improvement(self) -> str | None:
        """Say whether its objective is better than behavior's."""
        return None if self.certificate.objective is None else self.certificate.objective.verdict


@dataclass(frozen=True, eq=False, repr=False)
class CertifiedPolicy:
    """The candidates that were tried, in order; only the last may not have passed."""

    candidates: tuple[Candidate, ...]
    explanation: str  # how far it went, and why no farther
    passed: Candidate | None = None  # what is deployed: of those that passed, the one with the best objective
    infeasible: bool = False  # whether nothing was tried because no policy meets the limits
    episodes: JudgedEpisodes | None = field(default=None, repr=False)  # what they say of that, or of the last

    def __repr__(self) -> str:
        found = "none: behavior should go on" if self.passed is None else repr(self.passed)
        return f"CertifiedPolicy({found}; {len(self.candidates)} tried: {self.explanation})"

    @property
    def policy(self) -> MixturePolicy | None:
        """Its policy; None where nothing passed: keep to the policy that wrote the log."""
        return None if self.passed is None else self.passed.policy

    @property
    def certificate(self) -> Certificate | None:
        """Its certificate, or that of the candidate that did not pass; None where no policy could be tried."""
        shown = self.passed or next(iter(self.candidates[-1:]), None)
        return None if shown is None else shown.certificate


def learn_certified(
    problem: Problem,
    *,
    learn: Learn | None = None,
    supports: Sequence[Support] | None = None,
    folds: int = FOLDS,
    confidence: float = 0.95,
    distances: Sequence[float] | None = None,
    margins: Sequence[float] | None = None,
    improvement: Asked = "preferred",
    look: int | None = None,
    seed: int = 0,
    tell: Callable[[str], None] = lambda _: None,
    on_candidate: Callable[[Candidate], None] = lambda _: None,
) -> CertifiedPolicy:
    """Learn and judge bolder and bolder policies until one does not pass.

    All episodes serve to learn and to judge, none of them both for the same policy. With probability `confidence` the
    policy that is returned keeps all limits, as far as an asymptotic guarantee goes. When the path under one support
    rule has passed to its end, it goes on under the next.

    Where states are numbers, policies are behavior tilted by Q over learned features; `learn` and `supports` are for
    finite states.

    learn: by default FQI and FQE with tables, prices by cutting planes
    supports: rules to choose from inside each learning part, the strictest first
    distances: how far from behavior to go, the nearest first; after these there is no limit. In finite states as shares
        of the KL divergence of the best policy at the limits, else of the boldest tilt
    margins: how far under the limits to aim, in standard errors, the farthest first; not too close to each other
    improvement: over behavior's objective. "preferred": what passes and is shown better; where nothing is, and behavior
        is shown to break a limit, what passes and is not shown worse. "required": only what is shown better. "not
        asked": the limits alone count
    look: as in `certify`; all candidates together are one look
    tell: told what is under way
    on_candidate: called with each, once it is judged; its objective is judged only at the end, with all others
    """
    _require_sensible(problem, folds, confidence, learn, supports)
    distances, margins = path_of(problem, distances, margins)
    _require_path(distances, margins)
    require_seed(seed)
    level = Level.of(confidence, look, seed)
    copies = problem.dataset.copies
    if (once := problem.dataset.counted_once) is not problem.dataset:
        problem = replace(problem, dataset=once)
    episodes = Episodes.of(problem)
    if episodes.n_units < EPISODES:
        few = f"fewer than {EPISODES} {episodes.unit_name}s"
        return CertifiedPolicy((), f"nothing was tried: {few} prove nothing, log more")
    split = parts_of(problem, min(folds, episodes.n_units // 2), seed)
    ask_all(problem)
    parts = begun(unlearned_folds(problem, split, learn, supports, seed=seed, alpha=level.alpha), tell)
    for part in parts:
        if not part.ready:
            why = part.trouble or "by what the log supports, no policy meets the limits in some fold of it"
            return CertifiedPolicy((), f"nothing was tried: {why}", infeasible=not part.trouble)
    candidates: list[Candidate] = []
    scored: list[Scores] = []
    for rule, aim, policies in path(parts, distances, margins, tell):
        scored.append(Scores.of(parts, policies))
        certificate = scored[-1].judge(problem, level)
        certificate = certificate.model_copy(update={"checks": [*copies_check(copies), *certificate.checks]})
        candidates.append(Candidate(rule, *aim, scored[-1].policy, float(scored[-1].values[0]), certificate))
        on_candidate(candidates[-1])
        if not candidates[-1].passed:
            break
    if problem.objective is not None and candidates:
        for place, found in enumerate(objectives_of(problem, scored, level)):
            certificate = candidates[place].certificate.model_copy(update={"objective": found})
            candidates[place] = replace(candidates[place], certificate=certificate)
    if not candidates and problem.dataset.n_states is None:
        return CertifiedPolicy((), _nothing_tried(needed_by_behavior(problem, parts, level)))
    return _with_episodes(_chosen(candidates, improvement, lawful=not breaks_a_limit(problem, parts, level)), scored)


def unlearned_folds(
    problem: Problem,
    split: Sequence[tuple[Problem, Problem]],
    learn: Learn | None = None,
    supports: Sequence[Support] | None = None,
    *,
    seed: int = 0,
    alpha: float = 0.05,
) -> list[AnyFold]:
    """Return folds of which nothing was learned yet.

    split: for each what learns, and what judges; alpha: what a verdict may err by
    """
    if problem.dataset.n_states is None:
        return [FeatureFold(*part, seed, alpha) for part in split]
    rules = supports if supports is not None else [Support(min_count=least) for least in COUNTS]
    rules = [rule.within(problem) for rule in rules]
    return [Fold(*part, learn or TabularLearning(), rules) for part in split]


def begun(parts: Sequence[AnyFold], tell: Callable[[str], None]) -> list[AnyFold]:
    """Learn in every fold what all its policies share."""
    tell(f"learning in {len(parts)} folds")
    found = []
    for place, part in enumerate(engine.current().map(_begun, parts), start=1):
        found.append(part)
        tell(f"learning in {len(parts)} folds, {place} done")
    return found


def _begun(part: AnyFold) -> AnyFold:
    return part.begun()


def _require_sensible(
    problem: Problem, folds: int, confidence: float, learn: Learn | None, supports: Sequence[Support] | None
) -> None:
    require_folds(problem, folds, confidence)
    if problem.dataset.n_states is None and (learn is not None or supports is not None):
        raise ArgumentError("learn and supports are for finite states, but these are not: leave them out")
    if problem.dataset.n_states is None and problem.dataset.states.ndim != 2:
        shape = problem.dataset.states.shape[1:]
        raise ArgumentError(
            f"learn_certified needs finite states or columns of numbers, but states have shape {shape}: split, learn "
            "and certify"
        )
    if supports is not None and not supports:
        raise ArgumentError("supports is empty: give at least one rule, or leave it out")


def path_of(
    problem: Problem, distances: Sequence[float] | None, margins: Sequence[float] | None
) -> tuple[Sequence[float], Sequence[float]]:
    """Return distances and margins, by default those of finite states or of numbers."""
    finite = problem.dataset.n_states is not None
    if distances is None:
        distances = DISTANCES if finite else TILTS
    return distances, (MARGINS if finite else WIDE) if margins is None else margins


def _require_path(distances: Sequence[float], margins: Sequence[float]) -> None:
    if not margins or not (np.isfinite(margins).all() and (-np.diff(margins) >= APART).all()):
        raise ArgumentError(
            f"margins is {tuple(margins)}: give the farthest from the limits first, {APART:g} or more from the next"
        )
    if not all(0 < distance < 1 for distance in distances) or not (np.diff(distances) > 0).all():
        raise ArgumentError(f"distances is {tuple(distances)}: give shares between 0 and 1, the nearest first")


def path(
    parts: list[AnyFold], distances: Sequence[float], margins: Sequence[float], tell: Callable[[str], None]
) -> Iterator[tuple[int, Aim, list[Policy]]]:
    """Yield the policies of all folds, those nearest to behavior first; what cannot be aimed at is left out."""
    tell = counted(tell, _most(parts, distances, margins))
    if all(isinstance(part, FeatureFold) for part in parts):
        yield from ((0, *found) for found in outward(cast("list[FeatureFold]", parts), distances, margins, tell))
        return
    for rule in count():
        for aim in _aims(distances, margins) if rule == 0 else [Aim(1.0, margin) for margin in margins]:
            tell(f"candidate at {100 * aim.distance:.3g}% of the way, {aim.margin:g} standard errors under the limits")
            found = list(engine.current().map(partial(_learned, aim=aim), parts))
            parts[:] = [part for part, _ in found]  # with what they found on the way
            policies = [policy for _, policy in found if policy is not None]
            if len(policies) == len(parts):
                yield rule, aim, policies
        if not all(part.loosen() for part in parts):
            return


def counted(tell: Callable[[str], None], most: int) -> Callable[[str], None]:
    """Return who also tells how many times it was told something, of at most so many."""
    number = count(1)
    return lambda words: tell(f"{words}, {next(number)} of at most {most}")


def _most(parts: Sequence[AnyFold], distances: Sequence[float], margins: Sequence[float]) -> int:
    """Return how many candidates there can be."""
    finite = [part for part in parts if isinstance(part, Fold)]
    if not finite:
        return len(margins) * (len(distances) + 1)
    looser = min(len(part.rules) for part in finite)  # each fold begins with a rule of its own
    return len(list(_aims(distances, margins))) + looser * len(margins)


def _aims(distances: Sequence[float], margins: Sequence[float]) -> Iterator[Aim]:
    """Yield aims: with the widest margin farther and farther from behavior, then closer and closer to the limits.

    At every margin but the widest, what keeps near, with the last of the distances, is tried before what need not.
    """
    yield from (Aim(distance, margins[0]) for distance in (*distances, 1.0))
    for margin in margins[1:]:
        yield from (Aim(distance, margin) for distance in (*distances[-1:], 1.0))


def _learned(part: AnyFold, aim: Aim) -> tuple[AnyFold, Policy | None]:
    """Return the fold with all that it found, and the policy that it was asked for."""
    return part, part.learned(aim)


def _chosen(candidates: Sequence[Candidate], asked: Asked, *, lawful: bool) -> CertifiedPolicy:
    """Choose among those that passed; lawful: whether behavior may keep all limits itself."""
    words = _explanation(candidates)
    if not candidates:
        return CertifiedPolicy((), words, infeasible=True)
    passed = [candidate for candidate in candidates if candidate.passed]
    better = [candidate for candidate in passed if candidate.improvement in ("better", None)]  # None: no objective
    if asked == "preferred" and not better and not lawful:
        better = [candidate for candidate in passed if candidate.improvement != "worse"]
    chosen = passed if asked == "not asked" else better
    if passed and not chosen:
        words += "; none is shown better than behavior, which "
        words += "may keep the limits as well" if lawful else "breaks a limit itself"
    return CertifiedPolicy(tuple(candidates), words, _best(chosen))


def _with_episodes(found: CertifiedPolicy, scored: Sequence[Scores]) -> CertifiedPolicy:
    """Return it with what the episodes say of the candidate that is shown; scored: every candidate's, in order."""
    if not scored:
        return found
    shown = next((place for place, one in enumerate(found.candidates) if one is found.passed), -1)
    return replace(found, episodes=scored[shown].episodes)


def _best(candidates: Sequence[Candidate]) -> Candidate | None:
    return min(candidates, key=lambda candidate: candidate.objective, default=None)


def _nothing_tried(needed: str) -> str:
    words = (
        "nothing was tried: no policy near behavior keeps the limits and is better, with enough room to be shown, by "
    )
    return words + "what the learning episodes say" + (f"; {needed}" if needed else "")


def _explanation(candidates: Sequence[Candidate]) -> str:
    if not candidates:
        return "nothing was tried: no aim under the limits can be met"
    last = candidates[-1]
    if last.passed:
        return f"all {len(candidates)} candidates pass, up to {last.margin:g} standard errors under the limits"
    near = "" if last.distance >= 1 else f" and {100 * last.distance:.3g}% of the way from behavior"
    before = {0: "no candidate passes; the first", 1: "1 candidate passes; the next"}
    begin = before.get(len(candidates) - 1, f"{len(candidates) - 1} candidates pass; the next")
    words = f"{begin}, {last.margin:g} standard errors under the limits{near}, does not: {last.certificate.reason}"
    return words + (f". {'; '.join(last.certificate.advice)}" if len(candidates) == 1 else "")
