"""Regression targets of evaluation and of improvement, and what a fitted Q says of the initial states."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np

from checkrein.base.arrays import Array, FloatArray, IntArray
from checkrein.base.errors import ArgumentError
from checkrein.bellman.termination import with_ends
from checkrein.policies import Supported, members_of
from checkrein.problem import Problem, Values
from checkrein.protocols import (
    ActionMask,
    Backup,
    Design,
    Dynamics,
    EnsembleQFunction,
    ExactDesign,
    FunctionClass,
    Policy,
    QFunction,
)

Targets = Callable[[QFunction | None], FloatArray]


class QEvaluation(Protocol):
    """Fits the vector-valued Q of one policy."""

    def __call__(self, policy: Policy) -> QFunction:
        """Fit."""
        ...


def design_of(problem: Problem, functions: FunctionClass) -> Design:
    """Return the problem's design for a function class, built once."""
    rows = problem.transitions
    return problem.once(
        ("design", functions),
        lambda: functions.design(rows.states, rows.actions, rows.weights, n_actions=rows.n_actions),
        any_limits=True,
    )


def is_exact(problem: Problem, functions: FunctionClass) -> bool:
    """Say whether fixed points have a closed form in this class; asked once."""
    return problem.once(
        ("exact", functions), lambda: isinstance(design_of(problem, functions), ExactDesign), any_limits=True
    )


def dynamics_of(problem: Problem, functions: FunctionClass, who: str) -> Dynamics:
    """Return the problem's dynamics in a class that has closed forms, built once."""
    if not is_exact(problem, functions):
        raise ArgumentError(
            f"{who} needs a function class whose regression is linear in its targets (Tabular, Linear), "
            f"but {type(functions).__name__} is not: use FQI and FQE with iterations="
        )
    design = cast(ExactDesign, design_of(problem, functions))
    build = lambda: design.dynamics(problem.transitions.next_states, problem.continuation)  # noqa: E731
    return problem.once(("dynamics", functions), build, any_limits=True)


def evaluation_targets(problem: Problem, policy: Policy, evidence: ActionMask) -> tuple[FloatArray, Targets]:
    """Return the costs (n, k) that a policy pays at once, and its targets y = c + discount * Q(x', policy(x')).

    (Algorithm 3 of the paper, line 3.) Of a cost that is known for every action, what is fitted is the sum after the
    step, and the next step is in the costs: `with_known_steps` adds the first one.
    """
    rows = problem.transitions
    next_states, place = once_each(problem)
    ahead = Supported.of(policy, next_states, evidence, rows.n_actions)
    costs = problem.costs(policy)
    if problem.known_costs:
        costs = costs.copy()
        costs[:, list(problem.known_costs)] = 0.0
    costs = costs + problem.continuation[:, None] * ahead.beside_fit(problem, policy, next_states)[place]

    def targets(q: QFunction | None) -> FloatArray:
        if q is None:
            return costs
        values = np.einsum("na,nak->nk", ahead.probabilities, q(next_states))
        return costs + problem.continuation[:, None] * values[place]

    return costs, targets


def once_each(problem: Problem) -> tuple[Array, slice | IntArray]:
    """Return the next states to ask for, and where the answer of each row is: finite ones are far fewer than rows.

    Only states that rows lead to: of others the log says nothing, and a cost of the policy need not be finite there.
    """
    rows = problem.transitions
    if rows.n_states is None:
        return rows.next_states, slice(None)
    return problem.once(
        "distinct next states, by row", lambda: np.unique(rows.next_states, return_inverse=True), any_limits=True
    )


def evaluate_fixed_point(
    problem: Problem, policy: Policy, dynamics: Dynamics, evidence: ActionMask, *, require_contraction: bool
) -> QFunction:
    """Return what the evaluation of a policy runs to, for all costs at once: Q, but for steps that are known."""
    evidence = with_ends(problem, policy, evidence)
    costs, _ = evaluation_targets(problem, policy, evidence)
    return dynamics.evaluate(costs, followed_by(problem, policy, evidence), require_contraction=require_contraction)


def with_known_steps(problem: Problem, policy: Policy, q: QFunction) -> QFunction:
    """Return the Q-function of what was fitted by `evaluation_targets`: the same, but for costs that are known."""
    return KnownStepsQ(q, problem, policy) if problem.known_costs else q


@dataclass(frozen=True, eq=False)
class KnownStepsQ:
    """Values after a step, plus the step itself where it is known."""

    q: QFunction
    problem: Problem
    policy: Policy

    def __call__(self, states: Array) -> FloatArray:
        """(n, A, k)"""  # noqa: D400, D415
        return self._add(self.q(states), states)

    def members(self, states: Array) -> FloatArray:
        """(M, n, A, k) what each of several says; of one, what it says."""
        each = self.q.members(states) if isinstance(self.q, EnsembleQFunction) else self.q(states)[None]
        return self._add(each, states)

    def _add(self, values: FloatArray, states: Array) -> FloatArray:
        values = np.array(values)
        for i, steps in self.problem.known_steps(self.policy, states):
            values[..., i] += steps
        return values


def followed_by(problem: Problem, policy: Policy, evidence: ActionMask) -> Callable[[Array], FloatArray]:
    """Return the probabilities (n, A) of the actions that a policy takes on evidence; the rest ends there."""
    n_actions = problem.transitions.n_actions
    return lambda states: Supported.of(policy, states, evidence, n_actions).probabilities


def value_at_start(problem: Problem, policy: Policy, q: QFunction, evidence: ActionMask) -> Values:
    """Average Q(x, policy(x)) over the logged initial states (Algorithm 3 of the paper, output)."""
    states, weights = problem.transitions.initial_states, problem.transitions.initial_weights
    mean = weights @ state_values(problem, policy, q, evidence, states) / weights.sum()
    return Values(float(mean[0]), mean[1:])


def state_values(problem: Problem, policy: Policy, q: QFunction, evidence: ActionMask, states: Array) -> FloatArray:
    """(n, 1 + m) Q(x, policy(x)), within what costs and the horizon allow; without evidence, at its worst."""
    followed = Supported.of(policy, states, evidence, problem.transitions.n_actions)
    values = np.einsum("na,nak->nk", followed.probabilities, q(states)) + followed.at_worst(problem, policy, states)
    return np.clip(values, *problem.value_range(policy))


def evaluate_members(problem: Problem, policy: Policy, evidence: ActionMask, fit: QEvaluation) -> Values:
    """Evaluate a policy; a mixture draws one member per episode, so its values are those of its members, weighed."""
    parts = [
        (weight, value_at_start(problem, member, fit(member), with_ends(problem, member, evidence)))
        for member, weight in members_of(policy)
    ]
    objective = sum(weight * values.objective for weight, values in parts)
    return Values(objective, np.asarray(sum(weight * values.constraints for weight, values in parts)))


def improvement_targets(problem: Problem, costs: FloatArray, backup: Backup) -> Targets:
    """Return the targets y = c + discount * V(x') of costs (n, 1), V being the backup's: min_a Q(x', a), say.

    (Algorithm 4 of the paper, line 3.)
    """
    rows = problem.transitions

    def targets(q: QFunction | None) -> FloatArray:
        ahead = backup.value(nothing if q is None else q, rows.next_states)
        return costs + (problem.continuation * ahead)[:, None]

    def nothing(states: Array) -> FloatArray:
        return np.zeros((len(states), rows.n_actions, 1))

    return targets


def improved_value(problem: Problem, q: QFunction, backup: Backup) -> FloatArray:
    """(1,) the mean of the backup's value over the initial states."""
    rows = problem.transitions
    return np.atleast_1d(np.average(backup.value(q, rows.initial_states), weights=rows.initial_weights))
