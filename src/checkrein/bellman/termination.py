"""Does every policy end? At discount 1 the expected sum of costs exists only where it does."""

import numpy as np

from checkrein.base.arrays import BoolArray, IntArray, frozen
from checkrein.base.errors import EndlessPolicyError
from checkrein.policies import CountMask, Supported
from checkrein.problem import Problem
from checkrein.protocols import ActionMask, Policy

GIVEN_UP = 1e-9  # probability on what has no evidence: valued, not followed


def endless_states(
    states: IntArray, actions: IntArray, next_states: IntArray, ends: BoolArray, *, n_states: int
) -> IntArray:
    """Return the states among which some policy can circle for ever; empty where every policy ends.

    Each of the (n,) rows says that an action in a state may lead to a next state, or may end. The result is the
    union of the maximal end components: pairs that may leave the set are struck out until none is left to strike.
    """
    n_actions = int(actions.max(initial=0)) + 1
    pairs = states * n_actions + actions
    alive = np.zeros(n_states * n_actions, dtype=bool)
    alive[pairs] = True
    choices = np.bincount(np.flatnonzero(alive) // n_actions, minlength=n_states)  # pairs left in each state
    order = np.argsort(next_states, kind="stable")  # rows by where they lead, to find what a struck state strikes
    begins = np.searchsorted(next_states[order], np.arange(n_states + 1))
    struck = pairs[ends | (choices[next_states] == 0)]
    while struck.size:
        struck = np.unique(struck[alive[struck]])
        alive[struck] = False
        np.subtract.at(choices, struck // n_actions, 1)
        emptied = np.unique(struck // n_actions)
        emptied = emptied[choices[emptied] == 0]
        rows = [order[begins[state] : begins[state + 1]] for state in emptied]
        struck = pairs[np.concatenate(rows)] if rows else np.zeros(0, dtype=np.int64)
    return np.flatnonzero(choices)


def circle_apart(
    states: IntArray, next_states: IntArray, ends: BoolArray, starts: IntArray, *, n_states: int
) -> IntArray:
    """Return the states in which a policy circles for ever by its moves; raise where every episode begins in one."""
    merged = np.zeros_like(states)  # all actions together, as a randomised policy takes them
    moves = states, merged, next_states, ends
    circle = endless_states(*moves, n_states=n_states)
    if np.isin(starts, circle).all():
        require_end(*moves, n_states=n_states, who="this policy")
    return circle


def require_end(
    states: IntArray, actions: IntArray, next_states: IntArray, ends: BoolArray, *, n_states: int, who: str
) -> None:
    """Raise unless every policy over these rows ends, naming the states in which one can circle."""
    circle = endless_states(states, actions, next_states, ends, n_states=n_states)
    if circle.size:
        shown = ", ".join(map(str, circle[:10])) + (", ..." if circle.size > 10 else "")
        raise EndlessPolicyError(
            f"at discount 1 {who} need not end: it can circle for ever in {circle.size} states ({shown}). "
            "Use a discount below 1, or mark the transitions that end an episode as terminal"
        )


def require_all_end(problem: Problem, support: ActionMask) -> None:
    """Raise unless every policy over supported transitions ends; asked once."""
    rows = problem.transitions
    if rows.n_states is None:
        return  # found out by the spectrum of the regression instead
    n_states = rows.n_states

    def check() -> None:
        chosen = support.allowed(rows.states)[np.arange(len(rows)), rows.actions]
        states, actions, next_states = rows.states[chosen], rows.actions[chosen], rows.next_states[chosen]
        who = "a policy over the logged transitions"
        require_end(states, actions, next_states, rows.terminals[chosen], n_states=n_states, who=who)

    problem.once(("all policies end", support), check, any_limits=True)


def with_ends(problem: Problem, policy: Policy, evidence: ActionMask) -> ActionMask:
    """Deny a policy evidence, at discount 1, in states from which it was never seen to end: they count at their worst.

    Raises where every episode begins in one: such a policy has no value.
    """
    rows = problem.transitions
    if problem.discount < 1 or rows.n_states is None:
        return evidence  # where states are not finite, it is found out by the spectrum of the regression
    every_state = np.arange(rows.n_states)
    followed = Supported.of(policy, every_state, evidence, rows.n_actions)
    taken = followed.probabilities[rows.states, rows.actions] > 0
    ends = (rows.terminals | (followed.unsupported_mass > GIVEN_UP)[rows.states])[taken]
    states, next_states = rows.states[taken], rows.next_states[taken]
    circle = circle_apart(states, next_states, ends, rows.initial_states, n_states=rows.n_states)
    if not circle.size:
        return evidence
    narrowed = evidence.allowed(every_state).copy()
    narrowed[circle] = False
    return CountMask(frozen(narrowed))
