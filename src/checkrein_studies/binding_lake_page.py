"""What the study of the binding FrozenLake shows of what it found: claims, tables, pictures."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from checkrein import AtMost, Round
from checkrein.base.arrays import FloatArray
from checkrein.game.solution import mixture_of
from checkrein.reproduction import COLOURS, Claim, Findings, Picture, Table, label_ends, panels
from checkrein_studies import frozen_lake
from checkrein_studies.lake_panels import (
    GOAL,
    HOLE,
    Estimated,
    draw_estimates,
    draw_map,
    estimated_values,
    estimator_picture,
    estimator_table,
    true_values,
)

if TYPE_CHECKING:
    from checkrein_studies.binding_lake import FrozenLakeBinding

PLANES = "cutting planes"
FLOOR = 1e-16  # a gap of zero, on a logarithmic axis


@dataclass(frozen=True, eq=False)
class Found(Estimated):
    """What came out, before it is judged and drawn."""

    study: "FrozenLakeBinding"
    races: dict[str, list[Round]]  # by learner and rate
    papers: FloatArray  # (t,) the gap of exponentiated gradient at its last rate, by the paper's formula
    exact: list[Round]  # cutting planes on exact transitions
    certificates: list[dict[str, Any]]

    @cached_property
    def best(self) -> dict[str, float]:
        """The linear program within the limit."""
        return self.mdp.optimum(objective=GOAL, constraints=[AtMost(HOLE, self.study.limit)]).values

    @cached_property
    def gaps(self) -> dict[str, FloatArray]:
        """By learner and round."""
        return {name: np.array([one.gap for one in played]) for name, played in self.races.items()}


def findings(found: Found) -> Findings:
    """Judge, tabulate and draw."""
    study, errors = found.study, found.errors
    learned = found.mdp.values(mixture_of(found.exact))
    passed = [one for one in found.certificates if one["verdict"] == "pass"]
    wrong = [one for one in passed if one["careful"]["true"][HOLE] > study.limit]
    false = [one for one in found.certificates if one["plain"]["true"][HOLE] > study.limit]
    gradient = [name for name in found.gaps if name != PLANES]
    reached = min(float(found.gaps[name].min()) for name in gradient)
    claims = [
        Claim(
            f"gap of cutting planes in {study.planes} rounds, below every gradient method's in {study.rounds}",
            f"below {reached:.3g}",
            f"{found.gaps[PLANES][-1]:.3g}",
            bool(found.gaps[PLANES][-1] < reached),
        ),
        Claim.at_most(
            "from exact transitions: objective, difference to the linear program",
            abs(learned[GOAL] - found.best[GOAL]),
            1e-5,
        ),
        Claim.at_most("from exact transitions: hole above the limit", learned[HOLE] - study.limit, 1e-6),
        Claim.at_least("members of that mixture", len(mixture_of(found.exact).members), 2),
        Claim.at_most("certificates that pass though the limit is broken", len(wrong), 0),
        Claim.at_least("certificates that pass", len(passed), 1),
        Claim.at_least(
            "false claims of policies judged on the log that chose them, share",
            len(false) / max(len(found.certificates), 1),
            0.5,
        ),
        Claim.at_most(
            "error of FQE at 100 % of the log, over that of DR", float(errors["fqe"][-1] / errors["dr"][-1]), 1.0
        ),
        Claim.at_most("the same over that of WDR", float(errors["fqe"][-1] / errors["wdr"][-1]), 1.0),
    ]
    return Findings(
        title="FrozenLake with a limit that binds",
        summary=(
            f"Slippery FrozenLake 8x8, discount {study.discount:g}: reach the goal, with the discounted chance of "
            f"falling into a hole at most {study.limit:g}. The optimum without the limit is at "
            f"{found.mdp.optimum(objective=GOAL).values[HOLE]:.5f}, so the limit costs something: the exact linear "
            f"program has goal {found.best[GOAL]:.5f}, a mixture of two policies."
        ),
        claims=claims,
        numbers=_numbers(found),
        tables=[
            _values_table(found),
            _gap_table(found),
            _certificate_table(found),
            estimator_table(study.shares, found.estimates, found.truth),
        ],
        pictures=[
            _panels(found),
            _certificate_picture(found),
            estimator_picture(study.shares, found.estimates, found.truth, study.trials),
            _map(found),
        ],
        differences=[
            "The paper has no such setting: in its own FrozenLake the limit never binds.",
            "Multipliers rise with the violation (the paper's printed signs lower them).",
            "The gap's lower bound is the best over all multipliers visited of the least over all policies found; "
            "the paper's own formula is drawn beside it.",
            "Gradient methods mix policies uniformly, as the paper does; with the linear program's weights "
            "exponentiated gradient closes the gap sooner, and is drawn as well.",
            "On small logs FQE of the fixed policy is far too high: an action that was never logged counts at its "
            "worst, here 1 / (1 - discount).",
        ],
    )


def _numbers(found: Found) -> dict[str, Any]:
    return {
        "optimum": found.best,
        "unconstrained": found.mdp.optimum(objective=GOAL).values,
        "behavior": found.mdp.values(frozen_lake.behavior(found.mdp, found.study.skill)),
        "gaps": found.gaps,
        "gap by the paper's formula": found.papers,
        "true": {name: true_values(found.mdp, played) for name, played in found.races.items()},
        "estimated": {name: estimated_values(played) for name, played in found.races.items()},
        "multipliers": {name: [one.multipliers for one in played] for name, played in found.races.items()},
        "estimators": {"truth": found.truth, "estimates": found.estimates, "errors": found.errors},
        "certificates": found.certificates,
    }


def _values_table(found: Found) -> Table:
    behavior = found.mdp.values(frozen_lake.behavior(found.mdp, found.study.skill))
    unlimited = found.mdp.optimum(objective=GOAL).values
    rows: list[list[str | float]] = [
        ["linear program within the limit", found.best[GOAL], found.best[HOLE], "", ""],
        ["linear program without it", unlimited[GOAL], unlimited[HOLE], "", ""],
        ["behavior", behavior[GOAL], behavior[HOLE], "", ""],
    ]
    for name, played in {f"{PLANES}, exact transitions": found.exact, **found.races}.items():
        true, mixture = found.mdp.values(mixture_of(played)), played[-1].mixture
        rows.append(
            [f"{name}, {len(played)} rounds", true[GOAL], true[HOLE], mixture.objective, mixture.constraints[0]]
        )
    names = ("policy", "goal", "hole", "goal, estimated", "hole, estimated")
    note = (
        f"Exact values; estimates are those of the {found.study.episodes:,} logged episodes that chose the policy, and "
        "optimistic: learning at the limit breaks it in truth."
    )
    return Table("True values against the linear program", names, rows, note=note)


def _gap_table(found: Found) -> Table:
    shown = [t for t in (1, 2, 3, 5, 10, 30, 100, 300, 1000) if t <= found.study.rounds]
    all_gaps = {**found.gaps, f"EG {found.study.rates[-1]:g}, the paper's formula": found.papers}
    rows: list[list[str | float]] = [
        [name, *(f"{gap[t - 1]:.2g}" if t <= len(gap) else "" for t in shown)] for name, gap in all_gaps.items()
    ]
    return Table("Duality gap by round", ("learner and rate", *map(str, shown)), rows)


def _certificate_table(found: Found) -> Table:
    rows: list[list[str | float]] = [
        [
            str(one["seed"]),
            one["plain"]["claimed"][HOLE],
            one["plain"]["true"][HOLE],
            one["aimed at"],
            one["careful"]["true"][HOLE],
            one["bound"],
            one["verdict"],
            one["careful"]["true"][GOAL],
        ]
        for one in found.certificates
    ]
    names = ("seed", "plain: claimed", "plain: true", "aimed at", "then: true", "bound", "verdict", "goal")
    note = (
        f"{found.study.certified_episodes:,} episodes each. Plain: learned at the limit and judged on the same log. "
        "Then: learned on half of it with room under the limit, as its own episodes suggest, judged on the other half."
    )
    return Table("Certificates", names, rows, note=note)


def _panels(found: Found) -> Picture:
    figure, (left, middle, lower, right) = panels((3.4, 3.4), height=4.2, rows=2)
    shown = {
        PLANES: COLOURS[1],
        _lowest(found.gaps, "EG"): COLOURS[0],
        f"EG {found.study.rates[-1]:g}": COLOURS[5],
        _lowest(found.gaps, "OGD"): COLOURS[2],
        f"EG {found.study.rates[-1]:g}, LP weights": COLOURS[3],
    }
    ends = []
    for name, colour in shown.items():
        gap = np.maximum(found.gaps[name], FLOOR)
        left.plot(np.arange(1, gap.size + 1), gap, color=colour)
        ends.append((name, float(max(gap[-1], 1e-6)), colour))
    left.plot(np.arange(1, found.papers.size + 1), np.maximum(found.papers, FLOOR), ":", color="0.4")
    ends.append((f"EG {found.study.rates[-1]:g}, paper's gap", float(found.papers[-1]), "0.4"))
    left.set_xscale("log")
    left.set_yscale("log")
    left.set_xlim(1, found.study.rounds)
    left.set_ylim(1e-6, 2)
    left.set_xlabel("round")
    left.set_title("duality gap")
    label_ends(left, ends)
    for axes, cost, wanted in ((middle, GOAL, found.best[GOAL]), (lower, HOLE, found.study.limit)):
        ends = []
        for name in (PLANES, _lowest(found.gaps, "EG"), _lowest(found.gaps, "OGD")):
            played, colour = found.races[name], shown[name]
            x = np.arange(1, len(played) + 1)
            true = true_values(found.mdp, played)[cost]
            axes.plot(x, true, color=colour)
            axes.plot(x, estimated_values(played)[cost], "--", color=colour, linewidth=0.8)
            ends.append((name, float(true[-1]), colour))
        axes.axhline(wanted, color="black", linewidth=0.6, linestyle=":")
        axes.set_xscale("log")
        axes.set_xlim(1, found.study.rounds)
        axes.set_xlabel("round")
        axes.set_title(f"{cost} of the mixture: true (solid), estimated (dashed)")
        label_ends(axes, [*ends, ("optimum" if cost == GOAL else "limit", wanted, "black")])
    middle.set_ylim(found.best[GOAL] - 0.02, found.best[GOAL] + 0.05)
    lower.set_ylim(0, 0.08)
    draw_estimates(right, found.study.shares, found.estimates, found.truth, ("fqe", "dr", "wdr", "pdis"))
    right.set_ylim(0, 3 * found.truth)
    caption = (
        "Top left: duality gap by round; cutting planes reach zero. Top right and bottom left: what the mixtures "
        "are worth, in truth and by the log that chose them; dotted: the exact linear program, and the limit. "
        "Bottom right: a fixed policy valued from growing logs."
    )
    return Picture("panels", caption, figure)


def _certificate_picture(found: Found) -> Picture:
    figure, (plain, careful) = panels((3.1, 3.1), height=2.2)
    order = np.arange(len(found.certificates)) + 1
    for axes, which, title in (
        (plain, "plain", "judged on the log that chose it"),
        (careful, "careful", "with margin and certificate"),
    ):
        true = [one[which]["true"][HOLE] for one in found.certificates]
        axes.plot(order, true, "o", color=COLOURS[1], markersize=3.5)
        axes.axhline(found.study.limit, color="black", linewidth=0.6, linestyle=":")
        axes.set_title(title)
        axes.set_xlabel("log")
        axes.set_xticks(order[:: max(order.size // 6, 1)])
        axes.set_ylim(0, 0.08)
    plain.plot(
        order, [one["plain"]["claimed"][HOLE] for one in found.certificates], "_", color=COLOURS[0], markersize=6
    )
    for one, x in zip(found.certificates, order, strict=True):
        colour = COLOURS[2] if one["verdict"] == "pass" else COLOURS[6]
        careful.plot([x, x], [one["estimate"], one["bound"]], color=colour, linewidth=1.0)
        careful.plot(x, one["bound"], "_", color=colour, markersize=6)
    plain.set_ylabel("hole")
    notes = ((plain, "true", COLOURS[1]), (plain, "claimed", COLOURS[0]), (careful, "true", COLOURS[1]))
    bounds = ((careful, "bound, pass", COLOURS[2]), (careful, "bound, inconclusive", COLOURS[6]))
    heights = {id(plain): 0.97, id(careful): 0.97}
    for axes, words, colour in (*notes, *bounds):
        axes.text(
            0.98, heights[id(axes)], words, color=colour, transform=axes.transAxes, fontsize=7, ha="right", va="top"
        )
        heights[id(axes)] -= 0.09
    caption = (
        f"The same {len(found.certificates)} logs of {found.study.certified_episodes:,} episodes. Left: learned at the "
        "limit; the log that chose the policy says it is kept. Right: learned on half with room under the limit; bars "
        "run from the held-out estimate to its bound."
    )
    return Picture("certificates", caption, figure)


def _map(found: Found) -> Picture:
    mixture = mixture_of(found.exact)
    tables = [member.probabilities(np.arange(frozen_lake.tiles().size)) for member in mixture.members]
    differing = np.flatnonzero(np.ptp(tables, axis=0).any(axis=1)).tolist()
    figure, axes = panels([2.4] * len(mixture.members), height=2.6)
    for member, weight, one in zip(mixture.members, mixture.weights, axes, strict=True):
        draw_map(one, member, f"{weight:.1%} of the episodes", differing)
    return Picture(
        "map",
        "The optimum is a mixture: one of these is drawn per episode, and followed. Marked: where they differ.",
        figure,
    )


def _lowest(gaps: dict[str, FloatArray], kind: str) -> str:
    """Return the rate of a learner that ends with the least gap."""
    own = [name for name in gaps if name.startswith(kind) and "LP" not in name]
    return min(own, key=lambda name: float(gaps[name][-1]))
