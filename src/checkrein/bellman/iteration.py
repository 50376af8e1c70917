"""The fitted iteration that FQI and FQE share: regress on what the last regression says, again and again."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from checkrein.base.arrays import Array, FloatArray
from checkrein.base.errors import DivergenceError
from checkrein.base.storage import storable
from checkrein.bellman.targets import Targets
from checkrein.problem import Problem
from checkrein.protocols import Design, EnsembleQFunction, QFunction, WarmDesign

SETTLED = 1e-12  # relative change below which an iterate is its own limit
MAX_ITERATIONS = 10_000
LEFT = 0.01  # of a value may lie beyond the iterations that are made by default
ENOUGH = 300  # iterations by default, at the most
RUNAWAY = 10.0  # times the largest value that costs allow
PINNED = 0.98  # of the way to it
ADVICE = "use a higher support threshold, a smaller class, a lower discount, or Trees with freeze_after="


@dataclass(frozen=True)
class Iteration:
    """What one regression of many came to."""

    index: int  # from 1
    iterations: int  # that will be made
    error: FloatArray  # (k,) root mean squared Bellman error on the rows that were fitted
    held_out: FloatArray | None  # (k,) the same on episodes that were not; None: there are none
    value: FloatArray  # (k,) at the initial states


@dataclass(frozen=True)
class Watch:
    """Who is told of every iteration, and the episodes on which Bellman errors are measured besides."""

    on_iteration: Callable[[Iteration], None]
    held_out: Problem | None = None


class RegressionTask(NamedTuple):
    """A problem with the targets that Q-functions are held against on its rows."""

    problem: Problem
    targets: Targets
    names: tuple[str, ...]  # k


@storable
@dataclass(frozen=True, eq=False)
class BoundedQ:
    """A Q-function within what the costs allow."""

    q: QFunction
    low: FloatArray  # (k,)
    high: FloatArray  # (k,)

    def __call__(self, states: Array) -> FloatArray:
        """(n, A, k)"""  # noqa: D400, D415
        return np.clip(self.q(states), self.low, self.high)

    def members(self, states: Array) -> FloatArray:
        """(M, n, A, k) what each of several says; of one, what it says."""
        each = self.q.members(states) if isinstance(self.q, EnsembleQFunction) else self.q(states)[None]
        return np.clip(each, self.low, self.high)


def default_iterations(problem: Problem, most: int = ENOUGH) -> int:
    """Return after how many steps little of a value is left to come: at discount 1, the longest logged episode."""
    if problem.dataset.horizon is not None:
        most = min(most, problem.dataset.horizon)
    if problem.discount == 1:
        return min(math.ceil(problem.dataset.longest_episode()), most)
    return min(math.ceil(math.log(LEFT) / math.log(problem.discount)), most)


def fitted_iteration(
    design: Design,
    task: RegressionTask,
    *,
    iterations: int,
    rng: np.random.Generator,
    allowed: tuple[FloatArray, FloatArray],
    bounded: bool,
    start: QFunction | None = None,
    refined: Callable[[QFunction], QFunction] | None = None,
    after: Callable[[int, QFunction], None] | None = None,
) -> QFunction:
    """Fit Q_k to the targets that Q_{k-1} gives, K times (Algorithms 3 and 4 of the paper, which differ in line 3).

    allowed: (k,) the least and the largest value that costs allow; `bounded` Q-functions are kept within.
    refined: what to make of each Q before it gives targets; fits go on from Q itself. A fixed point may be solved for
        in features that do not carry it: the Q of least Bellman error is returned then, not the last.
    after: told of each Q with its number.
    """
    low, high = allowed

    def within(q: QFunction) -> QFunction:
        better = q if refined is None else refined(q)
        return BoundedQ(better, low, high) if bounded else better

    immediate = task.targets(None)
    q = start.q if isinstance(start, BoundedQ) else start
    current = None if q is None else within(q)
    targets = immediate if current is None else task.targets(current)
    _require_sane(task, targets, immediate, low, high, 0)
    best, least, unit = current, np.inf, np.ones_like(low)
    for index in range(1, iterations + 1):
        continued = index > 1 or (
            isinstance(design, WarmDesign) and design.warm
        )  # trees, say, would keep what they were grown for
        q = design.fit(targets, rng=rng, start=q if continued else None)
        current = within(q)
        if after is not None:
            after(index, current)
        if refined is None and index == iterations:
            return current
        targets = task.targets(current)
        _require_sane(task, targets, immediate, low, high, index)
        if refined is not None:
            errors = bellman_error(task, current, targets)
            unit = np.where(errors > 0, errors, 1.0) if index == 1 else unit
            if (error := float((errors / unit).sum())) < least:
                best, least = current, error
    return cast(QFunction, best)


def iterate_to_fixed_point(design: Design, targets: Targets, next_states: Array, rng: np.random.Generator) -> QFunction:
    """Run a fitted iteration until it no longer moves, or say that it does not settle."""
    q = design.fit(targets(None), rng=rng)
    values, change, iteration = q(next_states), np.inf, 0
    with np.errstate(over="ignore", invalid="ignore"):
        for iteration in range(1, MAX_ITERATIONS + 1):  # noqa: B007
            q = design.fit(targets(q), rng=rng, start=q)
            previous, values = values, q(next_states)
            change = change_of(values, previous)
            if change <= SETTLED:
                return q
            if not np.isfinite(change):
                break
    raise DivergenceError(
        f"the fitted iteration has not settled: a relative change of {change:.3g} is left after {iteration} "
        "iterations. Pass iterations=, raise the ridge, or choose other features"
    )


def change_of(values: FloatArray, previous: FloatArray) -> float:
    """Return the largest change, relative to the largest value."""
    size = max(float(np.abs(values).max()), float(np.abs(previous).max()))
    return float(np.abs(values - previous).max()) / size if size > 0 else 0.0


def bellman_error(task: RegressionTask, q: QFunction, targets: FloatArray | None = None) -> FloatArray:
    """(k,) the root of the mean squared difference between Q and its own targets, which are asked for unless given."""
    rows = task.problem.transitions
    taken = q(rows.states)[np.arange(len(rows)), rows.actions]
    squares = ((task.targets(q) if targets is None else targets) - taken) ** 2
    return np.asarray(np.sqrt(rows.weights @ squares / rows.weights.sum()))


def judged_on(watch: Watch | None, problem: Problem) -> list[Problem]:
    """Return the problems whose Bellman errors are told: the one that is fitted, then the one held out, if any."""
    return [problem] if watch is None or watch.held_out is None else [problem, watch.held_out]


def telling(
    watch: Watch | None, iterations: int, tasks: Iterable[RegressionTask], value: Callable[[QFunction], FloatArray]
) -> Callable[[int, QFunction], None] | None:
    """Return what tells of each iteration: the errors on the log that is fitted, then on the one held out, if any."""
    if watch is None:
        return None
    each = list(tasks)

    def tell(index: int, q: QFunction) -> None:
        errors = [bellman_error(task, q) for task in each]
        held_out = errors[1] if len(errors) > 1 else None
        watch.on_iteration(Iteration(index, iterations, errors[0], held_out, value(q)))

    return tell


def _require_sane(
    task: RegressionTask, targets: FloatArray, immediate: FloatArray, low: FloatArray, high: FloatArray, made: int
) -> None:
    """Raise where values run away: beyond all that costs allow, or up to it though few rows cost that much."""
    sizes, largest = np.abs(targets).mean(axis=0), np.maximum(np.abs(low), np.abs(high))
    for column, name in enumerate(task.names):
        size, most, steps = sizes[column], largest[column], immediate[:, column]
        if not (np.isfinite(size) and size <= RUNAWAY * max(most, np.finfo(float).tiny)):
            raise DivergenceError(
                f"the fitted iteration diverges: after {made} iterations, values of {name} are {size:.3g} on average, "
                f"where costs allow {most:.3g} at the most: {ADVICE}"
            )
        end = PINNED * task.problem.discount * high[column]
        pinned = float((targets[:, column] - steps >= end).mean()) if high[column] > 0 else 0.0
        if pinned > 0.5 and steps.mean() < steps.max() / 2:
            raise DivergenceError(
                f"the fitted iteration runs away: after {made} iterations, {pinned:.0%} of the rows are valued at the "
                f"most that {name} allows ({high[column]:.3g}), though a row costs only {steps.mean():.3g} on average: "
                f"{ADVICE}"
            )
