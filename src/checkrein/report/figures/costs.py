"""Each cost of every policy, against its limit."""

from checkrein.report.figures.figure import (
    SERIES,
    Figure,
    Spec,
    axis,
    finite,
    layout,
    limit_and_beyond,
    names_axis,
    narrow_names,
    span,
    text,
)
from checkrein.report.model import CostRow, Estimate, Summary
from checkrein.report.words import amount, is_floor, sentence

_POLICIES = ("learned", "behavior", "unconstrained", "single")
_APART = 0.15  # learning and held-out estimates of a policy stand this far above and below its line


def cost_figures(summary: Summary) -> list[Figure]:
    """Return one plot for the objective and one for each constraint."""
    return [_figure(f"cost-{k}", row, summary.policies) for k, row in enumerate(summary.costs)]


def policy_colour(policy: str, position: int) -> str:
    """Return the colour that a policy has on the whole page."""
    name = "single" if policy == "best single policy" else policy
    return f"var(--{name})" if name in _POLICIES else SERIES[position % len(SERIES)]


def _figure(name: str, row: CostRow, policies: list[str]) -> Figure:
    shown = [policy for policy in policies if policy in row.values]
    colours = [policy_colour(policy, k) for k, policy in enumerate(shown)]
    estimates = [row.values[policy] for policy in shown]
    low, high = _range(row, estimates)
    limit = _limit(row, low, high)
    data = [_learning(row, shown, estimates, colours), _held_out(row, shown, estimates, colours)]
    ticks = {"tickformat": "~p"} if row.share else {}
    xaxis = axis(text(row.unit), range=[low, high], nticks=6, **ticks)
    names = [sentence(policy) for policy in shown]
    top = 18 if limit else 0  # the limit's label
    return Figure(
        name=name,
        title=row.name,
        note=f"{sentence(row.goal)}.",
        data=data,
        layout=layout(height=76 + top + 36 * len(shown), xaxis=xaxis, yaxis=names_axis(names), **limit),
        narrow=narrow_names(names),
    )


def _learning(row: CostRow, shown: list[str], estimates: list[Estimate], colours: list[str]) -> Spec:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "Learning data",
        "x": [finite(estimate.learning) for estimate in estimates],
        "y": [k - _APART for k in range(len(shown))],
        "marker": {"symbol": "circle-open", "size": 10, "color": colours, "line": {"width": 2, "color": colours}},
        "customdata": [
            _hover(policy, amount(e.learning, share=row.share), row) for policy, e in zip(shown, estimates, strict=True)
        ],
        "hovertemplate": "%{customdata[0]}<br>%{customdata[1]} %{customdata[2]}<extra>learning data</extra>",
    }


def _held_out(row: CostRow, shown: list[str], estimates: list[Estimate], colours: list[str]) -> Spec:
    words = [
        amount(e.held_out, share=row.share)
        + (f" ± {amount(e.standard_error, share=row.share)}" if e.standard_error is not None else "")
        for e in estimates
    ]
    bars = [2 * (finite(e.standard_error) or 0.0) for e in estimates]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "Held-out data",
        "x": [finite(estimate.held_out) for estimate in estimates],
        "y": [k + _APART for k in range(len(shown))],
        "marker": {"symbol": "diamond", "size": 10, "color": colours},
        "error_x": {"type": "data", "array": bars, "color": "var(--muted)", "thickness": 1.2, "width": 3},
        "customdata": [_hover(policy, shown_as, row) for policy, shown_as in zip(shown, words, strict=True)],
        "hovertemplate": "%{customdata[0]}<br>%{customdata[1]} %{customdata[2]}<extra>held-out data</extra>",
    }


def _hover(policy: str, value: str, row: CostRow) -> list[str]:
    return [text(sentence(policy)), value, text(row.unit)]


def _range(row: CostRow, estimates: list[Estimate]) -> tuple[float, float]:
    """Return an interval with every value, error bar and limit, and some room."""
    ends = [row.limit]
    for estimate in estimates:
        held_out, bar = finite(estimate.held_out), 2 * (finite(estimate.standard_error) or 0.0)
        ends += [estimate.learning]
        ends += [held_out - bar, held_out + bar] if held_out is not None else []
    return span(ends)


def _limit(row: CostRow, low: float, high: float) -> Spec:
    """Draw the limit, if there is one."""
    limit = finite(row.limit)
    return {} if limit is None else limit_and_beyond(limit, low, high, floor=is_floor(row))
