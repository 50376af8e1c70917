"""Episodes: the rows of a log by episode and step, kept flat; and what an estimator makes of them, an Estimate."""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy import stats

from bridle.arrays import Array, BoolArray, FloatArray, IntArray
from bridle.dataset import Dataset
from bridle.errors import DataError
from bridle.evaluation.propensities import Propensities
from bridle.policies import probabilities_of
from bridle.problem import Problem
from bridle.protocols import Policy


@dataclass(frozen=True, eq=False)
class Episodes:
    """All rows of a problem's log, not merged, in the order of episode number and step.

    An episode whose last row is terminal has ended; any other was cut off there and would have gone on.
    """

    states: Array  # (n, ...)
    actions: IntArray  # (n,)
    next_states: Array  # (n, ...)
    costs: FloatArray  # (n, 1 + m) signed as in the problem
    terminals: BoolArray  # (n,)
    next_observed: BoolArray  # (n,)
    rows: IntArray  # (n,) where each row stands in the dataset
    labels: IntArray  # (e,) the episodes' own numbers, ascending
    begins: IntArray  # (e,) the first row of each episode
    lengths: IntArray  # (e,)
    weights: FloatArray  # (e,) how much each episode counts
    discount: float
    n_actions: int

    @classmethod
    def of(cls, problem: Problem) -> "Episodes":
        """Return the episodes of a problem, put in order once."""
        return problem.once("episodes", lambda: cls._order(problem))

    @classmethod
    def _order(cls, problem: Problem) -> "Episodes":
        dataset = problem.dataset
        if dataset.episodes is None:
            raise DataError("without episodes there is nothing to weigh: pass episodes= with the log's rows")
        rows = _order_of(dataset, dataset.episodes)
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
        return cls(
            states=dataset.states[rows],
            actions=dataset.actions[rows],
            next_states=dataset.next_states[rows],
            costs=problem.signed_costs(dataset)[rows],
            terminals=dataset.terminals[rows],
            next_observed=dataset.next_observed[rows],
            rows=rows,
            labels=ordered[begins],
            begins=begins,
            lengths=lengths,
            weights=weights[begins],
            discount=problem.discount,
            n_actions=dataset.n_actions,
        )

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

    @cached_property
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

    def mean(self, values: FloatArray) -> FloatArray:
        """(...) the mean of (e, ...) over episodes by their weights."""
        return np.asarray(np.tensordot(self.weights, values, axes=1) / self.weights.sum())

    def likelihood(self, policy: Policy) -> FloatArray:
        """(n,) the probability with which a policy takes each logged action."""
        if self.states.ndim == 1 and (n_states := int(self.states.max()) + 1) < self.states.size:
            return probabilities_of(policy, np.arange(n_states), self.n_actions)[self.states, self.actions]
        return probabilities_of(policy, self.states, self.n_actions)[np.arange(self.actions.size), self.actions]


@dataclass(frozen=True, eq=False)
class Estimate:
    """The values of all costs, and what each episode added to them beyond the mean."""

    values: FloatArray  # (1 + m,) signed as in the problem
    influence: FloatArray | None = None  # (e, 1 + m) of weighted mean zero; None: not known
    weights: FloatArray | None = None  # (e,) of the episodes
    effective: float | None = None  # episodes that as many equal weights would stand for
    largest: float | None = None  # the largest share of a single episode in all weights
    note: str = ""

    def standard_errors(self) -> FloatArray:
        """(1 + m,) sqrt(sum influence^2) / e with e - 1 degrees of freedom; not a number where it is not known."""
        if self.influence is None or self.weights is None:
            return np.full(self.values.shape, np.nan)
        shares = self.weights / self.weights.sum()
        lost = 1 - shares @ shares  # of e equal weights, 1 - 1 / e
        if lost <= 0:
            return np.full(self.values.shape, np.nan)
        return np.asarray(np.sqrt((shares**2) @ self.influence**2 / lost))

    def interval(self, confidence: float) -> tuple[FloatArray, FloatArray]:
        """Return the two-sided Student-t interval of each value."""
        errors = self.standard_errors()
        if self.weights is None or np.isnan(errors).all():
            return errors, errors
        freedom = self.weights.sum() ** 2 / (self.weights @ self.weights) - 1
        width = errors * float(stats.t.ppf((1 + confidence) / 2, freedom))
        return self.values - width, self.values + width


class Estimator(Protocol):
    """A way to value a policy from the log of another."""

    @property
    def name(self) -> str:
        """What its row in a table is called."""
        ...

    @property
    def weighs(self) -> bool:
        """Whether it needs propensities."""
        ...

    def __call__(
        self, problem: Problem, policy: Policy, propensities: Propensities | None, *, rng: np.random.Generator
    ) -> Estimate:
        """Estimate all costs at once."""
        ...


def _order_of(dataset: Dataset, episodes: IntArray) -> IntArray:
    dataset.first_rows()  # says which step occurs twice
    if dataset.steps is not None:
        return np.lexsort((dataset.steps, episodes))
    return np.argsort(episodes, kind="stable")
