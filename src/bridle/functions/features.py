"""Feature maps for the linear class; any callable from states to an (n, d) array will do."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from bridle.arrays import Array, FloatArray
from bridle.errors import ArgumentError
from bridle.policies import rows_of
from bridle.storage import storable


def mapped(features: Callable[[Array], FloatArray], states: Array, who: str = "the feature map") -> FloatArray:
    """(n, d) what a map makes of states, or say what is wrong with it."""
    made = np.asarray(features(states), dtype=np.float64)
    if made.ndim != 2 or len(made) != len(states):
        raise ArgumentError(f"{who} made {made.shape} of {len(states)} states: it must make (n, d)")
    if not np.isfinite(made).all():
        raise ArgumentError(f"{who} made values that are not finite")
    return made


@storable
@dataclass(frozen=True)
class OneHot:
    """One feature per finite state: the linear class then equals the tabular one."""

    n_states: int

    def __call__(self, states: Array) -> FloatArray:
        """(n, S)"""  # noqa: D400, D415
        columns = rows_of(np.arange(self.n_states), states)
        features = np.zeros((len(columns), self.n_states))
        features[np.arange(len(columns)), columns] = 1.0
        return features


@storable
@dataclass(frozen=True)
class Polynomial:
    """All monomials of the observations up to a degree, the constant included."""

    degree: int = 1

    def __post_init__(self) -> None:
        if self.degree < 0:
            raise ArgumentError(f"degree is {self.degree}: it must not be negative")

    def __call__(self, states: Array) -> FloatArray:
        """(n, d)"""  # noqa: D400, D415
        if states.ndim != 2:
            raise ArgumentError(
                f"Polynomial needs feature vectors (n, d), but these states have shape {states.shape}: "
                "use OneHot(n_states) for finite states"
            )
        values = np.asarray(states, dtype=np.float64)
        degrees, starts = [np.ones((len(values), 1)), values][: self.degree + 1], list(range(values.shape[1]))
        for _ in range(2, self.degree + 1):  # each column times what begins with it or a later one
            parts = [values[:, [i]] * degrees[-1][:, start:] for i, start in enumerate(starts)]
            starts = [0, *accumulate(part.shape[1] for part in parts)][:-1]
            degrees.append(np.concatenate(parts, axis=1))
        return np.concatenate(degrees, axis=1)
