"""The mixture's members between objective and constraint: why it mixes at all."""

import math

from checkrein.report.figures.figure import (
    BEHAVIOR_COLOR,
    CARD,
    LEARNED_COLOR,
    Figure,
    Spec,
    axis,
    finite,
    layout,
    limit_line,
    text,
)
from checkrein.report.model import CostRow, Summary
from checkrein.report.words import number, percent


def member_figures(summary: Summary) -> list[Figure]:
    """Return, for each constraint, the members in its plane with the objective; nothing where one member is all."""
    objective, *constraints = summary.costs
    if len(summary.members) < 2 or summary.trace is None:
        return []
    return [_figure(f"members-{k}", summary, objective, row) for k, row in enumerate(constraints)]


def _figure(name: str, summary: Summary, objective: CostRow, row: CostRow) -> Figure:
    limit = finite(row.limit)
    extra = limit_line(limit, f"limit {number(limit)}", across="x") if limit is not None else {}
    return Figure(
        name=name,
        title=f"{objective.name} against {row.name}",
        note="Circles: members, their area by weight; diamond: the mixture.",
        data=[_members(summary, objective.name, row.name), _mixture(objective, row)],
        layout=layout(
            height=290,
            xaxis=axis(text(f"{row.name}, {row.unit}", longest=60), nticks=6),
            yaxis=axis(text(f"{objective.name}, {objective.unit}", longest=40), nticks=6),
            **extra,
        ),
    )


def _members(summary: Summary, objective: str, constraint: str) -> Spec:
    members = summary.members
    marker = {
        "size": [8 + 26 * math.sqrt(max(member.weight, 0.0)) for member in members],
        "color": BEHAVIOR_COLOR,
        "opacity": 0.55,
        "line": {"color": CARD, "width": 1},
    }
    words = [
        [k, percent(member.weight), number(member.values.get(constraint)), number(member.values.get(objective))]
        for k, member in enumerate(members, start=1)
    ]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "members",
        "x": [finite(member.values.get(constraint)) for member in members],
        "y": [finite(member.values.get(objective)) for member in members],
        "marker": marker,
        "customdata": words,
        "hovertemplate": "member %{customdata[0]}, weight %{customdata[1]}<br>"
        "%{customdata[2]} across, %{customdata[3]} up<extra></extra>",
    }


def _mixture(objective: CostRow, row: CostRow) -> Spec:
    across, up = (cost.values["learned"].learning if "learned" in cost.values else None for cost in (row, objective))
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "the mixture",
        "x": [finite(across)],
        "y": [finite(up)],
        "marker": {"symbol": "diamond", "size": 12, "color": LEARNED_COLOR, "line": {"color": CARD, "width": 1.5}},
        "hovertemplate": f"the mixture<br>{number(across)} across, {number(up)} up<extra></extra>",
    }
