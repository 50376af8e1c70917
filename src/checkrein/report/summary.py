"""summary: what a run found, as the data that a page is made of."""

import importlib.metadata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.certification.certificate import Certificate
from checkrein.certification.survival import Sensitivity
from checkrein.game import Derandomised, SinglePolicies
from checkrein.game.columns import Columns, trade_off
from checkrein.game.loop import Round
from checkrein.game.solution import Solution
from checkrein.logs.card import DataCard
from checkrein.problem import Problem, Question, Values
from checkrein.problem.goals import Goal
from checkrein.problem.outcomes import Outcome, outcomes_of
from checkrein.report.changes import with_changes
from checkrein.report.differences import differences_of
from checkrein.report.doubts import doubts_of
from checkrein.report.model import (
    BEHAVIOR,
    LEARNED,
    SINGLE_POLICY,
    UNCONSTRAINED,
    Aimed,
    CostRow,
    Differences,
    Estimate,
    Member,
    Repeat,
    Reused,
    Single,
    Singles,
    Summary,
    Trace,
    TradeOffRow,
)
from checkrein.report.outcomes import as_outcome, possible
from checkrein.report.verdict import caveat, verdict
from checkrein.selection.margins import MarginChoice

__all__ = [
    "BEHAVIOR",
    "CITATION",
    "LEARNED",
    "SINGLE_POLICY",
    "UNCONSTRAINED",
    "Judged",
    "singles_of",
    "summary",
    "summary_of",
    "versions",
]

AIMED = " (These limits leave room for the certificate: they were chosen inside the learning part.)"
PACKAGES = ("numpy", "scipy", "scikit-learn", "polars")
CITATION = (
    "Le, H. M., Voloshin, C. & Yue, Y. (2019). Batch Policy Learning under Constraints. "
    "Proceedings of the 36th International Conference on Machine Learning (ICML)."
)


@dataclass(frozen=True)
class Judged:
    """One policy's values, inside signs, on the part it was learned from and on the other."""

    learning: Values | None
    held_out: Values | None
    standard_error: FloatArray | None = None  # (1 + m,) of the held-out values


def summary(
    problem: Problem,
    solution: Solution,
    *,
    title: str,
    goals: Sequence[Goal],
    judged: Mapping[str, Judged],
    card: DataCard,
    held_out: Problem | None,
    repeat: Repeat,
    margins: MarginChoice | None = None,
    certificate: Certificate | None = None,
    sensitivity: Sensitivity | None = None,
    singles: Singles | None = None,
    reused: Reused | None = None,
) -> Summary:
    """Collect everything a report says; goals: the objective's first; held_out: the part that judges."""
    return summary_of(
        problem,
        solution,
        title=title,
        goals=goals,
        judged=judged,
        card=card,
        learning_episodes=problem.dataset.first_rows().size,
        held_out_episodes=0 if held_out is None else held_out.dataset.first_rows().size,
        repeat=repeat,
        margins=margins,
        certificate=certificate,
        sensitivity=sensitivity,
        reused=reused,
        singles=singles,
        differences=differences_of(problem, solution.policy, sign=goals[0].direction.sign),
        outcomes=() if problem.dataset.episodes is None else outcomes_of(problem if held_out is None else held_out),
    )


def summary_of(
    problem: Question,
    solution: Solution,
    *,
    title: str,
    goals: Sequence[Goal],
    judged: Mapping[str, Judged],
    card: DataCard,
    learning_episodes: int,
    held_out_episodes: int,
    repeat: Repeat,
    margins: MarginChoice | None,
    certificate: Certificate | None,
    reused: Reused | None,
    differences: Differences | None,
    sensitivity: Sensitivity | None = None,
    singles: Singles | None = None,
    outcomes: Sequence[Outcome] = (),
) -> Summary:
    """Collect everything a report says that no log is needed for; outcomes: empty where none was read."""
    told: list[Outcome | None] = list(outcomes) or [None] * len(goals)
    rows = [
        _cost_row(index, goal, problem, card.discount, solution, judged, outcome)
        for index, (goal, outcome) in enumerate(zip(goals, told, strict=True))
    ]
    rows = with_changes(rows, certificate)
    level, sentence = verdict(solution.status, rows, certificate)
    return Summary(
        title=title,
        status=str(solution.status),
        verdict=sentence,
        level=level,
        explanation=solution.explanation + _aside(margins, reused, len(solution.rounds)),
        caveat=caveat(certificate),
        doubts=doubts_of(rows),
        costs=rows,
        policies=list(judged),
        gap=solution.gap,
        lower_bound=goals[0].direction.sign * solution.lower_bound if np.isfinite(solution.lower_bound) else None,
        trace=_trace(goals, solution.rounds[max(0 if reused is None else reused.policies - 1, 0) :]),
        members=_members(goals, solution),
        weighting=solution.weighting,
        differences=differences,
        card=card,
        learning_episodes=learning_episodes,
        held_out_episodes=held_out_episodes,
        repeat=repeat,
        aimed=None if margins is None else _aimed(margins, finite=card.states_visited_once is not None),
        reused=reused,
        certificate=certificate,
        sensitivity=sensitivity,
        singles=singles,
        trade_offs=_trade_offs(problem, goals, solution.rounds),
    )


def singles_of(goals: Sequence[Goal], singles: SinglePolicies, judge: Callable[[Derandomised], Judged]) -> Singles:
    """Collect what a report says of single policies; judge: values one on both parts."""
    rows = []
    for one in singles:
        judged = judge(one)
        values = {goal.name: _estimate(index, goal, judged) for index, goal in enumerate(goals)}
        chosen = one is singles.best
        rows.append(Single(kind=one.kind, chosen=chosen, values=values, price=one.price, explanation=one.explanation))
    return Singles(found=rows, left_out=dict(singles.left_out))


def versions() -> dict[str, str]:
    """Return the versions of the packages that the numbers depend on."""
    return {name: importlib.metadata.version(name) for name in PACKAGES}


def _aside(margins: MarginChoice | None, reused: Reused | None, rounds: int) -> str:
    """Say where the limits and the policies came from, if not from the problem file and this run."""
    if reused is None:
        return "" if margins is None else AIMED
    came = f" The policies are those of {reused.run}; the log was not read."
    if reused.log_read:
        new = rounds - reused.policies
        came = f" {reused.policies} of the policies are those of {reused.run}; new rounds on the log: {new}."
    return came + ("" if margins is None else f" (These limits leave the room that {reused.run} left under its own.)")


def _aimed(margins: MarginChoice, *, finite: bool) -> Aimed:
    return Aimed(
        support=margins.support.words(finite=finite),
        limits={c.name: c.limit for c in margins.constraints},
        predicted=margins.predicted,
        predicted_to_pass=margins.predicted_to_pass,
    )


def _cost_row(
    index: int,
    goal: Goal,
    problem: Question,
    discount: float,
    solution: Solution,
    judged: Mapping[str, Judged],
    outcome: Outcome | None,
) -> CostRow:
    estimates = {name: possible(_estimate(index, goal, one), goal, outcome) for name, one in judged.items()}
    name = None if index == 0 else problem.constraints[index - 1].name
    note = solution.price_notes.get(name or "", "")
    return CostRow(
        name=goal.name,
        role="objective" if index == 0 else "constraint",
        direction=goal.direction,
        limit=goal.limit,
        limit_source=goal.limit_source,
        **as_outcome(goal, discount, outcome),
        price=None if name is None else solution.multipliers[name],
        price_range=solution.price_ranges[name] if name is not None and note else None,
        price_note=note,
        values=estimates,
    )


def _estimate(index: int, goal: Goal, judged: Judged) -> Estimate:
    """Return one cost of one policy in the user's signs; index: of the cost, the objective's is 0."""

    def shown(values: Values | None) -> float | None:
        return None if values is None else float(goal.direction.sign * values.row[index]) + 0.0

    error = judged.standard_error
    return Estimate(
        learning=shown(judged.learning),
        held_out=shown(judged.held_out),
        standard_error=None if error is None else float(error[index]),
    )


def _trade_offs(problem: Question, goals: Sequence[Goal], rounds: Sequence[Round]) -> list[TradeOffRow]:
    """Say what the rounds played tell of other limits, one constraint at a time."""
    if not all(played.finite for played in rounds):
        return []
    columns, gained = Columns.of(rounds), goals[0].direction.sign
    rows = []
    for place, (constraint, goal) in enumerate(zip(problem.constraints, goals[1:], strict=True)):
        found, sign = trade_off(columns, problem.limits, place), goal.direction.sign
        reached = [None if np.isnan(value) else float(gained * value) for value in found.reached]
        rows.append(
            TradeOffRow(
                name=goal.name,
                limits=(sign * found.limits).tolist(),
                reached=reached,
                proven=(gained * found.proven).tolist(),
                aimed=constraint.limit,
            )
        )
    return rows


def _trace(goals: Sequence[Goal], rounds: Sequence[Round]) -> Trace:
    mixtures = np.array([played.mixture.row for played in rounds]) * [goal.direction.sign for goal in goals]
    sign = goals[0].direction.sign
    return Trace(
        round=[played.index for played in rounds],
        gap=[played.gap for played in rounds],
        lower=[sign * played.lower for played in rounds],
        upper=[sign * played.upper for played in rounds],
        objective=mixtures[:, 0].tolist(),
        constraints={goal.name: mixtures[:, i + 1].tolist() for i, goal in enumerate(goals[1:])},
        multipliers={
            goal.name: [float(played.multipliers[i]) for played in rounds] for i, goal in enumerate(goals[1:])
        },
    )


def _members(goals: Sequence[Goal], solution: Solution) -> list[Member]:
    signs = np.array([goal.direction.sign for goal in goals])
    values = {id(played.policy): signs * played.values.row for played in solution.rounds}
    found = zip(solution.policy.members, solution.policy.weights, strict=True)
    return [
        Member(
            weight=float(weight),
            values={goal.name: float(value) for goal, value in zip(goals, values.get(id(member), []), strict=False)},
        )
        for member, weight in sorted(found, key=lambda pair: -pair[1])
    ]
