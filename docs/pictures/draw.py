"""Draw the pictures of docs/regularisation.md: python docs/pictures/draw.py."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from checkrein import (
    FQE,
    FQI,
    AtLeast,
    AtMost,
    CuttingPlane,
    Disagreement,
    Entropy,
    EverEntered,
    KLDivergence,
    Problem,
    Solution,
    StateActionCost,
    Switching,
    Tabular,
    TabularMDP,
    TabularPolicy,
    TotalVariation,
    solve,
)
from checkrein.policies import members_of
from checkrein.problem import Episodes
from checkrein.reproduction.drawing import COLOURS, drawn, panels, style

STATES, DOSES = ("mild", "severe", "critical"), ("none", "low", "high")
GOING_ON = np.array(
    [
        [[0.70, 0.20, 0.00], [0.80, 0.10, 0.00], [0.82, 0.08, 0.00]],
        [[0.10, 0.50, 0.35], [0.35, 0.45, 0.15], [0.50, 0.40, 0.05]],
        [[0.00, 0.10, 0.60], [0.05, 0.35, 0.45], [0.10, 0.50, 0.30]],
    ]
)  # what is missing to one is the end: cured, or dead
HARM = np.array([[0.0, 0.1, 0.4], [0.3, 0.2, 0.5], [2.0, 1.4, 1.0]])
BEHAVIOR = TabularPolicy([[0.5, 0.4, 0.1], [0.3, 0.6, 0.1], [0.2, 0.6, 0.2]])
WARD = TabularMDP(GOING_ON, {"harm": HARM}, np.array([0.3, 0.6, 0.1]), 0.95)


class Kind(NamedTuple):
    """One kind of constraint: the limits to sweep, and how to state one."""

    title: str
    words: str  # of the horizontal axis
    limits: Sequence[float]
    stated: Callable[[float], AtMost]


KINDS = {
    "kl-divergence": Kind(
        "KL divergence from behavior",
        "divergence, at most",
        np.geomspace(0.01, 6, 25),
        lambda x: AtMost(KLDivergence(BEHAVIOR), x),
    ),
    "entropy": Kind("Entropy", "entropy, at least", np.linspace(0, 9, 25), lambda x: AtLeast(Entropy(), x)),
    "total-variation": Kind(
        "Total variation from behavior",
        "variation, at most",
        np.linspace(0, 4, 25),
        lambda x: AtMost(TotalVariation(BEHAVIOR), x),
    ),
    "disagreement": Kind(
        "Disagreement with a guideline",
        "decisions off the guideline, at most",
        np.linspace(0, 1, 25),
        lambda x: AtMost(Disagreement([0, 1, 1]), x),
    ),
    "switching": Kind("Changes of dose", "changes, at most", np.linspace(0, 2.5, 25), lambda x: AtMost(Switching(), x)),
    "ever-entered": Kind(
        "Ever critical",
        "chance (discounted), at most",
        np.linspace(0.32, 0.42, 25),
        lambda x: AtMost(EverEntered({2}), x),
    ),
    "state-action-cost": Kind(
        "Amount of the drug",
        "doses, at most",
        np.linspace(0, 7, 25),
        lambda x: AtMost(StateActionCost(np.tile([0.0, 1.0, 2.0], (3, 1))), x),
    ),
}


def answered(limit: AtMost) -> Solution:
    """Learn from a log of behavior, within one limit."""
    log = WARD.simulate(BEHAVIOR, episodes=20_000, max_steps=200, rng=np.random.default_rng(0))
    problem = Problem(log, objective="harm", constraints=[limit], discount=WARD.discount)
    return solve(
        problem,
        best_response=FQI(Tabular()),
        evaluator=FQE(Tabular()),
        learner=CuttingPlane(100.0),
        tolerance=1e-4,
        max_rounds=100,
    )


def doses(solution: Solution, limit: AtMost) -> np.ndarray:
    """(S, A) how often each dose is given in each state, over all that the policy comes to."""
    log = WARD.simulate(BEHAVIOR, episodes=20_000, max_steps=200, rng=np.random.default_rng(0))
    problem = Problem(log, objective="harm", constraints=[limit], discount=WARD.discount)
    rows, own = Episodes.of(problem), problem.dataset.memory
    table = np.zeros((len(STATES), len(DOSES)))
    for member, weight in members_of(solution.policy):
        chosen = member.probabilities(rows.states)
        ratio = (
            chosen[np.arange(len(rows.actions)), rows.actions]
            / BEHAVIOR.table[rows.states if own is None else own.own(rows.states), rows.actions]
        )
        before = rows.products(ratio) / np.where(ratio > 0, ratio, 1.0) * rows.factors * (ratio > 0)
        states = rows.states if own is None else own.own(rows.states)
        np.add.at(table, states, weight * before[:, None] * chosen)
    return table / table.sum(axis=1, keepdims=True)


def draw(kind: Kind) -> bytes:
    """Return the picture: harm against the limit, and what is given in each state at three limits."""
    found = [answered(kind.stated(float(limit))) for limit in kind.limits]
    met = [(x, s.values["harm"], s) for x, s in zip(kind.limits, found, strict=True) if s.status == "converged"]
    with style():
        figure, (curve, *bars) = panels([2.4, 1.2, 1.2, 1.2], height=2.0)
        curve.plot([x for x, _, _ in met], [y for _, y, _ in met], color=COLOURS[0])
        curve.axhline(WARD.values(BEHAVIOR)["harm"], color=COLOURS[6], lw=0.8, ls="--")
        curve.text(met[-1][0], WARD.values(BEHAVIOR)["harm"], "behavior", fontsize=7, ha="right", va="bottom")
        curve.set_title(kind.title)
        curve.set_xlabel(kind.words)
        curve.set_ylabel("harm")
        for axes, (limit, harm, solution) in zip(bars, [met[0], met[len(met) // 2], met[-1]], strict=True):
            curve.plot([limit], [harm], "o", color=COLOURS[1], ms=4)
            below = np.zeros(len(STATES))
            for dose, column in enumerate(doses(solution, kind.stated(float(limit))).T):
                axes.bar(STATES, column, bottom=below, color=COLOURS[(5, 0, 1)[dose]], width=0.7, label=DOSES[dose])
                below += column
            axes.set_title(f"limit {limit:.2g}")
            axes.set_yticks([])
            axes.set_ylim(0, 1)
            axes.tick_params(axis="x", labelrotation=45)
        bars[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return drawn(figure, "svg")


if __name__ == "__main__":
    for name, kind in KINDS.items():
        Path(__file__).with_name(f"{name}.svg").write_bytes(draw(kind))
