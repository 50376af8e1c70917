"""The pictures of the study of sepsis."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from checkrein.reproduction import COLOURS, Picture, label_ends, panels
from checkrein_studies.sepsis import DRUGS, FLUIDS
from checkrein_studies.sepsis_found import Found, Judged, Step, survival

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZES = COLOURS[1], COLOURS[2], COLOURS[3]  # of logs


def pictures(found: Found) -> list[Picture]:
    """Draw the frontier, the logs, solutions at the limit itself, and the candidates of one log."""
    drawn = [_frontier_picture(found), _log_picture(found), _plugged_picture(found)]
    return [*drawn, _candidates_picture(found)] if any(one.candidates for one in found.judged) else drawn


def _frontier_picture(found: Found) -> Picture:
    figure, (left, right) = panels((3.9, 2.9), height=2.7)
    exact = sorted(found.exact, key=lambda one: one.true[FLUIDS])
    left.plot([one.true[FLUIDS] for one in exact], [survival(one.true) for one in exact], "-", color="black")
    for one in found.learned:
        x, y = one.true[FLUIDS], survival(one.true)
        left.plot([one.claimed[FLUIDS], x], [survival(one.claimed), y], color=COLOURS[0], linewidth=0.5)
        left.plot(one.claimed[FLUIDS], survival(one.claimed), "o", color=COLOURS[0], mfc="white", markersize=3.5)
        left.plot(x, y, "o", color=COLOURS[0], markersize=3.5)
    for judged, colour in zip(found.by_size.values(), SIZES, strict=False):
        passed = [one for one in judged if one.certified]
        left.plot([one.true[FLUIDS] for one in passed], [one.survival for one in passed], "D", color=colour, ms=2)
    here = found.clinicians[FLUIDS], survival(found.clinicians)
    left.plot(*here, "X", color=COLOURS[7], markersize=5)
    left.annotate("clinicians", here, (6, 0), textcoords="offset points", fontsize=7, va="center")
    left.axvline(found.limits[FLUIDS], color="0.4", linewidth=0.6, linestyle=":")
    left.set_xlabel("fluids per patient")
    left.set_title("survival")
    words = [("exact optimum", "black")] if found.exact else []
    words += [("learned: true (dot), claimed (ring)", COLOURS[0])]
    words += [(f"certified, {size:,} episodes", colour) for size, colour in zip(found.by_size, SIZES, strict=False)]
    _legend(left, words, at=(0.98, 0.36))
    _draw_prices(right, found)
    caption = (
        "Left: survival against fluids, in truth; the limits are shares of what the clinicians give, the "
        f"dotted line is {found.study.share:.0%}. Learned at each limit from one log of {found.study.large_episodes:,} "
        "episodes, policies lie below and to the right of what that log claims of them. Right: prices of the limits."
    )
    return Picture("frontier", caption, figure)


def _draw_prices(axes: "Axes", found: Found) -> None:
    for solved, look in ((found.exact, "-"), (found.learned, "o")):
        limited = sorted((one.share, one.prices) for one in solved if one.share is not None)
        for drug, colour in zip(DRUGS, (COLOURS[0], COLOURS[1]), strict=True):
            x, y = [share for share, _ in limited], [prices[drug] for _, prices in limited]
            axes.plot(x, y, look, color=colour, linewidth=0.9, markersize=3.5)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("allowed share of the clinicians' drugs")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_title("deaths that one unit more would save")
    _legend(axes, [("fluids", COLOURS[0]), ("vasopressors", COLOURS[1]), ("line: exact; dots: learned", "0.4")])


def _legend(axes: "Axes", words: Sequence[tuple[str, str]], at: tuple[float, float] = (0.98, 0.97)) -> None:
    """Write names in their colours, one under the other, ranged right."""
    for place, (text, colour) in enumerate(words):
        axes.annotate(
            text, at, (0, -9 * place), "axes fraction", "offset points", color=colour, fontsize=7, ha="right", va="top"
        )


def _log_picture(found: Found) -> Picture:
    sizes = found.by_size
    widths = [1.6 + 0.085 * len(judged) for judged in sizes.values()]
    figure, axes = panels(widths, height=3.9, rows=2)
    heights = [("clinicians", survival(found.clinicians), "0.4")]
    heights += [("optimum", survival(one.true), "0.4") for one in found.exact if one.share == found.study.share]
    for upper, lower, (size, judged) in zip(axes[: len(sizes)], axes[len(sizes) :], sizes.items(), strict=True):
        order = sorted(judged, key=lambda one: (one.true[FLUIDS], one.number))
        _draw_bounds(upper, [_of(one, FLUIDS) for one in order], range(1, len(order) + 1))
        upper.axhline(found.limits[FLUIDS], color="0.4", linewidth=0.6, linestyle=":")
        upper.set_title(f"fluids, {size:,} episodes")
        for place, one in enumerate(order, start=1):
            lower.plot(place, one.survival, "o", color=COLOURS[1] if one.certified else COLOURS[6], markersize=3)
        for _, height, colour in heights:
            lower.axhline(height, color=colour, linewidth=0.6, linestyle=":")
        lower.set_title("survival")
        lower.set_xlabel("log")
        for one_axes in (upper, lower):
            one_axes.set_xlim(0.2, len(order) + 0.8)
            one_axes.set_xticks(sorted({1, *range(10, len(order), 10), len(order)}))
    _same_heights(axes[: len(sizes)], below=0.3)
    _same_heights(axes[len(sizes) :])
    label_ends(axes[len(sizes) - 1], [("limit", found.limits[FLUIDS], "0.4")])
    label_ends(axes[-1], heights)
    _legend(axes[0], [("true", COLOURS[1]), ("estimate to bound", COLOURS[2])], at=(0.98, 0.18))
    caption = (
        f"The even mixture of policies that is certified from each log, in the order of its true fluids. Bars run from "
        f"the estimate, by episodes that a policy was not learned from, to its bound at {found.study.confidence:.0%}; "
        "in grey what is not certified: there the clinicians go on."
    )
    return Picture("logs", caption, figure)


def _of(one: Judged | Step, drug: str) -> tuple[float, float, float, bool]:
    """Return estimate, bound and truth of what was judged, and whether it passed; of the clinicians no truth."""
    passed = one.certified if isinstance(one, Judged) else one.passed
    true = one.true[drug] if passed or isinstance(one, Step) else np.nan
    return one.estimates.get(drug, np.nan), one.bounds.get(drug, np.nan), true, passed


def _draw_bounds(axes: "Axes", judged: Sequence[tuple[float, float, float, bool]], at: Sequence[float]) -> None:
    """Draw bars from estimates to bounds, and the truth."""
    for (estimate, bound, true, certified), x in zip(judged, at, strict=True):
        colour = COLOURS[2] if certified else COLOURS[6]
        axes.plot([x, x], [estimate, bound], color=colour, linewidth=0.9)
        axes.plot(x, bound, "_", color=colour, markersize=4)
        axes.plot(x, true, "o", color=COLOURS[1] if certified else COLOURS[6], markersize=2.5, zorder=3)


def _same_heights(axes: "Sequence[Axes]", below: float = 0.0) -> None:
    """Let axes show the same heights, and a share of them more below."""
    ends = np.array([one.get_ylim() for one in axes])
    low, high = float(ends.min()), float(ends.max())
    for one in axes:
        one.set_ylim(low - below * (high - low), high)


def _plugged_picture(found: Found) -> Picture:
    rows = _plugged_rows(found)
    figure, (saved, given) = panels((3.9, 2.3), height=0.75 + 0.17 * len(rows))
    for place, (_, claimed, true, colour) in enumerate(rows):
        worth, fluids = [survival(one) for one in true], [one[FLUIDS] for one in true]
        if claimed:
            promise = float(np.mean([survival(one) for one in claimed]))
            saved.plot([promise, float(np.mean(worth))], [place, place], color=colour, linewidth=0.6)
            saved.plot(promise, place, "o", color=colour, markerfacecolor="white", markersize=4.5)
        for axes, values in ((saved, worth), (given, fluids)):
            axes.plot(np.mean(values), place, "o", color=colour, markersize=4)
        given.hlines(place, min(fluids), max(fluids), color=colour, linewidth=0.8)
    given.axvline(found.limits[FLUIDS], color="0.4", linewidth=0.6, linestyle=":")
    saved.axvline(survival(found.clinicians), color="0.4", linewidth=0.6, linestyle=":")
    saved.set_yticks(range(len(rows)), [name for name, *_ in rows])
    given.set_yticks([])
    for axes in (saved, given):
        axes.set_ylim(len(rows) - 0.4, -0.6)
    saved.set_title("survival: claimed (ring), true (dot)")
    given.set_title("fluids, true")
    caption = (
        "Solutions at the limits themselves, by how often an action must have been logged, and what is certified. "
        "Means over logs, fluids with their range; dotted: the clinicians' survival, the limit on fluids."
    )
    return Picture("at-the-limit", caption, figure)


def _plugged_rows(found: Found) -> list[tuple[str, list[dict[str, float]], list[dict[str, float]], str]]:
    """Return name, what was claimed and what is true, and a colour, of each rule and of what is certified."""
    rows = []
    for (size, judged), colour in zip(found.by_size.items(), SIZES, strict=False):
        for rule in judged[0].plugged:
            tried = [one.plugged[rule] for one in judged]
            rows.append((f"{size:,}: {rule}", [one.claimed for one in tried], [one.true for one in tried], colour))
        if passed := [one.true for one in judged if one.certified]:
            rows.append((f"{size:,}: certified", [], passed, colour))
    return rows


def _candidates_picture(found: Found) -> Picture:
    firsts = [one for judged in found.by_size.values() for one in judged if one.candidates]
    figure, axes = panels([2.3] * len(firsts) + [2.3], height=2.1)
    for one, place, colour in zip(firsts, axes, SIZES, strict=False):
        margins = [step.margin for step in one.candidates]
        _draw_bounds(place, [_of(step, FLUIDS) for step in one.candidates], margins)
        place.axhline(found.limits[FLUIDS], color="0.4", linewidth=0.6, linestyle=":")
        place.set_title(f"fluids, {one.episodes:,} episodes")
        axes[-1].plot(margins, [survival(step.true) for step in one.candidates], "o-", color=colour, markersize=3)
    tried = sorted({step.margin for one in firsts for step in one.candidates})
    for place in axes:
        place.set_xlim(tried[-1] + 0.3, tried[0] - 0.3)
        place.set_xticks(tried, [f"{margin:g}" for margin in tried])
        place.set_xlabel("room aimed at, standard errors")
    _same_heights(axes[:-1])
    axes[-1].set_title("true survival")
    ends = [
        (f"{one.episodes:,}", survival(one.candidates[-1].true), colour)
        for one, colour in zip(firsts, SIZES, strict=False)
    ]
    label_ends(axes[-1], ends)
    caption = (
        "One log of each size: policies that aim ever closer at the limit (dotted) are judged in turn, until one does "
        "not pass (grey); the last that did is deployed. Bars: estimate to bound; dots: truth."
    )
    return Picture("candidates", caption, figure)
