"""Episodes: the rows of a log by episode and step, kept flat."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from checkrein.base.arrays import Array, BoolArray, FloatArray, IntArray
from checkrein.base.errors import DataError
from checkrein.problem.problem import Problem
from checkrein.protocols import Policy


@dataclass(frozen=True, eq=False)
class Episodes:
    """All rows of a problem's log, not merged, in the order of episode number and step.

    An episode whose last row is terminal has ended; any other was cut off there and would have gone on.
    """

    states: Array  # (n, ...)
    actions: IntArray  # (n,)
    next_states: Array  # (n, ...)
    terminals: BoolArray  # (n,)
    next_observed: BoolArray  # (n,)
    rows: IntArray  # (n,) where each row stands in the dataset
    labels: IntArray  # (e,) the episodes' own numbers, ascending
    begins: IntArray  # (e,) the first row of each episode
    lengths: IntArray  # (e,)
    weights: FloatArray  # (e,) how much each episode counts
    discount: float
    n_actions: int
    problem: Problem = field(repr=False)

    @classmethod
    def of(cls, problem: Problem) -> "Episodes":
        """Return the episodes of a problem, put in order once."""
        return problem.once("episodes", lambda: cls._order(problem))

    @classmethod
    def _order(cls, problem: Problem) -> "Episodes":
        dataset = problem.dataset
        if dataset.episodes is None:
            raise DataError("without episodes there is nothing to weigh: pass episodes= with the log's rows")
        dataset.first_rows()  # says which step occurs twice
        rows = dataset.order()
        ordered = dataset.episodes[rows]
        begins = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))
        lengths = np.diff(begins, append=len(rows))
        weights = dataset.weights[rows]
        uneven = weights != np.repeat(weights[begins], lengths)
        if uneven.any():
            at = int(np.argmax(uneven))
            first = weights[begins[np.searchsorted(begins, at, side="right") - 1]]
            raise DataError(
                f"row {rows[at]} of episode {ordered[at]} weighs {weights[at]:g}, but the first row of that episode "
                f"{first:g}: an episode counts as a whole, give all its rows one weight"
            )
        in_order: IntArray | slice = slice(None) if (np.diff(rows) == 1).all() else rows  # then nothing is copied
        return cls(
            states=dataset.states[in_order],
            actions=dataset.actions[in_order],
            next_states=dataset.next_states[in_order],
            terminals=dataset.terminals[in_order],
            next_observed=dataset.next_observed[in_order],
            rows=rows,
            labels=ordered[begins],
            begins=begins,
            lengths=lengths,
            weights=weights[begins],
            discount=problem.discount,
            n_actions=dataset.n_actions,
            problem=problem,
        )

    def costs(self, policy: Policy) -> FloatArray:
        """(n, 1 + m) for a policy that is not a mixture, signed as in the problem."""
        if not self.problem.policy_costs:
            return self.row_costs
        return self.problem.signed_costs(self.problem.dataset, policy)[self.rows]

    @cached_property
    def row_costs(self) -> FloatArray:
        """(n, 1 + m) whoever is valued; zero where a cost depends on the policy."""
        return self.problem.signed_costs(self.problem.dataset)[self.rows]

    @property
    def n_values(self) -> int:
        """The objective and every constraint: 1 + m."""
        return 1 + self.problem.n_constraints

    def __len__(self) -> int:
        return int(self.begins.size)

    @property
    def horizon(self) -> int:
        """The steps of the longest episode."""
        return int(self.lengths.max())

    @cached_property
    def episode(self) -> IntArray:
        """(n,) the place of each row's episode."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @cached_property
    def step(self) -> IntArray:
        """(n,) the steps before each row in its episode."""
        return np.arange(self.episode.size) - np.repeat(self.begins, self.lengths)

    @cached_property
    def factors(self) -> FloatArray:
        """(n,) discount ** step."""
        return np.asarray(self.discount ** np.arange(self.horizon), dtype=np.float64)[self.step]

    @property
    def continuation(self) -> FloatArray:
        """(n,) how much of the next state's value counts: the discount, or nothing after a terminal."""
        return np.where(self.terminals, 0.0, self.discount)

    @property
    def last(self) -> IntArray:
        """(e,) the last row of each episode."""
        return self.begins + self.lengths - 1

    @property
    def ended(self) -> BoolArray:
        """(e,) episodes that came to a terminal, and were not cut off."""
        return self.terminals[self.last]

    def products(self, ratios: FloatArray) -> FloatArray:
        """(n,) the product of the ratios (n,) from each episode's first row up to each row."""
        longest_first = np.argsort(-self.lengths, kind="stable")
        begins, lengths = self.begins[longest_first], self.lengths[longest_first]
        running = np.searchsorted(-lengths, -np.arange(self.horizon), side="left")  # episodes longer than each step
        products = np.empty(ratios.size)
        current = np.ones(len(self))
        for step in range(self.horizon):
            rows = begins[: running[step]] + step
            current = current[: rows.size] * ratios[rows]
            products[rows] = current
        return products

    def sums(self, values: FloatArray) -> FloatArray:
        """(e, ...) the sum of the rows of each episode."""
        return np.add.reduceat(values, self.begins, axis=0)

    @cached_property
    def unit(self) -> IntArray:
        """(e,) the place of each episode's independent unit: its cluster, or else itself."""
        clusters = self.problem.dataset.clusters
        if clusters is None:
            return np.arange(len(self))
        return np.unique(clusters[self.rows[self.begins]], return_inverse=True)[1]

    @property
    def n_units(self) -> int:
        """How many independent units there are: clusters, or else episodes."""
        return int(self.unit.max()) + 1

    @property
    def unit_name(self) -> str:
        """What a unit is called."""
        return "episode" if self.problem.dataset.clusters is None else "cluster"

    def by_unit(self, values: FloatArray, axis: int = 0) -> FloatArray:
        """(u, ...) the sums of (e, ...) over the episodes of each independent unit."""
        if self.problem.dataset.clusters is None:
            return values
        order, begins = self._by_unit
        return np.asarray(np.add.reduceat(np.take(values, order, axis=axis), begins, axis=axis))

    def of_units(self, values: FloatArray) -> FloatArray:
        """(..., e) of (..., u): every episode has what its independent unit has."""
        return values if self.problem.dataset.clusters is None else values[..., self.unit]

    @cached_property
    def unit_weights(self) -> FloatArray:
        """(u,) how much each independent unit counts: as all its episodes do."""
        return self.by_unit(self.weights)

    def unit_means(self, values: FloatArray) -> FloatArray:
        """(u, ...) the means of (e, ...) over the episodes of each independent unit, by their weights.

        What is said of episodes with `weights` is said of units with `unit_weights`: the means of both are the same,
        and the spread of units is that of the ratio estimator, to which a cluster adds sum_i w_i (s_i - mean).
        """
        if self.problem.dataset.clusters is None:
            return values
        shape = (-1, *[1] * (values.ndim - 1))
        total = np.where(self.unit_weights > 0, self.unit_weights, 1.0)
        return np.asarray(self.by_unit(self.weights.reshape(shape) * values) / total.reshape(shape))

    @cached_property
    def _by_unit(self) -> tuple[IntArray, IntArray]:
        """Return the order (e,) of episodes by unit, and where (u,) each unit begins in it."""
        order = np.argsort(self.unit, kind="stable")
        return order, np.searchsorted(self.unit[order], np.arange(self.n_units))

    def mean(self, values: FloatArray) -> FloatArray:
        """(...) the mean of (e, ...) over episodes by their weights."""
        return np.asarray(np.tensordot(self.weights, values, axes=1) / self.weights.sum())

    def part(self, chosen: BoolArray) -> Problem:
        """Return the problem of the chosen episodes (e,) alone."""
        rows = np.empty(self.rows.size, dtype=bool)
        rows[self.rows] = chosen[self.episode]
        return replace(self.problem, dataset=self.problem.dataset.part(rows))
