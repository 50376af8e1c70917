"""Policies near behavior: its probabilities, tilted towards what is worth more, and only where the log is dense."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from checkrein.base.arrays import Array, FloatArray
from checkrein.base.brief import brief
from checkrein.base.storage import storable
from checkrein.policies.logistic import logistic

REACH = 2.0  # log-odds that a tilt can change, either way


@storable
@dataclass(frozen=True, eq=False, repr=False)
class TiltedPolicy:
    """behavior(a | s) exp(f(tilt)), normalised: f keeps a tilt within REACH and lets it fade where the log is thin.

    A KL-regularised best response has this form, with behavior as prior and minus Q over the temperature as tilt.
    """

    features: Callable[[Array], FloatArray]
    behavior: FloatArray  # (q, A) of a LogisticPolicy
    tilt: FloatArray  # (q, A)
    dense: float  # squared norm of features up to which tilts count in full

    def __repr__(self) -> str:
        return brief(self)

    def probabilities(self, states: Array) -> FloatArray:
        """(n, A)"""  # noqa: D400, D415
        return self.of_features(self.features(states))

    def of_features(self, features: FloatArray) -> FloatArray:
        """(n, A) of states that were mapped before."""
        counts = fading(features, self.dense)
        return tilted(logistic(features, self.behavior), features @ self.tilt, counts)


def fading(features: FloatArray, dense: float) -> FloatArray:
    """(n,) how much of a tilt counts: all where the log is dense, less the farther out a state lies."""
    far = np.einsum("nq,nq->n", features, features)
    return np.asarray(np.minimum(1.0, dense / np.maximum(far, 1e-12)))


def tilted(behavior: FloatArray, tilt: FloatArray, counts: FloatArray) -> FloatArray:
    """(n, A) behavior (n, A) times what tilts (n, A), centred under it, make of it where they count (n,)."""
    ones = np.ones(behavior.shape[1])  # few actions: a product is faster than a sum over them
    centred = (tilt - ((behavior * tilt) @ ones)[:, None]) * counts[:, None]
    odds = behavior * np.exp(REACH * np.tanh(centred / REACH))
    return np.asarray(odds / (odds @ ones)[:, None])
