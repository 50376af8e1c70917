"""Fitted Q iteration (Ernst et al. 2005; Algorithm 4 of the paper)."""

from dataclasses import dataclass, field

import numpy as np

from checkrein.base.arrays import FloatArray, require_counts
from checkrein.base.errors import ArgumentError
from checkrein.bellman.backups import backup_for
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
from checkrein.bellman.policy_iteration import policy_iteration
from checkrein.bellman.targets import design_of, dynamics_of, improved_value, improvement_targets, is_exact
from checkrein.best_response.chain import in_turn
from checkrein.policies import GreedyPolicy, RegularizedPolicy, Support, written_out
from checkrein.problem import Problem
from checkrein.protocols import (
    Backup,
    BatchedDesign,
    BatchedQ,
    ConservativeDesign,
    Design,
    FunctionClass,
    Policy,
    QFunction,
)


@dataclass(frozen=True)
class FQI:
    """Regress c + discount * min_a Q(x', a) again and again, then act greedily.

    Where a cost of the policy itself has a price (KL divergence, entropy), minimum and policy are soft.

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
    ) -> Policy:
        """Minimise objective + multipliers . constraints over supported policies."""
        costs = problem.scalarised(multipliers)
        backup = backup_for(problem, multipliers, self.support.choices(problem))
        n_states = problem.dataset.n_states
        design = self._design(problem)
        if self.iterations is not None or not is_exact(problem, self.functions):
            return written_out(backup.policy(self._iterate(problem, multipliers, design, backup, rng, start)), n_states)
        dynamics = dynamics_of(problem, self.functions, "FQI")
        q, settled = policy_iteration(problem, dynamics, costs, backup, backup.support, start=start)
        if not settled:
            targets = improvement_targets(problem, costs, backup)
            q = iterate_to_fixed_point(design, targets, problem.transitions.next_states, rng)
        return written_out(backup.policy(q), n_states)

    def responses(self, problem: Problem, multipliers: FloatArray, *, rng: np.random.Generator) -> tuple[Policy, ...]:
        """Answer many multipliers (M, m), by one batched model where the class has one, else one after another.

        Where fixed points have a closed form, each answer starts from the one before.
        """
        design = self._design(problem)
        if not isinstance(design, BatchedDesign):
            warm = self.iterations is None and is_exact(problem, self.functions)
            return in_turn(self, problem, multipliers, rng=rng, warm=warm)
        asked = [problem.scalarised(each) for each in multipliers]
        backups = [backup_for(problem, each, self.support.choices(problem)) for each in multipliers]
        targets = [improvement_targets(problem, costs, backup) for costs, backup in zip(asked, backups, strict=True)]
        ranges = [problem.scalarised_range(each) for each in multipliers]
        members: list[QFunction] | None = None
        q: BatchedQ | None = None
        for _ in range(self.iterations or default_iterations(problem)):
            wanted = np.stack([one(None if members is None else members[i]) for i, one in enumerate(targets)])
            q = design.fit_many(wanted, models=len(targets), rng=rng, start=q)
            members = [BoundedQ(q.member(i), *ends) for i, ends in enumerate(ranges)]
        found = zip(backups, members or [], strict=True)
        return tuple(written_out(backup.policy(member), problem.dataset.n_states) for backup, member in found)

    def _design(self, problem: Problem) -> Design:
        design = design_of(problem, self.functions)
        if not self.conservatism:
            return design
        if not isinstance(design, ConservativeDesign):
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
        backup: Backup,
        rng: np.random.Generator,
        start: Policy | None,
    ) -> QFunction:
        tasks = []
        for part in judged_on(self.watch, problem):  # the same choices on another part, at its own worst
            judging = backup_for(part, multipliers, backup.support)
            targets = improvement_targets(part, part.scalarised(multipliers), judging)
            tasks.append(RegressionTask(part, targets, ("the weighed costs",)))
        iterations = self.iterations or default_iterations(problem)
        exact = is_exact(problem, self.functions)
        return fitted_iteration(
            design,
            tasks[0],
            iterations=iterations,
            rng=rng,
            allowed=problem.scalarised_range(multipliers),
            bounded=not exact,
            start=start.q if isinstance(start, GreedyPolicy | RegularizedPolicy) and not exact else None,
            after=telling(self.watch, iterations, tasks, lambda q: improved_value(problem, q, backup)),
        )
