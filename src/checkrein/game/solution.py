"""Solution: what was learned, how far it is from the best, and in a sentence what to do next."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.base.brief import numbers
from checkrein.game.loop import Round
from checkrein.policies import MixturePolicy
from checkrein.problem import Question, Values


class Status(StrEnum):
    """How a run ended; `Solution.explanation` says it with numbers and with what to do next."""

    CONVERGED = "converged"
    ROUND_LIMIT = "round limit"
    INFEASIBLE = "infeasible"
    MULTIPLIER_BOUND = "multiplier bound active"
    NOT_FINITE = "not finite"


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """A policy with the evidence for it, on the data that it was learned from.

    values: the expected sum of each cost, by name, as the evaluator estimates it for the policy
    multipliers: the price of each constraint, by name, at the best lower bound
    price_ranges: the least and the largest that each price may be, by name: outside, no multiplier is optimal
    price_notes: by name, what to know of a price whose range is wide: that it is not unique, or not known so well
    weighting: how the members were weighed, "uniform" or "linear program"
    lower_bound: on the objective of any policy that meets the limits, by the same estimates
    """

    policy: MixturePolicy
    status: Status
    explanation: str
    gap: float
    values: dict[str, float]
    multipliers: dict[str, float]
    weighting: str
    lower_bound: float
    rounds: tuple[Round, ...]
    price_ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    price_notes: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        words = f"Solution({self.status.value}, gap {self.gap:.3g} after {len(self.rounds)} rounds"
        return f"{words}; {numbers(self.values)}; {self.policy})"


def mixture_of(rounds: Sequence[Round]) -> MixturePolicy:
    """Return the mixture that the last round stands for, without members of no weight."""
    weights = rounds[-1].member_weights
    kept = np.flatnonzero(weights).tolist()
    return MixturePolicy(tuple(rounds[i].policy for i in kept), weights[kept])


def explain(
    status: Status, problem: Question, final: Round, last: Round, *, tolerance: float, trouble: str, closest: bool
) -> str:
    """Say how the run ended and what to do next; `final` is the round that the policy is of, `last` the last.

    closest: whether `final` comes as close to limits that cannot be met as any policy does
    """
    against = limits_in_words(problem, final.mixture)
    gap = f"the duality gap is {last.gap:.3g}"
    match status:
        case Status.CONVERGED:
            return f"Converged in {last.index} rounds: {gap}, at most the tolerance {tolerance:.3g}; {against}."
        case Status.ROUND_LIMIT:
            closed = last.gap <= tolerance
            why = "the limits are not met yet" if closed else f"that is above the tolerance {tolerance:.3g}"
            return f"Stopped at the limit of {last.index} rounds: {gap}, and {why}; {against}. Raise max_rounds" + (
                "." if closed else " or the tolerance; CuttingPlane needs the fewest rounds."
            )
        case Status.INFEASIBLE:
            return (
                f"Infeasible: by these estimates no policy over the supported actions meets all limits together. "
                f"{'The closest that any comes' if closest else 'One comes to'}: {against}. "
                "Relax those limits, or ask for less evidence per action "
                "(min_count, min_probability)."
            )
        case Status.MULTIPLIER_BOUND:
            return (
                f"The bound on the multipliers is active: {against}, though a policy that meets the limits exists. "
                f"The multipliers came to {last.multipliers.sum():.3g}: raise the learner's bound above that."
            )
        case Status.NOT_FINITE:
            return (
                f"Broke off: {trouble}. The function class diverges on this log: raise its regularisation, "
                "lower the discount, or restrict the support."
            )


def limits_in_words(problem: Question, values: Values) -> str:
    """Return a policy's constraints beside their limits."""
    pairs = zip(problem.constraints, values.constraints, strict=True)
    words = [f"{c.name} is {c.sign * value + 0.0:.6g}, {c.words} {c.limit:.6g} allowed" for c, value in pairs]
    return "; ".join(words) if words else "there are no constraints"


def named_multipliers(problem: Question, price: FloatArray) -> dict[str, float]:
    """Return the price of each constraint by its name."""
    return {c.name: float(p) for c, p in zip(problem.constraints, price, strict=True)}
