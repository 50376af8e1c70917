"""Does every policy end? At discount 1 the expected sum of costs exists only where it does."""

import numpy as np

from checkrein.base.arrays import BoolArray, IntArray
from checkrein.base.errors import EndlessPolicyError


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
