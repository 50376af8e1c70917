"""The parts that studies are made of, against closed forms."""

import numpy as np
import pytest

from checkrein import FQE, FQI, ExponentiatedGradient, Tabular, TabularMDP
from checkrein.reproduction import label_ends, panels
from checkrein_studies import frozen_lake
from checkrein_studies.combination_lock import combination_lock
from checkrein_studies.dqn import DQN
from checkrein_studies.lake_panels import best_of, errors_of, lake_problem, papers_gaps, play, true_values, walk
from checkrein_studies.paper_lake import FrozenLakeOfThePaper, hole_policy

FIRM = frozen_lake.lake(slippery=False, discount=0.9)
PLAYERS = FQI(Tabular()), FQE(Tabular())


def test_the_papers_gap_of_a_slack_limit_is_the_burn_in_of_the_first_multipliers():
    problem = lake_problem(FIRM.exact_log(), 0.1, 0.9)
    played = play(problem, *PLAYERS, ExponentiatedGradient(30.0, 50.0), 20, weighting="uniform")
    mean_price = np.cumsum([one.multipliers[0] for one in played]) / np.arange(1, 21)
    assert papers_gaps(problem, played, *PLAYERS) == pytest.approx(0.1 * mean_price, abs=1e-9)
    assert true_values(FIRM, played)["goal"] == pytest.approx(-(0.9**13))
    assert best_of(FIRM, played, 0.1)["hole"] == pytest.approx(0)


def test_the_fixed_policy_falls_in_at_its_ninth_step():
    policy = hole_policy(FIRM)
    assert FIRM.values(policy) == pytest.approx({"goal": 0.0, "hole": 0.9**8})
    assert len(walk(policy)) == 9


def test_the_shortest_path_is_taken_from_every_state():
    policy, checkpoints = FrozenLakeOfThePaper(behavior="shortest-path")._online(FIRM, lambda _: None)
    assert checkpoints == []
    assert FIRM.values(policy)["goal"] == pytest.approx(-(0.9**13))
    free = np.flatnonzero(np.isin(frozen_lake.tiles(), ["S", "F"]))
    assert (FIRM.state_values(policy)[free, 0] < 0).all()


def test_errors_leave_out_what_is_not_a_number():
    found = {"a": np.array([[1.0, np.nan], [3.0, np.nan]])}
    errors = errors_of(found, 1.0)["a"]
    assert errors[0] == pytest.approx(np.sqrt(2))
    assert np.isnan(errors[1])


def test_a_dqn_learns_a_corridor_and_is_the_same_each_time():
    n = 6
    moves, cost = np.zeros((n, 2, n)), np.zeros((n, 2))
    moves[range(n - 1), 0, range(1, n)] = 1
    moves[range(n - 1), 1, 0] = 1
    cost[n - 2, 0] = -1
    corridor = TabularMDP(moves, {"c": cost}, np.eye(n)[0], 0.9)
    dqn = DQN(hidden=16, phases=12, episodes=20, max_steps=30, steps=40)
    (policy, worth), (again, _) = (dqn.train(corridor, "c", lambda _: None) for _ in range(2))
    assert corridor.values(policy)["c"] == pytest.approx(-(0.9**4))
    assert worth[-1] == pytest.approx(-(0.9**4))
    assert (policy.table == again.table).all()


def test_the_lock_leads_on_or_back():
    lock = combination_lock(5, 0.9)
    assert lock.optimum(objective="trap").values["trap"] == pytest.approx(0)
    assert lock.optimum(objective="back").values == pytest.approx({"back": 0, "trap": 0.9**4})


def test_labels_stay_apart_and_inside():
    _, (axes,) = panels([2.0])
    axes.set_ylim(0, 1)
    names = "abcdef"
    label_ends(axes, [(name, 0.0, "black") for name in names], apart=0.1)
    heights = sorted(text.get_position()[1] for text in axes.texts)
    assert len(heights) == len(names)
    assert heights[0] >= 0
    assert np.diff(heights).min() >= 0.1 - 1e-9
