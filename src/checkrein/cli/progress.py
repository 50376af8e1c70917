"""Where the game stands, and what is under way."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.text import Text

if TYPE_CHECKING:
    from checkrein import Problem, Round
    from checkrein.problem.goals import Goal
    from checkrein.selection.fixed_sequence import Candidate


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


def plain_goals(problem: "Problem") -> "list[Goal]":
    """Return the problem's goals as they are: of discounted sums, the objective minimised."""
    from checkrein.problem.goals import Direction, Goal

    return [Goal(problem.objective_name or "", Direction.MINIMISE), *(Goal.of(c) for c in problem.constraints)]


def progress_line(goals: "Sequence[Goal]", played: "Round") -> str:
    """Return round, gap, objective, each constraint against its limit, multipliers."""
    from checkrein.problem.goals import Direction

    parts = [f"round {played.index}", f"gap {played.gap:.2e}"]
    parts.append(f"{goals[0].name} {goals[0].direction.sign * played.mixture.objective:.5f}")
    for goal, value, price in zip(goals[1:], played.mixture.constraints, played.multipliers, strict=True):
        sign = ">=" if goal.direction is Direction.AT_LEAST else "<="
        parts.append(f"{goal.name} {goal.direction.sign * value + 0.0:.5g} {sign} {goal.limit:.5g} (x {price:.3g})")
    return "  ".join(parts)


def candidate_line(number: int, candidate: "Candidate") -> str:
    """Return how far a candidate goes, and whether it keeps the limits."""
    away = f"{100 * candidate.distance:.3g}% of the way from behavior"
    aim = f"{away}, {candidate.margin:g} standard errors under the limits"
    return f"candidate {number}: {aim}: {candidate.certificate.verdict}"
