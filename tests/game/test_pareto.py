"""The Pareto view against its definition."""

import numpy as np
import pytest

from checkrein.game.pareto import coverage_set, non_dominated


def test_a_row_that_another_matches_in_all_and_beats_in_one_is_dominated():
    costs = np.array([[1.0, 3.0], [2.0, 2.0], [2.0, 3.0], [3.0, 1.0], [1.0, 3.0]])
    assert non_dominated(costs).tolist() == [True, True, False, True, True]


def test_what_no_weighting_prefers_is_not_in_the_coverage_set():
    costs = np.array([[0.0, 4.0], [1.0, 1.0], [2.2, 0.9], [4.0, 0.0], [3.0, 3.0]])
    assert non_dominated(costs).tolist() == [True, True, True, True, False]
    assert coverage_set(costs).tolist() == [True, True, False, True, False]  # the third lies above a segment


@pytest.mark.parametrize("seed", range(5))
def test_the_coverage_set_holds_the_best_for_every_weighting(seed):
    rng = np.random.default_rng(seed)
    costs = rng.random((30, 3)) * [1.0, 100.0, 1e-3]
    found = coverage_set(costs)
    scaled = (costs - costs.min(axis=0)) / np.ptp(costs, axis=0)
    best = {int((scaled @ weights).argmin()) for weights in rng.dirichlet(np.ones(3), size=3000)}
    assert best <= set(np.flatnonzero(found))
    assert set(np.flatnonzero(found)) <= set(np.flatnonzero(non_dominated(costs)))
    assert found.sum() < 30
