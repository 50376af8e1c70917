"""The order of a log's rows: by episode, then by step."""

import numpy as np

from checkrein.base.arrays import IntArray
from checkrein.base.errors import DataError


def episode_order(episodes: IntArray, steps: IntArray | None) -> IntArray:
    """Return the order of rows by episode, then by step (else as they stand)."""
    if steps is not None:
        return np.lexsort((steps, episodes))
    if (np.diff(episodes) >= 0).all():
        return np.arange(episodes.size)
    return np.argsort(episodes, kind="stable")


def first_rows(episodes: IntArray | None, steps: IntArray | None) -> IntArray:
    """(e,) the first row of each episode; raise where a step occurs twice."""
    if episodes is None:
        raise DataError("there is no initial state: pass episodes= (their first states are used) or initial_states=")
    order = episode_order(episodes, steps)
    ordered = episodes[order]
    if steps is not None:
        repeated = (np.diff(ordered) == 0) & (np.diff(steps[order]) == 0)
        if repeated.any():
            row = int(order[int(np.argmax(repeated)) + 1])
            raise DataError(f"step {steps[row]} of episode {episodes[row]} occurs twice, again in row {row}")
    return order[np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))]
