import numpy as np
import pytest

from checkrein import Tabular
from checkrein.base.errors import ArgumentError
from problems import PLAYERS, exact_problem, random_mdp


def test_a_pairs_value_is_its_weighted_mean_and_zero_where_it_was_never_logged():
    design = Tabular().design(np.array([0, 0, 1]), np.array([1, 1, 0]), np.array([1.0, 3.0, 1.0]), n_actions=2)
    q = design.fit(np.array([[4.0], [8.0], [5.0]]), rng=np.random.default_rng(0))
    assert q(np.array([0, 1, 2]))[..., 0].tolist() == [[0, 7], [5, 0], [0, 0]]


def test_observations_that_are_not_finite_states_are_refused():
    with pytest.raises(ArgumentError, match=r"Tabular needs finite states.*use Linear"):
        Tabular().design(np.zeros((3, 2)), np.zeros(3, dtype=int), np.ones(3), n_actions=1)


def test_large_state_spaces_are_solved_sparsely_with_the_same_result(monkeypatch):
    problem = exact_problem(random_mdp(0, n_states=30), [])
    rng = np.random.default_rng(0)
    policy = PLAYERS["best_response"](problem, np.zeros(0), rng=rng)
    dense = PLAYERS["evaluator"](problem, policy, rng=rng).objective
    monkeypatch.setattr("checkrein.functions.tabular.DENSE_STATES", 0)
    assert PLAYERS["evaluator"](problem, policy, rng=rng).objective == pytest.approx(dense, rel=1e-12)
