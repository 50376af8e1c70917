"""init guesses what each column is, by name and by values, and asks where it is not sure."""

import tomllib

import numpy as np
import polars as pl
import pytest

from checkrein.logs.first_version import first_version
from checkrein.logs.roles import roles_of
from checkrein.runs.problem_file import ProblemFile


def bandit(n=500):
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "": np.arange(n),
            "timestamp": [f"2024-01-01 00:{i // 60:02}:{i % 60:02}" for i in range(n)],
            "item_id": rng.integers(0, 8, n),
            "position": rng.integers(1, 4, n),
            "click": (rng.random(n) < 0.1).astype(int),
            "propensity_score": np.full(n, 0.125),
            "user_feature": rng.choice(["a", "b"], n),
        }
    )


def panel(n=60, steps=5):
    rng = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "nr": np.repeat(np.arange(n) * 7 + 13, steps),
            "year": np.tile(np.arange(1980, 1980 + steps), n),
            "born": np.repeat(rng.integers(1940, 1960, n), steps),
            "union": rng.integers(0, 2, n * steps),
            "hours": rng.integers(1000, 2500, n * steps),
            "lwage": rng.normal(size=n * steps),
        }
    )


def test_a_bandits_log_has_no_episode_and_its_click_and_propensity_are_no_state():
    roles = roles_of(bandit())
    assert roles.found == {"propensity": "propensity_score", "objective": "click", "action": "item_id"}
    assert roles.maximise
    assert roles.state == ["position", "user_feature"]
    assert set(roles.left_out) == {"", "timestamp"}


def test_where_each_row_is_an_episode_the_key_is_left_out_with_the_question(tmp_path):
    bandit().write_csv(tmp_path / "log.csv")
    text = first_version([str(tmp_path / "log.csv")], tmp_path)
    read = tomllib.loads(text)
    assert "episode" not in read["data"]
    assert "terminal" not in read["data"]
    assert "Without such a column, each row is an episode of one decision" in text
    assert read["objective"] == {"maximize": "click"}
    assert read["learn"]["discount"] == 1


def test_where_nothing_looks_like_a_cost_the_limit_is_on_how_far_the_policy_moves(tmp_path):
    for name, table, decisions in (("bandit", bandit(), 1), ("panel", panel(), 5)):
        table.write_csv(tmp_path / f"{name}.csv")
        read = tomllib.loads(first_version([str(tmp_path / f"{name}.csv")], tmp_path))
        (limit,) = read["constraint"]
        assert (limit["kind"], limit["at_most"]) == ("total variation", decisions)
        ProblemFile.model_validate(read)


def test_a_cost_may_grow_a_little_because_a_limit_at_behavior_leaves_nothing_near_it_room(tmp_path):
    bandit().with_columns(price=pl.col("item_id") * 0.5).write_csv(tmp_path / "log.csv")
    (limit,) = tomllib.loads(first_version([str(tmp_path / "log.csv")], tmp_path))["constraint"]
    assert limit == {"name": "price", "cost": "price", "at_most": "105% of behavior"}


def test_a_panel_without_ends_looks_no_farther_than_its_rows_and_says_how_to_mark_ends(tmp_path):
    panel().write_csv(tmp_path / "log.csv")
    text = first_version([str(tmp_path / "log.csv")], tmp_path)
    assert tomllib.loads(text)["learn"]["discount"] == 0.8
    assert "all episodes have 5 rows here: if they end there by design" in text
    panel().head(298).write_csv(tmp_path / "log.csv")
    assert "by design" not in first_version([str(tmp_path / "log.csv")], tmp_path)


def test_codes_of_many_items_are_not_taken_for_an_amount():
    many = pl.Series(np.arange(500) % 80)
    assert "action" not in roles_of(bandit().with_columns(item_id=many)).doubts
    assert "amount" in roles_of(bandit().rename({"item_id": "action"}).with_columns(action=many)).doubts["action"]


def test_a_panel_is_known_by_what_rises_within_blocks_of_rows_whatever_they_are_called():
    renamed = panel().rename({"nr": "q", "year": "w"})
    roles = roles_of(renamed)
    assert (roles.found["episode"], roles.found["step"]) == ("q", "w")
    assert {"episode", "step"} <= set(roles.doubts)
    assert roles_of(panel()).doubts.keys() == {"action"}


def test_what_goes_back_and_forth_may_have_been_decided_and_is_marked_doubtful(tmp_path):
    panel().write_csv(tmp_path / "log.csv")
    text = first_version([str(tmp_path / "log.csv")], tmp_path)
    assert tomllib.loads(text)["data"]["action"] == "union"
    assert "DOUBTFUL: no name says what was decided; this varies like a decision." in text
    assert "# The same throughout an episode: born" in text


@pytest.mark.parametrize("values", [[0.0, 0.5], [0.5, 1.5], [-0.2, 0.5]])
def test_a_propensity_outside_of_0_to_1_is_neither_taken_nor_a_state(values):
    table = bandit().with_columns(propensity_score=pl.Series(np.resize(values, 500)))
    roles = roles_of(table)
    assert "propensity" not in roles.found
    assert "propensity_score" in roles.left_out


@pytest.mark.parametrize(
    ("name", "values", "why"),
    [
        ("site", np.ones(500, int), "the same in every row"),
        ("pidnum", np.random.default_rng(0).permutation(500) + 10_000, "names the row"),
        ("uuid", [f"x{i * 7919 % 500}" for i in range(500)], "names the row"),
        ("income", np.resize([0, 5, 1], 500), "looks like an outcome"),
        ("shelf", None, "follows from item_id"),
        ("days", np.random.default_rng(0).integers(1, 900, 500), "the time until"),
        ("next_visit", np.random.default_rng(0).integers(1, 9, 500), "after the decision"),
    ],
)
def test_what_is_no_state_is_left_out_and_the_file_says_why(name, values, why):
    table = bandit()
    values = table["item_id"] // 4 if values is None else pl.Series(values)
    roles = roles_of(table.with_columns(values.alias(name)))
    assert name not in roles.state
    assert why in roles.left_out[name]


def test_an_amount_that_follows_from_the_decision_is_a_cost():
    assert roles_of(bandit().with_columns(litres=pl.col("item_id") * 0.5)).costs == ["litres"]


def test_an_end_is_a_mark_of_last_rows_but_not_the_last_year():
    last = pl.Series("d84", np.tile([0, 0, 0, 0, 1], 60))
    assert "terminal" not in roles_of(panel().with_columns(last)).found
    ends = np.where(np.arange(60) % 4 > 0, 1, 0)
    marks = pl.Series("z", (np.tile([0, 0, 0, 0, 1], 60) * np.repeat(ends, 5)))
    assert roles_of(panel().with_columns(marks)).found["terminal"] == "z"


def test_where_the_next_row_begins_is_known_only_afterwards():
    table = panel().with_columns(stop=pl.col("year") + 1)
    assert "known only afterwards" in roles_of(table).left_out["stop"]


def test_a_table_without_a_decision_or_outcome_asks_for_both(tmp_path):
    pl.DataFrame({"x": [0.1, 0.2, 0.4], "z": [3.1, 2.5, 0.4]}).write_csv(tmp_path / "log.csv")
    text = first_version([str(tmp_path / "log.csv")], tmp_path)
    read = tomllib.loads(text)
    assert read["data"]["action"] == read["objective"]["minimize"] == "CHANGE ME"
    assert "which column says what was decided? None looks like it" in text
    assert "What should there be less of, or more?" in text


@pytest.mark.parametrize("name", ["a\"b'c", "x\ny", "ünï", "a = [1"])
def test_any_name_of_a_column_makes_a_file_that_can_be_read(tmp_path, name):
    table = bandit().rename({"user_feature": name, "": "index"})
    table = table.with_columns(pl.lit("one\ntwo\x07").alias("note"))
    table.write_parquet(tmp_path / "log.parquet")
    read = tomllib.loads(first_version([str(tmp_path / "log.parquet")], tmp_path))
    assert name in read["data"]["state"]


def test_missing_values_and_empty_columns_are_no_trouble():
    table = panel().with_columns(
        hours=pl.when(pl.col("hours") > 2000).then(None).otherwise(pl.col("hours")),
        nothing=pl.lit(None, dtype=pl.Float64),
        some=pl.when(pl.col("year") == 1981).then(1.0).otherwise(None),
    )
    roles = roles_of(table)
    assert "nothing" in roles.left_out
    assert "hours" in roles.state
