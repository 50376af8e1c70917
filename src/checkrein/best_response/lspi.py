"""Least-squares policy iteration (Lagoudakis & Parr 2003; Algorithm 6 of the paper)."""

from dataclasses import dataclass, field

import numpy as np

from checkrein.base.arrays import FloatArray, require_counts
from checkrein.bellman.backups import Greedy
from checkrein.bellman.policy_iteration import policy_iteration
from checkrein.bellman.targets import dynamics_of, improvement_targets
from checkrein.best_response.chain import in_turn
from checkrein.policies import GreedyPolicy, Support
from checkrein.problem import Problem
from checkrein.protocols import FunctionClass, Policy


@dataclass(frozen=True)
class LSPI:
    """Evaluate by LSTDQ and improve, until the policy stands still or comes round again.

    max_iterations: where it circles, as it may with features, the last policy within this many is returned.
    """

    functions: FunctionClass
    max_iterations: int = 100
    support: Support = field(default_factory=Support)

    def __post_init__(self) -> None:
        require_counts(max_iterations=self.max_iterations)

    def __call__(
        self, problem: Problem, multipliers: FloatArray, *, rng: np.random.Generator, start: Policy | None = None
    ) -> GreedyPolicy:
        """Minimise objective + multipliers . constraints over supported policies."""
        del rng  # closed forms leave nothing to chance
        costs, worst = problem.scalarised(multipliers)
        backup = Greedy(self.support.choices(problem), worst)
        targets = improvement_targets(problem, costs, backup)
        dynamics = dynamics_of(problem, self.functions, "LSPI")
        q, _ = policy_iteration(
            problem, dynamics, targets, backup, backup.support, start=start, max_iterations=self.max_iterations
        )
        return backup.policy(q)

    def responses(self, problem: Problem, multipliers: FloatArray, *, rng: np.random.Generator) -> tuple[Policy, ...]:
        """Answer many multipliers (M, m), each starting from the answer before."""
        return in_turn(self, problem, multipliers, rng=rng, warm=True)
