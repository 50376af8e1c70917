"""Where the game stands, and what is under way."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.text import Text

if TYPE_CHECKING:
    from checkrein import Round
    from checkrein.problem.goals import Goal
    from checkrein.selection.fixed_sequence import Candidate


@dataclass
class Progress:
    """The last round's line and, on a terminal, what is under way and for how long: rounds may be slow."""

    live: bool
    line: str = ""
    doing: str = ""
    since: float = field(default_factory=time.monotonic)
    began: float = field(default_factory=time.monotonic)

    def tell(self, doing: str) -> None:
        """Go on to another step."""
        self.doing, self.since = doing, time.monotonic()

    def __rich__(self) -> Text:
        now = time.monotonic()
        waiting = f"{self.doing}: {duration(now - self.since)}, {duration(now - self.began)} in all"
        waiting = waiting if self.live and self.doing else ""
        return Text("\n".join(filter(None, [self.line, waiting])), overflow="fold", no_wrap=False)


def duration(seconds: float) -> str:
    """Return a time as people say it: 12 s, 3 min 5 s, 2 h 7 min."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


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
