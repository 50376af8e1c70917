"""Reasons not to believe a bound. Each is measured on the same held-out episodes; one that fails forbids a pass."""

from collections.abc import Callable

import numpy as np
import scipy  # its parts are loaded when first used
from pydantic import BaseModel, ConfigDict

from checkrein.base.arrays import Array, FloatArray
from checkrein.base.errors import ArgumentError, DataError, DivergenceError, EndlessPolicyError
from checkrein.certification.bounds import Method
from checkrein.certification.intervals import Interval
from checkrein.data.copies import Copies
from checkrein.evaluation.doubly_robust import Corrected, contributions_of, corrected
from checkrein.evaluation.estimate import concentration
from checkrein.evaluation.fqe import nuisance
from checkrein.evaluation.importance import importance_weights
from checkrein.evaluation.propensities import Propensities, propensities_of
from checkrein.evaluation.refits import Refits
from checkrein.evaluation.tabular_refits import Occupancy
from checkrein.functions import Tabular
from checkrein.policies import Support, members_of, probabilities_of
from checkrein.problem import Episodes, Problem
from checkrein.protocols import FunctionClass, Policy

EPISODES = 30  # an effective sample size below says little of a spread
UNSUPPORTED = 0.001  # share of visits to what the held-out episodes never show
EXTRAPOLATED = 0.15  # share of what episodes count for that may lie beyond the log ...
FORETOLD = 0.5  # ... and that may, where states foretell what follows: they miss ...
UNFORETOLD = 1e-3  # ... what is as unlikely by chance, and ...
MATERIAL = 0.25  # ... in standard errors of behavior's values
FEW, RARE = 5, 0.01  # share of visits to pairs that they show fewer than so many times
DOMINANT = 0.1  # share of a single episode in all weights
EFFECTIVE = 100  # sample size of weighted episodes that a bound needs
FAR = 2.5  # standard errors of a mean weight from one
CLIPPED = 3.0  # standard deviations of a feature: beyond, single rows would decide
ROUNDED = 1e-9  # relative: less is no difference
STILL = 1e-12  # relative size of rounding: less is no variation
APART = 4.0  # standard errors between estimators, or of a mean Bellman error from zero
MORE_SUPPORT = "raise the support rule, so that the policy keeps to what is logged often, or log more of it"


class Check(BaseModel):
    """One diagnostic: what was measured, what it may be, and what it means."""

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")

    name: str
    value: float
    limit: float
    ok: bool
    words: str  # what was found
    advice: str = ""  # what to do where it fails
    notable: bool = False  # worth a look, though it forbids nothing


def diagnose(problem: Problem, policy: Policy, method: Method, rng: np.random.Generator) -> list[Check]:
    """Measure all that applies to a method."""
    checks = [enough_episodes(problem)]
    rests = method.assumptions(problem)
    functions, support, propensities = rests.functions, rests.support, rests.propensities or usual_propensities(problem)
    effective = 0.0
    if propensities is not None:
        episodes = Episodes.of(problem)
        weights = importance_weights(problem, policy, propensities)[episodes.last]
        effective, largest = concentration(episodes, weights)
        if rests.weighs:
            name = episodes.unit_name
            checks += [
                _effective(effective, name),
                _largest(largest, name),
                mean_weight(episodes.unit_means(weights), episodes.unit_weights),
            ]
        if rests.stops_at_cut_off:
            checks.append(_cut_off(episodes, weights))
    try:
        if problem.dataset.n_states is not None:
            occupancy = Refits.of(problem, policy, Tabular(), support).occupancy()
            checks += [_unsupported(problem, occupancy), *([] if rests.weighs else [_rare(problem, occupancy)])]
        else:
            checks.append(_unlikely(problem, policy, support))
        parts = _parts(problem, policy, functions, propensities, rng)
        mistakable = not isinstance(functions, Tabular)  # tables can hold any Q: what is left shows pairs others lack
        checks.append(_bellman(problem, parts, blocking=mistakable and not rests.weighs))
        if not rests.weighs:  # (of weighed sums, those that no episode dominates are those that lack it)
            values, influence = Refits.of(problem, policy, functions, support).point()
            influence = np.where(np.abs(influence) <= STILL * np.abs(values), 0.0, influence)
            episodes = Episodes.of(problem)
            pulls = episodes.by_unit(episodes.weights[:, None] * influence[:, 1:])
            checks.append(influence_concentration(pulls, name=episodes.unit_name))
            if effective >= EFFECTIVE:
                checks.append(_disagreement(problem, values, influence, parts))
    except (DivergenceError, EndlessPolicyError) as reason:
        words = f"the policy's values are not defined: {reason}"
        checks.append(_at_most("divergence", 1.0, 0.0, words, "choose other features, more ridge or a lower discount"))
    return checks


def like_episodes(problem: Problem, policy: Policy, method: Method, checks: list[Check]) -> float:
    """Count the units that would have shown what the policy's episodes do: by their weights, or by its rarest pair."""
    effective = [check.value for check in checks if check.name == "effective sample size"]
    count = float(Episodes.of(problem).n_units)
    if effective or problem.dataset.n_states is None:
        return effective[0] if effective else count
    try:
        occupancy = Refits.of(problem, policy, Tabular(), method.assumptions(problem).support).occupancy()
    except (DivergenceError, EndlessPolicyError):
        return count
    _, place = np.unique(occupancy.states * problem.dataset.n_actions + occupancy.actions, return_inverse=True)
    expected, logged = np.bincount(place, occupancy.occupancy), np.zeros(place.max() + 1)
    np.maximum.at(logged, place, occupancy.counts)  # members of a mixture come to the same pairs
    shown = (expected > 0) & (logged > 0)
    return float((logged[shown] / expected[shown]).min(initial=count))


def zero_variance(
    problem: Problem, policy: Policy, interval: Interval, alpha: float, like: Callable[[], float]
) -> list[Check]:
    """Ask what was missed of constraints that every episode says the same of: their bounds are the estimates.

    If as much as `share` of episodes went otherwise, none of those that are like the policy's, as many as `like` says,
    would do so with probability `error`.
    """
    limits = problem.limits
    worst = np.max([problem.worst(member) for member, _ in members_of(policy)], axis=0)[1:]
    rounded = limits + ROUNDED * (np.abs(limits) + np.abs(interval.estimates))
    still = (interval.standard_errors <= STILL * (np.abs(worst) + np.abs(interval.estimates))) & (
        interval.estimates <= rounded
    )
    seen = max(like(), 1.0) if still.any() else 1.0
    share = min(float(np.log(problem.n_constraints / alpha)) / seen, 1.0)
    found = []
    for i in map(int, np.flatnonzero(still)):
        c, estimate = problem.constraints[i], float(interval.estimates[i])
        told = c.range is not None or worst[i] > estimate
        missed = float(estimate + share * (worst[i] - estimate)) if told else float(limits[i]) + 1.0
        words = f"{c.name} is {c.sign * estimate:.4g} in every episode, which may have missed {share:.2%} of them"
        words += f": {c.sign * missed:.4g}, if these went as badly as can be" if told else ", at an unknown cost"
        found.append(
            Check(
                name="variation",
                value=c.sign * missed,
                limit=c.limit,
                ok=missed <= rounded[i],
                words=words,
                advice="log more episodes to judge by, or declare its range",
            )
        )
    return found


def _at_most(name: str, value: float, limit: float, words: str, advice: str, *, blocking: bool = True) -> Check:
    ok = value <= limit or not blocking
    return Check(name=name, value=value, limit=limit, ok=ok, words=words, advice=advice, notable=ok and value > limit)


def _at_least(name: str, value: float, limit: float, words: str, advice: str) -> Check:
    return Check(name=name, value=value, limit=limit, ok=value >= limit, words=words, advice=advice)


def usual_propensities(problem: Problem) -> Propensities | None:
    """Return the log's own propensities, else estimates; None where neither can be had."""
    try:
        return problem.once("propensities", lambda: propensities_of(problem.dataset))
    except (ArgumentError, DataError):
        return None


def enough_episodes(problem: Problem) -> Check:
    """Ask for as many, of clusters where there are any, as say something of a spread."""
    episodes = Episodes.of(problem)
    count, name = episodes.n_units, f"{episodes.unit_name}s"
    return _at_least(name, count, EPISODES, f"{count} {name} judge", f"no fewer than {EPISODES} {name} can: log more")


def copies_check(copies: Copies | None) -> list[Check]:
    """Say that episodes were left out because they are copies of others; that is no reason to doubt the rest."""
    if copies is None or not len(copies):
        return []
    return [Check(name="copies", value=len(copies), limit=copies.episodes, ok=True, words=copies.words())]


def _effective(effective: float, name: str) -> Check:
    words = f"weighted by how likely the policy makes them, the {name}s are worth {effective:.1f} of its own"
    advice = "few logged episodes are like the policy's: choose a policy closer to behavior, or refit FQE (fqe-...)"
    return _at_least("effective sample size", effective, EFFECTIVE, words, advice)


def _largest(largest: float, name: str) -> Check:
    words = f"one {name} has {largest:.1%} of all weight"
    return _at_most("largest weight", largest, DOMINANT, words, "hold out more episodes that are like the policy's")


def mean_weight(weights: FloatArray, counts: FloatArray) -> Check:
    """Hold the mean of importance weights (u,) against 1; where it falls short, what the policy would do is missing.

    counts: (u,) how much each unit counts
    """
    shares = counts / counts.sum()
    mean = float(shares @ weights)
    spread = float(np.sqrt(shares**2 @ (weights - mean) ** 2))
    apart = 0.0 if np.isclose(mean, 1, rtol=ROUNDED) else np.inf if spread == 0 else abs(mean - 1) / spread
    words = f"the mean weight is {mean:.3g}, {apart:.1f} standard errors from 1"
    advice = "check the propensities; if they are right, take fewer state columns, or log more rows of each decision"
    return _at_most("mean weight", min(apart, 1e6), FAR, words, advice)


def _cut_off(episodes: Episodes, weights: FloatArray) -> Check:
    """Weighed sums stop where the log does: what would have followed counts as nothing."""
    rest = weights * episodes.discount**episodes.lengths * ~episodes.ended
    share = float(episodes.mean(rest))
    words = f"{share:.2%} of what the policy's episodes would count for lies beyond where the log was cut off"
    advice = "use a method that values what follows (fqe-... or dr-...), or mark as terminal where episodes end"
    return _at_most("cut off", share, UNSUPPORTED, words, advice)


def little_beyond(problem: Problem, remembered: FloatArray | None, errors: FloatArray) -> Check:
    """Values of states that are numbers are extrapolated beyond the last step that was logged: little may lie there.

    More may where like states lead to the same early and late in the log: then they do so beyond it, too.

    remembered: (u, k) what time and the past tell of units beyond their states, for each cost
    errors: (k,) standard errors of behavior's values
    """
    episodes = Episodes.of(problem)
    share = float(episodes.mean(np.asarray(episodes.discount**episodes.lengths * ~episodes.ended, np.float64)))
    words = f"{share:.0%} of what episodes count for lies beyond where the log was cut off"
    advice = "log longer episodes, use a lower discount, or mark as terminal where episodes end"
    if share <= EXTRAPOLATED or remembered is None:
        return _at_most("cut off", share, EXTRAPOLATED, words, advice)
    pulls = episodes.unit_weights[:, None] * remembered
    sums, spread = pulls.sum(axis=0), np.sqrt((pulls**2).sum(axis=0))
    scores = np.divide(np.abs(sums), spread, out=np.zeros_like(sums), where=spread > 0)
    material = np.abs(sums) / episodes.unit_weights.sum() > MATERIAL * errors
    p = float(min(2 * scipy.stats.norm.sf((scores * material).max()) * len(scores), 1.0))
    if p < UNFORETOLD:
        words += f", and like states do not lead to the same early and late in it (p = {p:.2g})"
        return _at_most("cut off", share, EXTRAPOLATED, words, f"{advice}; or add to the state what has changed")
    return _at_most("cut off", share, FORETOLD, f"{words}; like states lead to the same early and late in it", advice)


def _unsupported(problem: Problem, occupancy: Occupancy) -> Check:
    share = occupancy.share(0.5)
    words = f"{share:.2%} of the policy's decisions are of a kind that the held-out episodes never show"
    words += f" (most often {_where(problem, occupancy, 0.5)}); they count at their worst" if share > 0 else ""
    return seldom_unsupported(share, words)


def seldom_unsupported(share: float, words: str) -> Check:
    """Allow hardly any decisions without evidence."""
    return _at_most("unsupported decisions", share, UNSUPPORTED, words, MORE_SUPPORT)


def _rare(problem: Problem, occupancy: Occupancy) -> Check:
    share = occupancy.share(FEW)
    name = Episodes.of(problem).unit_name
    words = f"{share:.2%} of the policy's decisions were logged fewer than {FEW} times in the held-out {name}s"
    words += f" (most often {_where(problem, occupancy, FEW)})" if share > 0 else ""
    return _at_most("rare decisions", share, RARE, words, MORE_SUPPORT)


def _where(problem: Problem, occupancy: Occupancy, below: float) -> str:
    few = np.flatnonzero(occupancy.counts < below)
    most = few[np.argmax(occupancy.occupancy[few])]
    state, action = occupancy.states[most], occupancy.actions[most]
    return f"{problem.dataset.action_labels[action]} in state {problem.dataset.state_labels[state]}"


def _unlikely(problem: Problem, policy: Policy, support: Support) -> Check:
    """Weigh what the policy would do in the logged states by whether behavior does it at all."""
    states, n_actions = problem.dataset.states, problem.dataset.n_actions
    refused = ~support.of(problem).allowed(states)
    share = 0.0
    for member, weight in members_of(policy):
        share += weight * float((probabilities_of(member, states, n_actions) * refused).sum(axis=1).mean())
    words = f"{share:.2%} of the policy's decisions in the logged states are hardly ever taken there"
    return _at_most("unsupported decisions", share, RARE, words, MORE_SUPPORT)


def influence_concentration(pulls: FloatArray, needed: float = EPISODES, name: str = "episode") -> Check:
    """Count the units that a variance rests on, as many as would make it with equal shares; pulls: (u, m)."""
    squares = pulls**2
    fourth = (squares**2).sum(axis=0)
    count = np.divide(squares.sum(axis=0) ** 2, fourth, out=np.full(fourth.shape, np.inf), where=fourth > 0)
    least = min(float(count.min(initial=np.inf)), float(len(pulls)))
    words = f"a bound's spread rests on an effective sample size of {least:.0f} {name}s"
    advice = f"log more {name}s to judge by, or raise the support rule"
    return _at_least("influence concentration", least, needed, words, advice)


def _parts(
    problem: Problem,
    policy: Policy,
    functions: FunctionClass,
    propensities: Propensities | None,
    rng: np.random.Generator,
) -> list[Corrected]:
    """Return each member's Q, fitted on other episodes than those it is held against."""
    return list(corrected(problem, policy, propensities, nuisance(functions), rng=rng))


def _disagreement(problem: Problem, values: FloatArray, influence: FloatArray, parts: list[Corrected]) -> Check:
    """Compare with the doubly robust estimate, unit by unit: the two must differ by chance only."""
    episodes = Episodes.of(problem)
    each, weights = episodes.unit_means(contributions_of(episodes, parts)), episodes.unit_weights
    other = weights @ each / weights.sum()
    apart = episodes.unit_means(influence) - (each - other)
    errors = np.sqrt((weights**2) @ apart**2) / weights.sum()
    distance = np.abs(values - other)
    differ = (errors > 0) & (distance > ROUNDED * (np.abs(values) + np.abs(other)))
    worst = float(np.divide(distance, errors, out=np.zeros_like(errors), where=differ)[1:].max())
    words = f"fitted and doubly robust estimates lie {worst:.1f} standard errors apart"
    advice = "one of the two is wrong: use a richer function class or better propensities"
    return _at_most("disagreement", worst, APART, words, advice)


def _bellman(problem: Problem, parts: list[Corrected], *, blocking: bool) -> Check:
    """Look at the mean errors of Q's targets, over all rows and by action; what is corrected anyway blocks nothing."""
    episodes, worst = Episodes.of(problem), 0.0
    seen = _instruments(episodes.states)
    for part in parts:
        still = STILL * np.abs(part.start).max(axis=0)
        kept = np.where(np.abs(part.residuals) <= still, 0.0, part.residuals)
        residuals = (kept[:, 1:, None] * seen[:, None, :]).reshape(len(seen), -1)
        for action in range(-1, episodes.n_actions):
            taken = residuals if action < 0 else residuals * (episodes.actions == action)[:, None]
            sums = episodes.by_unit(episodes.sums(taken))
            spread = sums.std(axis=0, ddof=1) * np.sqrt(len(sums))
            scores = np.divide(np.abs(sums.sum(axis=0)), spread, out=np.zeros_like(spread), where=spread > 0)
            worst = max(worst, float(scores.max()))
    words = f"fitted on other episodes, mean Bellman errors lie up to {worst:.1f} standard errors from zero"
    advice = "the function class cannot hold these values: use a richer one, or a doubly robust method"
    return _at_most("Bellman error", worst, APART, words, advice, blocking=blocking)


def _instruments(states: Array) -> FloatArray:
    """(n, q) what errors are averaged with: 1, and the squares of features, as a constant is in most classes."""
    one = np.ones((len(states), 1))
    if states.ndim != 2:
        return one
    centred = states - states.mean(axis=0)
    size = centred.std(axis=0)
    scaled = np.clip(centred / np.where(size > 0, size, 1.0), -CLIPPED, CLIPPED)
    return np.hstack([one, scaled**2])
