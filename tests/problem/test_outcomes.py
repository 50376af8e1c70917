"""What a log shows of each cost as an outcome: yes or no, how many episodes have it, what it can be."""

import numpy as np
import pytest

from checkrein import AtLeast, AtMost, Dataset, Problem
from checkrein.problem.outcomes import outcomes_of


def log_of(costs, episodes, **changes):
    n = len(episodes)
    ends = np.append(np.diff(episodes) != 0, True)
    columns = {"states": np.zeros(n, int), "actions": np.zeros(n, int), "next_states": np.zeros(n, int)}
    return Dataset.from_arrays(**columns, costs=costs, terminals=ends, episodes=episodes, **changes)


EPISODES = np.repeat(np.arange(4), 3)
DIED = np.array([0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0], float)


def first(cost, *, discount=1.0):
    return outcomes_of(Problem(log_of({"c": cost}, EPISODES), objective="c", constraints=[], discount=discount))[0]


def test_what_every_episode_has_once_or_not_is_a_share_between_0_and_1():
    one = first(DIED)
    assert (one.yes_or_no, one.events, one.episodes, one.range) == (True, 2, 4, (0.0, 1.0))


def test_what_is_maximised_is_turned_around_inside():
    assert first(-DIED).range == (-1.0, 0.0)
    assert first(-DIED).yes_or_no


@pytest.mark.parametrize("cost", [2 * DIED, DIED / 2, np.ones(12), DIED - DIED[::-1]])
def test_sums_that_are_not_one_are_no_share(cost):
    assert not first(cost).yes_or_no


def test_a_discounted_death_at_the_end_is_no_share_of_episodes_but_a_click_at_once_is():
    assert not first(DIED, discount=0.9).yes_or_no
    assert first(np.tile([1.0, 0, 0], 4) * np.repeat([1, 0, 0, 1], 3), discount=0.9).yes_or_no


def test_what_never_happened_is_not_called_a_share():
    assert (first(0 * DIED).events, first(0 * DIED).yes_or_no) == (0, False)


def test_a_declared_range_is_what_a_constraint_can_be():
    data = log_of({"c": DIED, "g": 0.3 + DIED}, EPISODES)
    limits = [AtMost("g", 1.0, range=(0.0, 4.0)), AtLeast("g", 1.0, name="floor", range=(0.0, 4.0))]
    found = outcomes_of(Problem(data, objective="c", constraints=limits, discount=1.0))
    assert [one.range for one in found[1:]] == [(0.0, 4.0), (-4.0, 0.0)]
