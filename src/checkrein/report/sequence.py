"""What a cross-fitted run found, as the data that a page is made of: one sequence of candidates, and no game."""

from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.certification.certificate import Certificate
from checkrein.data.dataset import Dataset
from checkrein.logs.card import DataCard
from checkrein.policies import MixturePolicy
from checkrein.problem import Problem, Values
from checkrein.problem.goals import Goal
from checkrein.problem.outcomes import Outcome, outcomes_of, within
from checkrein.report.changes import changes_of, with_changes
from checkrein.report.differences import differences_of
from checkrein.report.doubts import doubts_of
from checkrein.report.groups import groups_of
from checkrein.report.model import (
    BEHAVIOR,
    CERTIFIED,
    EXPLORED,
    INFEASIBLE,
    KEEP_BEHAVIOR,
    LEARNED,
    Candidate,
    CandidateSequence,
    CostRow,
    Estimate,
    Member,
    Repeat,
    Summary,
)
from checkrein.report.outcomes import as_outcome, possible, range_of
from checkrein.report.verdict import EXPLORING, caveat, sequence_verdict
from checkrein.selection.exploring import Explored
from checkrein.selection.fixed_sequence import Candidate as Tried
from checkrein.selection.fixed_sequence import CertifiedPolicy

WEIGHTING = "the share of episodes that each fold holds"
ALL_OPTIMISTIC = (
    "Nothing was judged: every number is of the episodes that the policy was learned from. The last candidate aims at "
    "the limits themselves. Learn without --explore to judge."
)


class Told(TypedDict):
    """What every summary of a cross-fitted run needs to be told."""

    title: str
    goals: Sequence[Goal]
    card: DataCard
    repeat: Repeat
    folds: int
    log: Dataset  # as it was read


def sequence_summary(
    problem: Problem,
    found: CertifiedPolicy,
    *,
    behavior: Values | None,
    errors: FloatArray | None,
    certificate: Certificate,
    told: Told,
) -> Summary:
    """Collect what a report says of candidates that were judged.

    behavior, errors: its values on all episodes, inside signs, and their standard errors
    certificate: of the candidate that is shown: what is deployed, else the one that was refused
    """
    goals = told["goals"]
    shown = found.passed or next(iter(found.candidates[-1:]), None)
    objective = outcomes_of(problem)[0]
    learned = None if shown is None else _judged(goals, shown, objective)
    rows = _rows(problem, told, learned, _logged(goals, behavior, errors, certificate))
    judged, sure = found.episodes, certificate.believed
    rows = with_changes(
        rows, certificate, None if judged is None else changes_of(goals, judged.differences(certificate.alpha))
    )
    status = CERTIFIED if found.passed else INFEASIBLE if found.infeasible else KEEP_BEHAVIOR
    level, sentence = sequence_verdict(status, rows, certificate if shown is not None else None)
    candidates = [_candidate(goals, one, objective, deployed=one is found.passed) for one in found.candidates]
    return _summary(
        problem,
        None if shown is None else shown.policy,
        rows,
        candidates,
        told,
        status=status,
        level=level,
        verdict=sentence,
        explanation=f"{found.explanation[:1].upper()}{found.explanation[1:]}.",
        caveat=caveat(certificate, cross_fitted=True),
        certificate=certificate,
        groups=groups_of(told["log"], goals, judged, certificate.alpha) if sure and judged is not None else [],
    )


def explored_summary(
    problem: Problem, found: Sequence[Explored], *, behavior: Values | None, errors: FloatArray | None, told: Told
) -> Summary:
    """Collect what a report says of candidates that were only estimated, by the episodes that they learned from."""
    goals = told["goals"]
    last = found[-1] if found else None
    learned = None if last is None else _in_user_signs(goals, last.values, last.errors, learning=True)
    rows = with_changes(_rows(problem, told, learned, _logged(goals, behavior, errors, None)), None)
    status = EXPLORED if found else INFEASIBLE
    level, sentence = sequence_verdict(status, rows, None)
    return _summary(
        problem,
        None if last is None else last.policy,
        rows,
        [_explored(goals, one) for one in found],
        told,
        status=status,
        level=level,
        verdict=sentence,
        explanation=ALL_OPTIMISTIC if found else "By what the log supports, no policy meets the limits.",
        caveat=EXPLORING,
        certificate=None,
    )


def _summary(
    problem: Problem,
    policy: MixturePolicy | None,
    rows: list[CostRow],
    candidates: list[Candidate],
    told: Told,
    **said: object,
) -> Summary:
    sign = told["goals"][0].direction.sign
    members = [] if policy is None else [Member(weight=float(w), values={}) for w in policy.weights]
    return Summary.model_validate(
        {
            "title": told["title"],
            "doubts": doubts_of(rows),
            "costs": rows,
            "policies": [name for name in (LEARNED, BEHAVIOR) if name in rows[0].values],
            "gap": None,
            "lower_bound": None,
            "trace": None,
            "members": members,
            "weighting": WEIGHTING,
            "differences": None if policy is None else differences_of(problem, policy, sign=sign),
            "card": told["card"],
            "learning_episodes": problem.dataset.first_rows().size,
            "held_out_episodes": 0,
            "repeat": told["repeat"],
            "sequence": CandidateSequence(candidates=candidates, folds=told["folds"]),
            **said,
        }
    )


def _rows(
    problem: Problem, told: Told, learned: list[Estimate] | None, behavior: list[Estimate] | None
) -> list[CostRow]:
    by_policy = {LEARNED: learned, BEHAVIOR: behavior}
    return [
        CostRow(
            name=goal.name,
            role="objective" if place == 0 else "constraint",
            direction=goal.direction,
            limit=goal.limit,
            limit_source=goal.limit_source,
            **as_outcome(goal, problem.discount, outcome),
            price=None,
            values={
                name: possible(values[place], goal, outcome) for name, values in by_policy.items() if values is not None
            },
        )
        for place, (goal, outcome) in enumerate(zip(told["goals"], outcomes_of(problem), strict=True))
    ]


def _judged(goals: Sequence[Goal], shown: Tried, outcome: Outcome) -> list[Estimate]:
    """Return what the folds' episodes say of a candidate; of limits, the certificate has the user's signs."""
    objective = Estimate(learning=None, held_out=_objective(goals[0], shown, outcome))
    return [
        objective,
        *(
            Estimate(learning=None, held_out=one.estimate, standard_error=one.standard_error)
            for one in shown.certificate.constraints
        ),
    ]


def _logged(
    goals: Sequence[Goal], behavior: Values | None, errors: FloatArray | None, certificate: Certificate | None
) -> list[Estimate] | None:
    """Return what was logged; the objective as the certificate has it, which may foretell cut ends otherwise."""
    if behavior is None:
        return None
    found = _in_user_signs(goals, behavior.row, errors, learning=False)
    if certificate is not None and certificate.objective is not None:
        value = _signed(goals[0], certificate.objective.behavior)
        found[0] = found[0].model_copy(update={"held_out": value})
    return found


def _in_user_signs(
    goals: Sequence[Goal], values: FloatArray, errors: FloatArray | None, *, learning: bool
) -> list[Estimate]:
    found = []
    for place, goal in enumerate(goals):
        value = _signed(goal, float(values[place]))
        error = None if errors is None or not np.isfinite(errors[place]) else float(errors[place])
        learned, held_out = (value, None) if learning else (None, value)
        found.append(Estimate(learning=learned, held_out=held_out, standard_error=error))
    return found


def _signed(goal: Goal, value: float) -> float:
    return float(goal.direction.sign * value) + 0.0


def _objective(goal: Goal, one: Tried, outcome: Outcome) -> float | None:
    """Return the objective in the user's sign; None where it lies beyond what can be."""
    judged = one.certificate.objective
    error = 0.0 if judged is None else judged.standard_error
    return within(_signed(goal, one.objective), range_of(goal, outcome), error)


def _candidate(goals: Sequence[Goal], one: Tried, objective: Outcome, *, deployed: bool) -> Candidate:
    """Return a candidate as it may be shown: no bound where a check failed, no value that cannot be."""
    shown = one.certificate.as_shown
    judged = {c.name: c for c in shown.constraints}
    values = {name: c.estimate for name, c in judged.items() if c.estimate is not None}
    value = _objective(goals[0], one, objective)
    values |= {} if value is None else {goals[0].name: value}
    return Candidate(
        rule=one.rule,
        distance=one.distance,
        margin=one.margin,
        values=values,
        bounds={name: c.bound for name, c in judged.items()},
        verdict=one.certificate.verdict,
        improvement=one.improvement,
        deployed=deployed,
    )


def _explored(goals: Sequence[Goal], one: Explored) -> Candidate:
    values = {goal.name: _signed(goal, float(value)) for goal, value in zip(goals, one.values, strict=True)}
    return Candidate(
        rule=one.rule,
        distance=one.distance,
        margin=one.margin,
        values=values,
        bounds={},
        verdict=None,
        improvement=None,
        deployed=False,
    )
