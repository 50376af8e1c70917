"""The trade-off: the objective, the price and the policies found against the limits."""

import math
from typing import Any

from checkrein.report.figures.figure import (
    BEHAVIOR_COLOR,
    CARD,
    LEARNED_COLOR,
    LIMIT,
    MUTED,
    VERDICTS,
    Figure,
    Spec,
    axis,
    finite,
    layout,
    limit_under_legend,
    span,
    text,
)
from checkrein.report.frontier_model import FrontierSummary, ShownPoint, SweptCost
from checkrein.report.words import SIGNS, number, sentence

_SYMBOLS = {"pass": "diamond", "fail": "x", "inconclusive": "diamond-open"}
_REFERENCES = {"behavior": BEHAVIOR_COLOR, "unconstrained": "var(--unconstrained)"}
_SCALE = [[0, "var(--more)"], [0.5, "var(--same)"], [1, "var(--less)"]]
_ERRORS = 2  # standard errors that a bar is long
_BEYOND = 0.5  # of the limits swept: a policy further out would leave them no room


def frontier_figures(summary: FrontierSummary) -> list[Figure]:
    """Return the trade-off, the prices, and the Pareto view."""
    if len(summary.swept) == 1:
        return [_curve(summary), _prices(summary), _policies(summary, summary.swept[0], 0)]
    maps = [_map(summary, "map-objective", summary.costs[0].name, "objective")]
    maps += [_map(summary, f"map-price-{k}", name, "price") for k, name in enumerate(summary.swept)]
    return [*maps, *(_policies(summary, name, k) for k, name in enumerate(summary.swept))]


def _cost(summary: FrontierSummary, name: str) -> SweptCost:
    return next(cost for cost in summary.costs if cost.name == name)


def _markers(name: str, x: list[Any], y: list[Any], words: list[str], **options: Any) -> Spec:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": text(name, longest=32),
        "x": [finite(value) for value in x],
        "y": [finite(value) for value in y],
        "customdata": words,
        "hovertemplate": "%{customdata}<extra></extra>",
        **options,
    }


def _limit_axis(summary: FrontierSummary, name: str) -> Spec:
    cost = _cost(summary, name)
    return axis(text(f"limit on {name}, {cost.direction}", longest=36), nticks=8)


def _curve(summary: FrontierSummary) -> Figure:
    swept, objective = summary.swept[0], summary.costs[0]
    reached = [point for point in summary.points if point.values]
    words = [_words(summary, point) for point in reached]
    line = _markers(
        "learning",
        [point.limits[swept] for point in reached],
        [point.values[objective.name].learning for point in reached],
        words,
        mode="lines+markers",
        line={"color": LEARNED_COLOR, "width": 2},
        marker={"color": LEARNED_COLOR, "size": 5},
    )
    judged = _held_out(summary, reached)
    low, high = span([point.limits[swept] for point in summary.points], before=_BEYOND, after=_BEYOND)
    near, far = _references(summary, swept, low=low, high=high)
    note = "Line: learning values."
    if judged:
        note += " Diamonds: held-out values with bars of two standard errors; filled ones are certified."
    return Figure(
        name="frontier-curve",
        title=f"{objective.name} against the limit on {swept}",
        note=" ".join([note, *far]),
        data=[line, *judged, *near],
        layout=layout(
            height=400,
            xaxis=_limit_axis(summary, swept),
            yaxis=axis(text(f"{objective.name}, {objective.unit}", longest=60), nticks=7),
            showlegend=True,
            **limit_under_legend(finite(_cost(summary, swept).limit)),
        ),
        wide=True,
    )


def _held_out(summary: FrontierSummary, reached: list[ShownPoint]) -> list[Spec]:
    """Return held-out values, one trace for each verdict."""
    swept, objective = summary.swept[0], summary.costs[0].name
    traces = []
    for verdict in ("pass", "inconclusive", "fail", None):
        mine = [p for p in reached if p.verdict == verdict and p.values[objective].held_out is not None]
        if not mine:
            continue
        colour = MUTED if verdict is None else VERDICTS[verdict]
        bars = [_ERRORS * (finite(p.values[objective].standard_error) or 0.0) for p in mine]
        traces.append(
            _markers(
                "held out" if verdict is None else f"held out: {verdict}",
                [p.limits[swept] for p in mine],
                [p.values[objective].held_out for p in mine],
                [_words(summary, p) for p in mine],
                marker={"symbol": _SYMBOLS.get(verdict or "", "diamond-open"), "size": 9, "color": colour},
                error_y={"type": "data", "array": bars, "color": MUTED, "thickness": 1.2, "width": 3},
            )
        )
    return traces


def _references(
    summary: FrontierSummary, across: str, *, low: float = -math.inf, high: float = math.inf
) -> tuple[list[Spec], list[str]]:
    """Return behavior and the unconstrained policy at what they incur; in words, those that lie beyond the ends."""
    traces, words_of = [], []
    for name, values in summary.references.items():
        x, y = (values[cost].learning for cost in (across, summary.costs[0].name))
        if x is not None and not low <= x <= high:
            words_of.append(
                f"{sentence(name)}, off the plot: {across} {number(x)}, {summary.costs[0].name} {number(y)}."
            )
            continue
        words = f"{sentence(name)}<br>{text(across)} {number(x)}<br>{text(summary.costs[0].name)} {number(y)}"
        marker = {"symbol": "square", "size": 10, "color": _REFERENCES.get(name, MUTED)}
        traces.append(_markers(name, [x], [y], [words], marker=marker))
    return traces, words_of


def _prices(summary: FrontierSummary) -> Figure:
    """Draw the price of the swept limit, and the range in which it may lie."""
    swept, objective = summary.swept[0], summary.costs[0]
    shown = [point for point in summary.points if point.values]
    x = [finite(point.limits[swept]) for point in shown]
    prices = [point.prices[swept] for point in shown]
    sure = [price.high for price in prices if not price.bounded] or [price.value for price in prices]
    _, top = span([0.0, *sure])
    edge = {"type": "scatter", "mode": "lines", "x": x, "line": {"width": 0, "color": LEARNED_COLOR}}
    quiet = edge | {"hoverinfo": "skip", "showlegend": False}
    band = [
        quiet | {"y": [finite(price.low) for price in prices]},
        quiet | {"y": [finite(min(price.high, 2 * top)) for price in prices], "fill": "tonexty"},
    ]
    words = [
        f"limit {number(point.limits[swept])}<br>price {number(price.value)}"
        f"<br>between {number(price.low)} and {number(price.high)}"
        for point, price in zip(shown, prices, strict=True)
    ]
    line = _markers(
        "price",
        x,
        [min(price.value, 2 * top) for price in prices],
        words,
        mode="lines+markers",
        line={"color": LEARNED_COLOR, "width": 2},
        marker={"color": LEARNED_COLOR, "size": 4},
    )
    saved = "gain" if objective.direction == "maximise" else "save"
    return Figure(
        name="frontier-price",
        title=f"The price of the limit on {swept}",
        note=f"What one unit more room would {saved} of {objective.name}; shaded: where the price may lie.",
        data=[*band, line],
        layout=layout(
            height=300,
            xaxis=_limit_axis(summary, swept),
            yaxis=axis(text(f"{objective.name} per unit", longest=40), nticks=6, range=[0, top]),
        ),
    )


def _policies(summary: FrontierSummary, across: str, k: int) -> Figure:
    """Draw every policy found in the plane of one constraint and the objective."""
    objective = summary.costs[0].name
    groups = {
        "best for some weights": [p for p in summary.policies if p.coverage],
        "not dominated": [p for p in summary.policies if p.non_dominated and not p.coverage],
        "dominated": [p for p in summary.policies if not p.non_dominated],
    }
    looks = [("circle", LEARNED_COLOR), ("circle-open", LEARNED_COLOR), ("circle-open", MUTED)]
    data = [
        _markers(
            name,
            [p.values[across] for p in mine],
            [p.values[objective] for p in mine],
            ["<br>".join(f"{text(cost)} {number(value)}" for cost, value in p.values.items()) for p in mine],
            marker={"symbol": symbol, "size": 7, "color": colour, "line": {"width": 1, "color": CARD}}
            if symbol == "circle"
            else {"symbol": symbol, "size": 7, "color": colour},
        )
        for (name, mine), (symbol, colour) in zip(groups.items(), looks, strict=True)
        if mine
    ]
    return Figure(
        name=f"frontier-policies-{k}",
        title=f"All {len(summary.policies)} policies found: {objective} against {across}",
        note="Single policies, before they are mixed, by all their costs; the mixtures of the best for some weights "
        "make up the trade-off.",
        data=[*data, *_references(summary, across)[0]],
        layout=layout(
            height=300,
            xaxis=axis(text(f"{across}, {_cost(summary, across).unit}", longest=60), nticks=6),
            yaxis=axis(text(objective, longest=40), nticks=6),
            showlegend=True,
        ),
    )


def _map(summary: FrontierSummary, name: str, cost: str, what: str) -> Figure:
    """Draw the objective, or a price, over both limits; what no policy keeps is empty."""
    across, up = summary.swept
    xs, ys = (sorted({point.limits[one] for point in summary.points}) for one in (across, up))
    at = {(point.limits[across], point.limits[up]): point for point in summary.points}
    cells = [[_cell(at[x, y], cost, what) for x in xs] for y in ys]
    words = [[_words(summary, at[x, y]) for x in xs] for y in ys]
    heat: Spec = {
        "type": "heatmap",
        "x": [finite(x) for x in xs],
        "y": [finite(y) for y in ys],
        "z": cells,
        "colorscale": _SCALE,
        "reversescale": what == "objective" and summary.costs[0].direction == "maximise",
        "colorbar": {"thickness": 12, "outlinewidth": 0},
        "customdata": words,
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    beyond = ""
    if what == "price":
        prices = [point.prices[cost] for point in summary.points if point.values]
        sure = [price.value for price in prices if not price.bounded]
        heat |= {"zmin": 0.0, "zmax": max(sure, default=0.0) or 1.0}
        beyond = (
            "; the top colour also marks prices that only the learner's bound limits" if len(sure) < len(prices) else ""
        )
    title = f"{cost} over both limits" if what == "objective" else f"The price of the limit on {cost}"
    judged = what == "objective" and summary.confidence is not None
    marked = "; ✓ certified, ? not shown, ✕ shown to break a limit" if judged else ""
    own = [_cost(summary, one).limit for one in (across, up)]
    chosen = _markers(
        "limits of the problem file", [own[0]], [own[1]], ["limits of the problem file"],
        marker={"symbol": "star", "size": 12, "color": LIMIT},
    )  # fmt: skip
    return Figure(
        name=name,
        title=title,
        note=("Learning values" if what == "objective" else "In units of the objective")
        + f"{marked}{beyond}; star: the "
        "limits of the problem file; empty: no policy keeps both.",
        data=[heat, *(_verdicts(summary) if what == "objective" else []), *([chosen] if None not in own else [])],
        layout=layout(
            height=380 if what == "objective" else 320,
            xaxis=_limit_axis(summary, across) | {"showgrid": False},
            yaxis=_limit_axis(summary, up) | {"showgrid": False},
        ),
        wide=what == "objective",
    )


def _cell(point: ShownPoint, cost: str, what: str) -> float | None:
    if not point.values:
        return None
    return finite(point.values[cost].learning if what == "objective" else point.prices[cost].value)


def _verdicts(summary: FrontierSummary) -> list[Spec]:
    """Return a sign on every cell that was judged."""
    across, up = summary.swept
    judged = [(point, point.verdict) for point in summary.points if point.verdict is not None]
    signs = [SIGNS[verdict] for _, verdict in judged]
    colours = [VERDICTS[verdict] for _, verdict in judged]
    x, y = ([finite(point.limits[one]) for point, _ in judged] for one in (across, up))
    marker = {"size": 20, "color": CARD, "line": {"width": 0}}
    font = {"size": 13, "color": colours}
    signed = {"mode": "markers+text", "text": signs, "textfont": font, "marker": marker, "hoverinfo": "skip"}
    return [{"type": "scatter", "x": x, "y": y, **signed}]


def _words(summary: FrontierSummary, point: ShownPoint) -> str:
    """Return what the hover says of a point."""
    lines = [f"limit of {text(name)} {number(limit)}" for name, limit in point.limits.items()]
    if not point.values:
        return "<br>".join([*lines, "no policy keeps all limits"])
    for cost in summary.costs:
        value = point.values[cost.name]
        held = "" if value.held_out is None else f", held out {number(value.held_out)}"
        lines.append(f"{text(cost.name)} {number(value.learning)}{held}")
    lines += [f"price of {text(name)} {number(price.value)}" for name, price in point.prices.items()]
    return "<br>".join(lines if point.verdict is None else [*lines, f"certificate: {point.verdict}"])
