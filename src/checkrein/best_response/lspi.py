"""Least-squares policy iteration (Lagoudakis & Parr 2003; Algorithm 6 of the paper)."""

from dataclasses import dataclass, field

import numpy as np

from checkrein.base.arrays import FloatArray, require_counts
from checkrein.bellman.backups import backup_for
from checkrein.bellman.policy_iteration import policy_iteration
from checkrein.bellman.targets import dynamics_of
from checkrein.best_response.chain import in_turn
from checkrein.policies import Support, written_out
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
    ) -> Policy:
        """Minimise objective + multipliers . constraints over supported policies; soft where the policy has a price."""
        del rng  # closed forms leave nothing to chance
        costs = problem.scalarised(multipliers)
        backup = backup_for(problem, multipliers, self.support.choices(problem))
        dynamics = dynamics_of(problem, self.functions, "LSPI")
        q, _ = policy_iteration(
            problem, dynamics, costs, backup, backup.support, start=start, max_iterations=self.max_iterations
        )
        return written_out(backup.policy(q), problem.dataset.n_states)

    def responses(self, problem: Problem, multipliers: FloatArray, *, rng: np.random.Generator) -> tuple[Policy, ...]:
        """Answer many multipliers (M, m), each starting from the answer before."""
        return in_turn(self, problem, multipliers, rng=rng, warm=True)
