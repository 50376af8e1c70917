"""Goal: what is wanted of one cost, as facts: in which direction, up to which limit, in which unit."""

from dataclasses import dataclass
from enum import StrEnum

from checkrein.problem.constraints import AtLeast, AtMost


class Direction(StrEnum):
    """Which values of a cost are better, or allowed."""

    MINIMISE = "minimise"
    MAXIMISE = "maximise"
    AT_MOST = "at most"
    AT_LEAST = "at least"

    @property
    def sign(self) -> float:
        """From the values inside, of which less is better, to the user's own; and back."""
        return -1.0 if self in (Direction.MAXIMISE, Direction.AT_LEAST) else 1.0


class Unit(StrEnum):
    """What a value is of: the costs of an episode, discounted, or their average over its steps."""

    SUM = "sum"
    PER_STEP = "per step"


@dataclass(frozen=True)
class Goal:
    """What is wanted of one cost: the objective's, or a constraint's.

    name: as the user calls it, which for what is maximised is not the name of the cost that is minimised inside
    limit: of a constraint, in the unit
    limit_source: the limit as the user wrote it, where that was no number: "75% of behavior"
    """

    name: str
    direction: Direction
    unit: Unit = Unit.SUM
    limit: float | None = None
    limit_source: str | None = None

    @classmethod
    def of(cls, constraint: AtMost, unit: Unit = Unit.SUM, limit_source: str | None = None) -> "Goal":
        """Return what a constraint wants."""
        direction = Direction.AT_LEAST if isinstance(constraint, AtLeast) else Direction.AT_MOST
        return cls(constraint.name, direction, unit, constraint.limit, limit_source)
