"""Fitted Q evaluation (Alg. 2 of the paper), for the objective and all constraints in one pass."""

from dataclasses import dataclass, field

import numpy as np

from bridle.arrays import require_counts
from bridle.bellman import (
    design_of,
    dynamics_of,
    evaluate_fixed_point,
    evaluate_members,
    evaluation_targets,
    fitted_iteration,
    is_exact,
)
from bridle.errors import ArgumentError
from bridle.problem import Problem, Values
from bridle.protocols import FunctionClass, Policy, QFunction
from bridle.support import Support


@dataclass(frozen=True)
class FQE:
    """Regress c + discount * Q(x', policy(x')) again and again.

    iterations: how often; None runs to the fixed point, which classes with closed forms solve for.
    support: an action outside it is valued at the worst the costs allow; Support(0, 0) trusts the class instead.
    """

    functions: FunctionClass
    iterations: int | None = None
    support: Support = field(default_factory=Support)

    def __post_init__(self) -> None:
        if self.iterations is not None:
            require_counts(iterations=self.iterations)

    def __call__(self, problem: Problem, policy: Policy, *, rng: np.random.Generator) -> Values:
        """Estimate what the policy would incur from the logged initial states."""
        evidence = self.support.of(problem)
        return evaluate_members(problem, policy, evidence, lambda member: self.q(problem, member, rng=rng))

    def q(self, problem: Problem, policy: Policy, *, rng: np.random.Generator) -> QFunction:
        """Fit the Q-function of one policy (not of a mixture: that has one per member), all costs at once."""
        evidence = self.support.of(problem)
        design = design_of(problem, self.functions)
        if self.iterations is not None:
            _, targets = evaluation_targets(problem, policy, evidence)
            return fitted_iteration(design, targets, iterations=self.iterations, rng=rng)
        if not is_exact(design):
            raise ArgumentError(f"{type(self.functions).__name__} has no closed form: pass FQE(..., iterations=)")
        dynamics = dynamics_of(problem, self.functions, "FQE")
        return evaluate_fixed_point(problem, policy, dynamics, evidence, require_contraction=True)


def nuisance(functions: FunctionClass) -> FQE:
    """Return what fits a Q that is corrected anyway: it is better off without worst cases."""
    return FQE(functions, support=Support(0, 0))
