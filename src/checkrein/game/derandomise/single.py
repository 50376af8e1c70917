"""Derandomised: one policy in place of a mixture, and what that costs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from checkrein.base.brief import numbers
from checkrein.game.solution import Solution, limits_in_words
from checkrein.problem import Question, Values
from checkrein.protocols import Policy

if TYPE_CHECKING:
    from checkrein.certification import Certificate

MET = 1e-9  # a limit exceeded by no more than this is met
BEST_MEMBER, DETERMINISTIC, AVERAGED_WEIGHTS = "best member", "deterministic", "averaged weights"  # the kinds
SUBJECT = {DETERMINISTIC: "the deterministic policy", AVERAGED_WEIGHTS: "the greedy policy of the averaged weights"}


@dataclass(frozen=True, eq=False, repr=False)
class Derandomised:
    """A single policy in place of a mixture, by the evaluator's own estimates.

    kind: "best member", "deterministic" or "averaged weights"
    values: its expected sum of each cost, by name, in the user's signs
    price: how much more of the objective it incurs than the mixture does; negative where it breaks a limit to save it
    worst_violation: by how much the limit that it meets worst is exceeded; 0: every limit is met
    index: of the best member, the round that found it, from 1
    certificate: from held-out episodes, which its estimate is not; None where there are none
    """

    policy: Policy
    kind: str
    values: dict[str, float]
    price: float
    meets_limits: bool
    worst_violation: float
    explanation: str
    index: int | None = None
    certificate: "Certificate | None" = None

    def __repr__(self) -> str:
        met = "meets" if self.meets_limits else "breaks"
        return f"Derandomised({self.kind}, {met} the limits; {numbers(self.values)}; {self.policy})"


def worst_violation(problem: Question, values: Values) -> float:
    """Return by how much the limit that is met worst is exceeded; negative where all are met with room."""
    return float((values.constraints - problem.limits).max(initial=-np.inf))


def best_place(problem: Question, found: Sequence[Values], tolerance: float) -> int:
    """Return the place of the least objective among those that meet the limits; where none does, of the closest."""
    worst = np.array([worst_violation(problem, values) for values in found])
    objectives = np.array([values.objective for values in found])
    meets = worst <= tolerance
    if not meets.any():
        return int(np.lexsort((objectives, worst))[0])
    order = np.lexsort((worst, objectives))
    return int(order[meets[order]][0])


def derandomised(
    problem: Question,
    solution: Solution,
    policy: Policy,
    values: Values,
    *,
    kind: str,
    tolerance: float = MET,
    index: int | None = None,
    note: str = "",
) -> Derandomised:
    """Hold a policy's values against the limits and against the mixture's; `note` is added to what is said."""
    worst = worst_violation(problem, values)
    objective = problem.objective_name
    price = 0.0 if objective is None else values.objective - solution.values[objective]
    meets = worst <= tolerance
    if index is not None:
        stands = f"By estimate the policy of round {index} alone meets every limit"
        if not meets:
            stands = f"By estimate no single policy found meets every limit; that of round {index} comes closest"
    else:
        stands = f"By estimate {SUBJECT[kind]} {'meets every limit' if meets else 'breaks a limit'}"
    return Derandomised(
        policy=policy,
        kind=kind,
        values=problem.named(values),
        price=price,
        meets_limits=meets,
        worst_violation=max(worst, 0.0),
        explanation=stands + _against(problem, solution, values, price) + note,
        index=index,
    )


def _against(problem: Question, solution: Solution, values: Values, price: float) -> str:
    text = f": {limits_in_words(problem, values)}."
    if problem.objective_name is None:
        return text
    more = "more" if price >= 0 else "less"
    mixture = solution.values[problem.objective_name]
    its = f"Its {problem.objective_name} is {values.objective:.6g}"
    return f"{text} {its}, {abs(price):.6g} {more} than the mixture's {mixture:.6g}."
