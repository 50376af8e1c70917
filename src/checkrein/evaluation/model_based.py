"""Certainty equivalence: what a policy costs in the finite MDP of the log's own shares and mean costs."""

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from checkrein.base.arrays import FloatArray
from checkrein.base.errors import ArgumentError
from checkrein.bellman.termination import require_end
from checkrein.data.dataset import Dataset
from checkrein.functions import Tabular
from checkrein.policies import Support, Supported, members_of
from checkrein.problem import Problem, Values
from checkrein.protocols import FunctionClass, Policy


@dataclass(frozen=True)
class TabularModel:
    """Count where each pair led, and follow the policy there for ever: expected discounted visits times mean costs.

    support: an action outside it is valued at the worst the costs allow, as in FQE.
    """

    support: Support = field(default_factory=Support)

    @property
    def refitted(self) -> FunctionClass:
        """The class whose fixed point it is: FQE with tables has the same values."""
        return Tabular()

    def __call__(self, problem: Problem, policy: Policy, *, rng: np.random.Generator) -> Values:
        """Estimate what the policy would incur from the logged initial states."""
        del rng  # nothing is drawn
        mean = np.asarray(sum(share * self._values(problem, member) for member, share in members_of(policy)))
        return Values(float(mean[0]), mean[1:])

    def _values(self, problem: Problem, policy: Policy) -> FloatArray:
        """(1 + m,) of a policy that is not a mixture."""
        from scipy.sparse import linalg  # noqa: PLC0415  # slow to import

        rows = problem.transitions
        if rows.n_states is None:
            raise ArgumentError("a tabular model needs finite states (one column of integers): use FQE(Linear(...))")
        n_states = rows.n_states
        choices = Supported.of(policy, np.arange(n_states), self.support.of(problem), rows.n_actions)
        supported = choices.probabilities
        pairs = rows.states * rows.n_actions + rows.actions
        counts = np.bincount(pairs, rows.weights, supported.size)
        row_probability = supported.ravel()[pairs] * np.divide(
            rows.weights, counts[pairs], out=np.zeros(len(rows)), where=counts[pairs] > 0
        )  # (n,) the probability, in its state, of each row
        if problem.discount == 1:
            _require_end(rows, row_probability, supported)
        chain = (row_probability * problem.continuation, (rows.next_states, rows.states))
        matrix = sparse.eye_array(n_states, format="csc") - sparse.csc_array(chain, shape=(n_states, n_states))
        start = np.bincount(rows.initial_states, rows.initial_weights, n_states)
        occupancy = np.atleast_1d(linalg.spsolve(matrix, start / start.sum()))
        unsupported = occupancy @ choices.at_worst(problem, policy, np.arange(n_states))
        return np.asarray((occupancy[rows.states] * row_probability) @ problem.costs(policy) + unsupported)


def _require_end(rows: Dataset, row_probability: FloatArray, supported: FloatArray) -> None:
    taken = row_probability > 0
    gives_up = supported.sum(axis=1) < 1 - 1e-9
    states, next_states = rows.states[taken], rows.next_states[taken]
    ends = (rows.terminals | gives_up[rows.states])[taken]
    require_end(states, np.zeros_like(states), next_states, ends, n_states=len(supported), who="this policy")
