"""Fitted Q iteration (Ernst et al. 2005; Alg. 4 of the paper)."""

from dataclasses import dataclass, field

import numpy as np

from bridle.arrays import FloatArray, require_counts
from bridle.bellman import design_of, dynamics_of, fitted_iteration, greedy_targets, is_exact, policy_iteration, settle
from bridle.errors import ArgumentError
from bridle.policies import GreedyPolicy
from bridle.problem import Problem
from bridle.protocols import FunctionClass, Policy
from bridle.support import Support


@dataclass(frozen=True)
class FQI:
    """Regress c + discount * min_a Q(x', a) again and again, then act greedily.

    iterations: how often; None runs to the fixed point, which classes with closed forms reach by policy iteration.
    support: which actions the minimum, and the policy, may choose.
    """

    functions: FunctionClass
    iterations: int | None = None
    support: Support = field(default_factory=Support)

    def __post_init__(self) -> None:
        if self.iterations is not None:
            require_counts(iterations=self.iterations)

    def __call__(
        self, problem: Problem, multipliers: FloatArray, *, rng: np.random.Generator, start: Policy | None = None
    ) -> GreedyPolicy:
        """Minimise objective + multipliers . constraints over supported policies."""
        costs, worst = problem.scalarised(multipliers)
        support = self.support.of(problem)
        design = design_of(problem, self.functions)
        if self.iterations is not None:
            targets = greedy_targets(problem, costs, worst, support)
            q = fitted_iteration(design, targets, iterations=self.iterations, rng=rng)
        elif is_exact(design):
            dynamics = dynamics_of(problem, self.functions, "FQI")
            q, settled = policy_iteration(problem, dynamics, costs, worst, support, start=start)
            if not settled:
                targets = greedy_targets(problem, costs, worst, support)
                q = settle(design, targets, problem.transitions.next_states, rng)
        else:
            raise ArgumentError(f"{type(self.functions).__name__} has no closed form: pass FQI(..., iterations=)")
        return GreedyPolicy(q, support)
