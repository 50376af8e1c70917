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
from checkrein.report.words import amount, is_floor, listed, number, percentage

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


UNLIMITED = (
    'To have it judged, set a limit, for instance on how far the policy may move (kind = "total variation", at_most = '
    "the decisions of an episode)."
)


def verdict(status: Status, rows: Sequence[CostRow], certificate: Certificate | None) -> tuple[Level, str]:
    """Return how good the run is, and why, in one sentence; rows: the objective's first."""
    if status is Status.INFEASIBLE:
        return "bad", "No policy that the log supports keeps all the limits together: what follows comes closest."
    if status is Status.NOT_FINITE:
        return "bad", "The run broke down before it found a policy to speak of."
    if certificate is not None:
        return _certified(status, rows, certificate)
    return _estimated(status, rows)


def sequence_verdict(status: str, rows: Sequence[CostRow], certificate: Certificate | None) -> tuple[Level, str]:
    """Return how good a cross-fitted run is, and why, in one sentence; certificate: None where nothing was judged."""
    if status == INFEASIBLE:
        return "bad", "Behavior should go on: no policy that the log supports keeps all the limits together."
    if status == EXPLORED:
        change = _change(rows)
        return "caution", f"Explored, not judged: by the episodes that it learned from, the learned policy {change}."
    if certificate is None:
        return "caution", "Behavior should go on: no policy could be tried."
    if status == CERTIFIED:
        return _certified(Status.CONVERGED, rows, certificate, "episodes")
    level, refused = _certified(Status.CONVERGED, rows, certificate, "episodes", who="The policy that was refused")
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
    rows: Sequence[CostRow],
    certificate: Certificate,
    judges: str = "held-out episodes",
    who: str = "The learned policy",
) -> tuple[Level, str]:
    """Say what was shown of the objective and of each limit: good if all of it is, bad if something is worse."""
    improvement = improvement_of(certificate, rows[0].name, rows[0].direction)
    clusters = "" if certificate.clusters is None else f" of {certificate.clusters:,} clusters"
    episodes = f"{certificate.episodes:,} {judges}{clusters}"
    confidence = f"at {percentage(certificate.confidence)} confidence"
    broken, unknown, kept = (_limits_on(certificate, verdict) for verdict in ("fail", "inconclusive", "pass"))
    change = _unjudged(rows[0]) if improvement is None else _judged_change(improvement)
    better = improvement is not None and improvement.verdict == "better"
    worse = improvement is not None and improvement.verdict == "worse"
    then = "but" if better else "and"
    if certificate.verdict == "fail":
        besides = "".join(
            (f", while it keeps the {kept}" if kept else "", f", and the {unknown} is open" if unknown else "")
        )
        return "bad", f"{who} {change}, {then} breaks the {broken}{besides}: shown on {episodes} {confidence}."
    if certificate.verdict == "inconclusive":
        besides = f"; it keeps the {kept}" if kept else ""
        open_question = f"whether it keeps the {unknown} could not be shown on the {episodes}{besides}"
        return "bad" if worse else "caution", f"{who} {change}, {then} {open_question}."
    more = "" if status is Status.CONVERGED else " A better one may exist."
    if not better:
        shown = f"{who} keeps the {kept}, certified on {episodes} {confidence}"
        return "bad" if worse else "caution", f"{shown}, but {change}.{more}"
    return "good", f"{who} {change} and keeps the {kept}: both certified on {episodes}, each {confidence}.{more}"


def _limits_on(certificate: Certificate, verdict: Verdict) -> str:
    """Name the limits with a verdict: "limits on vaso and fluids"; empty where there is none."""
    names = [c.name for c in certificate.constraints if c.verdict == verdict]
    return f"{'limit' if len(names) == 1 else 'limits'} on {listed(names)}" if names else ""


def _estimated(status: Status, rows: Sequence[CostRow]) -> tuple[Level, str]:
    objective, constraints = rows[0], rows[1:]
    judged = (
        "on the held-out episodes" if objective.values[LEARNED].held_out is not None else "on the log it learned from"
    )
    broken = [row.name for row in constraints if not _kept(row)]
    change = _change(rows)
    if broken:
        return "caution", f"The learned policy {change}, but {judged} it exceeds the limit on {listed(broken)}."
    if not constraints:
        return (
            "caution",
            f"Nothing was certified, for want of a limit: {judged}, the learned policy {change}. {UNLIMITED}",
        )
    kept = "keeps every limit"
    if status is not Status.CONVERGED:
        return "caution", f"The learned policy {change} and {kept} {judged}, but a better one may exist."
    return "caution", f"The learned policy {change} and {kept}, {judged}."  # nothing was shown


def _change(rows: Sequence[CostRow]) -> str:
    """Say how the estimates of the objective differ: worse is the price of the limits only where they have one."""
    objective = rows[0]
    before, after = (_judge(objective.values[name]) for name in (BEHAVIOR, LEARNED))
    numbers = f"{objective.name} {_from_to(objective, before, after)}"
    better = after > before if objective.direction is Direction.MAXIMISE else after < before
    if better:
        return f"{'raises' if after > before else 'lowers'} {numbers}"
    priced = any(row.price is not None and row.price > 0 and number(row.price) != "0" for row in rows[1:])
    return f"moves {numbers}" + (" as the price of the limits" if priced else "")


def _unjudged(objective: CostRow) -> str:
    """Say what is estimated of an objective that no certificate judged."""
    before, after = (_judge(objective.values[name]) for name in (BEHAVIOR, LEARNED))
    wanted = "raises" if objective.direction is Direction.MAXIMISE else "lowers"
    estimated = _from_to(objective, before, after)
    return f"whether it {wanted} {objective.name} was not judged (by the estimates, {estimated})"


def _from_to(row: CostRow, before: float, after: float) -> str:
    words = f"from {amount(before, share=row.share)} to {amount(after, share=row.share)}"
    return f"{words} of episodes" if row.share else words


def _judged_change(improvement: Improvement) -> str:
    """Say what was shown of the objective, by the certificate's own numbers, with its interval."""
    name, verb = improvement.name, improvement.wanted
    before, after = improvement.amount(improvement.behavior), improvement.amount(improvement.estimate)
    of = " of episodes" if improvement.share else ""
    if improvement.verdict == "not shown better":
        between = f": {improvement.between}" if improvement.believed and improvement.by else ""
        return f"is not shown to {verb} {name} (estimated at {after}{of}, behavior's at {before}{between})"
    if improvement.verdict == "worse":
        verb = "raise" if verb == "lower" else "lower"
    by = f" ({improvement.by})" if improvement.by else ""
    return f"{verb}s {name} from {before} to {after}{of}{by}"


def _kept(row: CostRow) -> bool:
    value = _judge(row.values[LEARNED])
    limit = row.limit if row.limit is not None else math.inf
    slack = 1e-6 * max(1.0, abs(limit))
    return value >= limit - slack if is_floor(row) else value <= limit + slack


def _judge(estimate: Estimate) -> float:
    value = estimate.held_out if estimate.held_out is not None else estimate.learning
    return float("nan") if value is None else value
