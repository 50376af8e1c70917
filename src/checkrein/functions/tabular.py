"""Tabular: one free value per finite state, action and cost. Least squares is then a weighted mean."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from checkrein.base.arrays import Array, FloatArray, IntArray, frozen
from checkrein.base.chain import DENSE_STATES, solve_sparse
from checkrein.base.errors import ArgumentError
from checkrein.base.storage import storable
from checkrein.policies import rows_of
from checkrein.protocols import QFunction


@dataclass(frozen=True)
class Tabular:
    """The function class of all tables over finite states; what was never logged is 0 and left to the support rule."""

    def design(self, states: Array, actions: IntArray, weights: FloatArray, *, n_actions: int) -> "TabularDesign":
        """Index the logged pairs."""
        if states.ndim != 1 or states.dtype.kind not in "iu":
            raise ArgumentError(
                f"Tabular needs finite states (one column of integers), but these are {states.dtype} "
                f"of shape {states.shape}: use Linear(features)"
            )
        n_states = int(states.max()) + 1
        pairs = states * n_actions + actions
        totals = np.bincount(pairs, weights, n_states * n_actions)
        shares = np.divide(weights, totals[pairs], out=np.zeros(len(pairs)), where=totals[pairs] > 0)
        return TabularDesign(pairs, shares, n_states, n_actions)


@storable
@dataclass(frozen=True, eq=False)
class TabularQ:
    """A table of values; a state beyond it was never left in the log and is 0 like all that was not seen."""

    table: FloatArray  # (S, A, k)

    def __call__(self, states: Array) -> FloatArray:
        """(n, A, k)"""  # noqa: D400, D415
        if states.size == 0 or states.max() < len(self.table):
            return rows_of(self.table, states)
        values = np.zeros((len(states), *self.table.shape[1:]))
        known = states < len(self.table)
        values[known] = rows_of(self.table, states[known])
        return values


@dataclass(frozen=True, eq=False)
class TabularDesign:
    """Each row's pair, and its share in the pair's weight."""

    pairs: IntArray  # (n,)
    shares: FloatArray  # (n,)
    n_states: int
    n_actions: int

    def mean(self, targets: FloatArray, n_states: int) -> FloatArray:
        """(S * A, k) the weighted mean target of each pair."""
        size = n_states * self.n_actions
        return np.stack([np.bincount(self.pairs, self.shares * column, size) for column in targets.T], axis=1)

    def fit(self, targets: FloatArray, *, rng: np.random.Generator, start: QFunction | None = None) -> TabularQ:  # noqa: ARG002
        """Regress targets (n, k); exact, so neither chance nor a start matters."""
        table = self.mean(targets, self.n_states)
        return TabularQ(frozen(table.reshape(self.n_states, self.n_actions, -1)))

    def dynamics(self, next_states: Array, continuation: FloatArray) -> "TabularDynamics":
        """Gather the discounted transition matrix, (S * A, S)."""
        n_states = max(self.n_states, int(next_states.max()) + 1)
        entries = self.shares * continuation, (self.pairs, next_states)
        matrix = sparse.csr_array(entries, shape=(n_states * self.n_actions, n_states))
        matrix.eliminate_zeros()
        return TabularDynamics(self, matrix, matrix.tocoo())


@dataclass(frozen=True, eq=False)
class TabularDynamics:
    """Where each pair leads: the empirical MDP, which policies are evaluated in exactly."""

    design: TabularDesign
    matrix: sparse.csr_array  # (S * A, S) probability times continuation
    entries: sparse.coo_array  # the same, by entry

    def evaluate(
        self,
        costs: FloatArray,
        probabilities: Callable[[Array], FloatArray],
        *,
        require_contraction: bool,  # noqa: ARG002
    ) -> TabularQ:
        """Solve V = c_pi + P_pi V over states, then Q = c + P V; tables always contract where the policy ends."""
        n_states, n_actions = self.matrix.shape[1], self.design.n_actions
        policy = probabilities(np.arange(n_states))
        immediate = self.design.mean(costs, n_states)
        immediate_cost = np.einsum("sa,sak->sk", policy, immediate.reshape(n_states, n_actions, -1))
        values = self._solve(policy.ravel(), immediate_cost)
        table = immediate + self.matrix @ values
        return TabularQ(frozen(table.reshape(n_states, n_actions, -1)))

    def _solve(self, probabilities: FloatArray, immediate_cost: FloatArray) -> FloatArray:
        n_states = len(immediate_cost)
        pairs, following = self.entries.coords
        states = pairs // self.design.n_actions
        moves = self.entries.data * probabilities[pairs]
        if n_states <= DENSE_STATES:
            flow = np.bincount(states * n_states + following, moves, n_states * n_states)
            return np.linalg.solve(np.eye(n_states) - flow.reshape(n_states, n_states), immediate_cost).astype(
                np.float64, copy=False
            )
        chain = sparse.csc_array((moves, (states, following)), shape=(n_states, n_states))
        return solve_sparse(sparse.eye_array(n_states, format="csc") - chain, immediate_cost)
