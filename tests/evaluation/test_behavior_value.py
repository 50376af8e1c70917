"""Behavior is worth what was logged; where episodes were cut off, what follows is added, and nothing at its worst."""

from dataclasses import replace

import numpy as np
import pytest

from checkrein import (
    FQE,
    AtMost,
    Dataset,
    KLDivergence,
    Linear,
    Problem,
    Support,
    Switching,
    Tabular,
    TabularMDP,
    TabularPolicy,
    Trees,
)
from checkrein.evaluation.behavior_value import behavior_of, behavior_value, logged_to_the_end
from checkrein.evaluation.one_step import TabularNuisances
from checkrein.functions import OneHot
from checkrein.logs.inspection import data_card
from checkrein.problem import Episodes
from checkrein.problem.goals import Unit
from numeric_worlds import logged
from problems import problem_of, random_log, repeated

DISCOUNT = 0.9
SELDOM = 0.004  # of the second action, which costs most: under the 1 % that counts as evidence over features


class Hot:
    """One feature for each finite state, of states written as a column of numbers."""

    def __call__(self, states):
        return OneHot(2)(states[:, 0].astype(int))


def value(problem, functions, **options):
    return behavior_value(problem, FQE(functions, **options), rng=np.random.default_rng(0))


def ward():
    """Two states, an action that is seldom taken, and stays that last ten decisions on average."""
    moves = np.full((2, 2, 2), 0.45)
    moves[0, 1], moves[1, 1] = [0.8, 0.1], [0.1, 0.8]
    costs = {"c": np.array([[1.0, 20.0], [0.0, 20.0]]), "g": np.array([[0.0, 1.0], [0.5, 1.0]])}
    return TabularMDP(moves, costs, np.array([0.5, 0.5]), DISCOUNT)


def behavior():
    return TabularPolicy(np.array([[1 - SELDOM, SELDOM], [1 - SELDOM, SELDOM]]))


def ward_log(max_steps, *, seed=0, episodes=3000):
    return ward().simulate(behavior(), episodes=episodes, max_steps=max_steps, rng=np.random.default_rng(seed))


def as_numbers(log):
    """The same log, its states a column of numbers."""
    columns = {
        name: np.asarray(getattr(log, name), float)[:, None] for name in ("states", "next_states", "initial_states")
    }
    return replace(log, **columns, n_states=None)


def asked(log):
    return Problem(log, objective="c", constraints=[AtMost("g", 1.0)], discount=DISCOUNT)


@pytest.mark.parametrize("functions", [Linear(), Trees(2)], ids=["linear", "trees"])
def test_where_nothing_was_cut_off_behavior_is_worth_the_logged_mean_whatever_the_class(functions):
    problem = logged(0, 60)
    found = value(problem, functions)
    sums = problem.dataset.returns(1.0)
    assert found.values.row == pytest.approx(sums.mean(axis=0), rel=1e-12)
    assert found.standard_errors == pytest.approx(sums.std(axis=0, ddof=1) / np.sqrt(60))


def test_where_nothing_was_cut_off_tables_say_the_logged_mean_too_at_any_discount():
    problem = asked(ward_log(2000, episodes=200))
    assert logged_to_the_end(Episodes.of(problem))
    found, fitted = value(problem, Tabular()), FQE(Tabular())(problem, behavior_of(problem), rng=None)
    mean = problem.dataset.returns(DISCOUNT)[:, [problem.dataset.cost_names.index(name) for name in "cg"]].mean(axis=0)
    assert found.values.row == pytest.approx(mean, rel=1e-12)
    assert abs(fitted.objective - mean[0]) > 1e-6  # a chain of tables is near, and not the same


def test_errors_of_episodes_that_belong_together_are_those_of_the_data_card():
    log = repeated(random_log(1, max_steps=500), 3)
    problem = problem_of(log)
    found = value(problem, Tabular())
    card = data_card(log, source="", discount=0.9, units={"c": (Unit.SUM, 1.0), "g0": (Unit.SUM, 1.0)})
    for row, mean, error in zip(card.behavior, found.values.row, found.standard_errors, strict=False):
        assert mean == pytest.approx(row.value, rel=1e-12)
        assert error == pytest.approx(row.standard_error)


@pytest.mark.parametrize("max_steps", [4, 12])
@pytest.mark.parametrize("seed", range(3))
def test_where_episodes_were_cut_off_the_rest_is_added(max_steps, seed):
    """Against the exact value, within four standard errors."""
    log, truth = ward_log(max_steps, seed=seed), ward().values(behavior())
    assert log.truncated.sum() > 0.2 * 3000
    for found in (value(asked(log), Tabular()), value(asked(as_numbers(log)), Linear(Hot()))):
        beyond = (found.values.row - [truth["c"], truth["g"]]) / found.standard_errors
        assert np.abs(beyond).max() < 4


def test_errors_count_what_is_fitted_too():
    """Two thirds of the episodes are cut off: values of 40 logs spread as far as is said, and sums alone say less."""
    found = [value(asked(ward_log(4, seed=seed, episodes=600)), Tabular()) for seed in range(40)]
    spread = np.std([one.values.constraints[0] for one in found], ddof=1)
    said, sums = (np.mean([each[1] for each in errors]) for errors in zip(*map(both_errors, found), strict=True))
    assert spread / said == pytest.approx(1, abs=0.35)
    assert sums < 0.75 * said


def both_errors(found):
    return found.standard_errors, replace(found, following=None).standard_errors


def test_over_features_actions_that_behavior_seldom_takes_do_not_count_at_their_worst():
    problem, truth = asked(as_numbers(ward_log(4))), ward().values(behavior())["c"]
    by_the_rule = FQE(Linear(Hot()))(problem, behavior_of(problem), rng=None).objective
    assert by_the_rule > 1.3 * truth  # what any other policy that takes them counts for
    assert value(problem, Linear(Hot())).values.objective == pytest.approx(truth, rel=0.1)


def test_a_class_with_one_feature_for_each_state_says_what_tables_say():
    log = ward_log(4)
    tables, features = value(asked(log), Tabular()), value(asked(as_numbers(log)), Linear(Hot()))
    assert features.scores == pytest.approx(tables.scores, rel=1e-2)
    assert features.standard_errors == pytest.approx(tables.standard_errors, rel=1e-2)
    nuisances = TabularNuisances.of(asked(log), Support())
    assert nuisances.behavior_scores(asked(log)) == pytest.approx(tables.scores)


def test_a_row_that_does_not_say_what_follows_stops_the_sum_in_its_state():
    log = ward_log(4)
    problem = asked(replace(log, next_observed=log.next_observed & ~log.truncated))
    found, rows = value(problem, Tabular()), Episodes.of(problem)
    q = FQE(Tabular()).q(problem, behavior_of(problem), rng=None)(np.arange(2))
    values = np.einsum("sa,sak->sk", behavior_of(problem).probabilities(np.arange(2)), q)
    for episode in np.flatnonzero(~rows.ended)[:20]:
        own = slice(rows.begins[episode], rows.last[episode])  # but for the last row
        logged_sum = (rows.factors[own, None] * rows.row_costs[own]).sum(axis=0)
        last = rows.last[episode]
        expected = logged_sum + rows.factors[last] * values[rows.states[last]]
        assert found.scores[episode] == pytest.approx(expected)


def test_behavior_is_at_no_distance_from_itself():
    for log in (ward_log(2000, episodes=200), ward_log(4), as_numbers(ward_log(2000, episodes=200))):
        problem = Problem(log, objective="c", constraints=[AtMost(KLDivergence(), 1.0)], discount=DISCOUNT)
        assert value(problem, Linear(Hot()) if log.n_states is None else Tabular()).values.constraints == pytest.approx(
            0, abs=1e-6
        )


def test_without_episodes_or_with_other_starts_behavior_is_valued_by_the_fit():
    log = ward_log(2000, episodes=300)
    starts = replace(log, initial_states=np.array([1]), initial_weights=np.array([1.0]))
    for problem in (asked(log.compressed()), asked(starts)):
        found = value(problem, Tabular())
        assert found.standard_errors is None
        assert found.values.row == pytest.approx(FQE(Tabular())(problem, behavior_of(problem), rng=None).row)


def test_where_a_closed_form_has_no_limit_as_many_steps_as_matter_are_looked_ahead():
    """Values double with every step that features take: no fixed point, but four steps of it are known."""
    steps, n = 4, 50
    position = np.tile(2.0 ** np.arange(steps), n)
    log = Dataset.from_arrays(
        states=position[:, None],
        actions=np.zeros(n * steps, int),
        next_states=2 * position[:, None],
        costs={"c": np.ones(n * steps)},
        terminals=np.repeat(np.arange(n) < n // 2, steps) & np.tile(np.arange(steps) == steps - 1, n),
        episodes=np.repeat(np.arange(n), steps),
        steps=np.tile(np.arange(steps), n),
        n_actions=1,
    )
    found = value(Problem(log, objective="c", constraints=[], discount=1.0), Linear())
    assert (found.scores[: n // 2] == steps).all()
    assert (found.scores[n // 2 :] <= 2 * steps).all()
    assert (found.scores[n // 2 :] >= steps).all()


def test_where_every_episode_stops_in_a_state_that_none_was_seen_to_leave_that_counts_at_its_worst():
    """Tables have no evidence of what follows there: as for any policy, the longest episode of the dearest step."""
    log = Dataset.from_arrays(
        states=[0, 0, 0], actions=[0, 0, 0], next_states=[1, 1, 0], costs={"c": [1.0, 1.0, 2.0]},
        terminals=[False, False, True], episodes=[0, 1, 2], n_actions=1,
    )  # fmt: skip
    found = value(Problem(log, objective="c", constraints=[], discount=1.0), Tabular())
    assert found.scores[:, 0].tolist() == [3.0, 3.0, 2.0]
    assert np.isfinite(found.standard_errors).all()


def test_costs_of_the_past_go_on_where_episodes_were_cut_off():
    problem = Problem(ward_log(4), objective="c", constraints=[AtMost(Switching(), 1.0)], discount=DISCOUNT)
    found = value(problem, Tabular())
    assert found.values.objective == pytest.approx(ward().values(behavior())["c"], rel=0.1)
    assert 0 < found.values.constraints[0] < 0.2
    assert (found.standard_errors > 0).all()
