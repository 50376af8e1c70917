"""Behavior: who wrote the log, as estimated from it, and which actions it takes often enough."""

from dataclasses import dataclass

import numpy as np

from checkrein.base.arrays import Array, BoolArray, FloatArray, frozen
from checkrein.base.errors import ArgumentError
from checkrein.base.storage import storable
from checkrein.data.dataset import Dataset
from checkrein.policies.tabular import TabularPolicy
from checkrein.protocols import FunctionClass, Policy, QFunction


def behavior_policy(dataset: Dataset, *, never_left: Policy | None = None) -> Policy:
    """Return who wrote the log: shares of the actions in finite states, a logistic model elsewhere.

    never_left: what is assumed in finite states that no row begins in, where no action has evidence; None: any action
    """
    if dataset.n_states is None:
        return BehaviorMask.estimate(dataset, 0.0)
    pair = dataset.states * dataset.n_actions + dataset.actions
    counts = np.bincount(pair, dataset.weights, dataset.n_states * dataset.n_actions)
    table = counts.reshape(dataset.n_states, dataset.n_actions)
    assumed = 1.0 if never_left is None else never_left.probabilities(np.arange(dataset.n_states))
    table = np.where(table.any(axis=1, keepdims=True), table, assumed)
    return TabularPolicy(table / table.sum(axis=1, keepdims=True))


@storable
@dataclass(frozen=True, eq=False)
class BehaviorMask:
    """Actions whose probability under a logistic model of behavior reaches a threshold."""

    centre: FloatArray  # (d,)
    scale: FloatArray  # (d,)
    coefficients: FloatArray  # (A, d); a row of zeros for an action never logged
    intercepts: FloatArray  # (A,); -inf for an action never logged
    threshold: float

    @classmethod
    def estimate(cls, dataset: Dataset, threshold: float) -> "BehaviorMask":
        """Fit multinomial logistic regression of the logged actions on standardised states."""
        states = dataset.states
        if states.ndim != 2:
            raise ArgumentError(
                f"behavior can be estimated for feature vectors, not for states of shape {states.shape[1:]}: "
                "use Support(behavior=Neural(...)), or Support(min_probability=0)"
            )
        states = states.astype(np.float64, copy=False)
        centre = np.average(states, axis=0, weights=dataset.weights)
        spread = np.sqrt(np.average((states - centre) ** 2, axis=0, weights=dataset.weights))
        scale = np.where(spread > 0, spread, 1.0)
        logged = np.unique(dataset.actions)
        coefficients = np.zeros((dataset.n_actions, states.shape[1]))
        intercepts = np.full(dataset.n_actions, -np.inf)
        if logged.size == 1:
            intercepts[logged] = 0.0
        else:
            from sklearn.linear_model import LogisticRegression  # noqa: PLC0415  slow to import, and seldom needed

            model = LogisticRegression(max_iter=500)
            model.fit((states - centre) / scale, dataset.actions, sample_weight=dataset.weights)
            two = logged.size == 2  # then scikit-learn keeps only the log-odds of the second
            coefficients[logged] = np.vstack([np.zeros_like(model.coef_), model.coef_]) if two else model.coef_
            intercepts[logged] = np.append(0.0, model.intercept_) if two else model.intercept_
        return cls(frozen(centre), frozen(scale), frozen(coefficients), frozen(intercepts), threshold)

    def probabilities(self, states: Array) -> FloatArray:
        """(n, A) the estimated behavior policy."""
        scores = ((states - self.centre) / self.scale) @ self.coefficients.T + self.intercepts
        exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
        return exponentials / exponentials.sum(axis=1, keepdims=True)

    def allowed(self, states: Array) -> BoolArray:
        """(n, A)"""  # noqa: D400, D415
        return reaching(self.probabilities(states), self.threshold)


@storable
@dataclass(frozen=True, eq=False)
class RegressedMask:
    """Actions whose share, regressed on the state, reaches a threshold."""

    shares: QFunction  # (n, 1, A)
    threshold: float

    @classmethod
    def estimate(cls, dataset: Dataset, threshold: float, functions: FunctionClass) -> "RegressedMask":
        """Regress on the states whether each action was the one that was taken."""
        nothing = np.zeros(len(dataset), dtype=np.int64)
        design = functions.design(dataset.states, nothing, dataset.weights, n_actions=1)
        taken = np.asarray(dataset.actions[:, None] == np.arange(dataset.n_actions), dtype=np.float64)
        return cls(design.fit(taken, rng=np.random.default_rng(0)), threshold)

    def probabilities(self, states: Array) -> FloatArray:
        """(n, A) the estimated behavior policy."""
        shares = np.clip(self.shares(states)[:, 0], 0, None)
        total = shares.sum(axis=1, keepdims=True)
        return np.divide(shares, total, out=np.full_like(shares, 1 / shares.shape[1]), where=total > 0)

    def allowed(self, states: Array) -> BoolArray:
        """(n, A)"""  # noqa: D400, D415
        return reaching(self.probabilities(states), self.threshold)


def reaching(probabilities: FloatArray, threshold: float) -> BoolArray:
    """(n, A) actions as likely as the threshold; where none is, those that come closest."""
    return probabilities >= np.minimum(threshold, probabilities.max(axis=1, keepdims=True))
