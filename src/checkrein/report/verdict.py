"""verdict and caveat: what a run comes to in one sentence, and what that sentence rests on."""

import math
from collections.abc import Sequence
from typing import Literal

from checkrein.certification.bounds import Guarantee
from checkrein.certification.certificate import Certificate, Verdict
from checkrein.game.solution import Status
from checkrein.problem.goals import Direction
from checkrein.report.improvement import Improvement, improvement_of
from checkrein.report.model import BEHAVIOR, CERTIFIED, EXPLORED, INFEASIBLE, LEARNED, CostRow, Estimate
from checkrein.report.words import is_floor, number, percentage

Level = Literal["good", "caution", "bad"]
CAVEAT = (
    "Every number is an estimate from the log. Those of the learning part are optimistic, because it chose the policy; "
    "those of the held-out part are not, but they are still estimates and come without a guarantee."
)
EXPLORING = (
    "Every number is an estimate from the episodes that chose the policy, and so too good. Nothing was judged, and no "
    "look was charged. What is chosen by these numbers is chosen on the episodes that judge later: if you explore a "
    "lot, keep some for `checkrein certify --data`."
)
BY_FOLDS = "Every episode judged a policy that was learned without it; what is deployed draws one of these per episode."
LEVELS: dict[Verdict, Level] = {"pass": "good", "fail": "bad", "inconclusive": "caution"}
GUARANTEES: dict[Guarantee, str] = {
    "finite-sample": "The bounds are finite-sample: they hold at any number of episodes, as long as the declared "
    "ranges and weights do.",
    "asymptotic": "The bounds are asymptotic: they hold as episodes grow in number, and the documentation tells how "
    "often they held when that was measured.",
    "heuristic": "The bounds are heuristic: nothing guarantees that they hold.",
}
ASSUMED = (
    "All of it takes the future to be like the log: the same population, a state that holds all that matters for what "
    "comes next, and costs that were logged in full. What the log itself says about that is among the checks."
)


def verdict(status: Status, rows: Sequence[CostRow], certificate: Certificate | None) -> tuple[Level, str]:
    """Return how good the run is, and why, in one sentence; rows: the objective's first."""
    if status is Status.INFEASIBLE:
        return "bad", "No policy that the log supports keeps all the limits together: what follows comes closest."
    if status is Status.NOT_FINITE:
        return "bad", "The run broke down before it found a policy to speak of."
    if certificate is not None:
        return _certified(status, rows[0], certificate)
    return _estimated(status, rows)


def sequence_verdict(status: str, rows: Sequence[CostRow], certificate: Certificate | None) -> tuple[Level, str]:
    """Return how good a cross-fitted run is, and why, in one sentence; certificate: None where nothing was judged."""
    if status == INFEASIBLE:
        return "bad", "Behavior should go on: no policy that the log supports keeps all the limits together."
    if status == EXPLORED:
        change = _change(rows[0], "in going to the limits")
        return "caution", f"Explored, not judged: by the episodes that it learned from, the learned policy {change}."
    if certificate is None:
        return "caution", "Behavior should go on: no policy could be tried."
    if status == CERTIFIED:
        return _certified(Status.CONVERGED, rows[0], certificate, "episodes")
    level, refused = _certified(Status.CONVERGED, rows[0], certificate, "episodes", who="The policy that was refused")
    return "caution" if level == "good" else level, f"Behavior should go on. {refused}"


def caveat(certificate: Certificate | None, *, cross_fitted: bool = False) -> str:
    """Return what the numbers do and do not prove; cross_fitted: whether all episodes learned and all judged."""
    if certificate is None:
        return CAVEAT
    episodes = "these episodes" if cross_fitted else "the held-out episodes"
    confidence, permitted = (percentage(share) for share in (certificate.confidence, 1 - certificate.confidence))
    together = "" if len(certificate.constraints) == 1 else ", for all constraints together"
    bounds = f"The certificate rests on bounds at {confidence} confidence{together}."
    judged = [BY_FOLDS] if cross_fitted else []
    look = _look(certificate, permitted, episodes)
    return " ".join((*judged, bounds, GUARANTEES[certificate.guarantee], look, ASSUMED))


def _look(certificate: Certificate, permitted: str, episodes: str) -> str:
    """Say what judging by episodes has used up of them."""
    if certificate.alpha == 0:
        return "No look was charged."
    if certificate.alpha >= (1 - certificate.confidence) * (1 - 1e-9):
        return f"This look at {episodes} spent all of the permitted error of {permitted}: take no other."
    return (
        f"This was look {certificate.look} at {episodes}: it spent {percentage(certificate.alpha)} of the "
        f"permitted error of {permitted}, which all looks share."
    )


def _certified(
    status: Status,
    objective: CostRow,
    certificate: Certificate,
    judges: str = "held-out episodes",
    who: str = "The learned policy",
) -> tuple[Level, str]:
    """Speak of an improvement only where it was shown."""
    improvement = improvement_of(certificate, objective.name, objective.direction)
    clusters = "" if certificate.clusters is None else f" of {certificate.clusters:,} clusters"
    episodes = f"{certificate.episodes:,} {judges}{clusters}"
    confidence = f"at {percentage(certificate.confidence)} confidence"
    judged = certificate.constraints
    named = [c.name for c in judged if c.verdict == certificate.verdict] or [c.name for c in judged]
    limits = f"{'limit' if len(named) == 1 else 'limits'} on {_list(named)}"
    shown = improvement is None or improvement.verdict == "better"
    change = _change(objective) if improvement is None else _judged_change(improvement)
    then = "but" if shown else "and"
    if certificate.verdict == "fail":
        return "bad", f"{who} {change}, {then} breaks the {limits}: shown on {episodes} {confidence}."
    if certificate.verdict == "inconclusive":
        kept = f"whether it keeps the {limits} could not be shown on the {episodes}"
        return "caution", f"{who} {change}, {then} {kept}."
    better = "" if status is Status.CONVERGED else " A better one may exist."
    if not shown:
        kept = f"keeps every limit, certified on {episodes} {confidence}"
        return "caution", f"{who} {kept}, but {change}.{better}"
    certified = f"certified on {episodes} {confidence}"
    if improvement is not None:
        certified = f"both certified on {episodes}, each {confidence}"
    return "good", f"{who} {change} and keeps every limit: {certified}.{better}"


def _estimated(status: Status, rows: Sequence[CostRow]) -> tuple[Level, str]:
    objective, constraints = rows[0], rows[1:]
    judged = (
        "on the held-out episodes" if objective.values[LEARNED].held_out is not None else "on the log it learned from"
    )
    broken = [row.name for row in constraints if not _kept(row)]
    change = _change(objective)
    if broken:
        return "caution", f"The learned policy {change}, but {judged} it exceeds the limit on {_list(broken)}."
    kept = "keeps every limit" if constraints else "has no limits to keep"
    if status is not Status.CONVERGED:
        return "caution", f"The learned policy {change} and {kept} {judged}, but a better one may exist."
    return "caution", f"The learned policy {change} and {kept}, {judged}."  # nothing was shown


def _change(objective: CostRow, otherwise: str = "as the price of the limits") -> str:
    before, after = (_judge(objective.values[name]) for name in (BEHAVIOR, LEARNED))
    numbers = f"{objective.name} from {number(before)} to {number(after)}"
    better = after > before if objective.direction is Direction.MAXIMISE else after < before
    return f"{'raises' if after > before else 'lowers'} {numbers}" if better else f"moves {numbers} {otherwise}"


def _judged_change(improvement: Improvement) -> str:
    """Say what was shown of the objective, by the certificate's own numbers."""
    name, verb = improvement.name, improvement.wanted
    before, after = number(improvement.behavior), number(improvement.estimate)
    if improvement.verdict == "not shown better":
        return f"is not shown to {verb} {name} (estimated at {after}, behavior's at {before})"
    if improvement.verdict == "worse":
        verb = "raise" if verb == "lower" else "lower"
    return f"{verb}s {name} from {before} to {after}"


def _kept(row: CostRow) -> bool:
    value = _judge(row.values[LEARNED])
    limit = row.limit if row.limit is not None else math.inf
    slack = 1e-6 * max(1.0, abs(limit))
    return value >= limit - slack if is_floor(row) else value <= limit + slack


def _judge(estimate: Estimate) -> float:
    value = estimate.held_out if estimate.held_out is not None else estimate.learning
    return float("nan") if value is None else value


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
