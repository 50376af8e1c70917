"""Q-functions that are made of others, or of a model: what they say is known in closed form. (Fits: see classes.)"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from checkrein.bellman.iteration import BoundedQ
from checkrein.functions import EnsembleQ, TabularQ
from contracts.test_evaluator import MODEL, Steady, linear_system
from contracts.worlds import SIGNS, problem_of

RNG = np.random.default_rng(0)
TABLES = RNG.normal(size=(3, 6, 2, 3))
PARTS = tuple(TabularQ(table) for table in TABLES)
FINITE = np.array([5, 0, 3, 3, 1, 2, 4])
VECTORS = RNG.uniform(-0.5, 1.5, (6, 2))
DISCOUNT, CHANCE = 0.8, 0.3


def of_the_linear_system(states):
    """(n, A, 3) sums from each state and first action on: expected states follow the system's own recursion."""
    values = np.zeros((len(states), 2, 3))
    for action in (0, 1):
        mean, taken = states.copy(), np.full(len(states), float(action))
        for step in range(200):
            values[:, action] += DISCOUNT**step * np.column_stack([mean[:, 0] + 1, mean[:, 1], taken])
            mean = np.column_stack([0.5 * mean[:, 0] + taken, 0.8 * mean[:, 1] - 0.2 * mean[:, 0]])
            taken = np.full(len(states), CHANCE)
    return values * SIGNS


class Case(NamedTuple):
    """A Q-function, states for it, its values by the definition, and its error as a share of their deviation."""

    make: Any
    states: Any
    truth: Any
    error: float = 1e-12


def rollouts():
    return replace(MODEL, futures=200).q(
        problem_of(linear_system(), DISCOUNT), Steady(CHANCE), rng=np.random.default_rng(0)
    )


LOW, HIGH = np.array([-0.5, -1.0, 0.0]), np.array([0.5, 0.2, 2.0])
CASES = {
    "tabular": Case(lambda: PARTS[0], FINITE, lambda x: TABLES[0][x]),
    "bounded": Case(lambda: BoundedQ(PARTS[0], LOW, HIGH), FINITE, lambda x: np.clip(TABLES[0][x], LOW, HIGH)),
    "ensemble": Case(lambda: EnsembleQ(PARTS), FINITE, lambda x: TABLES[:, x].mean(axis=0)),
    "pessimistic ensemble": Case(lambda: EnsembleQ(PARTS, 0.5), FINITE, lambda x: np.median(TABLES[:, x], axis=0)),
    "rollouts of a model": Case(rollouts, VECTORS, of_the_linear_system, 0.1),
}


def check_values_are_those_of_the_definition(case):
    """For every state, action and cost; whatever else is asked at the same time."""
    q, truth = case.make(), case.truth(case.states)
    found = q(case.states)
    assert found.shape == truth.shape
    assert (np.sqrt(((found - truth) ** 2).mean(axis=(0, 1))) <= case.error * truth.std(axis=(0, 1))).all()
    assert q(case.states[::-1]) == pytest.approx(found[::-1], rel=1e-4)
    assert q(case.states[2:3]) == pytest.approx(found[2:3], rel=1e-4)
    assert q(case.states[:0]).shape == (0, *truth.shape[1:])


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_values_are_those_of_the_definition(case):
    check_values_are_those_of_the_definition(case)
