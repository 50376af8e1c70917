"""Does every policy end? At discount 1 the expected sum of costs exists only where it does."""

import numpy as np

from bridle.arrays import BoolArray, IntArray
from bridle.errors import EndlessPolicyError


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
    while True:
        staying: BoolArray = np.any(alive.reshape(n_states, n_actions), axis=1)
        leaving = alive[pairs] & (ends | ~staying[next_states])
        if not leaving.any():
            return np.flatnonzero(staying)
        alive[pairs[leaving]] = False


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
