"""Where episodes begin, under other weights of the episodes."""

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.problem import Episodes, Problem


class Starts:
    """The states that episodes begin in: each its own, or one given distribution for all."""

    def __init__(self, problem: Problem, episodes: Episodes) -> None:
        self.own = problem.dataset.own_starts
        self.states = episodes.states[episodes.begins] if self.own else problem.dataset.initial_states
        weights = problem.dataset.initial_weights
        self.shares = weights / weights.sum()

    def initial_distribution(self, weights: FloatArray) -> FloatArray:
        """(B, starts) how likely each is, under weights (B, e)."""
        if self.own:
            return np.asarray(weights / weights.sum(axis=1, keepdims=True))
        return np.broadcast_to(self.shares, (len(weights), self.shares.size))

    def mean(self, each: FloatArray, weights: FloatArray) -> FloatArray:
        """(B, ...) of what starts are worth (B or 1, starts, ...), under weights (B, e)."""
        return np.einsum("be,be...->b...", self.initial_distribution(weights), each)

    def influence(self, each: FloatArray, values: FloatArray) -> FloatArray | float:
        """(B, e, k) what each episode's own start adds; nothing where starts are given."""
        return each - values[:, None] if self.own else 0.0
