"""Refits of linear classes: the moments of each episode, and the least-squares equations that their sums make."""

import numpy as np

from checkrein.base.arrays import BoolArray, FloatArray
from checkrein.base.errors import DivergenceError
from checkrein.evaluation.starts import Starts
from checkrein.functions import Linear
from checkrein.policies import Supported
from checkrein.problem import Episodes, Problem
from checkrein.protocols import ActionMask, Policy


class LinearRefit:
    """Linear values: the moments of each episode, and the least-squares equations that their sums make."""

    def __init__(self, problem: Problem, policy: Policy, functions: Linear, evidence: ActionMask) -> None:
        episodes = Episodes.of(problem)
        self.starts = Starts(problem, episodes)
        n_actions = problem.dataset.n_actions
        known = episodes.terminals | episodes.next_observed
        features = np.asarray(functions.features(episodes.states), dtype=np.float64)
        self.rows = _spread_out(features, np.eye(n_actions)[episodes.actions] * known[:, None])  # (n, A d)
        size = np.sqrt(np.square(self.rows).mean(axis=0))
        self.scale = np.where(size > 0, size, 1.0)
        self.rows /= self.scale
        following = Supported.of(policy, episodes.next_states, evidence, n_actions)
        ahead = np.asarray(functions.features(episodes.next_states), dtype=np.float64)
        followed = following.probabilities * episodes.continuation[:, None]
        self.difference = self.rows - _spread_out(ahead, followed) / self.scale
        later = following.beside_fit(problem, policy, episodes.next_states)
        self.costs = np.where(_known(problem), 0.0, episodes.costs(policy)) + episodes.continuation[:, None] * later
        begin = Supported.of(policy, self.starts.states, evidence, n_actions)
        begun = np.asarray(functions.features(self.starts.states), dtype=np.float64)
        self.start = _spread_out(begun, begin.probabilities) / self.scale
        self.unsupported = begin.beside_fit(problem, policy, self.starts.states)  # (starts, k)
        self.allowed = problem.value_range(policy)
        self.ridge = np.diag(functions.ridge / self.scale**2)
        self.begins, self.episode = episodes.begins, episodes.episode
        d = self.rows.shape[1]
        products = self.rows[:, :, None] * self.difference[:, None, :]
        self.systems = np.add.reduceat(products.reshape(len(self.rows), -1), self.begins, axis=0)  # (e, d d)
        moments = self.rows[:, :, None] * self.costs[:, None, :]
        self.moments = np.add.reduceat(moments.reshape(len(self.rows), -1), self.begins, axis=0)
        self.d, self.k = d, self.costs.shape[1]
        self.size = d * d + (len(self.rows) + len(episodes)) * self.k

    def refit(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Solve the least-squares equations of every replicate."""
        d, total = self.d, weights.sum(axis=1, keepdims=True)
        system = (weights @ self.systems).reshape(-1, d, d) + self.ridge
        moments = (weights @ self.moments).reshape(-1, d, self.k)
        try:
            solved = np.linalg.solve(system, moments)
            initial = self.starts.mean(self.start[None], weights)
            dual = np.linalg.solve(np.swapaxes(system, 1, 2), initial[:, :, None])[:, :, 0]
        except np.linalg.LinAlgError:
            raise DivergenceError(
                "the equations of this policy's value have no unique solution with these features: raise the ridge"
            ) from None
        at_start = np.clip(np.einsum("sd,bdk->bsk", self.start, solved) + self.unsupported, *self.allowed)
        value = self.starts.mean(at_start, weights)
        influence = np.empty((len(weights), weights.shape[1], self.k))
        ratio = dual @ self.rows.T * total  # (B, n)
        for column in range(self.k):
            errors = self.costs[:, column] - solved[:, :, column] @ self.difference.T
            influence[:, :, column] = np.add.reduceat(ratio * errors, self.begins, axis=1)
        return value, influence + self.starts.influence(at_start, value)


def _known(problem: Problem) -> BoolArray:
    """(k,) the costs whose steps are known: what is fitted of them is what comes after."""
    return np.isin(np.arange(1 + problem.n_constraints), problem.known_costs)


def _spread_out(features: FloatArray, initial_distribution: FloatArray) -> FloatArray:
    """(n, A d) the features of each action's own weights, times its chance."""
    return np.einsum("na,nd->nad", initial_distribution, features).reshape(len(features), -1)
