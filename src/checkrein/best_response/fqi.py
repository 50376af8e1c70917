"""Fitted Q iteration (Ernst et al. 2005; Alg. 4 of the paper)."""

from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from checkrein.base.arrays import FloatArray, require_counts
from checkrein.base.errors import ArgumentError
from checkrein.bellman.iteration import (
    BoundedQ,
    RegressionTask,
    Watch,
    default_iterations,
    fitted_iteration,
    iterate_to_fixed_point,
    judged_on,
    telling,
)
from checkrein.bellman.targets import design_of, dynamics_of, greedy_targets, is_exact, least_value, policy_iteration
from checkrein.policies.policies import GreedyPolicy
from checkrein.policies.support import Support
from checkrein.problem.problem import Problem
from checkrein.protocols import ActionMask, BatchedDesign, BatchedQ, Design, FunctionClass, Policy, QFunction


@dataclass(frozen=True)
class FQI:
    """Regress c + discount * min_a Q(x', a) again and again, then act greedily.

    iterations: how often; None runs to the fixed point, which classes with closed forms reach by policy iteration;
        others iterate until what is still to come counts for little.
    support: which actions the minimum, and the policy, may choose.
    conservatism: above 0, makes low values of actions dear where others were logged (conservative Q-learning, Kumar
        et al. 2020), in units of the targets' spread; for classes that are trained by gradients
    watch: told of every iteration.
    """

    functions: FunctionClass
    iterations: int | None = None
    support: Support = field(default_factory=Support)
    conservatism: float = 0.0
    watch: Watch | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.iterations is not None:
            require_counts(iterations=self.iterations)
        if not (np.isfinite(self.conservatism) and self.conservatism >= 0):
            raise ArgumentError(f"conservatism is {self.conservatism}: it must be finite and not negative")

    def __call__(
        self, problem: Problem, multipliers: FloatArray, *, rng: np.random.Generator, start: Policy | None = None
    ) -> GreedyPolicy:
        """Minimise objective + multipliers . constraints over supported policies."""
        costs, worst = problem.scalarised(multipliers)
        support = self.support.choices(problem)
        design = self._design(problem)
        if self.iterations is None and is_exact(design):
            dynamics = dynamics_of(problem, self.functions, "FQI")
            q, settled = policy_iteration(problem, dynamics, costs, worst, support, start=start)
            if not settled:
                targets = greedy_targets(problem, costs, worst, support)
                q = iterate_to_fixed_point(design, targets, problem.transitions.next_states, rng)
        else:
            q = self._iterate(problem, multipliers, design, support, rng, start)
        return GreedyPolicy(q, support)

    def responses(
        self, problem: Problem, multipliers: FloatArray, *, rng: np.random.Generator
    ) -> tuple[GreedyPolicy, ...]:
        """Answer many multipliers (M, m), by one batched model where the class has one, else one after another."""
        design = cast(BatchedDesign, self._design(problem))
        if not hasattr(design, "fit_many"):
            return tuple(self(problem, each, rng=rng) for each in multipliers)
        support = self.support.choices(problem)
        asked = [problem.scalarised(each) for each in multipliers]
        targets = [greedy_targets(problem, costs, worst, support) for costs, worst in asked]
        ranges = [problem.scalarised_range(each) for each in multipliers]
        members: list[QFunction] | None = None
        q: BatchedQ | None = None
        for _ in range(self.iterations or default_iterations(problem)):
            wanted = np.stack([one(None if members is None else members[i]) for i, one in enumerate(targets)])
            q = design.fit_many(wanted, models=len(targets), rng=rng, start=q)
            members = [BoundedQ(q.member(i), *ends) for i, ends in enumerate(ranges)]
        return tuple(GreedyPolicy(member, support) for member in members or [])

    def _design(self, problem: Problem) -> Any:
        design = design_of(problem, self.functions)
        if not self.conservatism:
            return design
        if not hasattr(design, "conservative"):
            raise ArgumentError(
                f"{type(self.functions).__name__} is not trained by gradients: conservatism needs Neural"
            )
        return problem.once(
            ("conservative", self.functions, self.conservatism), lambda: design.conservative(self.conservatism)
        )

    def _iterate(
        self,
        problem: Problem,
        multipliers: FloatArray,
        design: Design,
        support: ActionMask,
        rng: np.random.Generator,
        start: Policy | None,
    ) -> QFunction:
        logs = [
            RegressionTask(part, greedy_targets(part, *part.scalarised(multipliers), support), ("the weighed costs",))
            for part in judged_on(self.watch, problem)
        ]
        iterations = self.iterations or default_iterations(problem)
        exact = is_exact(design)
        return fitted_iteration(
            design,
            logs[0],
            iterations=iterations,
            rng=rng,
            allowed=problem.scalarised_range(multipliers),
            bounded=not exact,
            start=start.q if isinstance(start, GreedyPolicy) and not exact else None,
            after=telling(self.watch, iterations, logs, lambda q: least_value(problem, q, support)),
        )
