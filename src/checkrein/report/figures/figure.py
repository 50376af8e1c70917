"""What all plots share: their shape as data, their colours by name, and text that plotly.js does not take for markup.

Colours are CSS variables, "var(--learned)": the page resolves them, so that one specification is light, dark and print.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from checkrein.certification.certificate import Verdict
from checkrein.report.words import number

Spec = dict[str, Any]  # a trace, an axis, a layout: plotly.js's own JSON

CLEAR = "rgba(0,0,0,0)"
INK, MUTED, RULE, CARD, PAPER = (f"var(--{name})" for name in ("ink", "muted", "rule", "card", "paper"))
LEARNED_COLOR, BEHAVIOR_COLOR, LIMIT = "var(--learned)", "var(--behavior)", "var(--limit)"
VERDICTS: dict[Verdict, str] = {"pass": "var(--good)", "fail": "var(--bad)", "inconclusive": "var(--caution)"}
SERIES = tuple(f"var(--series-{k})" for k in range(1, 7))
_LONG, _SHORT = 40, 24  # characters of a name beside a plot
_NEAR = 0.2  # of the width: a limit's label nearer to an edge is written away from it
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
_FONT = 'ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'


@dataclass(frozen=True)
class Figure:
    """One plot: `data` and `layout` are plotly.js's; title and note stand above it as text.

    narrow: what the layout's parts become where the plot is narrow, {"yaxis": {...}}.
    """

    name: str
    title: str
    note: str
    data: list[Spec]
    layout: Spec
    narrow: Spec = field(default_factory=dict)
    wide: bool = False


def text(words: str, *, longest: int | None = None) -> str:
    """Return words as plotly.js shows them verbatim; of more than `longest` characters, the middle is left out."""
    if longest is not None and len(words) > longest:
        words = words[: longest // 2] + "…" + words[len(words) - (longest - 1) // 2 :]
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def finite(value: float | None) -> float | None:
    """Return a number that JSON can hold, to six digits, or None, which plotly.js leaves out."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")


def span(values: Sequence[float | None], *, before: float = 0.1, after: float = 0.1) -> tuple[float, float]:
    """Return an interval with every value that there is, and room on either side in shares of their spread."""
    known = [value for value in map(finite, values) if value is not None] or [0.0]
    spread = max(known) - min(known) or abs(known[0]) or 1.0
    return min(known) - before * spread, max(known) + after * spread


def axis(title: str = "", **options: Any) -> Spec:
    """Return an axis with a quiet grid."""
    heading = {"text": title, "standoff": 10, "font": {"color": MUTED, "size": 12}}
    quiet = {"gridcolor": RULE, "linecolor": RULE, "zeroline": False, "automargin": True, "exponentformat": "power"}
    return {**quiet, "title": heading, **options}


def names_axis(names: list[str]) -> Spec:
    """Return a vertical axis of names at 0, 1, 2, ... from the top: names that are cut alike stay apart."""
    ticks: Spec = {"tickvals": list(range(len(names))), "ticktext": [text(name, longest=_LONG) for name in names]}
    return axis(**ticks, range=[len(names) - 0.5, -0.5], showgrid=False, ticks="", ticklabelstandoff=6)


def narrow_names(names: list[str]) -> Spec:
    """Return what that axis becomes where there is little room."""
    return {"yaxis": {"ticktext": [text(name, longest=_SHORT) for name in names], "tickfont": {"size": 10}}}


def layout(*, height: int, xaxis: Spec, yaxis: Spec, **options: Any) -> Spec:
    """Lay out any plot: transparent, no title of its own, room above for a legend or a label if it has one."""
    top = 26 if options.get("showlegend") or options.get("annotations") else 8
    return {
        "height": height,
        "margin": {"l": 8, "r": 14, "t": top, "b": 8},
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "font": {"family": _FONT, "size": 12, "color": INK},
        "hoverlabel": {"bgcolor": CARD, "bordercolor": RULE, "font": {"color": INK, "family": _FONT}, "align": "left"},
        "showlegend": False,
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": {"size": 12}},
        "uirevision": "keep",
        "xaxis": xaxis,
        "yaxis": yaxis,
        **options,
    }


def limit_line(limit: float, label: str, *, across: str) -> Spec:
    """Return the shapes and the label of a limit: across="x" is a vertical line at x = limit, "y" a level one."""
    along = "y" if across == "x" else "x"
    line = {"type": "line", f"{across}ref": across, f"{along}ref": "paper", f"{across}0": limit, f"{across}1": limit}
    stroke = {
        f"{along}0": 0,
        f"{along}1": 1,
        "line": {"color": LIMIT, "width": 1.5, "dash": "dash"},
    }
    place = (
        {"x": limit, "xref": "x", "y": 1, "yref": "paper", "yanchor": "bottom", "xanchor": "center"}
        if across == "x"
        else {"y": limit, "yref": "y", "x": 1, "xref": "paper", "yanchor": "bottom", "xanchor": "right"}
    )
    words = {"text": text(label), "showarrow": False, "font": {"color": LIMIT, "size": 12}}
    return {"shapes": [line | stroke], "annotations": [place | words]}


def limit_under_legend(limit: float | None) -> Spec:
    """Return a vertical line at a limit, if there is one, its label at the foot: a legend stands above the plot."""
    if limit is None:
        return {}
    drawn = limit_line(limit, f"limit {number(limit)}", across="x")
    foot = {"y": 0.01, "yanchor": "bottom", "xanchor": "left", "xshift": 4}
    return drawn | {"annotations": [label | foot for label in drawn["annotations"]]}


def limit_and_beyond(limit: float, low: float, high: float, *, floor: bool) -> Spec:
    """Return a vertical line at the limit, its label inside the interval shown, and what breaks the limit shaded."""
    drawn = limit_line(limit, f"limit {number(limit)}", across="x")
    share = (limit - low) / (high - low)
    anchor = {"xanchor": "left" if share < _NEAR else "right" if share > 1 - _NEAR else "center"}
    edge = low if floor else high
    beyond = {"type": "rect", "xref": "x", "yref": "paper", "x0": limit, "x1": edge, "y0": 0, "y1": 1}
    shade = beyond | {"fillcolor": LIMIT, "opacity": 0.09, "line": {"width": 0}, "layer": "below"}
    return {"shapes": [shade, *drawn["shapes"]], "annotations": [label | anchor for label in drawn["annotations"]]}
