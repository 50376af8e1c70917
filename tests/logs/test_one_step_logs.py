"""Logs without episodes: each row is an episode of one decision that really ends."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from checkrein import read_logs
from checkrein.base.errors import DataError, ProblemError
from checkrein.runs.prepare import prepare
from checkrein.runs.problem_file import parse_problem

ROWS = {"x": [0, 1, 0, 2], "a": [1, 0, 1, 0], "c": [0.5, 1.0, 0.0, 2.0], "t": [1, 2, 3, 4], "who": ["u", "v", "u", "w"]}
TOML = """
[data]
path = "log.csv"
state = "x"
action = "a"
{data}
[objective]
minimize = "c"
[[constraint]]
name = "price"
cost = "a * 0.5"
at_most = 2
{constraint}
"""


def read(**changes):
    return read_logs(pl.DataFrame(ROWS), **({"state": "x", "action": "a", "costs": "c"} | changes))


def test_each_row_is_an_episode_that_ends():
    log = read()
    assert log.episodes.tolist() == [0, 1, 2, 3]
    assert log.terminals.all()
    assert log.states.tolist() == [0, 1, 0, 2]
    assert log.returns(0.5)[:, 0].tolist() == ROWS["c"]
    assert not log.truncated.any()


def test_rows_of_one_cluster_are_not_taken_for_independent():
    assert read(cluster="who").n_units == 3


@pytest.mark.parametrize("role", ["step", "terminal"])
def test_what_orders_or_ends_episodes_needs_them(role):
    with pytest.raises(DataError, match=f"{role} = 't', but no episode column is named: each row is then an episode"):
        read(**{role: "t"})
    with pytest.raises(ProblemError, match=f"data: {role} = 't', but no episode column is named"):
        parse_problem(TOML.format(data=f'{role} = "t"', constraint=""), Path("p.toml"))


def test_a_row_without_an_earlier_one_has_no_previous_value():
    with pytest.raises(DataError, match="names 'previous_c', but each row is an episode of its own"):
        read(costs={"change": "c - previous_c"})


def test_per_step_has_no_use_for_single_decisions():
    with pytest.raises(ProblemError, match='unit = "per step" has no use where each row is an episode: leave it out'):
        parse_problem(TOML.format(data="", constraint='unit = "per step"'), Path("p.toml"))


def test_the_data_card_does_not_complain_of_single_decisions(tmp_path):
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"x": rng.integers(0, 2, 90), "a": rng.integers(0, 3, 90), "c": rng.random(90)})
    table.write_csv(tmp_path / "log.csv")
    (tmp_path / "p.toml").write_text(TOML.format(data="", constraint=""))
    card = prepare(tmp_path / "p.toml", strict=True).card
    assert card.warnings == []
    assert (card.episodes, card.longest, card.truncated, card.effective_horizon) == (90, 1, 0, None)


@pytest.mark.parametrize("finite", [True, False])
def test_a_cost_of_the_action_is_known_for_actions_that_were_never_logged(tmp_path, finite):
    rng = np.random.default_rng(0)
    states = rng.integers(0, 2, 90) if finite else rng.normal(size=90)
    pl.DataFrame({"x": states, "a": rng.integers(0, 3, 90), "c": rng.random(90)}).write_csv(tmp_path / "log.csv")
    (tmp_path / "p.toml").write_text(TOML.format(data="n_actions = 5", constraint=""))
    problem = prepare(tmp_path / "p.toml").problem
    assert problem.known_costs == (1,)
    cost = problem.constraints[0].cost
    np.testing.assert_array_equal(cost.of_actions(problem.dataset.states[:2]), np.tile([0, 0.5, 1, 1.5, 2], (2, 1)))
    np.testing.assert_array_equal(problem.worst_after()[1], 0.0)  # nothing follows
