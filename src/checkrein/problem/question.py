"""Question: what is minimised under which limits, whatever the log."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from checkrein.base.arrays import FloatArray, frozen
from checkrein.base.errors import ProblemError
from checkrein.problem.constraints import AtMost, require_distinct
from checkrein.problem.costs import name_of
from checkrein.protocols import Cost


class Values(NamedTuple):
    """The objective and the constraints of a policy, signed so that less is better and limits are upper limits."""

    objective: float
    constraints: FloatArray  # (m,)

    @property
    def row(self) -> FloatArray:
        """(1 + m,) the objective first."""
        return np.append(self.objective, self.constraints)


@dataclass(frozen=True, eq=False)
class Question:
    """Minimise `objective` subject to `constraints` (OPT of the paper).

    Inside, the objective is cost 0 and constraint i is cost i + 1, each signed so that less is better.
    """

    objective: str | Cost | None = field(kw_only=True)  # None: only the constraints matter
    constraints: Sequence[AtMost] = field(kw_only=True)

    def __post_init__(self) -> None:
        if isinstance(self.constraints, AtMost):
            raise ProblemError("constraints is a single constraint: give a list of them")
        object.__setattr__(self, "constraints", tuple(self.constraints))
        for constraint in self.constraints:
            if not isinstance(constraint, AtMost):
                raise ProblemError(
                    f"{constraint!r} is not a constraint: use AtMost(cost, limit) or AtLeast(cost, limit)"
                )
        require_distinct([c.name for c in self.constraints])

    @property
    def n_constraints(self) -> int:
        """The paper's m."""
        return len(self.constraints)

    @cached_property
    def limits(self) -> FloatArray:
        """(m,) signed like the costs."""
        return frozen(np.array([c.sign * c.limit for c in self.constraints], dtype=np.float64))

    @cached_property
    def value_names(self) -> tuple[str, ...]:
        """What each value is called, the objective first."""
        return (self.objective_name or "the objective", *(c.name for c in self.constraints))

    @property
    def objective_name(self) -> str | None:
        """What the objective is called; None where there is none."""
        return None if self.objective is None else name_of(self.objective)

    def named(self, values: Values) -> dict[str, float]:
        """Return values in the user's own signs, by the name of each cost."""
        names = [c.cost if isinstance(c.cost, str) else c.name for c in self.constraints]
        signed = {n: float(c.sign * v) for n, c, v in zip(names, self.constraints, values.constraints, strict=True)}
        return ({} if self.objective_name is None else {self.objective_name: float(values.objective)}) | signed
