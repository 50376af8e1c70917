"""Feature maps for the linear class; any callable from states to an (n, d) array will do."""

from collections.abc import Callable
from dataclasses import dataclass
from math import comb

import numpy as np

from checkrein.base.arrays import Array, FloatArray
from checkrein.base.errors import ArgumentError
from checkrein.base.storage import storable
from checkrein.policies import rows_of


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

    degree: int = 2

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
        n, d = states.shape
        features = np.empty((n, comb(d + self.degree, d)))
        features[:, 0] = 1.0
        if self.degree > 0:
            features[:, 1 : d + 1] = states
        end, starts = d + 1, list(range(1, d + 1))  # of the last degree: its end, and what begins with each column
        for _ in range(2, self.degree + 1):
            last, following = end, []
            for column, start in enumerate(starts, 1):
                following.append(end)
                end += last - start
                np.multiply(features[:, [column]], features[:, start:last], out=features[:, following[-1] : end])
            starts = following
        return features
