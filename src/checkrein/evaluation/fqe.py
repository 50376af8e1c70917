"""Fitted Q evaluation (Algorithm 3 of the paper), for the objective and all constraints in one pass."""

from dataclasses import dataclass, field
from typing import cast

import numpy as np

from checkrein.base.arrays import Array, FloatArray, require_counts
from checkrein.base.errors import ArgumentError
from checkrein.bellman.iteration import RegressionTask, Watch, default_iterations, fitted_iteration, judged_on, telling
from checkrein.bellman.targets import (
    design_of,
    dynamics_of,
    evaluate_fixed_point,
    evaluate_members,
    evaluation_targets,
    is_exact,
    value_at_start,
    with_known_steps,
)
from checkrein.functions.ensemble import Ensemble
from checkrein.functions.features import Polynomial
from checkrein.functions.frozen_features import FrozenFeatures
from checkrein.functions.linear import Linear
from checkrein.policies import Support, members_of
from checkrein.problem import Problem, Values
from checkrein.protocols import (
    ActionMask,
    Design,
    EncodingQ,
    EnsembleQFunction,
    ExactDesign,
    FunctionClass,
    Policy,
    QFunction,
)

SOLVED = 8  # iterations by default where each solves for the last layer


@dataclass(frozen=True)
class FQE:
    """Regress c + discount * Q(x', policy(x')) again and again.

    iterations: how often; None runs to the fixed point, which classes with closed forms solve for; others iterate
        until what is still to come counts for little.
    support: an action outside it is valued at the worst the costs allow; Support(0, 0) trusts the class instead.
    last_layer: of a network: a ridge with which its last layer is solved for in closed form in every iteration, to its
        fixed point (LSTDQ): a few iterations, which learn what the layers before it see, are then enough
    watch: told of every iteration.
    """

    functions: FunctionClass
    iterations: int | None = None
    support: Support = field(default_factory=Support)
    last_layer: float | None = None
    watch: Watch | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.iterations is not None:
            require_counts(iterations=self.iterations)

    @property
    def refitted(self) -> FunctionClass | None:
        """The class in which it solves for its fixed point; None where it makes so many iterations."""
        return self.functions if self.iterations is None else None

    def __call__(self, problem: Problem, policy: Policy, *, rng: np.random.Generator) -> Values:
        """Estimate what the policy would incur from the logged initial states."""
        return self.spread(problem, policy, rng=rng)[0]

    def spread(self, problem: Problem, policy: Policy, *, rng: np.random.Generator) -> tuple[Values, FloatArray | None]:
        """Return the values, and how far (1 + m,) the members of an ensemble lie apart; None of any other class."""
        evidence = self.support.of(problem)
        fitted = {id(member): self.q(problem, member, rng=rng) for member, _ in members_of(policy)}
        values = evaluate_members(problem, policy, evidence, lambda member: fitted[id(member)])
        if not isinstance(self.functions, Ensemble):
            return values, None
        each = []
        for number in range(self.functions.size):
            one = evaluate_members(problem, policy, evidence, lambda member, n=number: _Member(fitted[id(member)], n))
            each.append(one.row)
        return values, np.std(each, axis=0, ddof=1) if len(each) > 1 else None

    def q(self, problem: Problem, policy: Policy, *, rng: np.random.Generator) -> QFunction:
        """Fit the Q-function of one policy (not of a mixture: that has one per member), all costs at once."""
        evidence = self.support.of(problem)
        if self.iterations is None and is_exact(problem, self.functions):
            dynamics = dynamics_of(problem, self.functions, "FQE")
            fitted = evaluate_fixed_point(problem, policy, dynamics, evidence, require_contraction=True)
        else:
            fitted = self._iterate(problem, policy, design_of(problem, self.functions), evidence, rng)
        return with_known_steps(problem, policy, fitted)

    def _solved(self, problem: Problem, policy: Policy, q: QFunction, evidence: ActionMask, ridge: float) -> QFunction:
        """Solve for the last layer, on what the layers before it see."""
        if not isinstance(q, EncodingQ):
            raise ArgumentError(f"last_layer is for networks, but {type(self.functions).__name__} has no layers")
        head = FrozenFeatures(q.encoder(), Linear(Polynomial(1), ridge=ridge))
        rows = problem.transitions
        design = cast(ExactDesign, head.design(rows.states, rows.actions, rows.weights, n_actions=rows.n_actions))
        dynamics = design.dynamics(rows.next_states, problem.continuation)
        return evaluate_fixed_point(problem, policy, dynamics, evidence, require_contraction=False)

    def _iterate(
        self, problem: Problem, policy: Policy, design: Design, evidence: ActionMask, rng: np.random.Generator
    ) -> QFunction:
        tasks = [
            RegressionTask(part, evaluation_targets(part, policy, evidence)[1], problem.value_names)
            for part in judged_on(self.watch, problem)
        ]
        ridge = self.last_layer
        iterations = self.iterations or (default_iterations(problem) if ridge is None else SOLVED)

        def value(q: QFunction) -> FloatArray:
            return value_at_start(problem, policy, with_known_steps(problem, policy, q), evidence).row

        return fitted_iteration(
            design,
            tasks[0],
            iterations=iterations,
            rng=rng,
            allowed=problem.value_range(policy),
            bounded=not is_exact(problem, self.functions),
            refined=None if ridge is None else lambda q: self._solved(problem, policy, q, evidence, ridge),
            after=telling(self.watch, iterations, tasks, value),
        )


@dataclass(frozen=True, eq=False)
class _Member:
    """One of the Q-functions of an ensemble."""

    q: QFunction
    number: int

    def __call__(self, states: Array) -> FloatArray:
        return np.asarray(cast(EnsembleQFunction, self.q).members(states)[self.number])


def nuisance(functions: FunctionClass) -> FQE:
    """Return what fits a Q that is corrected anyway: it is better off without worst cases."""
    return FQE(functions, support=Support(0, 0))
