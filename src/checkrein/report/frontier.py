"""frontier_summary: a frontier as the data that its page is made of, in the user's own words, signs and units."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.certification.certificate import Certificate
from checkrein.game.solution import Status
from checkrein.problem.goals import Direction, Goal
from checkrein.report.frontier_model import FrontierSummary, ShownPoint, ShownPolicy, ShownPrice, SweptCost
from checkrein.report.model import Estimate, Repeat
from checkrein.report.summary import Judged
from checkrein.report.words import number, percentage, unit_in_words
from checkrein.selection.frontier import Frontier, HeldOut

CAVEAT = (
    "Learning values are optimistic: the same episodes chose the policies. Prices are slopes of the learning curve."
)
CERTIFIED = " What is certified holds for the point's own limits, as far as the method's guarantee goes."
TOLD = 3  # points whose prices are told in sentences; of a grid, one
NEGLIGIBLE = 1e-6  # of the objective's size: a price that is none


def frontier_summary(
    found: Frontier,
    *,
    title: str,
    goals: Sequence[Goal],
    references: Mapping[str, Judged],
    margins: Mapping[str, float],
    look: int | None,
    held_out_episodes: int,
    warnings: Sequence[str],
    repeat: Repeat,
) -> FrontierSummary:
    """Collect everything the page says; goals: the objective's first."""
    discount = found.problem.discount
    costs = [
        SweptCost(name=g.name, direction=g.direction, unit=unit_in_words(g.unit, discount), limit=g.limit)
        for g in goals
    ]
    points = [_point(found, k, goals) for k in range(len(found.points))]
    return FrontierSummary(
        title=title,
        sentences=_sentences(points, costs, list(found.limits), found.confidence),
        caveat=CAVEAT + ("" if found.confidence is None else CERTIFIED),
        costs=costs,
        swept=list(found.limits),
        points=points,
        policies=_policies(found, goals),
        references={name: _estimates(goals, *_parts(judged)) for name, judged in references.items()},
        margins={name: margin for name, margin in margins.items() if margin},
        best_responses=found.asked,
        confidence=found.confidence,
        look=look,
        learning_episodes=found.problem.dataset.first_rows().size,
        held_out_episodes=held_out_episodes,
        warnings=list(warnings),
        repeat=repeat,
    )


def _point(found: Frontier, k: int, goals: Sequence[Goal]) -> ShownPoint:
    point = found.points[k]
    judged = found.held_out[k] if found.held_out else HeldOut(None, None, None)
    kept = point.status is not Status.INFEASIBLE
    certificate = judged.certificate
    return ShownPoint(
        limits={name: point.limits[name] for name in found.limits},
        status=str(point.status),
        values=_estimates(goals, point.values.row, judged.values, judged.standard_errors) if kept else {},
        prices={
            name: ShownPrice(value=price, low=sure.low, high=sure.high, note=sure.note, bounded=sure.bounded)
            for name, price in point.multipliers.items()
            for sure in [point.prices[name]]
            if kept
        },
        bounds={} if certificate is None else {c.name: c.bound for c in certificate.constraints},
        verdict=None if certificate is None else certificate.verdict,
        not_shown=[] if certificate is None else _not_shown(certificate),
        gap=point.gap,
        new_rounds=point.new_rounds,
        members=len(point.policy.members),
    )


def _not_shown(certificate: Certificate) -> list[str]:
    """Return what keeps a certificate from passing: checks that fail, else constraints."""
    failed = [f"the check of {check.name}" for check in certificate.checks if not check.ok]
    return failed or [c.name for c in certificate.constraints if c.verdict != "pass"]


def _estimates(
    goals: Sequence[Goal], learning: FloatArray | None, held_out: FloatArray | None, errors: FloatArray | None
) -> dict[str, Estimate]:
    """Return each cost's estimates in the user's signs, from arrays (1 + m,) signed so that less is better."""

    def shown(values: FloatArray | None, i: int) -> float | None:
        return None if values is None else float(goals[i].direction.sign * values[i]) + 0.0

    return {
        goal.name: Estimate(
            learning=shown(learning, i),
            held_out=shown(held_out, i),
            standard_error=None if errors is None else float(errors[i]),
        )
        for i, goal in enumerate(goals)
    }


def _parts(judged: Judged) -> tuple[FloatArray | None, FloatArray | None, FloatArray | None]:
    learning, held_out = (None if values is None else values.row for values in (judged.learning, judged.held_out))
    return learning, held_out, judged.standard_error


def _policies(found: Frontier, goals: Sequence[Goal]) -> list[ShownPolicy]:
    table = found.policies()
    turned = [1.0, *(c.sign for c in found.problem.constraints)]  # the table is in the signs of the constraints
    columns = [
        goal.direction.sign * sign * table[name].to_numpy()
        for goal, sign, name in zip(goals, turned, found.problem.value_names, strict=True)
    ]
    names = [goal.name for goal in goals]
    views = zip(table["non_dominated"], table["coverage"], strict=True)
    return [
        ShownPolicy(values=dict(zip(names, map(float, row), strict=True)), non_dominated=alone, coverage=covered)
        for row, (alone, covered) in zip(zip(*columns, strict=True), views, strict=True)
    ]


def _sentences(
    points: Sequence[ShownPoint], costs: Sequence[SweptCost], swept: Sequence[str], confidence: float | None
) -> list[str]:
    reached = [point for point in points if point.values]
    if not reached:
        return ["No policy that the log supports keeps any of these limits."]
    said = [_span(reached, costs[0], swept)]
    count = TOLD if len(swept) == 1 else 1
    told = [reached[round(at)] for at in np.linspace(0, len(reached) - 1, count + 2)[1:-1]]
    for name in swept:
        cost = next(c for c in costs if c.name == name)
        said += list(dict.fromkeys(_price(point, costs[0], cost, swept) for point in told))
    lost = len(points) - len(reached)
    if lost:
        said.append(f"At {lost} of the {len(points)} limits no policy that the log supports keeps all limits together.")
    if confidence is not None:
        passed = sum(point.verdict == "pass" for point in points)
        said.append(
            f"{passed} of {len(reached)} points are certified to keep their limits: on held-out episodes, at "
            f"{percentage(confidence)} confidence for all points together."
        )
        open_ones = Counter(name for point in points for name in point.not_shown)
        if open_ones:
            counts = (f"{name} (in {count})" for name, count in open_ones.most_common())
            said.append(f"What keeps the others from passing: {', '.join(counts)}.")
    return said


def _span(reached: Sequence[ShownPoint], objective: SweptCost, swept: Sequence[str]) -> str:
    first, last = reached[0], reached[-1]
    moves = [
        f"the limit on {name} goes from {number(first.limits[name])} to {number(last.limits[name])}" for name in swept
    ]
    ends = [point.values[objective.name] for point in (first, last)]
    before, after = (number(end.learning) for end in ends)
    if any(end.held_out is None for end in ends):
        return (
            f"As {' and '.join(moves)}, {objective.name} goes from {before} to {after}, on the episodes learned from."
        )
    shown = " to ".join(number(end.held_out) for end in ends)
    return (
        f"As {' and '.join(moves)}, {objective.name} goes from {shown} on held-out episodes, and from {before} to "
        f"{after} on those that the policies were learned from."
    )


def _limits(point: ShownPoint, swept: Sequence[str]) -> str:
    if len(swept) == 1:
        return f"a limit of {number(point.limits[swept[0]])}"
    return " and ".join(f"a limit of {number(point.limits[name])} on {name}" for name in swept)


def _price(point: ShownPoint, objective: SweptCost, cost: SweptCost, swept: Sequence[str]) -> str:
    price = point.prices[cost.name]
    size = abs(point.values[objective.name].learning or 0.0) or 1.0
    where = f"At {_limits(point, swept)}"
    unit = "one unit less" if cost.direction is Direction.AT_LEAST else "one more unit"
    if price.high < NEGLIGIBLE * size or (not price.note and price.value < NEGLIGIBLE * size):
        return f"{where}, the limit on {cost.name} costs nothing."
    change = "raise" if objective.direction is Direction.MAXIMISE else "lower"
    amount = f"by {number(price.value)}"
    if price.note:
        between = f"between {number(price.low)} and {number(price.high)}"
        amount = f"by {f'{number(price.low)} or more' if price.bounded else between}"
    return f"{where}, {unit} of {cost.name} would {change} {objective.name} {amount}."
