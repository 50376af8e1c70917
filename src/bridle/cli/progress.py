"""One line that says where the game stands."""

from collections.abc import Sequence

from bridle.game import Round
from bridle.problem import Problem
from bridle.report.summary import Cost


def plain_costs(problem: Problem) -> list[Cost]:
    """Return the problem's costs shown as they are: discounted sums, in the user's signs."""
    shown = [Cost(problem.objective or "", "minimise", "sum", 1.0)]
    return shown + [Cost(c.name, c.words, "sum", c.sign, c.limit) for c in problem.constraints]


def progress_line(costs: Sequence[Cost], played: Round) -> str:
    """Return round, gap, objective, each constraint against its limit, multipliers."""
    parts = [f"round {played.index}", f"gap {played.gap:.2e}"]
    parts.append(f"{costs[0].name} {costs[0].factor * played.mixture.objective:.5f}")
    for cost, value, multiplier in zip(costs[1:], played.mixture.constraints, played.multipliers, strict=True):
        sign = "<=" if cost.goal.startswith("at most") else ">="
        price = multiplier / abs(cost.factor)
        parts.append(f"{cost.name} {cost.factor * value + 0.0:.5g} {sign} {cost.limit:.5g} (x {price:.3g})")
    return "  ".join(parts)
