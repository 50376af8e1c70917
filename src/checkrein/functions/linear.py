"""Linear: any feature map of the state, one weight vector per action and cost, ridge regression."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from checkrein import engine
from checkrein.base.arrays import Array, FloatArray, IntArray, frozen
from checkrein.base.errors import ArgumentError, DivergenceError
from checkrein.base.storage import storable
from checkrein.functions.features import Polynomial, mapped
from checkrein.protocols import QFunction

FeatureMap = Callable[[Array], FloatArray]
RANK = 1e-13  # eigenvalues of the scaled Gram matrix below this are directions that the log does not show
ROUNDED = 1e-9  # a spectral radius so close to 1 is 1: what it leads to has no digits left


@dataclass(frozen=True)
class Linear:
    """The function class Q(x, a) = features(x) . w_a, by least squares with `ridge` * |w|^2 added.

    Without ridge, directions of feature space that no row shows get no weight (in features scaled to one size).
    """

    features: FeatureMap = field(default_factory=Polynomial)
    ridge: float = 0.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.ridge) and self.ridge >= 0):
            raise ArgumentError(f"ridge is {self.ridge}: it must be finite and not negative")

    def design(self, states: Array, actions: IntArray, weights: FloatArray, *, n_actions: int) -> "LinearDesign":
        """Invert the weighted Gram matrix of each action."""
        order = np.argsort(actions, kind="stable")
        features = mapped(self.features, states)[order]
        bounds = np.searchsorted(actions[order], np.arange(n_actions + 1))
        blocks = [slice(begin, end) for begin, end in pairwise(bounds)]
        weighted = features * weights[order, None]
        inverses = [_inverse(_products(features[rows], weighted[rows]), self.ridge) for rows in blocks]
        return LinearDesign(self.features, order, blocks, weighted, np.stack(inverses))


@storable
@dataclass(frozen=True, eq=False)
class LinearQ:
    """Values linear in the features of the state."""

    features: FeatureMap
    weights: FloatArray  # (A, d, k)

    def __call__(self, states: Array) -> FloatArray:
        """(n, A, k)"""  # noqa: D400, D415
        n_actions, d, k = self.weights.shape
        flat = self.weights.transpose(1, 0, 2).reshape(d, n_actions * k)
        return (self.features(states) @ flat).reshape(len(states), n_actions, k)


@dataclass(frozen=True, eq=False)
class LinearDesign:
    """Weighted features by action, and the inverse of each action's Gram matrix."""

    features: FeatureMap
    order: IntArray  # (n,) rows by action
    blocks: list[slice]  # of the ordered rows, one per action
    weighted: FloatArray  # (n, d) ordered, times the row weights
    inverses: FloatArray  # (A, d, d)

    def solve(self, targets: FloatArray) -> FloatArray:
        """Return the weights (A, d, k) of the regression of targets (n, k)."""
        ordered = targets[self.order]
        moments = [_products(self.weighted[rows], ordered[rows]) for rows in self.blocks]
        return self.inverses @ np.stack(moments)

    def fit(self, targets: FloatArray, *, rng: np.random.Generator, start: QFunction | None = None) -> LinearQ:  # noqa: ARG002
        """Regress targets (n, k); exact, so neither chance nor a start matters."""
        return LinearQ(self.features, frozen(self.solve(targets)))

    def dynamics(self, next_states: Array, continuation: FloatArray) -> "LinearDynamics":
        """Map the next states once."""
        ahead = np.asarray(self.features(next_states), dtype=np.float64) * continuation[:, None]
        return LinearDynamics(self, next_states, ahead[self.order])


@dataclass(frozen=True, eq=False)
class LinearDynamics:
    """The recursion w_k = b + M_pi w_{k-1} that fitted evaluation is in this class, and its fixed point (LSTDQ)."""

    design: LinearDesign
    next_states: Array
    ahead: FloatArray  # (n, d) features of the next states times their continuation, by action like the design

    def evaluate(
        self, costs: FloatArray, probabilities: Callable[[Array], FloatArray], *, require_contraction: bool
    ) -> LinearQ:
        """Solve w = b + M_pi w after one pass over the rows (Algorithm 7 of the paper)."""
        recursion = self._recursion(probabilities(self.next_states))
        if require_contraction:
            radius = float(np.abs(np.linalg.eigvals(recursion)).max())
            if radius >= 1 - ROUNDED:
                raise DivergenceError(
                    f"fitted evaluation with these features does not converge: its recursion has spectral radius "
                    f"{radius:.6g}, at least 1. Raise the ridge, choose other features, pass iterations=, or use LSTDQ"
                )
        n_actions, d, _ = self.design.inverses.shape
        immediate = self.design.solve(costs).reshape(n_actions * d, -1)
        try:
            weights = np.linalg.solve(np.eye(n_actions * d) - recursion, immediate)
        except np.linalg.LinAlgError:
            raise DivergenceError(
                "the equations of this policy's value have no unique solution with these features: "
                "raise the ridge, use a discount below 1, or choose other features"
            ) from None
        return LinearQ(self.design.features, frozen(weights.reshape(n_actions, d, -1)))

    def _recursion(self, probabilities: FloatArray) -> FloatArray:
        """Return M_pi (A d, A d): the next features under the policy, regressed on the features of the row."""
        n_actions, d, _ = self.design.inverses.shape
        crossed = np.zeros((n_actions, d, n_actions, d))
        for action, block in enumerate(self.design.blocks):
            features, ahead, after = (
                self.design.weighted[block],
                self.ahead[block],
                probabilities[self.design.order[block]],
            )
            for following in range(n_actions):  # a policy seldom gives every action a chance: skip the rows it does not
                taken = np.flatnonzero(after[:, following])
                chances = after[taken, following, None]
                crossed[action, :, following] = _products(features[taken], ahead[taken] * chances)
        flat = crossed.reshape(n_actions, d, n_actions * d)
        return (self.design.inverses @ flat).reshape(n_actions * d, n_actions * d)


def _products(left: FloatArray, right: FloatArray) -> FloatArray:
    """(d, k) the sum over rows of the products of (n, d) and (n, k)."""
    return engine.current().sum_rows(lambda rows: left[rows].T @ right[rows], len(left))


def _inverse(gram: FloatArray, ridge: float) -> FloatArray:
    """Invert on the directions that the log shows, in units in which every feature has the same size."""
    penalised = gram + ridge * np.eye(len(gram))
    size = np.sqrt(np.diagonal(penalised))
    unit = np.where(size > 0, size, 1.0)
    scales = np.outer(unit, unit)
    spread, directions = np.linalg.eigh(penalised / scales)
    shown = spread > RANK * len(gram)
    inverse = np.divide(1.0, spread, out=np.zeros_like(spread), where=shown)
    return np.asarray((directions * inverse) @ directions.T / scales)
