"""Policy iteration: evaluate in closed form and improve, until the policy stands still."""

import hashlib
from collections.abc import Callable

import numpy as np

from checkrein.base.arrays import Array, FloatArray
from checkrein.bellman.iteration import MAX_ITERATIONS, SETTLED, change_of
from checkrein.bellman.targets import followed_by, improvement_targets, once_each
from checkrein.bellman.termination import require_all_end
from checkrein.problem import Problem
from checkrein.protocols import ActionMask, Backup, Dynamics, Policy, QFunction

ROUNDING = 1e-9  # a change that no longer shrinks, if it is smaller than this


def policy_iteration(
    problem: Problem,
    dynamics: Dynamics,
    costs: FloatArray,
    backup: Backup,
    support: ActionMask,
    *,
    start: Policy | None,
    max_iterations: int = MAX_ITERATIONS,
) -> tuple[QFunction, bool]:
    """Evaluate and improve until the policy stands still (Algorithm 6 of the paper): a fixed point of FQI.

    costs: (n, 1) of rows, as the backup weighs them; what a policy pays besides, the backup says. Returns the last Q,
    and whether it stood still (with features it may circle).
    """
    next_states = problem.transitions.next_states
    finite = problem.transitions.n_states is not None
    probes = problem.once(
        "distinct next states", lambda: np.unique(next_states) if finite else next_states, any_limits=True
    )
    asked, place = once_each(problem)
    if problem.discount == 1:
        require_all_end(problem, support)

    def evaluate(policy: Policy) -> QFunction:
        followed = followed_by(problem, policy, support)
        paid = costs + (problem.continuation * backup.besides(policy, asked)[place])[:, None]
        return dynamics.evaluate(paid, followed, require_contraction=problem.discount == 1)

    if start is None:
        at_once = improvement_targets(problem, costs, backup)(None)
        q = dynamics.evaluate(at_once, _stop(problem), require_contraction=False)
    else:
        q = evaluate(start)
    seen: set[bytes] = set()
    previous, change = b"", np.inf
    for _ in range(max_iterations):
        policy = backup.policy(q)
        chosen = hashlib.blake2b(policy.probabilities(probes).tobytes()).digest()
        if chosen in seen:
            return q, chosen == previous
        seen.add(chosen)
        improved = evaluate(policy)
        before, change = change, change_of(improved(probes), q(probes))
        if change <= SETTLED or ROUNDING >= change >= before:  # a soft policy moves for ever, by rounding
            return improved, True
        q, previous = improved, chosen
    return q, False


def _stop(problem: Problem) -> Callable[[Array], FloatArray]:
    return lambda states: np.zeros((len(states), problem.transitions.n_actions))
