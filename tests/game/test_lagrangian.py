import numpy as np
import pytest

import oracles
from checkrein.game.lagrangian import dual_values, lagrangian, upper
from checkrein.online.balls import worst_in_ball, worst_in_simplex


def test_the_lagrangian_of_many_policies_at_many_multipliers():
    objectives, violations = np.array([1.0, 2.0]), np.array([[1.0, -1.0], [0.0, 3.0]])
    table = lagrangian(objectives, violations, np.array([[0.0, 0.0], [2.0, 1.0]]))
    assert table.tolist() == [[1, 2], [2, 5]]


def test_floors_grown_round_by_round_are_the_least_lagrangians_over_all_policies():
    rng = np.random.default_rng(0)
    objectives, violations, visited = rng.normal(size=9), rng.normal(size=(9, 2)), rng.random((9, 2))
    before = np.zeros(0)
    for t in range(1, 10):
        before = dual_values(before, objectives[:t], violations[:t], visited[:t])
        assert before == pytest.approx(oracles.least_lagrangians(objectives[:t], violations[:t], visited[:t]))


def test_l_max_in_closed_form_on_both_balls():
    violation = np.array([0.3, -1.0, 0.4])
    assert upper(2.0, violation, worst_in_simplex(violation, np.full(3, 10.0))) == pytest.approx(2 + 10 * 0.4)
    assert upper(2.0, violation, worst_in_ball(violation, 10.0)) == pytest.approx(2 + 10 * 0.5)
    assert upper(2.0, -(violation**2), worst_in_ball(-(violation**2), 10.0)) == 2.0


@pytest.mark.parametrize("seed", range(5))
def test_no_multipliers_of_the_ball_hurt_more_than_the_worst(seed):
    rng = np.random.default_rng(seed)
    violation, bounds = rng.normal(size=4), rng.uniform(1, 3, 4)
    simplex = rng.dirichlet(np.ones(5), size=500)[:, :4] * bounds
    assert (simplex @ violation).max() <= worst_in_simplex(violation, bounds) @ violation + 1e-12
    directions = np.abs(rng.normal(size=(500, 4)))
    ball = 2.0 * directions / np.linalg.norm(directions, axis=1, keepdims=True)
    assert (ball @ violation).max() <= worst_in_ball(violation, 2.0) @ violation + 1e-12
