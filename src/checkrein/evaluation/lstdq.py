"""Least-squares temporal differences for Q (Lagoudakis & Parr 2003; Algorithm 7 of the paper), all costs at once."""

from dataclasses import dataclass, field

import numpy as np

from checkrein.bellman.targets import dynamics_of, evaluate_fixed_point, evaluate_members, with_known_steps
from checkrein.policies import Support
from checkrein.problem import Problem, Values
from checkrein.protocols import FunctionClass, Policy, QFunction


@dataclass(frozen=True)
class LSTDQ:
    """Solve for the fixed point of fitted evaluation, also where the iteration itself would not reach it."""

    functions: FunctionClass
    support: Support = field(default_factory=Support)

    @property
    def refitted(self) -> FunctionClass:
        """The class in which it solves for its fixed point."""
        return self.functions

    def __call__(self, problem: Problem, policy: Policy, *, rng: np.random.Generator) -> Values:
        """Estimate what the policy would incur from the logged initial states."""
        evidence = self.support.of(problem)
        return evaluate_members(problem, policy, evidence, lambda member: self.q(problem, member, rng=rng))

    def q(self, problem: Problem, policy: Policy, *, rng: np.random.Generator | None = None) -> QFunction:
        """Solve for the Q-function of one policy (not of a mixture: that has one per member)."""
        del rng  # closed forms leave nothing to chance
        dynamics = dynamics_of(problem, self.functions, "LSTDQ")
        evidence = self.support.of(problem)
        fitted = evaluate_fixed_point(problem, policy, dynamics, evidence, require_contraction=problem.discount == 1)
        return with_known_steps(problem, policy, fitted)
