"""The page: a summary as one HTML file that needs neither network nor server."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from jinja2 import Environment
from markupsafe import Markup

from checkrein.certification.certificate import Certificate
from checkrein.problem.goals import Direction
from checkrein.report.doubts import counted_in_words
from checkrein.report.figures import Figure, figures
from checkrein.report.figures.frontier import frontier_figures
from checkrein.report.frontier_model import FrontierSummary
from checkrein.report.improvement import improvement_of, interval_in_words
from checkrein.report.model import Change, CostRow, Differences, Member, StateDifference, Summary
from checkrein.report.templates import environment
from checkrein.report.verdict import LEVELS
from checkrein.report.words import (
    MINUS,
    SIGNS,
    amount,
    breach,
    number,
    odds_in_words,
    percent,
    percentage,
    sentence,
    unit_in_words,
)

_MOST_MEMBERS = 20  # rows of the table of members, the heaviest first
_MOST_STATES = 12  # rows of the table of states


def page(summary: Summary, others: Mapping[str, Certificate] | None = None) -> str:
    """Return the report of a run as HTML: self-contained, light and dark, for screen, phone and paper.

    others: certificates beside the run's own, by the names of their files
    """
    summary = _as_shown(summary)
    return _render(
        "template.html.j2",
        figures(summary),
        summary=summary,
        others=others or {},
        members=_heaviest(summary.members),
        states=[] if summary.differences is None else _usual_actions(summary.differences),
        sheet=[] if summary.differences is None else _sheet(summary.differences),
    )


def frontier_page(summary: FrontierSummary) -> str:
    """Return the page of a frontier as HTML, made like a report."""
    return _render("frontier.html.j2", {"frontier": frontier_figures(summary)}, summary=summary)


def _render(template: str, plots: dict[str, list[Figure]], **parts: Any) -> str:
    from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]  # noqa: PLC0415  # slow to import

    plotly = Markup(get_plotlyjs())  # noqa: S704 the library's own text, nothing of the user's
    specifications = _specifications(plots)
    return templates().get_template(template).render(plots=plots, specifications=specifications, plotly=plotly, **parts)


def templates() -> Environment:
    """Return the report's templates, with its words."""
    made = environment("checkrein.report")
    made.filters |= {"number": number, "percent": percent, "percentage": percentage, "sentence": sentence}
    made.globals |= {"breach": breach, "signs": SIGNS, "levels": LEVELS}
    made.globals |= {"unit_in_words": unit_in_words, "odds_in_words": odds_in_words}
    made.filters |= {"amount": amount, "zip": zip}
    made.globals |= {"value_of": _value_of, "in_words": _in_words, "better_or_worse": _better_or_worse}
    made.globals |= {"counted_in_words": counted_in_words}
    made.globals |= {"improvement_of": improvement_of, "interval_in_words": interval_in_words}
    made.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return made


def _specifications(plots: dict[str, list[Figure]]) -> dict[str, dict[str, Any]]:
    """Return what the page's script draws, by the id of the element to draw it in."""
    drawn = [asdict(figure) for section in plots.values() for figure in section]
    return {figure["name"]: {part: figure[part] for part in ("data", "layout", "narrow")} for figure in drawn}


def _heaviest(members: list[Member]) -> list[tuple[int, Member]]:
    """Return the members to list, each with its number, the heaviest first."""
    return sorted(enumerate(members, start=1), key=lambda numbered: -numbered[1].weight)[:_MOST_MEMBERS]


def _usual_actions(differences: Differences) -> list[tuple[StateDifference, str, str]]:
    """Return the states that matter most, with what behavior and the learned policy mostly do there."""
    return [
        (state, _usual(state.behavior, differences.actions), _usual(state.learned, differences.actions))
        for state in differences.states[:_MOST_STATES]
    ]


def _as_shown(summary: Summary) -> Summary:
    """Return it without bounds that are not believed, and without values that cannot be."""
    certificate = summary.certificate
    return summary if certificate is None else summary.model_copy(update={"certificate": certificate.as_shown})


def _sheet(differences: Differences) -> list[tuple[StateDifference, str, str, bool]]:
    """Return the policy on a page, and whether what is mostly done changes."""
    return [
        (
            state,
            _usual(state.behavior, differences.actions),
            _usual(state.learned, differences.actions),
            np.argmax(state.behavior) != np.argmax(state.learned),
        )
        for state in differences.sheet
    ]


def _value_of(row: CostRow, policy: str) -> float | None:
    """Return the value that judges, else the one that was learned from."""
    estimate = row.values.get(policy)
    if estimate is None:
        return None
    return estimate.learning if estimate.held_out is None else estimate.held_out


def _in_words(change: Change, share: bool) -> tuple[str, str]:
    """Return a difference and its interval, to the digits that the interval's width makes sense of."""
    scale, unit = (100.0, " points") if share else (1.0, "")
    if change.low is None or change.high is None:
        return f"{_signed(float(f'{scale * change.difference:.3g}'))}{unit}", ""
    width = scale * (change.high - change.low)
    decimals = 1 - math.floor(math.log10(width)) if width > 0 and math.isfinite(width) else 3
    found, low, high = (_signed(round(scale * x, decimals)) for x in (change.difference, change.low, change.high))
    return f"{found}{unit}", f"{low} to {high}{unit}"


def _signed(value: float) -> str:
    words = number(abs(value))
    return words if words == "0" else f"{MINUS if value < 0 else '+'}{words}"


def _better_or_worse(row: CostRow, change: Change) -> str:
    """Say on which side of no change a whole interval lies; empty where it holds both."""
    if change.low is None or change.high is None or change.low <= 0 <= change.high:
        return ""
    return "better" if (change.low > 0) == (row.direction is Direction.MAXIMISE) else "worse"


def _usual(probabilities: list[float], actions: list[str]) -> str:
    share, action = max(zip(probabilities, actions, strict=True), key=lambda pair: pair[0])
    return f"{action} ({percent(share)})"
