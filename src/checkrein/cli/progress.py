"""Where the game stands, and what is under way."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.text import Text

if TYPE_CHECKING:
    from checkrein import Problem, Round
    from checkrein.report.summary import Cost


@dataclass
class Progress:
    """The last round's line and, on a terminal, what is under way and for how long: rounds may be slow."""

    live: bool
    line: str = ""
    doing: str = ""
    since: float = field(default_factory=time.monotonic)

    def tell(self, doing: str) -> None:
        """Go on to another step."""
        self.doing, self.since = doing, time.monotonic()

    def __rich__(self) -> Text:
        waiting = f"{self.doing}: {time.monotonic() - self.since:.0f} s" if self.live and self.doing else ""
        return Text("\n".join(filter(None, [self.line, waiting])), overflow="fold", no_wrap=False)


def plain_costs(problem: "Problem") -> "list[Cost]":
    """Return the problem's costs shown as they are: discounted sums, in the user's signs."""
    from checkrein.report.summary import Cost

    shown = [Cost(problem.objective or "", "minimise", "sum", 1.0)]
    return shown + [Cost(c.name, c.words, "sum", c.sign, c.limit) for c in problem.constraints]


def progress_line(costs: "Sequence[Cost]", played: "Round") -> str:
    """Return round, gap, objective, each constraint against its limit, multipliers."""
    parts = [f"round {played.index}", f"gap {played.gap:.2e}"]
    parts.append(f"{costs[0].name} {costs[0].factor * played.mixture.objective:.5f}")
    for cost, value, multiplier in zip(costs[1:], played.mixture.constraints, played.multipliers, strict=True):
        sign = "<=" if cost.goal.startswith("at most") else ">="
        price = multiplier / abs(cost.factor)
        parts.append(f"{cost.name} {cost.factor * value + 0.0:.5g} {sign} {cost.limit:.5g} (x {price:.3g})")
    return "  ".join(parts)
