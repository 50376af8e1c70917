"""MajorityPolicy: what the members of a mixture take most, as one deterministic policy."""

from dataclasses import dataclass

import numpy as np

from checkrein.base.arrays import Array, FloatArray
from checkrein.base.brief import brief
from checkrein.base.storage import storable
from checkrein.policies.mixture import MixturePolicy

TIE = 1e-9  # shares of the vote that differ by less are equal: the first action is taken


@storable
@dataclass(frozen=True, eq=False, repr=False)
class MajorityPolicy:
    """The action on which the members of a mixture put the largest share of their weight; of equal ones the first."""

    mixture: MixturePolicy

    def __repr__(self) -> str:
        return brief(self)

    def probabilities(self, states: Array) -> FloatArray:
        """(n, A) one-hot."""
        return one_hot(self.mixture.probabilities(states))


def one_hot(shares: FloatArray) -> FloatArray:
    """(n, A) all on the largest share; of nearly equal ones on the first."""
    chosen = np.argmax(shares >= shares.max(axis=1, keepdims=True) - TIE, axis=1)
    return np.asarray(chosen[:, None] == np.arange(shares.shape[1]), dtype=np.float64)
