"""Each constraint of a certificate on its own scale: what behavior does, what is believed, and how far it may be off.

A row for behavior, a row for the learned policy and a row for what was aimed at, so that no label hides another.
"""

from checkrein.certification.certificate import JudgedConstraint
from checkrein.report.figures.figure import (
    BEHAVIOR_COLOR,
    LIMIT,
    MUTED,
    PAPER,
    VERDICTS,
    Figure,
    Spec,
    axis,
    finite,
    layout,
    limit_and_beyond,
    span,
    text,
)
from checkrein.report.model import BEHAVIOR, Summary
from checkrein.report.words import SIGNS, number, sentence

_ROOM, _MORE = 0.14, 0.35  # of the values' spread beyond them, more where the limit is kept: labels stand there
_CHARACTER = 0.025  # of the width, on a phone; a label beside its mark needs three more
_LABEL = 0.16  # of a row, between a line and its labels
_BEHAVIOR, _LEARNED, _AIMED = "Behavior", "Learned", "Aimed at"


def certificate_figures(summary: Summary) -> list[Figure]:
    """Return one plot for each constraint of the certificate."""
    if summary.certificate is None:
        return []
    rows = {row.name: row for row in summary.costs}
    aimed = summary.aimed.limits if summary.aimed is not None else {}
    plots = []
    for k, judged in enumerate(summary.certificate.constraints):
        row = rows.get(judged.name)
        logged = row.values.get(BEHAVIOR) if row is not None else None
        behavior = finite(logged.held_out) if logged is not None else None
        unit = row.unit if row is not None else ""
        plots.append(_figure(f"certificate-{k}", judged, behavior, finite(aimed.get(judged.name)), unit))
    return plots


def _figure(name: str, judged: JudgedConstraint, behavior: float | None, aimed: float | None, unit: str) -> Figure:
    names = [_BEHAVIOR, _LEARNED, *([_AIMED] if aimed is not None else [])]
    floor = judged.words == "at least"
    values = [behavior, aimed, judged.limit, judged.estimate, judged.bound, judged.other_bound]
    low, high = span(values, before=_ROOM if floor else _MORE, after=_MORE if floor else _ROOM)
    limit = limit_and_beyond(judged.limit, low, high, floor=floor)
    labels = [_placed(label, judged, low, high) for label in _labels(judged, behavior, aimed)]
    marks = [_whisker(judged, judged.other_bound, 1.5), _whisker(judged, judged.bound, 5.0)]
    marks += [_behavior(behavior), _estimate(judged)]
    dashed = {"type": "line", "x0": aimed, "x1": aimed, "y0": 1.65, "y1": 2.35}
    tick = [dashed | {"line": {"color": LIMIT, "width": 1.2, "dash": "dot"}}] if aimed is not None else []
    ticks: Spec = {"tickvals": list(range(len(names))), "ticktext": names, "range": [len(names) - 0.5, -0.5]}
    return Figure(
        name=name,
        title=judged.name,
        note=f"{sentence(judged.words)} {number(judged.limit)}. {SIGNS[judged.verdict]} {sentence(judged.verdict)}.",
        data=marks,
        layout=layout(
            height=94 + 46 * len(names),
            xaxis=axis(text(unit), range=[low, high], nticks=5),
            yaxis=axis(**ticks, showgrid=False, ticks="", ticklabelstandoff=6),
            shapes=[*limit["shapes"], *tick],
            annotations=[*limit["annotations"], *labels],
        ),
        narrow={"xaxis": {"nticks": 4}},
    )


def _whisker(judged: JudgedConstraint, end: float | None, width: float) -> Spec:
    """Draw the line from the estimate to one of its bounds, with a stop at its end."""
    ends = [finite(judged.estimate), finite(end)] if judged.estimate is not None and end is not None else []
    colour = VERDICTS[judged.verdict]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": ends,
        "y": [1] * len(ends),
        "line": {"color": colour, "width": width},
        "marker": {"symbol": "line-ns-open", "size": [0, 16], "color": colour, "line": {"width": 2, "color": colour}},
        "hovertemplate": f"bound {number(end)}<extra></extra>",
    }


def _estimate(judged: JudgedConstraint) -> Spec:
    error = "" if judged.standard_error is None else f" ± {number(judged.standard_error)}"
    marker = {"symbol": "diamond", "size": 12, "color": VERDICTS[judged.verdict]}
    return _point(judged.estimate, 1, marker) | {
        "hovertemplate": f"estimate {number(judged.estimate)}{error}<extra></extra>"
    }


def _behavior(value: float | None) -> Spec:
    marker = {"symbol": "square", "size": 9, "color": BEHAVIOR_COLOR}
    return _point(value, 0, marker) | {"hovertemplate": f"behavior {number(value)}<extra></extra>"}


def _point(value: float | None, y: int, marker: Spec) -> Spec:
    return {"type": "scatter", "mode": "markers", "x": [finite(value)], "y": [y], "marker": marker}


def _labels(judged: JudgedConstraint, behavior: float | None, aimed: float | None) -> list[Spec]:
    """Write each value next to its mark, the estimate above its line and the bound below it."""
    sign, colour = SIGNS[judged.verdict], VERDICTS[judged.verdict]
    here = judged.limit if judged.estimate is None else judged.estimate
    known = "not known" if behavior is None else number(behavior)
    labels = [_label(judged.limit if behavior is None else behavior, 0, known, MUTED)]
    labels += [_label(aimed, 2, number(aimed), MUTED)] if aimed is not None else []
    if judged.estimate is None:
        return [*labels, _label(here, 1, f"{sign} no estimate", colour)]
    bound = f"{sign} no bound" if judged.bound is None else f"{sign} bound {number(judged.bound)}"
    labels.append(_label(here, 1 - _LABEL, number(here), colour, "bottom"))
    return [*labels, _label(here if judged.bound is None else judged.bound, 1 + _LABEL, bound, colour, "top")]


def _label(x: float, y: float, words: str, colour: str, anchor: str = "middle") -> Spec:
    place = {"x": finite(x), "y": y, "yanchor": anchor}
    return {"text": words, "font": {"color": colour, "size": 12}, "showarrow": False, **place}


def _placed(label: Spec, judged: JudgedConstraint, low: float, high: float) -> Spec:
    """Return a label written away from the limit, or where an edge is too near for that, across it on a ground."""
    x, limit, beside = label["x"], judged.limit, label["yanchor"] == "middle"
    left = x < limit if judged.words == "at least" else x <= limit
    apart, room = (abs(end - x) / (high - low) for end in (limit, low if left else high))
    needed = _CHARACTER * (len(label["text"]) + (3 if beside else 0))
    cramped = room < needed
    if label["yanchor"] == "bottom" and apart > needed and not cramped:
        return label | {"xanchor": "center"}
    anchor = "right" if left != cramped else "left"
    shift = {"xshift": 8 if anchor == "left" else -8} if beside else {}
    ground = {"bgcolor": PAPER} if cramped and apart < needed else {}
    return label | shift | ground | {"xanchor": anchor}
