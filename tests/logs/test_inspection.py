import numpy as np
import polars as pl
import pytest

from checkrein.logs.inspection import data_card
from checkrein.logs.table import Columns, read_table
from checkrein.problem.goals import Unit

ROWS = {
    "e": [1, 1, 1, 2, 2, 3],
    "x": ["u", "v", "u", "u", "v", "w"],
    "a": ["on", "off", "on", "on", "on", "off"],
    "c": [1.0, 2.0, 4.0, 0.0, 3.0, 5.0],
    "end": [0, 0, 1, 0, 0, 1],
}


def card(discount=0.5, factor=1.0, cluster=None, **changes):
    choice = {"episode": "e", "state": "x", "action": "a", "costs": "c", "terminal": "end", "cluster": cluster}
    reading = read_table(pl.DataFrame(ROWS | changes), Columns(**choice))
    units = {"c": (Unit.SUM, factor)}
    return data_card(reading.dataset, source=reading.source, discount=discount, units=units, warnings=reading.warnings)


def test_a_card_counts_rows_episodes_states_and_actions():
    found = card()
    assert (found.rows, found.rows_used, sum(found.left_out.values())) == (6, 5, 1)
    assert (found.episodes, found.shortest, found.median, found.longest, found.truncated) == (3, 1, 2.0, 3, 1)
    assert found.states == "3 finite states of x"
    assert found.states_visited_once == 1
    assert [(use.action, use.count, use.states_without) for use in found.actions] == [("off", 2, 1), ("on", 4, 1)]
    assert found.effective_horizon == 2.0


def test_behavior_is_the_mean_discounted_sum_with_its_standard_error():
    sums = np.array([1 + 1 + 1, 1.5, 5.0])
    found = card().behavior[0]
    assert found.value == pytest.approx(sums.mean())
    assert found.standard_error == pytest.approx(sums.std(ddof=1) / np.sqrt(3))
    assert (found.lowest, found.highest) == (0.0, 5.0)
    assert card(factor=-2.0).behavior[0].value == pytest.approx(-2 * sums.mean())
    assert card(discount=1.0).effective_horizon is None


def test_advice_is_given_where_the_log_is_thin():
    said = "\n".join(card(discount=0.999, end=[0] * 6, c=[2.0] * 6).warnings)
    for words in (
        "looks 1000 steps ahead",
        "only 3 episodes",
        "no episode ends in a terminal row",
        "the same in every row",
    ):
        assert words in said


def test_clusters_are_counted_and_few_of_them_are_a_warning():
    found = card(cluster="p", p=["u", "u", "u", "v", "v", "u"])
    assert (found.episodes, found.clusters, found.largest_cluster) == (3, 2, 2)
    assert any("only 2 clusters, whose episodes are not independent" in words for words in found.warnings)
    sums = np.array([3.0, 1.5, 5.0])
    pulls = np.array([sums[0] + sums[2] - 2 * sums.mean(), sums[1] - sums.mean()]) / 3
    assert found.behavior[0].standard_error == pytest.approx(np.sqrt(pulls @ pulls / (1 - 5 / 9)))
    assert (card().clusters, card().largest_cluster) == (None, None)
    assert not any("clusters" in words for words in card().warnings)
    assert card(cluster="p", p=["u"] * 6).behavior[0].standard_error is None
