"""Regression targets, and the fixed points that fitted iterations run to.

What lies outside the support is valued at its worst: an action without evidence counts as an end at that value.
"""

from collections.abc import Callable
from typing import Protocol, cast

import numpy as np

from checkrein.base.arrays import Array, FloatArray, frozen
from checkrein.base.errors import ArgumentError
from checkrein.bellman.iteration import MAX_ITERATIONS, SETTLED, change_of
from checkrein.bellman.termination import circle_apart, require_end
from checkrein.policies.policies import GreedyPolicy, members_of, probabilities_of
from checkrein.policies.support import CountMask
from checkrein.problem.problem import Problem, Values
from checkrein.protocols import ActionMask, Design, Dynamics, ExactDesign, FunctionClass, Policy, QFunction


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
    )


def is_exact(design: Design) -> bool:
    """Say whether fixed points have a closed form in this class."""
    return hasattr(design, "dynamics")


def dynamics_of(problem: Problem, functions: FunctionClass, who: str) -> Dynamics:
    """Return the problem's dynamics in a class that has closed forms, built once."""
    design = design_of(problem, functions)
    if not is_exact(design):
        raise ArgumentError(
            f"{who} needs a function class whose regression is linear in its targets (Tabular, Linear), "
            f"but {type(functions).__name__} is not: use FQI and FQE with iterations="
        )
    exact = cast(ExactDesign, design)
    build = lambda: exact.dynamics(problem.transitions.next_states, problem.continuation)  # noqa: E731
    return problem.once(("dynamics", functions), build)


def evaluation_targets(
    problem: Problem, policy: Policy, evidence: ActionMask
) -> tuple[FloatArray, Callable[[QFunction | None], FloatArray]]:
    """Return the costs (n, k) that a policy pays at once, and its targets y = c + discount * Q(x', policy(x'))."""
    next_states = problem.transitions.next_states
    probabilities = probabilities_of(policy, next_states, problem.transitions.n_actions)
    supported = probabilities * evidence.allowed(next_states)
    ahead = problem.continuation[:, None] * supported
    unsupported = problem.continuation * (probabilities.sum(axis=1) - supported.sum(axis=1))
    costs = problem.costs + unsupported[:, None] * problem.worst

    def targets(q: QFunction | None) -> FloatArray:
        return costs if q is None else costs + np.einsum("na,nak->nk", ahead, q(next_states))

    return costs, targets


def evaluate_fixed_point(
    problem: Problem, policy: Policy, dynamics: Dynamics, evidence: ActionMask, *, require_contraction: bool
) -> QFunction:
    """Return the Q that the evaluation of a policy runs to, for all costs at once."""
    evidence = _of_ends(problem, policy, evidence)

    def supported(states: Array) -> FloatArray:
        return policy.probabilities(states) * evidence.allowed(states)

    costs, _ = evaluation_targets(problem, policy, evidence)
    return dynamics.evaluate(costs, supported, require_contraction=require_contraction)


def value_at_start(problem: Problem, policy: Policy, q: QFunction, evidence: ActionMask) -> Values:
    """Average Q(x, policy(x)) over the logged initial states (Algorithm 3, output; C(pi) of Section 2)."""
    states, weights = problem.transitions.initial_states, problem.transitions.initial_weights
    probabilities = probabilities_of(policy, states, problem.transitions.n_actions)
    supported = probabilities * evidence.allowed(states)
    each = np.einsum("na,nak->nk", supported, q(states))
    each += (probabilities.sum(axis=1) - supported.sum(axis=1))[:, None] * problem.worst
    mean = weights @ each / weights.sum()
    return Values(float(mean[0]), mean[1:])


def evaluate_members(problem: Problem, policy: Policy, evidence: ActionMask, fit: QEvaluation) -> Values:
    """Evaluate a policy; a mixture draws one member per episode, so its values are those of its members, weighed."""
    parts = [
        (weight, value_at_start(problem, member, fit(member), _of_ends(problem, member, evidence)))
        for member, weight in members_of(policy)
    ]
    objective = sum(weight * values.objective for weight, values in parts)
    return Values(objective, np.asarray(sum(weight * values.constraints for weight, values in parts)))


def greedy_targets(
    problem: Problem, costs: FloatArray, worst: float, support: ActionMask
) -> Callable[[QFunction | None], FloatArray]:
    """Return y = c + discount * min_a Q(x', a), the minimum over supported actions (Algorithm 4, line 3)."""
    next_states = problem.transitions.next_states
    allowed = support.allowed(next_states)
    hopeless = ~allowed.any(axis=1)

    def targets(q: QFunction | None) -> FloatArray:
        if q is None:
            return costs + (problem.continuation * hopeless * worst)[:, None]
        least = np.where(allowed, q(next_states)[..., 0], np.inf).min(axis=1)
        least[hopeless] = worst
        return costs + (problem.continuation * least)[:, None]

    return targets


def least_value(problem: Problem, q: QFunction, support: ActionMask) -> FloatArray:
    """(1,) the mean of min_a Q(x, a) over the initial states, the minimum over supported actions."""
    rows = problem.transitions
    values = np.where(support.allowed(rows.initial_states), q(rows.initial_states)[..., 0], np.inf).min(axis=1)
    known = np.isfinite(values)
    return np.atleast_1d(np.average(values[known], weights=rows.initial_weights[known]))


def policy_iteration(
    problem: Problem,
    dynamics: Dynamics,
    costs: FloatArray,
    worst: float,
    support: ActionMask,
    *,
    start: Policy | None,
    max_iterations: int = MAX_ITERATIONS,
) -> tuple[QFunction, bool]:
    """Evaluate and improve until the policy stands still (Algorithm 6); its Q is then also a fixed point of FQI.

    costs: (n, 1). Returns the last Q, and whether it stood still (with features it may circle).
    """
    next_states = problem.transitions.next_states
    finite = problem.transitions.n_states is not None
    probes = problem.once("distinct next states", lambda: np.unique(next_states) if finite else next_states)
    if problem.discount == 1:
        _require_all_end(problem, support)
    hopeless = ~support.allowed(next_states).any(axis=1)
    immediate_cost = costs + (problem.continuation * hopeless * worst)[:, None]

    def evaluate(policy: Policy) -> QFunction:
        return dynamics.evaluate(
            immediate_cost,
            lambda states: policy.probabilities(states) * support.allowed(states),
            require_contraction=problem.discount == 1,
        )

    q = (
        evaluate(start)
        if start is not None
        else dynamics.evaluate(immediate_cost, _stop(problem), require_contraction=False)
    )
    seen: set[bytes] = set()
    previous = b""
    for _ in range(max_iterations):
        policy = GreedyPolicy(q, support)
        actions = policy.actions(probes).tobytes()
        if actions in seen:
            return q, actions == previous
        seen.add(actions)
        improved = evaluate(policy)
        if change_of(improved(probes), q(probes)) <= SETTLED:
            return improved, True
        q, previous = improved, actions
    return q, False


def _stop(problem: Problem) -> Callable[[Array], FloatArray]:
    return lambda states: np.zeros((len(states), problem.transitions.n_actions))


def _require_all_end(problem: Problem, support: ActionMask) -> None:
    rows = problem.transitions
    if rows.n_states is None:
        return  # found out by the spectrum of the regression instead
    n_states = rows.n_states

    def check() -> None:
        chosen = support.allowed(rows.states)[np.arange(len(rows)), rows.actions]
        states, actions, next_states = rows.states[chosen], rows.actions[chosen], rows.next_states[chosen]
        who = "a policy over the logged transitions"
        require_end(states, actions, next_states, rows.terminals[chosen], n_states=n_states, who=who)

    problem.once(("all policies end", support), check)


def _of_ends(problem: Problem, policy: Policy, evidence: ActionMask) -> ActionMask:
    """Deny a policy evidence, at discount 1, in states from which it was never seen to end: they count at their worst.

    Raises where every episode begins in one: such a policy has no value.
    """
    rows = problem.transitions
    if problem.discount < 1 or rows.n_states is None:
        return evidence  # where states are not finite, it is found out by the spectrum of the regression
    allowed = evidence.allowed(np.arange(rows.n_states))
    table = policy.probabilities(np.arange(rows.n_states)) * allowed
    gives_up = table.sum(axis=1) < 1 - 1e-9  # some probability on what has no evidence: valued, not followed
    taken = table[rows.states, rows.actions] > 0
    ends = (rows.terminals | gives_up[rows.states])[taken]
    states, next_states = rows.states[taken], rows.next_states[taken]
    circle = circle_apart(states, next_states, ends, rows.initial_states, n_states=rows.n_states)
    if not circle.size:
        return evidence
    narrowed = allowed.copy()
    narrowed[circle] = False
    return CountMask(frozen(narrowed))
