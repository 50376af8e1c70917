import gymnasium
import numpy as np
import pytest

from checkrein import AtMost, CuttingPlane, Problem, solve
from checkrein_studies import frozen_lake
from problems import PLAYERS

LAKE = frozen_lake.lake()
LIMIT = AtMost("hole", frozen_lake.HOLE_LIMIT)


def test_the_exact_optima_are_those_of_the_notes():
    free = LAKE.optimum(objective="goal").values
    assert free == pytest.approx({"goal": -0.41464, "hole": 0.05466}, abs=5e-6)
    bound = LAKE.optimum(objective="goal", constraints=[LIMIT]).values
    assert bound == pytest.approx({"goal": -0.40762, "hole": 0.03}, abs=5e-6)
    firm = frozen_lake.lake(slippery=False, discount=0.95).optimum(objective="goal").values
    assert firm == pytest.approx({"goal": -0.51334, "hole": 0.0}, abs=5e-6)


def test_the_exact_log_is_solved_to_five_digits():
    problem = Problem(LAKE.exact_log(), objective="goal", constraints=[LIMIT], discount=frozen_lake.DISCOUNT)
    solution = solve(problem, **PLAYERS, learner=CuttingPlane(30.0), tolerance=1e-7, max_rounds=20)
    assert solution.status == "converged"
    exact = LAKE.values(solution.policy)
    assert exact["goal"] == pytest.approx(-0.40762, abs=5e-6)
    assert exact["hole"] == pytest.approx(0.03, abs=5e-6)
    assert len(solution.policy.members) == 2  # a true mixture


def test_simulated_logs_move_as_gymnasium_does():
    """Frequencies of next states under Gymnasium's own step, against the MDP's probabilities."""
    environment = gymnasium.make("FrozenLake-v1", map_name="8x8", is_slippery=True)
    environment.reset(seed=0)
    rng, seen, expected = np.random.default_rng(0), np.zeros(64), np.zeros(64)
    state, tiles = 0, frozen_lake.tiles()
    for _ in range(4000):
        action = int(rng.integers(4))
        expected += LAKE.transitions[state, action]
        following, reward, terminated, truncated, _ = environment.step(action)
        seen[following] += 1
        assert reward == (tiles[following] == "G")
        assert terminated == (tiles[following] in "GH")
        state = environment.reset()[0] if terminated or truncated else following
    assert np.abs(seen - expected).max() < 5 * np.sqrt(expected.max())


def test_logged_costs_are_what_happened():
    log = frozen_lake.log(LAKE, frozen_lake.behavior(LAKE), episodes=300, seed=0)
    arrived = frozen_lake.tiles()[log.next_states]
    assert log.cost("goal").tolist() == (-1.0 * (arrived == "G")).tolist()
    assert log.cost("hole").tolist() == (1.0 * (arrived == "H")).tolist()
    assert log.terminals.tolist() == np.isin(arrived, ["G", "H"]).tolist()
    assert log.steps.max() < frozen_lake.MAX_STEPS


def test_what_is_learned_from_many_episodes_is_near_the_exact_optimum():
    log = frozen_lake.log(LAKE, frozen_lake.behavior(LAKE), episodes=20_000, seed=0)
    problem = Problem(log, objective="goal", constraints=[LIMIT], discount=frozen_lake.DISCOUNT)
    solution = solve(problem, **PLAYERS, learner=CuttingPlane(10.0), tolerance=1e-4, max_rounds=50)
    exact = LAKE.values(solution.policy)
    assert exact["goal"] == pytest.approx(-0.40762, abs=0.01)
    assert exact["hole"] == pytest.approx(0.03, abs=0.02)
