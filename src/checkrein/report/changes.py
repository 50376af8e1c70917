"""How far each value of the learned policy is from behavior's, and how sure that is."""

import math
from collections.abc import Sequence

from checkrein.certification.certificate import Certificate
from checkrein.certification.intervals import Interval
from checkrein.problem.goals import Goal
from checkrein.report.improvement import improvement_of
from checkrein.report.model import BEHAVIOR, LEARNED, Change, CostRow, Estimate

UNKNOWN = Estimate(learning=None, held_out=None)


def changes_of(goals: Sequence[Goal], interval: Interval) -> list[Change]:
    """Return how far each value is from behavior's, in the user's signs; interval: of the values inside."""
    changes = []
    ends = zip(goals, interval.estimates, interval.lower, interval.upper, strict=True)
    for goal, difference, lower, upper in ends:
        low, high = sorted(goal.direction.sign * float(end) for end in (lower, upper))
        changes.append(Change(difference=goal.direction.sign * float(difference) + 0.0, low=low + 0.0, high=high + 0.0))
    return changes


def with_changes(
    rows: Sequence[CostRow], certificate: Certificate | None, found: Sequence[Change] | None = None
) -> list[CostRow]:
    """Return the rows with what changes; the objective's interval is the certificate's own.

    found: by the certificate's episodes; None: only the estimates are known
    """
    believed = certificate is not None and certificate.believed
    changes = [_of_estimates(row) for row in rows]
    if found is not None and believed:
        changes = list(found)
    judged = improvement_of(certificate, rows[0].name, rows[0].direction)
    if judged is not None and judged.believed and math.isfinite(judged.low) and math.isfinite(judged.high):
        changes[0] = Change(difference=judged.difference, low=judged.low, high=judged.high)
    return [row.model_copy(update={"change": change}) for row, change in zip(rows, changes, strict=True)]


def _of_estimates(row: CostRow) -> Change | None:
    """Return the difference of the values that judge, else of those of the learning part, without an interval."""
    after, before = (_judging(row.values.get(name, UNKNOWN)) for name in (LEARNED, BEHAVIOR))
    return None if after is None or before is None else Change(difference=after - before)


def _judging(estimate: Estimate) -> float | None:
    return estimate.learning if estimate.held_out is None else estimate.held_out
