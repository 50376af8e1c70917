"""Where episodes begin, under other weights of the episodes."""

import numpy as np

from bridle.arrays import FloatArray
from bridle.evaluation.episodes import Episodes
from bridle.problem import Problem


class Starts:
    """The states that episodes begin in: each its own, or one given distribution for all."""

    def __init__(self, problem: Problem, episodes: Episodes) -> None:
        firsts = episodes.states[episodes.begins]
        given = problem.dataset.initial_states
        self.own = len(given) == len(firsts) and np.array_equal(np.sort(given, axis=0), np.sort(firsts, axis=0))
        self.states = firsts if self.own else given
        self.shares = problem.dataset.initial_weights / problem.dataset.initial_weights.sum()

    def mean(self, each: FloatArray, weights: FloatArray) -> FloatArray:
        """(B, ...) of what starts are worth (B or 1, starts, ...), under weights (B, e)."""
        if self.own:
            return np.einsum("be,be...->b...", weights / weights.sum(axis=1, keepdims=True), each)
        return np.einsum("s,bs...->b...", self.shares, each)

    def influence(self, each: FloatArray, values: FloatArray) -> FloatArray | float:
        """(B, e, k) what each episode's own start adds; nothing where starts are given."""
        return each - values[:, None] if self.own else 0.0
