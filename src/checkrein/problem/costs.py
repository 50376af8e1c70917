"""Costs: what is summed over an episode, row by row, for the policy that is valued."""

from dataclasses import dataclass

import numpy as np

from checkrein.base.arrays import Array, FloatArray
from checkrein.base.errors import ArgumentError, ProblemError
from checkrein.base.storage import storable
from checkrein.data.dataset import Dataset
from checkrein.protocols import BoundedCost, Cost, KnownCost, Policy, RowCost

ROUNDING = 1e-9


@storable
@dataclass(frozen=True)
class LoggedCost:
    """A column of the log: what a row cost, whoever is valued."""

    name: str

    def per_row(self, transitions: Dataset) -> FloatArray:
        """(n,)"""  # noqa: D400, D415
        return transitions.cost(self.name)

    def per_step(self, transitions: Dataset, policy: Policy) -> FloatArray:  # noqa: ARG002
        """(n,)"""  # noqa: D400, D415
        return self.per_row(transitions)

    def step_range(self, dataset: Dataset) -> tuple[float, float]:
        """Return the lowest and the highest that a logged step cost."""
        lowest, highest = dataset.cost_range()
        at = dataset.cost_names.index(self.name)
        return float(lowest[at]), float(highest[at])


def cost_of(cost: str | Cost, dataset: Dataset) -> Cost:
    """Return a column of the log by its name, or the cost itself."""
    if not isinstance(cost, str):
        return cost
    if cost not in dataset.cost_names:
        raise ProblemError(f"no cost is called {cost!r}: the dataset has {', '.join(dataset.cost_names)}")
    return LoggedCost(cost)


def name_of(cost: str | Cost) -> str:
    """Return what a cost is called: its column, or its class."""
    if isinstance(cost, str):
        return cost
    if isinstance(cost, type):
        raise ProblemError(f"{cost.__name__} is a class: give one of its values, {cost.__name__}(...)")
    if not isinstance(cost, Cost):
        raise ProblemError(f"{cost!r} is not a cost: give a column's name, or an object with per_step(rows, policy)")
    return type(cost).__name__


def per_step(cost: Cost, transitions: Dataset, policy: Policy) -> FloatArray:
    """(n,) what each row costs under a policy (not a mixture: each member has its own), checked."""
    return _checked(cost, transitions, cost.per_step(transitions, policy))


def per_row(cost: RowCost, transitions: Dataset) -> FloatArray:
    """(n,) what each row costs, whoever is valued, checked."""
    return _checked(cost, transitions, cost.per_row(transitions))


def per_action(cost: KnownCost, states: Array, policy: Policy) -> FloatArray:
    """(n, A) what every action costs, logged or not, checked."""
    steps = np.asarray(cost.per_action(states, policy), dtype=np.float64)
    if steps.ndim != 2 or len(steps) != len(states) or not np.isfinite(steps).all():
        raise ArgumentError(
            f"per_action of {name_of(cost)} has shape {steps.shape} for {len(states)} states, or is not finite: it "
            "must be one number for each state and action"
        )
    return steps


def _checked(cost: Cost, transitions: Dataset, found: FloatArray) -> FloatArray:
    """Return steps that are one finite number for each row, within what the cost declares: a bound rests on that."""
    steps = np.asarray(found, dtype=np.float64)
    if steps.shape != (len(transitions),) or not np.isfinite(steps).all():
        wrong = f"shape {steps.shape}" if steps.shape != (len(transitions),) else "values that are not finite"
        raise ArgumentError(f"per_step of {name_of(cost)} has {wrong}: it must be one number for each of the rows")
    if isinstance(cost, BoundedCost) and not isinstance(cost, LoggedCost):
        low, high = cost.step_range(transitions)
        slack = ROUNDING * (1 + abs(low) + abs(high))
        beyond = (steps < low - slack) | (steps > high + slack)
        if beyond.any():
            row = int(np.argmax(beyond))
            raise ArgumentError(
                f"{name_of(cost)} is {steps[row]:.6g} in row {row}, but its step_range says {low:.6g} to {high:.6g}; "
                "correct the range, for what has no evidence is valued by it"
            )
    return steps


def step_range(cost: Cost, dataset: Dataset, policy: Policy | None) -> tuple[float, float]:
    """Return the least and the largest that a step can cost: as the cost says, else as the rows of a log show.

    Without a policy, a cost that depends on it says nothing unless it declares its range.
    """
    if isinstance(cost, BoundedCost):
        low, high = cost.step_range(dataset)
        return float(low), float(high)
    if isinstance(cost, RowCost):
        steps = per_row(cost, dataset)
    elif policy is not None:
        steps = per_step(cost, dataset, policy)
    else:
        return 0.0, 0.0
    return float(steps.min()), float(steps.max())
