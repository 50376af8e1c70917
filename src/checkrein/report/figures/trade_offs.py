"""What the rounds played say of other limits: the best mixture of the policies found, and what none can beat."""

from checkrein.report.figures.figure import (
    LEARNED_COLOR,
    SERIES,
    Figure,
    Spec,
    axis,
    finite,
    layout,
    limit_under_legend,
    text,
)
from checkrein.report.model import CostRow, Summary, TradeOffRow
from checkrein.report.words import number


def trade_off_figures(summary: Summary) -> list[Figure]:
    """Return one plot for each constraint."""
    rows = {row.name: row for row in summary.costs}
    return [
        _figure(f"trade-off-{k}", one, summary.costs[0], rows[one.name]) for k, one in enumerate(summary.trade_offs)
    ]


def _figure(name: str, found: TradeOffRow, objective: CostRow, row: CostRow) -> Figure:
    known = [k for k, value in enumerate(found.reached) if value is not None]
    proven = [found.proven[k] for k in known]
    reached = [found.reached[k] for k in known]
    limits = [found.limits[k] for k in known]
    return Figure(
        name=name,
        title=f"{objective.name} as the limit on {row.name} varies",
        note=f"{row.name} is {row.goal}; learned for {number(found.aimed)}.",
        data=[
            _line("best mixture found", limits, reached, LEARNED_COLOR, "solid"),
            _line("no policy does better", limits, proven, SERIES[1], "dash"),
        ],
        layout=layout(
            height=290,
            xaxis=axis(text(f"limit on {row.name}, {row.direction}", longest=44), nticks=6),
            yaxis=axis(text(objective.name, longest=40), nticks=6),
            showlegend=True,
            **limit_under_legend(finite(row.limit)),
        ),
    )


def _line(name: str, limits: list[float], values: list[float | None] | list[float], colour: str, dash: str) -> Spec:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": [finite(limit) for limit in limits],
        "y": [finite(value) for value in values],
        "line": {"color": colour, "width": 2, "dash": dash},
        "customdata": [f"limit {number(limit)}: {number(value)}" for limit, value in zip(limits, values, strict=True)],
        "hovertemplate": "%{customdata}<extra>" + name + "</extra>",
    }
