"""What a log says of what a certificate assumes: the state is enough, the future like the past, no end a consequence.

Each check has the p-value of its assumption, from one test of everything that was looked at. Where it is small the
words say so; where it is so small that chance is no explanation, a pass is forbidden.
"""

import numpy as np

from checkrein.certification.bounds import Method
from checkrein.certification.calibration import calibration_of
from checkrein.certification.diagnostics import Check, usual_propensities
from checkrein.certification.drift import Drift, drift_of
from checkrein.certification.moments import CLEAR, SUSPECT
from checkrein.certification.past import LAST_ACTION, LAST_STATE, STEPS, past_tested
from checkrein.certification.stopping import stopping_of
from checkrein.evaluation.known_weights import known_propensities
from checkrein.evaluation.propensities import Propensities
from checkrein.problem import Episodes, Problem

MATERIAL = 0.1  # of a limit: a drift by less hardly changes what is certified
MARKOV, DRIFT, BEHAVIOR, CALIBRATION = "state is enough", "drift of costs", "drift of behavior", "calibration"
STOPPING = "where the log stops"


def assumption_checks(problem: Problem) -> list[Check]:
    """Check what can be checked, whoever is judged; what does not apply is left out."""
    return list(problem.once("assumption checks", lambda: [*_stopping(problem), *_markov(problem), *_drift(problem)]))


def assumption_warnings(problem: Problem) -> list[str]:
    """Return what looks wrong, in words, with what to do about it."""
    return [f"{check.words}: {check.advice}" for check in assumption_checks(problem) if check.value < SUSPECT]


def _stopping(problem: Problem) -> list[Check]:
    """Forbid a pass where rows that lack a next state clearly cost more than like rows, or differ in the objective."""
    found = stopping_of(problem)
    if found is None:
        return []
    count = len(found.p)
    adjusted = np.minimum(count * found.p, 1.0)
    harmful = (adjusted < CLEAR) & ((found.excess > 0) | (np.arange(count) == 0) & (problem.objective is not None))
    one = int(np.argmin(np.where(harmful, adjusted, adjusted + 1) if harmful.any() else adjusted))
    p, rows = float(adjusted[one]), f"{found.rows} rows whose next state the log lacks"
    words = f"{rows} cost what like rows do ({_odds(p, count)})"
    if p < SUSPECT:
        way = "more" if found.excess[one] > 0 else "less"
        words = (
            f"{rows} have {abs(found.excess[one]):.3g} {way} of {problem.value_names[one]} than like rows that go on"
        )
        words += f" ({_odds(p, count)}): what the log stops at is lost, for these rows are left out"
    advice = "mark as terminal where episodes end, or log what follows such rows"
    return [_check(STOPPING, p, ok=not harmful.any(), words=words, advice=advice)]


def _markov(problem: Problem) -> list[Check]:
    found = past_tested(problem)
    if found is None:
        return []
    p, finite = found.tested.p, problem.dataset.n_states is not None
    outcome, instrument = found.outcomes[found.tested.strongest], found.instruments[found.tested.strongest]
    words = (
        f"the past tells no more of costs and next states than the state does ({_odds(p, found.tested.comparisons)})"
    )
    if p < SUSPECT:
        words = (
            f"{instrument} foretells {outcome}, beyond what state and action do ({_odds(p, found.tested.comparisons)})"
        )
        words += ": the state " + ("lacks something" if p < CLEAR and finite else "may lack something")
        words += "" if finite else ", or depends on it in ways that quadratic functions miss; so this forbids nothing"
    column = instrument if instrument in {LAST_STATE, LAST_ACTION, STEPS} else "the last action or the last state"
    advice = f"add what is missing to the state: a column that was left out, or {column}"
    return [_check(MARKOV, p, ok=p >= CLEAR or not finite, words=words, advice=advice)]


def _drift(problem: Problem) -> list[Check]:
    found = drift_of(problem)
    return [] if found is None else [*_of_costs(problem, found), *_of_decisions(problem, found)]


def _of_costs(problem: Problem, found: Drift) -> list[Check]:
    """Forbid a pass where a limited cost has clearly become worse, by a good part of its limit."""
    if found.costs is None:
        return []
    p, one, size = found.costs.p, found.costs.strongest % len(found.shift), len(found.shift)
    each = np.nan_to_num(found.costs.adjusted, nan=1.0).reshape(-1, size).min(axis=0)  # of a trend and of halves
    allowed = np.tile(np.append(np.inf, MATERIAL * np.abs(problem.limits)), 2)  # the objective has no limit
    worse = (each < CLEAR) & (found.shift > allowed)
    if worse.any():
        one = int(np.argmin(np.where(worse, each, np.inf)))
    words = f"later episodes cost what earlier ones do ({_odds(p, found.costs.comparisons)})"
    if p < SUSPECT:
        name, way = problem.value_names[one % (size // 2)], "worse" if found.shift[one] > 0 else "better"
        why = "like steps cost more or less" if one < size // 2 else "episodes begin or like steps lead elsewhere"
        words = (
            f"for like decisions, {name} is {abs(found.shift[one]):.3g} {way} in the later half of the episodes, by "
            f"their numbers, than in the earlier, as {why} ({_odds(p, found.costs.comparisons)})"
        )
        words += "" if worse.any() else f"; no limit is {MATERIAL:.0%} worse off beyond doubt, so this forbids nothing"
    advice = "learn from and judge by recent episodes, or add to the state what has changed"
    return [_check(DRIFT, p, ok=not worse.any(), words=words, advice=advice)]


def _of_decisions(problem: Problem, found: Drift) -> list[Check]:
    """Say where behavior has changed: no matter to what is fitted, and a warning to what is weighed."""
    if found.decisions is None:
        return []
    p, one = found.decisions.p, found.decisions.strongest
    words = f"in the same states, later decisions are like earlier ones ({_odds(p, found.decisions.comparisons)})"
    if p < SUSPECT:
        action = problem.dataset.action_labels[found.actions[one % len(found.actions)]]
        way = "more" if found.decisions.scores[one] > 0 else "less"
        words = f"in the same states, {action} is chosen {way} often later on ({_odds(p, found.decisions.comparisons)})"
    advice = "weighed estimates need the propensities of the time: log them, or use a fitted one (fqe-...)"
    return [_check(BEHAVIOR, p, ok=True, words=words, advice=advice)]


def calibration_checks(problem: Problem, method: Method) -> list[Check]:
    """Check the propensities that a method weighs by; none where it does not."""
    rests = method.assumptions(problem)
    propensities = rests.propensities or usual_propensities(problem)
    if not rests.weighs or propensities is None:
        return []
    return _calibrated(problem, propensities)


def known_weights_checks(problem: Problem) -> list[Check]:
    """Check logged propensities that a cross-fitted certificate weighs single decisions by; none where it does not."""
    propensities = usual_propensities(problem)
    if propensities is None or known_propensities(problem) is None:
        return []
    return problem.once("checks of known weights", lambda: _calibrated(problem, propensities))


def _calibrated(problem: Problem, propensities: Propensities) -> list[Check]:
    found = calibration_of(Episodes.of(problem), propensities)
    if found is None:
        return []
    p = found.tested.p
    words = (
        f"the propensities ({propensities.source}) agree with what was decided ({_odds(p, found.tested.comparisons)})"
    )
    if p < SUSPECT:
        words = f"{found.wrong} ({_odds(p, found.tested.comparisons)})"
        words += "" if found.material else "; no probability is far off, so this forbids nothing"
    advice = "log the propensities, estimate them another way, or use a fitted method (fqe-...)"
    return [_check(CALIBRATION, p, ok=p >= CLEAR or not found.material, words=words, advice=advice)]


def _check(name: str, p: float, *, ok: bool, words: str, advice: str) -> Check:
    return Check(name=name, value=p, limit=CLEAR, ok=ok, words=words, advice=advice, notable=ok and p < SUSPECT)


def _odds(p: float, count: int) -> str:
    return f"p = {p:.2g} of {count} comparisons" if count > 1 else f"p = {p:.2g}"
