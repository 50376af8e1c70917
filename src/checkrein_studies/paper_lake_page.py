"""What the study of the paper's FrozenLake shows of what it found: claims, tables, pictures."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from checkrein import Dataset, Round
from checkrein.base.arrays import FloatArray
from checkrein.reproduction import COLOURS, Claim, Findings, Picture, Table, label_ends, panels
from checkrein_studies.lake_panels import (
    GOAL,
    HOLE,
    Estimated,
    best_of,
    draw_estimates,
    draw_map,
    estimated_values,
    estimator_picture,
    estimator_table,
    true_values,
    walk,
)

if TYPE_CHECKING:
    from checkrein_studies.paper_lake import FrozenLakeOfThePaper

BURN_IN = 3  # rounds in which the first multipliers still count for most
PUBLISHED = {1: 1.76, 2: 0.44, 3: 0.585, 6: 0.294, 11: 0.158, 21: 0.083, 41: 0.042, 101: 0.016, 150: 0.010}
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Found(Estimated):
    """What came out, before it is judged and drawn."""

    study: "FrozenLakeOfThePaper"
    log: Dataset
    tables: list[Round]
    papers: FloatArray  # (t,) the gap of `tables` by the paper's formula
    network: list[Round]
    others: dict[str, dict[str, float]]  # true values of the behavior and the online policy
    checkpoints: list[float]

    @cached_property
    def optimum(self) -> dict[str, float]:
        """Exact."""
        return self.mdp.optimum(objective=GOAL).values

    @cached_property
    def gaps(self) -> dict[str, FloatArray]:
        """By round."""
        ours = {"ours": self.tables, "ours, network": self.network}
        return {"the paper's": self.papers} | {
            name: np.array([one.gap for one in played]) for name, played in ours.items()
        }

    @cached_property
    def true(self) -> dict[str, dict[str, FloatArray]]:
        """Of the mixtures, by class, cost and round."""
        return {"tabular": true_values(self.mdp, self.tables), "network": true_values(self.mdp, self.network)}

    @cached_property
    def single(self) -> dict[str, dict[str, FloatArray]]:
        """Of the de-randomised policies, by class, cost and round."""
        played = {"tabular": self.tables, "network": self.network}
        return {name: best_of(self.mdp, rounds, self.study.limit) for name, rounds in played.items()}


def findings(found: Found) -> Findings:
    """Judge, tabulate and draw."""
    study = found.study
    numbers = {
        "optimum": found.optimum,
        "transitions": len(found.log),
        "distinct transitions": len(found.log.compressed()),
        "gaps": found.gaps,
        "true": found.true,
        "estimated": {"tabular": estimated_values(found.tables), "network": estimated_values(found.network)},
        "single": found.single,
        "multipliers": {
            "tabular": [one.multipliers for one in found.tables],
            "network": [one.multipliers for one in found.network],
        },
        "others": found.others,
        "checkpoints of the DQN": found.checkpoints,
        "estimators": {"truth": found.truth, "estimates": found.estimates, "errors": found.errors},
    }
    return Findings(
        title="The paper's FrozenLake",
        summary=(
            f"Deterministic FrozenLake 8x8, discount {study.discount:g}, {study.episodes:,} logged episodes of at "
            f"most {study.max_steps} steps, actions uniform with probability {study.chance:g}, else those of the "
            f"{'DQN' if study.behavior == 'dqn' else 'shortest path'}. FQI, FQE and exponentiated gradient "
            f"(B = {study.bound:g}, rate {study.rate:g}), hole at most {study.limit:g}. The best route takes 14 steps "
            f"and falls into no hole: goal {found.optimum[GOAL]:.5f}, so the limit never binds."
        ),
        claims=_claims(found),
        numbers=numbers,
        tables=[
            _side_by_side(found),
            _values_table(found),
            estimator_table(study.shares, found.estimates, found.truth),
        ],
        pictures=[
            _panels(found),
            estimator_picture(study.shares, found.estimates, found.truth, study.trials),
            _map(found),
        ],
        differences=_differences(found),
    )


def _claims(found: Found) -> list[Claim]:
    claims = []
    for name, gap in found.gaps.items():
        over = gap - (1.75 / np.arange(1, gap.size + 1) + 0.02)
        claims.append(Claim.at_most(f"gap ({name}) less 1.75 / t + 0.02, at its largest", float(over.max()), 0.0))
        rise = np.diff(gap[BURN_IN - 1 :]).max(initial=0.0)
        most = 1e-3 if "network" in name else ROUNDING
        claims.append(Claim.at_most(f"largest rise of the gap ({name}) after round {BURN_IN}", float(rise), most))
    for name, values in found.true.items():
        worst = max(float(values[HOLE].max()), float(found.single[name][HOLE].max()))
        what = f"true hole of the mixture and of the single policy, any round ({name})"
        claims.append(Claim.at_most(what, worst, found.study.limit))
        apart = abs(float(values[GOAL][-1]) - found.optimum[GOAL])
        claims.append(Claim.at_most(f"true goal at round {len(values[GOAL])} ({name}), from the optimum", apart, 0.005))
    for other in ("dr", "wdr"):
        what = f"error of FQE at 100 % of the log, above that of {other.upper()}"
        claims.append(Claim.at_most(what, float(found.errors["fqe"][-1] - found.errors[other][-1]), ROUNDING))
    return claims


def _side_by_side(found: Found) -> Table:
    rows: list[list[str | float]] = [
        [
            f"gap, round {t}",
            f"{published:g}",
            *(
                f"{found.gaps[which][t - 1]:.2g}" if t <= found.gaps[which].size else ""
                for which in ("the paper's", "ours")
            ),
        ]
        for t, published in PUBLISHED.items()
    ]
    behavior, online = found.others["behavior"], found.others["online"]
    last = {cost: f"{found.true['tabular'][cost][-1]:.4f}" for cost in (GOAL, HOLE)}
    rows += [
        ["behavior: goal", "about -1e-4", f"{behavior[GOAL]:.2g}", ""],
        ["behavior: hole", "about 0.152", f"{behavior[HOLE]:.3f}", ""],
        ["mixture, last round: goal", "near the optimum, -0.2542", last[GOAL], ""],
        ["mixture, last round: hole", "within the limit in every round", last[HOLE], ""],
        ["online policy: goal", "the optimum", f"{online[GOAL]:.4f}", ""],
        ["error of FQE at 100 %", "as DR and WDR", f"{found.errors['fqe'][-1]:.2g}", ""],
    ]
    note = "The paper's numbers are read off its figures. Differences are explained below."
    return Table("The paper beside ours", ("", "the paper", "ours", "with our lower bound"), rows, note=note)


def _values_table(found: Found) -> Table:
    rows: list[list[str | float]] = []
    for name, played in (("tabular", found.tables), ("network", found.network)):
        said = estimated_values(played)
        values = [float(v[-1]) for v in (found.true[name][GOAL], found.true[name][HOLE], said[GOAL], said[HOLE])]
        rows.append([f"mixture, {name}, {len(played)} rounds", *values])
        each_value = [float(found.single[name][key][-1]) for key in (GOAL, HOLE, "goal, estimated", "hole, estimated")]
        rows.append([f"single policy, {name}", *each_value])
    rows += [[name, values[GOAL], values[HOLE], "", ""] for name, values in found.others.items()]
    return Table("Values", ("policy", "goal", "hole", "goal, estimated", "hole, estimated"), rows)


def _panels(found: Found) -> Picture:
    figure, (left, upper, right, lower) = panels((3.4, 3.4), height=4.2, rows=2)
    t = np.arange(1, found.study.rounds + 1)
    ends = []
    for name, colour, dash in (
        ("the paper's", COLOURS[0], "-"),
        ("ours", COLOURS[1], "-"),
        ("ours, network", COLOURS[2], "--"),
    ):
        gap = found.gaps[name]
        left.plot(t[: gap.size], gap, dash, color=colour, marker="o" if gap.size < 20 else "", markersize=2)
        ends.append((name + (" formula" if name == "the paper's" else ""), float(gap[-1]), colour))
    left.plot(t, 1.75 / t + 0.02, ":", color="0.4")
    left.axhline(0, color="black", linewidth=0.6, linestyle=":")
    left.set_xscale("log")
    left.set_xlim(1, found.study.rounds)
    left.set_ylim(-0.06, 1.8)
    left.set_xlabel("round")
    left.set_title("duality gap")
    label_ends(left, [*ends, ("1.75 / t + 0.02", float(1.75 / t[-1] + 0.02), "0.4"), ("optimal gap", 0.0, "black")])
    for axes, cost in ((upper, GOAL), (lower, HOLE)):
        ends = []
        for name, played, colour in (("tabular", found.tables, COLOURS[1]), ("network", found.network, COLOURS[2])):
            x = t[: len(played)]
            axes.plot(x, found.true[name][cost], color=colour, linewidth=2.2 if name == "tabular" else 1.2)
            axes.plot(
                x, estimated_values(played)[cost], "x", color=colour, markersize=3, markevery=max(x.size // 12, 1)
            )
            axes.plot(x, found.single[name][cost], ":", color="white" if name == "tabular" else colour, linewidth=0.9)
            ends.append((f"mixture, {name}", float(found.true[name][cost][-1]), colour))
        for name, colour, dash in (("behavior", COLOURS[4], "-"), ("online", COLOURS[0], "--")):
            axes.axhline(found.others[name][cost], color=colour, linestyle=dash, linewidth=0.9)
            ends.append((name, found.others[name][cost], colour))
        if cost == HOLE:
            axes.axhline(found.study.limit, color="black", linewidth=0.6, linestyle=":")
            ends.append(("limit", found.study.limit, "black"))
        axes.set_xlim(1, found.study.rounds)
        axes.set_xlabel("round")
        axes.set_title("goal (objective)" if cost == GOAL else "hole (constraint)")
        low = min(found.optimum[GOAL] * 1.15, 0) if cost == GOAL else -0.01
        axes.set_ylim(low, 0.02 if cost == GOAL else 0.2)
        label_ends(axes, ends)
    draw_estimates(right, found.study.shares, found.estimates, found.truth)
    caption = (
        "Top left: duality gap of the uniform mixture, by the paper's lower bound and by ours; the best is 0. "
        "Right: true values of the mixture (solid; dotted within: the de-randomised policy), estimated "
        "(crosses), of behavior and of the online policy. Bottom left: the hole of a fixed policy, mean and one "
        f"standard deviation over {found.study.trials} logs."
    )
    return Picture("panels", caption, figure)


def _map(found: Found) -> Picture:
    figure, (learned, valued) = panels((2.6, 2.6), height=2.8)
    draw_map(learned, found.tables[-1].policy, "returned policy", walk(found.tables[-1].policy))
    draw_map(valued, found.fixed, "the policy that is valued", walk(found.fixed))
    return Picture(
        "map",
        "Left: the policy of the last round. Right: the policy that estimators value. Marked: their routes.",
        figure,
    )


def _differences(found: Found) -> list[str]:
    return [
        "Gap: the paper's first value, 1.76, is what a first policy that does not reach the goal would give "
        "(1.5 + 0.254). A table's first policy reaches it, and the paper's formula is then "
        f"{0.5 * found.study.bound * found.study.limit:g} / t: the burn-in of the first multipliers. By our "
        "lower bound, the best over all multipliers visited, no burn-in is left after three rounds.",
        "Multipliers: the first are 15 and 15 as in the paper, but they rise with the violation: the printed sign "
        "would lower the multiplier of a violated constraint.",
        "Cut-off episodes: after 100 steps an episode is cut off, not ended; the released code stored an end.",
        "The network: 64 rectified units on a one-hot state with an output per action (the paper: 64 tanh units on "
        f"one-hot state and action), {found.study.gradient_steps} Adam steps in each of {found.study.iterations} "
        "iterations of FQI; FQE solves for the last layer in closed form. "
        f"{found.study.network_rounds} rounds: by then the multipliers are zero and nothing moves.",
        "The DQN keeps each distinct transition once, and its checkpoint is chosen by playing; the paper's main "
        "text has a shortest-path policy instead (--set behavior=shortest-path).",
        "Estimators: each trial has a log of its own, of which it takes whole episodes, so that there is spread at "
        "100 %, too; the paper draws transitions of one log. With a table, FQE, DR, WDR and the model are exact "
        "as soon as the fixed policy's transitions are logged, for the lake is deterministic; importance sampling "
        "finds no episode that follows it to the end.",
    ]
