"""Behavior over features by multinomial logistic regression."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np
import scipy  # its parts are loaded when first used

from checkrein.base.arrays import Array, FloatArray, IntArray, frozen
from checkrein.base.brief import brief
from checkrein.base.storage import storable

STEPS = 200  # of L-BFGS, at the most


@storable
@dataclass(frozen=True, eq=False, repr=False)
class LogisticPolicy:
    """Multinomial logistic probabilities over features: behavior as a log shows it."""

    features: Callable[[Array], FloatArray]
    weights: FloatArray  # (q, A); -inf in the first row for an action that was never logged

    def __repr__(self) -> str:
        return brief(self)

    def probabilities(self, states: Array) -> FloatArray:
        """(n, A)"""  # noqa: D400, D415
        return self.of_features(self.features(states))

    def of_features(self, features: FloatArray) -> FloatArray:
        """(n, A) of states that were mapped before."""
        return logistic(features, self.weights)


def logistic(features: FloatArray, weights: FloatArray) -> FloatArray:
    """(n, A) softmax of linear scores."""
    never = ~np.isfinite(weights[0])
    scores = features @ np.where(never, 0.0, weights)
    scores[:, never] = -np.inf
    exponentials = np.exp(scores - _largest(scores)[:, None])
    return np.asarray(exponentials / (exponentials @ np.ones(scores.shape[1]))[:, None])


def _largest(scores: FloatArray) -> FloatArray:
    """(n,) the largest of each row (n, A), action by action: few actions, many rows."""
    return np.asarray(reduce(np.maximum, scores.T))


def fit_logistic(
    features: FloatArray, actions: IntArray, weights: FloatArray, n_actions: int, *, ridge: float = 1.0
) -> FloatArray:
    """(q, A) the weights that make actions (n,) likeliest, with ridge / 2 |w|^2 added; the constant is not shrunk.

    features: (n, q), the first of them constant
    """
    logged = np.unique(actions)
    q, a = features.shape[1], logged.size
    place = np.searchsorted(logged, actions)
    taken = np.zeros((len(actions), a))
    taken[np.arange(len(actions)), place] = 1.0
    shrunk = np.full((q, 1), ridge)
    shrunk[0] = 1e-6
    total = weights.sum()

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        w = flat.reshape(q, a)
        scores = features @ w
        scores -= _largest(scores)[:, None]
        norm = np.log(np.exp(scores) @ np.ones(a))
        likelihood = weights @ (scores[np.arange(len(place)), place] - norm)
        gradient = features.T @ (weights[:, None] * (np.exp(scores - norm[:, None]) - taken)) + shrunk * w
        return float((-likelihood + 0.5 * (shrunk * w**2).sum()) / total), (gradient / total).ravel()

    start = np.zeros((q, a))
    start[0] = np.log(np.bincount(place, weights, a) / total)
    found = scipy.optimize.minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    table = np.zeros((q, n_actions))
    table[0] = -np.inf
    table[:, logged] = found.x.reshape(q, a)
    return frozen(table)
