"""What the study of random constrained MDPs shows of what it found: claims, tables, pictures."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from checkrein.reproduction import COLOURS, Claim, Findings, Picture, Table, label_ends, panels
from checkrein_studies.cmdp_found import ALLOWED, CAREFUL, DICE, EXACT, OURS, PAPER, PLUG_IN, Found, Mean, Run
from checkrein_studies.cmdp_protocol import COST

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from checkrein_studies.cmdp_study import RandomCmdps

LOOKS = {
    OURS: (COLOURS[1], "-"),
    CAREFUL: (COLOURS[2], "--"),
    DICE: (COLOURS[0], "--"),
    PAPER: (COLOURS[3], "-."),
    PLUG_IN: (COLOURS[6], ":"),
}
ENOUGH = 200  # episodes from which what is deployed is compared with C-OptiDICE
REFERENCE = {10: (-0.59, 0.73), 50: (0.33, 0.71), 200: (0.65, 0.73), 1000: (0.84, 0.70), 2000: (0.91, 0.59)}


def findings(study: "RandomCmdps", runs: Sequence[Run]) -> Findings:
    """Judge, tabulate and draw."""
    found = Found(study, runs)
    costs = [run.behavior[COST] for run in runs]
    return Findings(
        title="Random constrained MDPs, from few episodes to many",
        summary=(
            f"{study.runs} random MDPs of {study.states} states and {study.actions} actions, discount "
            f"{study.discount:g}: reach a goal far away, at a cost of at most {study.limit:g} a step. Behavior is "
            f"{study.skill:.0%} of the way from uniform to optimal and costs {np.mean(costs):.4f}. A return of 0 is "
            "behavior's, 1 that of the constrained optimum; all values are exact. What checkrein deploys is the policy "
            f"that it certifies at {study.confidence:.0%}, else behavior."
        ),
        claims=_claims(found),
        numbers=_numbers(found),
        tables=[
            _table(found, "Normalised return, mean and standard error", lambda *at: found.returned(*at).words),
            _table(found, "True cost, mean", lambda *at: f"{found.cost(*at).value:.4f}"),
            _table(found, "Runs that break the limit", lambda *at: f"{found.violations(*at):.0%}"),
            _certificate_table(found),
            _difference_table(found),
            _safety_table(found),
            _reference_table(found),
        ],
        pictures=[_curves(found), _scatter(found)],
        differences=_differences(found),
    )


def _claims(found: Found) -> list[Claim]:
    sizes = found.study.sizes
    large = [size for size in sizes if size >= ENOUGH]
    claims = [_mostly_right(found, size) for size in sizes]
    for size in large:
        what = f"{size:,} episodes: return of what is deployed less that of C-OptiDICE where it is as safe"
        claims.append(_not_below(what, found.ahead_of_as_safe(size)))
    for size in sizes:
        deployed = found.returned(size, OURS)
        claims.append(_not_below(f"{size:,} episodes: return of what is deployed, behavior's being 0", deployed))
    shown = max(sizes)
    passed, _ = found.certified(shown)
    claims.append(Claim.at_least(f"{shown:,} episodes: share certified", passed / len(found.of(shown)), 0.5))
    claims.append(
        Claim.at_least(
            f"{shown:,} episodes: C-OptiDICE breaks the limit more often than what is deployed, by",
            found.violations(shown, DICE) - found.violations(shown, OURS),
            0.25,
        )
    )
    return claims


def _mostly_right(found: Found, size: int) -> Claim:
    passed, wrong = found.certified(size)
    return Claim(
        f"{size:,} episodes: certified policies that break the limit",
        f"at most {ALLOWED:.0%}",
        f"{wrong} of {passed}" if passed else "none certified",
        wrong <= ALLOWED * passed,
    )


def _not_below(what: str, mean: Mean) -> Claim:
    """Claim that a mean is not negative, but for two standard errors."""
    return Claim(what, "not below 0 by more than 2 standard errors", mean.words, mean.value >= -2 * mean.error)


def _numbers(found: Found) -> dict[str, Any]:
    def by_size(value: Callable[[int, str], Any]) -> dict[str, dict[int, Any]]:
        return {way: {size: value(size, way) for size in found.study.sizes} for way in LOOKS}

    return {
        "return": by_size(lambda *at: found.returned(*at)._asdict()),
        "cost": by_size(lambda *at: found.cost(*at)._asdict()),
        "violation": by_size(found.violations),
        "return ahead": by_size(lambda *at: found.ahead(*at)._asdict()),
        "C-OptiDICE as safe": {size: found.as_safe(size) for size in found.study.sizes},
        "certified and wrong": {size: found.certified(size) for size in found.study.sizes},
        "runs": [asdict(run) for run in found.runs],
    }


def _table(found: Found, title: str, value: Callable[[int, str], str]) -> Table:
    sizes = found.study.sizes
    rows = [[_long(way), *(value(size, way) for size in sizes)] for way in LOOKS]
    return Table(title, ("episodes", *(f"{size:,}" for size in sizes)), rows)


def _long(way: str) -> str:
    """Return a way's name where there is room."""
    return {
        OURS: "checkrein: certified, else behavior",
        CAREFUL: "C-OptiDICE, conservative",
        DICE: "C-OptiDICE (chi-square)",
        PAPER: "the paper's algorithm",
    }.get(way, way)


def _certificate_table(found: Found) -> Table:
    rows: list[list[str | float]] = []
    for size in found.study.sizes:
        passed, wrong = found.certified(size)
        runs = [run for run in found.of(size) if run.certified]
        means = [np.mean([run.judged[OURS][what] for run in runs]) if runs else np.nan for what in ("return", COST)]
        bound = np.mean([run.bound for run in runs if run.bound is not None]) if runs else np.nan
        margin = np.mean([run.margin for run in runs if run.margin is not None]) if runs else np.nan
        numbers = [float(number) for number in (*means, bound, margin)]
        rows.append([f"{size:,}", f"{passed} of {len(found.of(size))}", f"{wrong} of {passed}", *numbers])
    names = ("episodes", "certified", "of these wrong", "return", "true cost", "bound", "room, standard errors")
    note = (
        "Means over what was certified. Room: how far under the limit the boldest policy that passed had aimed, in the "
        "standard errors that were predicted for it."
    )
    return Table("Certificates", names, rows, note=note)


def _difference_table(found: Found) -> Table:
    others = [way for way in LOOKS if way != OURS]
    rows = [[f"{size:,}", *(found.ahead(size, way).words for way in others)] for size in found.study.sizes]
    note = "Run by run on the same log, mean and standard error."
    return Table("Return of what is deployed less that of", ("episodes", *map(_long, others)), rows, note=note)


def _safety_table(found: Found) -> Table:
    rows: list[list[str | float]] = []
    for size in found.study.sizes:
        limit, runs = found.as_safe(size)
        returned, cost = (np.array([run[what] for run in runs]) for what in ("return", COST))
        broken = float((cost > found.study.limit + EXACT).mean())
        ours = found.returned(size, OURS).words, found.ahead_of_as_safe(size).words
        rows.append([f"{size:,}", limit, f"{broken:.0%}", Mean.of(returned).words, *ours])
    names = ("episodes", "its limit", "breaks the true one", "its return", "checkrein's return", "difference")
    note = (
        f"C-OptiDICE, given the highest limit of {found.study.limit:g}, "
        f"{', '.join(f'{limit:g}' for limit in found.study.tighter)} at which at most {ALLOWED:.0%} of its policies "
        f"break {found.study.limit:g}. Nobody with one log could have chosen it so: it takes the truth."
    )
    return Table("As safe as what is certified", names, rows, note=note)


def _reference_table(found: Found) -> Table:
    rows = [
        [
            f"{size:,}",
            f"{REFERENCE[size][0]:.2f}",
            found.returned(size, PLUG_IN).words,
            f"{REFERENCE[size][1]:.0%}",
            f"{found.violations(size, PLUG_IN):.0%}",
        ]
        for size in found.study.sizes
        if size in REFERENCE
    ]
    names = ("episodes", "return, reference", "return, here", "breaks the limit, reference", "here")
    note = "The reference has 60 MDPs of the same protocol, drawn by another program."
    return Table("The plug-in linear program beside a reference", names, rows, note=note)


def _curves(found: Found) -> Picture:
    figure, (gained, paid, broken) = panels((3.1, 3.1, 3.1), height=2.4)
    x = np.array(found.study.sizes, dtype=np.float64)
    ends: dict[int, list[tuple[str, float, str]]] = {id(axes): [] for axes in (gained, paid, broken)}
    for way, (colour, dash) in reversed(LOOKS.items()):
        returns = [found.returned(size, way) for size in found.study.sizes]
        costs = [found.cost(size, way) for size in found.study.sizes]
        shares = [100 * found.violations(size, way) for size in found.study.sizes]
        for axes, means in ((gained, returns), (paid, costs)):
            value, error = np.array(means).T
            axes.fill_between(x, value - error, value + error, color=colour, alpha=0.15, linewidth=0)
            axes.plot(x, value, dash, color=colour, marker="o", markersize=2.5)
            ends[id(axes)].append((way, float(value[-1]), colour))
        broken.plot(x, shares, dash, color=colour, marker="o", markersize=2.5)
        ends[id(broken)].append((way, shares[-1], colour))
    gained.set_title("normalised return")
    gained.axhline(0, color="0.4", linewidth=0.6, linestyle=":")
    ends[id(gained)].append(("behavior", 0.0, "0.4"))
    paid.set_title("true cost")
    paid.axhline(found.study.limit, color="black", linewidth=0.6, linestyle=":")
    ends[id(paid)].append(("limit", found.study.limit, "black"))
    broken.set_title("runs that break the limit, %")
    broken.axhline(100 * ALLOWED, color="black", linewidth=0.6, linestyle=":")
    broken.set_ylim(-3, 103)
    for axes in (gained, paid, broken):
        _episodes(axes, found.study.sizes)
        label_ends(axes, ends[id(axes)])
    caption = (
        f"By number of logged episodes, means of {found.study.runs} MDPs; bands are a standard error to each side. "
        "Return: 0 is behavior's, 1 the constrained optimum's. checkrein deploys behavior where it certifies nothing. "
        f"Dotted: behavior, the limit, and {ALLOWED:.0%}."
    )
    return Picture("curves", caption, figure)


def _episodes(axes: "Axes", sizes: Sequence[int]) -> None:
    axes.set_xscale("log")
    axes.set_xlim(sizes[0] / 1.15, sizes[-1] * 1.1)
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
    axes.set_xlabel("logged episodes")


def _scatter(found: Found) -> Picture:
    """Draw every run: what it cost and what it returned."""
    shown = [size for size in found.study.sizes if size >= ENOUGH] or list(found.study.sizes)
    figure, all_axes = panels([2.6] * len(shown), height=2.4)
    for axes, size in zip(all_axes, shown, strict=True):
        for way in (DICE, CAREFUL, OURS):
            points = found.each(size, way, COST), found.each(size, way, "return")
            axes.plot(*points, "o", color=LOOKS[way][0], markersize=2.6, alpha=0.7, markeredgewidth=0)
        axes.axvline(found.study.limit, color="black", linewidth=0.6, linestyle=":")
        axes.set_title(f"{size:,} episodes")
        axes.set_xlabel("true cost")
        axes.set_ylim(-0.3, 1.1)
        axes.locator_params(axis="x", nbins=5)
    all_axes[0].set_ylabel("normalised return")
    for place, way in enumerate((OURS, CAREFUL, DICE)):
        all_axes[0].text(
            0.03, 0.3 - 0.09 * place, way, color=LOOKS[way][0], transform=all_axes[0].transAxes, fontsize=7, va="top"
        )
    caption = (
        "Every run: what its policy costs and returns in truth. Right of the dotted line the limit is broken. (Returns "
        "below -0.3 are left out.)"
    )
    return Picture("runs", caption, figure)


def _differences(found: Found) -> list[str]:
    study, size = found.study, max(found.study.sizes)
    rates = ", ".join(f"{found.violations(one, DICE):.0%} at {one:,}" for one in study.sizes)
    return [
        "A certified policy cannot match a return that is bought by breaking the limit: C-OptiDICE without its "
        f"conservative part aims at the limit itself, and chance puts it above ({rates} episodes); a bound at "
        f"{study.confidence:.0%} asks for room under the limit. With {size:,} episodes their mean costs are "
        f"{found.cost(size, DICE).value:.4f} and {found.cost(size, OURS).value:.4f}; the return of what is "
        f"deployed less C-OptiDICE's is {found.ahead(size, DICE).words}. So it is compared where it is as safe.",
        f"The published experiment's behavior costs {study.limit:g} unless it is told otherwise; here it is "
        f"{study.behavior_limit:g}, as in the reference, so that behavior itself keeps the limit.",
        "The plug-in program and C-OptiDICE are told the costs of all pairs, and C-OptiDICE the behavior policy, as "
        "in the published experiment; the paper's algorithm and checkrein see the log alone.",
        "C-OptiDICE's quadratic program is solved by Newton's method on its dual, and the ball of its conservative "
        "part holds only transitions that were logged.",
        f"The paper's algorithm has the rate {study.rate:g} (the paper's own, 50, is for FrozenLake), the "
        f"{'linear program' if study.weighting == 'best' else 'paper'}'s weights of its mixture, and the support rule: "
        "what was never logged is never chosen.",
    ]
