"""A finite horizon: time joins the state, and values stop there."""

import json

import numpy as np
import polars as pl
import pytest

import checkrein
from checkrein import (
    FQE,
    FQI,
    AtMost,
    CuttingPlane,
    Dataset,
    Linear,
    Problem,
    Tabular,
    TabularMDP,
    learn_certified,
    read_logs,
    solve,
)
from checkrein.base.errors import DataError
from checkrein.data.encoding import STEP_NUMBER
from checkrein.policies import TabularPolicy
from problems import random_mdp

HORIZON, SIZE = 4, {"n_states": 5, "n_actions": 3}


def endless(seed=0, episodes=400):
    """A log whose episodes go on, mostly, beyond the horizon."""
    mdp = random_mdp(seed, ending=0.05, successors=3, **SIZE)
    uniform = TabularPolicy.uniform(SIZE["n_states"], SIZE["n_actions"])
    return mdp.simulate(uniform, episodes=episodes, max_steps=9, rng=np.random.default_rng(seed))


def widened(log, horizon, discount):
    """The finite-horizon MDP that the log's rows amount to, counted row by row; states are (step, state)."""
    n_states, n_actions = log.n_states, log.n_actions
    size = n_states * horizon
    counts, costs = np.zeros((size, n_actions)), {name: np.zeros((size, n_actions)) for name in log.cost_names}
    moves, initial = np.zeros((size, n_actions, size)), np.zeros(size)
    for row in range(len(log)):
        step = int(log.steps[row])
        if step == 0:
            initial[log.states[row]] += 1
        cut = not log.terminals[row] and not log.next_observed[row]
        if step >= horizon or (cut and step < horizon - 1):
            continue
        here, action = step * n_states + log.states[row], log.actions[row]
        counts[here, action] += 1
        for name in log.cost_names:
            costs[name][here, action] += log.cost(name)[row]
        if step < horizon - 1 and not log.terminals[row]:
            moves[here, action, (step + 1) * n_states + log.next_states[row]] += 1
    seen = np.maximum(counts, 1)
    costs = {name: table / seen for name, table in costs.items()}
    available = counts > 0
    available[~available.any(axis=1)] = True  # never reached
    return TabularMDP(moves / seen[..., None], costs, initial / initial.sum(), discount, available)


@pytest.mark.parametrize("discount", [1.0, 0.9])
def test_the_best_policy_is_that_of_the_linear_program_widened_by_time(discount):
    log = endless()
    truth = widened(log, HORIZON, discount)
    free = truth.optimum(objective="c").values
    limit = AtMost("g0", 0.5 * (free["g0"] + truth.optimum(objective="g0").values["g0"]))
    best = truth.optimum(objective="c", constraints=[limit])
    problem = Problem(log.until(HORIZON), objective="c", constraints=[limit], discount=discount)
    found = solve(
        problem,
        best_response=FQI(Tabular()),
        evaluator=FQE(Tabular()),
        learner=CuttingPlane(1000.0),
        tolerance=1e-8,
        max_rounds=200,
    )
    assert found.status == "converged"
    assert found.values == pytest.approx({"c": best.values["c"], "g0": limit.limit}, abs=1e-6)
    assert best.multipliers["g0"] > 0.01  # the limit binds
    assert truth.values(found.policy) == pytest.approx({**truth.values(found.policy), **found.values}, abs=1e-6)


def test_without_the_horizon_values_do_not_stop():
    log = endless()
    ends = Problem(log.until(HORIZON), objective="c", constraints=[], discount=0.9)
    goes_on = Problem(log, objective="c", constraints=[], discount=0.9)
    shorter, longer = (
        FQE(Tabular())(one, TabularPolicy.uniform(one.dataset.n_states, 3), rng=np.random.default_rng(0)).objective
        for one in (ends, goes_on)
    )
    assert shorter < 0.7 * longer
    assert ends.value_range()[1][0] < goes_on.value_range()[1][0]


def test_a_horizon_beyond_every_episode_changes_no_value():
    mdp = random_mdp(3, ending=0.5, successors=3, **SIZE)
    uniform = TabularPolicy.uniform(SIZE["n_states"], SIZE["n_actions"])
    log = mdp.simulate(uniform, episodes=300, max_steps=200, rng=np.random.default_rng(3))
    far = int(log.longest_episode())
    both = log, log.until(far)
    assert len(both[1]) == len(log)
    np.testing.assert_array_equal(both[0].returns(0.9), both[1].returns(0.9))
    assert not both[1].truncated.any()


def test_only_rows_within_the_horizon_are_kept_and_the_last_of_them_ends():
    log = endless().until(HORIZON)
    assert log.longest_episode() == HORIZON
    last = log.states // SIZE["n_states"] == HORIZON - 1
    assert log.terminals[last].all()
    assert last.any()
    assert (log.initial_states < SIZE["n_states"]).all()
    assert log.state_labels[SIZE["n_states"]] == "0, step 2"
    with pytest.raises(DataError, match="ends at horizon 4 already"):
        log.until(3)


def test_a_log_with_a_horizon_is_read_back_with_it(tmp_path):
    log = endless(episodes=30).until(HORIZON)
    log.write_parquet(tmp_path / "log.parquet")
    assert Dataset.read_parquet(tmp_path / "log.parquet").horizon == HORIZON
    assert Dataset.read_parquet(tmp_path / "log.parquet") == log


def table(episodes=200, steps=6, seed=0):
    rng = np.random.default_rng(seed)
    n = episodes * steps
    return pl.DataFrame(
        {
            "id": np.repeat(np.arange(episodes), steps),
            "t": np.tile(np.arange(steps), episodes) + 5,
            "ill": rng.choice(["mild", "severe"], n),
            "age": rng.normal(size=n),
            "act": rng.choice(["wait", "treat"], n),
            "bad": rng.random(n),
            "dose": rng.random(n),
        }
    ).sample(fraction=1.0, shuffle=True, seed=1)


def read(log, state, horizon=3):
    return read_logs(log, episode="id", step="t", state=state, action="act", costs=["bad", "dose"], horizon=horizon)


@pytest.mark.parametrize("state", [["ill"], ["age", "ill"]])
def test_a_table_reads_as_the_same_log_as_arrays_do(state):
    whole = read_logs(table(), episode="id", step="t", state=state, action="act", costs=["bad", "dose"])
    read_so, made_so = read(table(), state), whole.until(3)
    assert read_so.horizon == made_so.horizon == 3
    np.testing.assert_array_equal(read_so.returns(0.9), made_so.returns(0.9))
    assert [c.name for c in read_so.encoding.columns] == [*state, STEP_NUMBER]
    limit = [AtMost("dose", 1.0)]
    values = []
    for log in (read_so, made_so):
        problem = Problem(log, objective="bad", constraints=limit, discount=0.9)
        functions = Tabular() if log.n_states is not None else Linear()
        policy = FQI(functions)(problem, np.array([0.3]), rng=np.random.default_rng(0))
        values.append(FQE(functions)(problem, policy, rng=np.random.default_rng(0)).row)
        shown = log.encoding.decode(log.states)
        assert shown[STEP_NUMBER].unique().sort().to_list() == [1.0, 2.0, 3.0]
    np.testing.assert_allclose(*values, rtol=1e-9)


def test_the_step_number_is_what_a_policy_is_asked_with():
    log = read(table(), ["ill"])
    rows = pl.DataFrame({"ill": ["mild", "mild"], STEP_NUMBER: [1, 3]})
    first, last = log.encoding.encode(rows)
    assert log.state_labels[first] == f"ill=mild, {STEP_NUMBER}=1"
    assert log.state_labels[last] == f"ill=mild, {STEP_NUMBER}=3"
    with pytest.raises(DataError, match="which decision of its episode"):
        log.encoding.encode(rows.drop(STEP_NUMBER))


def test_what_a_log_cannot_have_a_horizon_of_is_said():
    with pytest.raises(DataError, match="rename it"):
        read(table().with_columns(pl.lit(1).alias(STEP_NUMBER)), ["ill"])
    with pytest.raises(DataError, match="horizon = 3, but no episode column"):
        read_logs(table(), state=["ill"], action="act", costs=["bad"], horizon=3)
    with pytest.raises(DataError, match="without episodes"):
        Dataset.from_arrays(
            states=[0, 1],
            actions=[0, 1],
            next_states=[1, 0],
            costs={"c": [1, 2]},
            terminals=[False, True],
            initial_states=[0],
        ).until(2)


@pytest.mark.parametrize("state", ["ill", ["age", "ill"]], ids=str)
def test_a_run_with_a_horizon_counts_what_it_leaves_out_and_asks_for_the_step(state, tmp_path):
    treated = (pl.col("act") == "treat").cast(pl.Float64)
    log = table(400).with_columns(dose=treated, bad=pl.col("bad") - 0.3 * treated)
    run = checkrein.fit(
        log,
        episode="id",
        step="t",
        state=state,
        action="act",
        minimize="bad",
        limits={"dose": "at most 3.5"},
        horizon=3,
        out=tmp_path / "run",
    )
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    card = summary["card"]
    assert (card["horizon"], card["longest"], card["truncated"]) == (3, 3, 0)
    assert card["left_out"] == {"a row beyond the horizon": 1200}
    assert card["rows"] == card["rows_used"] + 1200 == 2400
    assert any("1,200 rows lie beyond the horizon of 3" in warning for warning in run.warnings)
    policy = checkrein.load_policy(tmp_path / "run", uncertified=True)
    rows = [{"ill": "mild", "age": 0.3, STEP_NUMBER: step} for step in (1, 2, 3)]
    assert set(policy.act(rows, seed=0)) <= {"treat", "wait"}
    with pytest.raises(DataError, match="'step number' is 4 in row 0: it must be 1 to 3"):
        policy.act([{"ill": "mild", "age": 0.3, STEP_NUMBER: 4}], seed=0)


def test_what_is_certified_with_a_horizon_keeps_its_limit_in_truth():
    """Steps matter here: the dose helps only in the last decision, which no state but the step shows."""
    rng = np.random.default_rng(0)
    episodes, steps = 3000, 5
    act = rng.integers(0, 2, (episodes, steps))
    last = np.arange(steps) == 2
    bad = (rng.random((episodes, steps)) < np.where(last, 0.8 - 0.6 * act, 0.1)).astype(float)
    log = Dataset.from_arrays(
        states=np.zeros(act.size, int),
        actions=act.ravel(),
        next_states=np.zeros(act.size, int),
        costs={"bad": bad.ravel(), "dose": act.ravel().astype(float)},
        terminals=np.zeros(act.size, bool),
        next_observed=np.tile(np.arange(steps) < steps - 1, episodes),
        episodes=np.repeat(np.arange(episodes), steps),
    ).until(3)
    problem = Problem(log, objective="bad", constraints=[AtMost("dose", 1.4)], discount=1.0)
    found = learn_certified(problem, folds=3)
    assert found.passed is not None
    members = zip(found.policy.members, found.policy.weights, strict=True)
    doses = sum(weight * member.probabilities(np.arange(3))[:, 1] for member, weight in members)
    assert doses.sum() <= 1.4
    assert doses[2] > 0.2 + doses[:2].max()  # behavior does the same in every step
