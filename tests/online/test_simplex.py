import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from checkrein.online.simplex import minimise


def program(seed, t, m, *, ties):
    """A mixture of t policies under m limits, one slack for each, and a last column that pays for what is broken."""
    rng = np.random.default_rng(seed)
    charge, excess = rng.random(t), rng.normal(size=(m, t))
    if ties:
        charge, excess = np.round(charge, 1), np.round(excess, 1)
    columns = np.hstack([excess, -np.ones((m, 1)), np.eye(m)])
    total = np.concatenate([np.ones(t), np.zeros(m + 1)])
    return np.concatenate([charge, [10.0], np.zeros(m)]), np.vstack([columns, total]), np.append(np.zeros(m), 1.0)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10_000), t=st.integers(1, 40), m=st.integers(1, 5), ties=st.booleans())
def test_it_finds_what_a_general_solver_finds_and_proves_it(seed, t, m, ties):
    costs, matrix, right = program(seed, t, m, ties=ties)
    found = minimise(costs, matrix, right)
    assert found is not None
    assert (found.x >= 0).all()
    assert matrix @ found.x == pytest.approx(right, abs=1e-8)
    assert (costs - found.y @ matrix).min() >= -1e-8
    assert costs @ found.x == pytest.approx(found.y @ right, abs=1e-8)
    assert costs @ found.x == pytest.approx(linprog(costs, A_eq=matrix, b_eq=right).fun, abs=1e-8)


def test_of_several_prices_it_finds_the_least():
    """The one policy is just on both limits: the first is worth a price up to that of the last column, or nothing."""
    costs, matrix = np.array([0.0, 10.0, 0.0, 0.0]), np.array([[0.0, -1, 1, 0], [0, -1, 0, 1], [1, 0, 0, 0]])
    found = minimise(costs, matrix.astype(float), np.array([0.0, 0.0, 1.0]))
    assert found.y == pytest.approx([0, 0, 0], abs=1e-12)


@pytest.mark.parametrize(
    ("costs", "matrix", "right"),
    [
        ([1.0], [[-1.0]], [1.0]),  # nothing meets the rows
        ([-1.0, 0.0], [[1.0, -1.0]], [0.0]),  # there is no least
        ([1.0, 2.0], [[1.0, 1.0], [2.0, 2.0]], [1.0, 2.0]),  # two rows say the same
    ],
)
def test_what_it_cannot_prove_it_leaves_to_others(costs, matrix, right):
    assert minimise(np.array(costs), np.array(matrix), np.array(right)) is None
