"""What the study of sepsis shows of what it found: claims, tables, pictures."""

import importlib.metadata
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import binom

from bridle.studies.drawing import COLOURS, label_ends, panels
from bridle.studies.sepsis import DEATH, DRUGS, FLUIDS, PACKAGE, Sepsis
from bridle.studies.study import Claim, Findings, Picture, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bridle.studies.sepsis_study import IcuSepsis

NOTHING = "–"  # noqa: RUF001 in a table
SIZES = COLOURS[1], COLOURS[2], COLOURS[3]  # of logs
KNOWN_CLINICIANS = 0.782, 4.25, 0.81  # survival, fluids, vasopressors: figures that were computed elsewhere
KNOWN_OPTIMA: dict[float | None, tuple[float, float, float]] = {  # by share
    None: (0.875, 6.11, 0.94),
    0.75: (0.859, 3.19, 0.34),
    0.5: (0.838, 2.13, 0.23),
}
KNOWN_SHARE = 0.75  # at which, of one log:
KNOWN_PLUGGED = {  # survival claimed, survival true, fluids true
    (20_000, "logged at all"): (0.99, 0.805, 4.5),
    (20_000, "logged 20 times"): (0.874, 0.822, 3.33),
    (100_000, "logged 50 times"): (0.862, 0.849, 3.27),
}


@dataclass(frozen=True)
class Optimal:
    """The fewest deaths within a share of the clinicians' drugs (None: without limits), and the limits' prices."""

    share: float | None
    claimed: dict[str, float]  # by whoever solved it
    true: dict[str, float]
    prices: dict[str, float]


@dataclass(frozen=True)
class Plugged:
    """A solution from a whole log at the limits themselves."""

    claimed: dict[str, float]
    true: dict[str, float]


@dataclass(frozen=True)
class Step:
    """One rung of a climb."""

    room: float
    passed: bool
    estimates: dict[str, float]
    bounds: dict[str, float]
    true: dict[str, float]


@dataclass(frozen=True)
class Judged:
    """What came of one log."""

    episodes: int
    number: int
    certified: bool
    true: dict[str, float]  # of what is deployed: the certified policy, or the clinicians'
    estimates: dict[str, float]  # of the policy that was judged
    bounds: dict[str, float]
    reason: str
    climbed: tuple[Step, ...]  # of the first log of a size
    plugged: dict[str, Plugged]  # by rule
    seconds: float = field(compare=False)

    @property
    def survival(self) -> float:
        """Of what is deployed, in truth."""
        return survival(self.true)


@dataclass(frozen=True, eq=False)
class Found:
    """What came out, before it is judged and drawn."""

    study: "IcuSepsis"
    ward: Sepsis
    exact: list[Optimal]
    learned: list[Optimal]
    judged: list[Judged]

    @cached_property
    def clinicians(self) -> dict[str, float]:
        """What they achieve and give."""
        return self.ward.mdp.values(self.ward.clinicians)

    @cached_property
    def limits(self) -> dict[str, float]:
        """By drug."""
        return {drug: self.study.share * self.clinicians[drug] for drug in DRUGS}

    @cached_property
    def by_size(self) -> dict[int, list[Judged]]:
        """The logs of each size, the smallest first."""
        sizes = sorted({one.episodes for one in self.judged})
        return {size: [one for one in self.judged if one.episodes == size] for size in sizes}

    def breaks(self, true: dict[str, float]) -> bool:
        """Say whether a policy gives more of a drug than is allowed."""
        return any(true[drug] > limit for drug, limit in self.limits.items())

    @cached_property
    def false(self) -> list[Judged]:
        """Logs whose certificate is wrong."""
        return [one for one in self.judged if one.certified and self.breaks(one.true)]


def survival(values: dict[str, float]) -> float:
    """Every episode ends, so whoever does not die survives."""
    return 1 - values[DEATH]


def findings(found: Found) -> Findings:
    """Judge, tabulate and draw."""
    study = found.study
    return Findings(
        title="Sepsis in intensive care: fewer deaths with fewer drugs, certified",
        summary=(
            f"ICU-Sepsis: {found.ward.mdp.n_states} states, {found.ward.mdp.n_actions} doses of fluids and "
            f"vasopressors, discount 1. Deaths are minimised, with at most {study.share:.0%} of what clinicians give "
            f"of each drug ({_pair(found.limits)}), from a log of their own decisions: "
            f"{survival(found.clinicians):.3f} of their patients survive."
        ),
        claims=[*_exact_claims(found), *_log_claims(found)],
        numbers=_numbers(found),
        tables=[_exact_table(found), _frontier_table(found), _size_table(found), _plugged_table(found)],
        pictures=_pictures(found),
        differences=[
            "The environment's own reward is survival alone; the limits on the drugs are ours. A dose counts from 0 "
            "(none) to 1 (the highest level), and is summed over a patient's stay.",
            "Optima and certified policies take admissible actions alone. The clinicians take others as well, which "
            "lead where the admissible ones of a state do on average; none of that counts as evidence.",
            "Only occurrences that leave a state count as evidence for an action: at discount 1 an action that was "
            "only seen to stay has no value. In a state that no logged admissible action left, learned policies give "
            "nothing, which counts at its worst where it is judged.",
        ],
    )


def _pictures(found: Found) -> list[Picture]:
    drawn = [_frontier_picture(found), _log_picture(found), _plugged_picture(found)]
    return [*drawn, _climb_picture(found)] if any(one.climbed for one in found.judged) else drawn


def _exact_claims(found: Found) -> list[Claim]:
    """Compare with figures that were computed elsewhere, to half a unit of their last digit."""
    off = np.abs([np.subtract(ours, known) for _, ours, known in _beside_known(found)])  # (policies, 3)
    words = "largest difference to the figures that were expected"
    return [
        Claim.at_most(f"exact survival: {words}", float(off[:, 0].max()), 0.5e-3),
        Claim.at_most(f"exact fluids and vasopressors: {words}", float(off[:, 1:].max()), 0.5e-2),
    ]


def _beside_known(found: Found) -> list[tuple[str, tuple[float, ...], tuple[float, ...]]]:
    """Return survival, fluids and vasopressors of each exact policy whose figures are known, ours and those."""
    optima = [one for one in found.exact if one.share in KNOWN_OPTIMA]
    return [
        ("clinicians", _triple(found.clinicians), KNOWN_CLINICIANS),
        *((f"optimum, {_share(one.share)}", _triple(one.true), KNOWN_OPTIMA[one.share]) for one in optima),
    ]


def _triple(values: dict[str, float]) -> tuple[float, ...]:
    return survival(values), *(values[drug] for drug in DRUGS)


def _log_claims(found: Found) -> list[Claim]:
    study, claims = found.study, []
    wanted = {study.large_episodes: study.large_survival, study.episodes: study.survival}
    for size, judged in found.by_size.items():
        passed = sum(one.certified for one in judged)
        claims += [
            Claim.at_least(
                f"{size:,} episodes: survival of what is deployed, mean of {len(judged)}",
                float(np.mean([one.survival for one in judged])),
                wanted[size],
            ),
            Claim(
                f"{size:,} episodes: logs with a policy whose limits are both certified",
                f"at least {_most(len(judged))} of {len(judged)}",
                f"{passed} of {len(judged)}",
                passed >= _most(len(judged)),
            ),
        ]
    return [*claims, _false_claim(found), _plugged_claim(found)]


def _false_claim(found: Found) -> Claim:
    """Allow as many false certificates as chance exceeds only with the probability that the confidence leaves."""
    confidence, logs = found.study.confidence, len(found.judged)
    allowed = int(binom.ppf(confidence, logs, 1 - confidence))
    return Claim.at_most(f"certificates that pass though a limit is broken (logs: {logs})", len(found.false), allowed)


def _plugged_claim(found: Found) -> Claim:
    solutions = [one for judged in found.judged for one in judged.plugged.values()]
    broken = sum(found.breaks(one.true) for one in solutions)
    return Claim.at_least(
        "solutions at the limits themselves that break one, share", broken / max(len(solutions), 1), 0.5
    )


def _most(logs: int) -> int:
    return int(np.ceil(0.9 * logs))


def _numbers(found: Found) -> dict[str, Any]:
    return {
        "icu-sepsis": importlib.metadata.version(PACKAGE),
        "clinicians": found.clinicians,
        "limits": found.limits,
        "exact": [asdict(one) for one in found.exact],
        "learned": [asdict(one) for one in found.learned],
        "logs": [asdict(one) for one in found.judged],
    }


def _pair(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in values.items())


def _share(share: float | None) -> str:
    return "without limits" if share is None else f"{share:.0%} of the clinicians' drugs"


def _exact_table(found: Found) -> Table:
    rows: list[list[str | float]] = []
    for name, ours, known in _beside_known(found):
        both = [
            f"{mine:.{digits + 2}f} ({their:.{digits}f})"
            for mine, their, digits in zip(ours, known, (3, 2, 2), strict=True)
        ]
        rows.append([name, *both])
    note = "In brackets what was expected: the same, computed elsewhere."
    return Table("Exact values", ("policy", "survival", *DRUGS), rows, note=note)


def _frontier_table(found: Found) -> Table:
    exact = {one.share: one for one in found.exact}
    rows: list[list[str | float]] = []
    for learned in found.learned:
        best = exact.get(learned.share)
        rows.append(
            [
                "none" if learned.share is None else f"{learned.share:.0%}",
                *([NOTHING] * 3 if best is None else [f"{survival(best.true):.4f}", *_prices(best)]),
                f"{survival(learned.claimed):.4f}",
                f"{survival(learned.true):.4f}",
                *(f"{learned.true[drug]:.3f}" for drug in DRUGS),
                *_prices(learned),
            ]
        )
    prices = [f"price of {drug}" for drug in DRUGS]
    learned_prices = [f"{price}, learned" for price in prices]
    names = ("limit", "survival, exact", *prices, "learned: claimed", "true", *DRUGS, *learned_prices)
    note = (
        f"Learned from one log of {found.study.large_episodes:,} episodes, at each limit itself. A price says how many "
        "deaths per patient one unit more of a drug would save."
    )
    return Table("What the limits cost", names, rows, note=note)


def _prices(one: Optimal) -> list[str]:
    return [f"{one.prices.get(drug, 0.0):.4f}" for drug in DRUGS]


def _size_table(found: Found) -> Table:
    rows: list[list[str | float]] = []
    for size, judged in found.by_size.items():
        passed = [one for one in judged if one.certified]
        false = [one for one in found.false if one.episodes == size]
        saved = [one.survival for one in judged]
        rows.append(
            [
                f"{size:,}",
                f"{len(passed)} of {len(judged)}",
                str(len(false)),
                f"{np.mean(saved):.4f}",
                f"{min(saved):.4f} to {max(saved):.4f}",
                *(_mean(one.true[drug] for one in passed) for drug in DRUGS),
                f"{np.mean([one.seconds for one in judged]):.0f} s",
            ]
        )
    names = ("episodes", "certified", "of these false", "survival", "range", *DRUGS, "took, each")
    note = (
        f"True values of what is deployed: the certified policy, or the clinicians' where none is. Limits: "
        f"{_pair(found.limits)}. Drugs are means over certified policies."
    )
    return Table("What is certified, and what it is worth", names, rows, note=note)


def _mean(values: Iterable[float]) -> str:
    given = list(values)
    return f"{np.mean(given):.3f}" if given else NOTHING


def _plugged_table(found: Found) -> Table:
    rows: list[list[str | float]] = []
    for size, judged in found.by_size.items():
        for rule in judged[0].plugged:
            tried = [one.plugged[rule] for one in judged]
            known = KNOWN_PLUGGED.get((size, rule)) if found.study.share == KNOWN_SHARE else None
            rows.append(
                [
                    f"{size:,}",
                    rule,
                    _mean(survival(one.claimed) for one in tried),
                    _mean(survival(one.true) for one in tried),
                    *(_mean(one.true[drug] for one in tried) for drug in DRUGS),
                    f"{sum(found.breaks(one.true) for one in tried)} of {len(tried)}",
                    "" if known is None else ", ".join(f"{value:g}" for value in known),
                ]
            )
    names = ("episodes", "rule", "survival, claimed", "true", *DRUGS, "break a limit", "expected")
    note = (
        "Learned from the whole log at the limits themselves and judged on it; means. Every solution claims to keep "
        "the limits; what has no evidence counts at its worst. Expected: survival claimed and true, and true fluids, "
        "of one log elsewhere."
    )
    return Table("Solutions at the limits themselves", names, rows, note=note)


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


def _climb_picture(found: Found) -> Picture:
    firsts = [one for judged in found.by_size.values() for one in judged if one.climbed]
    figure, axes = panels([2.3] * len(firsts) + [2.3], height=2.1)
    for one, place, colour in zip(firsts, axes, SIZES, strict=False):
        rooms = [step.room for step in one.climbed]
        _draw_bounds(place, [_of(step, FLUIDS) for step in one.climbed], rooms)
        place.axhline(found.limits[FLUIDS], color="0.4", linewidth=0.6, linestyle=":")
        place.set_title(f"fluids, {one.episodes:,} episodes")
        axes[-1].plot(rooms, [survival(step.true) for step in one.climbed], "o-", color=colour, markersize=3)
    tried = sorted({step.room for one in firsts for step in one.climbed})
    for place in axes:
        place.set_xlim(tried[-1] + 0.3, tried[0] - 0.3)
        place.set_xticks(tried, [f"{room:g}" for room in tried])
        place.set_xlabel("room aimed at, standard errors")
    _same_heights(axes[:-1])
    axes[-1].set_title("true survival")
    _legend(
        axes[-1], [(f"{one.episodes:,}", colour) for one, colour in zip(firsts, SIZES, strict=False)], at=(0.98, 0.3)
    )
    caption = (
        "One log of each size: policies that aim ever closer at the limit (dotted) are judged in turn, until one does "
        "not pass (grey); the last that did is deployed. Bars: estimate to bound; dots: truth."
    )
    return Picture("climb", caption, figure)
