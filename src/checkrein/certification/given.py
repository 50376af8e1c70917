"""Means given what is known of a row: its finite state, or features of it, alone or with the action."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from checkrein.base.arrays import Array, BoolArray, FloatArray, IntArray
from checkrein.problem import Episodes

CLIPPED = 3.0  # standard deviations of a feature: beyond, single rows would decide
CROSSED = 6  # up to so many features, their products are features, too
RIDGE = 1e-6  # of the rows
PRIOR = 5.0  # rows of the overall variance that join those of a pair


class Known(Protocol):
    """A log as its regressions see it: what is known is the state, or the state and the action."""

    def mean(self, rows: BoolArray, columns: FloatArray) -> tuple[FloatArray, BoolArray]:
        """(n, k) means of columns (n, k) over the rows chosen, given what is known; (n,) where there are any."""
        ...

    def state_mean(self, rows: BoolArray, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(n, k) means given the state, at each row's state and at its next state."""
        ...

    def spread(self, rows: BoolArray, errors: FloatArray) -> FloatArray:
        """(n, k) how much errors (n, k) vary, given what is known."""
        ...


def known_of(
    episodes: Episodes, *, acted: bool = True, features: Callable[[Array], FloatArray] | None = None
) -> "Tables | Quadratics | None":
    """Return tables over finite states, or quadratic functions of feature vectors; None for anything else.

    acted: whether means are given the action, too
    features: in place of quadratic functions, linear ones of what these make of states
    """
    if episodes.problem.dataset.n_states is not None:
        return Tables(episodes, acted)
    return Quadratics(episodes, acted, features) if episodes.states.ndim == 2 else None


@dataclass(frozen=True, eq=False)
class Tables:
    """Means over equal pairs, or equal states."""

    episodes: Episodes
    acted: bool = True  # whether `mean` is given the action, too

    @cached_property
    def _states(self) -> tuple[IntArray, IntArray, int]:
        """(n,) states and next states numbered without gaps, and how many there are; of an end, any will do."""
        e = self.episodes
        following = np.where(e.next_observed & ~e.terminals, e.next_states, e.states)
        found, place = np.unique(np.concatenate([e.states, following]), return_inverse=True)
        return place[: e.states.size], place[e.states.size :], found.size

    @cached_property
    def _place(self) -> tuple[IntArray, int]:
        """(n,) the number of what is known in each row, and how many there are."""
        states, _, size = self._states
        if not self.acted:
            return states, size
        found, place = np.unique(states * self.episodes.n_actions + self.episodes.actions, return_inverse=True)
        return place, found.size

    @cached_property
    def _weights(self) -> FloatArray:
        return self.episodes.weights[self.episodes.episode]

    def mean(self, rows: BoolArray, columns: FloatArray) -> tuple[FloatArray, BoolArray]:
        """(n, k) and (n,)."""
        place, size = self._place
        table, total = self._means(place, size, rows, columns)
        return table[place], total[place] > 0

    def state_mean(self, rows: BoolArray, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(n, k) twice; what was never seen is the mean of all."""
        states, following, size = self._states
        table, total = self._means(states, size, rows, columns)
        table[total == 0] = np.average(columns[rows], axis=0, weights=self._weights[rows])
        return table[states], table[following]

    def spread(self, rows: BoolArray, errors: FloatArray) -> FloatArray:
        """(n, k), shrunk towards that of all rows."""
        place, size = self._place
        squares, total = self._means(place, size, rows, errors**2)
        overall = np.average(errors[rows] ** 2, axis=0, weights=self._weights[rows])
        table = np.sqrt((total[:, None] * squares + PRIOR * overall) / (total[:, None] + PRIOR))
        return np.where(table > 0, table, 1.0)[place]

    @property
    def place(self) -> IntArray:
        """(n,) the number of what is known in each row."""
        return self._place[0]

    def total(self, rows: BoolArray) -> FloatArray:
        """(n,) the weight of the rows chosen in each row's place."""
        place, size = self._place
        return np.asarray(np.bincount(place[rows], self._weights[rows], size)[place], dtype=np.float64)

    def by_action(self, rows: BoolArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(p, A) and (p,) of each place, the means of values (n,) where an action was taken and 0 elsewhere; weights.

        No table of all rows and actions is needed.
        """
        place, size = self._place
        chosen, n_actions = np.flatnonzero(rows), self.episodes.n_actions
        at, weights, actions = place[chosen], self._weights[chosen], self.episodes.actions[chosen]
        total = np.asarray(np.bincount(at, weights, size), np.float64)
        sums = np.bincount(at * n_actions + actions, weights * values[chosen], size * n_actions)
        sums = sums.reshape(size, n_actions)
        return np.divide(sums, total[:, None], out=np.zeros_like(sums), where=total[:, None] > 0), total

    @cached_property
    def with_past(self) -> tuple[IntArray, IntArray]:
        """(n,) each row's place together with the last state, and with the last action."""
        states, _, size = self._states
        found = []
        for last, none in ((states, size), (self.episodes.actions, self.episodes.n_actions)):
            before = np.roll(last, 1)
            before[self.episodes.begins] = none
            found.append(np.unique(self._place[0] * (none + 1) + before, return_inverse=True)[1])
        return found[0], found[1]

    def remembered(self, place: IntArray, rows: BoolArray, errors: FloatArray) -> FloatArray:
        """(n, k) mean errors of the rows chosen in each of `with_past`, shrunk towards zero."""
        table, total = self._means(place, int(place.max()) + 1, rows, errors)
        return np.asarray((table * (total / (total + 2 * PRIOR))[:, None])[place])

    def _means(self, place: IntArray, size: int, rows: BoolArray, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
        chosen = np.flatnonzero(rows)
        at, weights = place[chosen], self._weights[chosen]
        total = np.asarray(np.bincount(at, weights, size), dtype=np.float64)
        sums = np.zeros((size, columns.shape[1]))
        for i, column in enumerate(columns[chosen].T):
            sums[:, i] = np.bincount(at, weights * column, size)
        return np.divide(sums, total[:, None], out=np.zeros_like(sums), where=total[:, None] > 0), total


@dataclass(frozen=True, eq=False)
class Quadratics:
    """Least squares on standardised features and their squares, or on other features, for each action alone."""

    episodes: Episodes
    acted: bool = True
    features: Callable[[Array], FloatArray] | None = None

    @cached_property
    def _weights(self) -> FloatArray:
        return self.episodes.weights[self.episodes.episode]

    @cached_property
    def scaled(self) -> FloatArray:
        """(n, d) the features of each row's state."""
        return self._scale(self.episodes.states)

    @cached_property
    def _ends(self) -> tuple[FloatArray, FloatArray]:
        states = np.asarray(self.episodes.states, dtype=np.float64)
        centre, size = states.mean(axis=0), states.std(axis=0)
        return centre, np.where(size > 0, size, 1.0)

    def _scale(self, states: Array) -> FloatArray:
        centre, size = self._ends
        return np.asarray(np.clip((np.asarray(states, dtype=np.float64) - centre) / size, -CLIPPED, CLIPPED))

    def _features(self, states: Array) -> FloatArray:
        if self.features is not None:
            return self.features(states)
        scaled = self._scale(states)
        d = scaled.shape[1]
        left, right = np.triu_indices(d) if d <= CROSSED else (np.arange(d), np.arange(d))
        return np.hstack([np.ones((len(scaled), 1)), scaled, scaled[:, left] * scaled[:, right]])

    @cached_property
    def _here(self) -> FloatArray:
        return self._features(self.episodes.states)

    def _fit(self, rows: BoolArray, columns: FloatArray) -> FloatArray:
        x, weights = self._here[rows], self._weights[rows]
        gram = x.T @ (weights[:, None] * x)
        gram += RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))
        return np.asarray(np.linalg.solve(gram, x.T @ (weights[:, None] * columns[rows])))

    def mean(self, rows: BoolArray, columns: FloatArray) -> tuple[FloatArray, BoolArray]:
        """(n, k) and (n,)."""
        if not self.acted:
            return self._here @ self._fit(rows, columns), np.ones(len(columns), dtype=bool)
        values, told = np.zeros_like(columns), np.zeros(len(columns), dtype=bool)
        for action in range(self.episodes.n_actions):
            here = self.episodes.actions == action
            if np.count_nonzero(rows & here) > 2 * self._here.shape[1]:
                values[here] = self._here[here] @ self._fit(rows & here, columns)
                told |= here
        return values, told

    def state_mean(self, rows: BoolArray, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(n, k) twice."""
        fitted = self._fit(rows, columns)
        following = np.where(self._goes_on[:, None], self.episodes.next_states, self.episodes.states)
        return self._here @ fitted, self._features(following) @ fitted

    @cached_property
    def _goes_on(self) -> BoolArray:
        return self.episodes.next_observed & ~self.episodes.terminals

    def spread(self, rows: BoolArray, errors: FloatArray) -> FloatArray:
        """(n, k), the same for all rows."""
        size = np.sqrt(np.average(errors[rows] ** 2, axis=0, weights=self._weights[rows]))
        return np.broadcast_to(np.where(size > 0, size, 1.0), errors.shape)
