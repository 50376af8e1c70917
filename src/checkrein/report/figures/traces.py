"""The game round by round: gap, bounds, multipliers, and what the mixture costs."""

import math
from typing import Any

from checkrein.problem.goals import Direction
from checkrein.report.figures.figure import (
    DASHES,
    LEARNED_COLOR,
    SERIES,
    Figure,
    Spec,
    axis,
    finite,
    layout,
    limit_line,
    text,
)
from checkrein.report.model import CostRow, Summary, Trace
from checkrein.report.words import number

_HEIGHT = 260
_FEW = 40  # rounds up to which each one is marked


def trace_figures(summary: Summary) -> list[Figure]:
    """Return gap and multipliers, then the objective and each constraint of the mixture; nothing without a game."""
    trace = summary.trace
    if trace is None:
        return []
    rows = {row.name: row for row in summary.costs}
    objective = summary.costs[0]
    constraints = [
        _cost(f"trace-constraint-{k}", trace, values, rows.get(name), name)
        for k, (name, values) in enumerate(trace.constraints.items())
    ]
    return [
        _gap(trace),
        _bounds(trace, maximise=objective.direction is Direction.MAXIMISE),
        _multipliers(trace),
        _cost("trace-objective", trace, trace.objective, objective, objective.name),
        *constraints,
    ]


def _line(trace: Trace, values: list[float], name: str, colour: str, **options: Any) -> Spec:
    """Draw one line over the rounds; its hover shows the value to four digits."""
    return {
        "type": "scatter",
        "mode": "lines+markers" if len(trace.round) <= _FEW else "lines",
        "name": text(name, longest=32),
        "x": trace.round,
        "y": [finite(value) for value in values],
        "line": {"color": colour, "width": 2},
        "marker": {"color": colour, "size": 4},
        "customdata": [number(value) for value in values],
        "hovertemplate": "round %{x}: %{customdata}",
        **options,
    }


def _rounds() -> Spec:
    return axis("round", showgrid=False, tickformat=",d", nticks=8)


def _gap(trace: Trace) -> Figure:
    """Draw the gap on a log scale; what is zero or below stands on the scale's floor, and its hover tells its value."""
    positive = [gap for gap in trace.gap if gap > 0 and math.isfinite(gap)]
    scale, shown = axis(), trace.gap
    data: list[Spec] = []
    if positive:
        floor = 10.0 ** (math.floor(math.log10(min(positive))) - 1)
        shown = [gap if gap > 0 or math.isnan(gap) else floor for gap in trace.gap]
        scale = axis(type="log", nticks=7)
        data = _closed(trace, floor)
    line = _line(trace, shown, "gap", LEARNED_COLOR, customdata=[number(gap) for gap in trace.gap])
    note = "Log scale: how far the mixture can be from the best there is, by estimate."
    if data:
        note = "Log scale; triangles on its floor are gaps of zero or below."
    return Figure(
        name="trace-gap",
        title="Duality gap",
        note=note,
        data=[line, *data],
        layout=layout(height=_HEIGHT, xaxis=_rounds(), yaxis=scale),
    )


def _closed(trace: Trace, floor: float) -> list[Spec]:
    rounds = [k for k, gap in zip(trace.round, trace.gap, strict=True) if gap <= 0]
    marker = {"symbol": "triangle-down-open", "size": 9, "color": LEARNED_COLOR}
    still = {"type": "scatter", "mode": "markers", "name": "zero or below", "hoverinfo": "skip"}
    return [{**still, "x": rounds, "y": [floor] * len(rounds), "marker": marker}] if rounds else []


def _bounds(trace: Trace, *, maximise: bool) -> Figure:
    """Draw the two bounds whose distance is the gap; of what is maximised, no policy gets above the proven one."""
    names = ("upper bound", "lower bound") if maximise else ("lower bound", "upper bound")
    lower = _line(trace, trace.lower, names[0], SERIES[1], line={"color": SERIES[1], "width": 2, "dash": "dash"})
    upper = _line(trace, trace.upper, names[1], LEARNED_COLOR)
    return Figure(
        name="trace-bounds",
        title="Bounds on the game's value",
        note="Their distance is the gap.",
        data=[upper, lower],
        layout=layout(height=_HEIGHT, xaxis=_rounds(), yaxis=axis(nticks=6), showlegend=True, hovermode="x"),
    )


def _multipliers(trace: Trace) -> Figure:
    """Draw the multiplier of each constraint: its price while the game is played."""
    data = [
        _line(trace, values, name, colour, line={"color": colour, "width": 2, "dash": DASHES[k % len(DASHES)]})
        for k, (name, values) in enumerate(trace.multipliers.items())
        for colour in [SERIES[k % len(SERIES)]]
    ]
    return Figure(
        name="trace-multipliers",
        title="Multipliers",
        note="What each round's best response was made to pay for a unit of each constraint.",
        data=data,
        layout=layout(height=_HEIGHT, xaxis=_rounds(), yaxis=axis(nticks=6, rangemode="tozero"), showlegend=True),
    )


def _cost(name: str, trace: Trace, values: list[float], row: CostRow | None, cost: str) -> Figure:
    """Draw a cost of the mixture, with its limit where it has one."""
    limit = finite(row.limit) if row else None
    extra = limit_line(limit, f"limit {number(limit)}", across="y") if limit is not None else {}
    # An invisible point keeps the limit inside the range.
    ghost = {"type": "scatter", "mode": "markers", "x": trace.round[:1], "y": [limit], "hoverinfo": "skip"}
    unseen = [{**ghost, "marker": {"opacity": 0}}] if limit is not None else []
    return Figure(
        name=name,
        title=cost,
        note=f"Of the mixture, on the learning data{f'; {row.goal}' if row else ''}.",
        data=[_line(trace, values, cost, LEARNED_COLOR), *unseen],
        layout=layout(height=_HEIGHT, xaxis=_rounds(), yaxis=axis(text(row.unit) if row else "", nticks=6), **extra),
    )
