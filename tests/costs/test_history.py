"""Switching and chance constraints against the linear program of an MDP whose states were widened by hand."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import checkrein
from checkrein import (
    FQE,
    FQI,
    AtMost,
    CuttingPlane,
    EverEntered,
    KLDivergence,
    Linear,
    Problem,
    Switching,
    Tabular,
    TabularMDP,
    TabularPolicy,
    certify,
    evaluate,
    solve,
)
from checkrein.base import storage
from checkrein.base.errors import DataError, ProblemError
from checkrein.costs import OwnStates
from problems import PLAYERS, random_log, random_mdp

N, A = 6, 3
BAD = {2, 5}


def widened(log, past_of):
    """The empirical MDP over (state, past), by a loop over episodes; past_of(past, row) is the past after a row.

    Returns the exact MDP, with costs c, switches and entries; only pairs that were logged are available.
    """
    pasts, counts, costs = {}, {}, {}

    def number(state, past):
        return pasts.setdefault((state, past), len(pasts))

    starts = []
    for episode in np.unique(log.episodes):
        rows = np.flatnonzero(log.episodes == episode)
        past = (None, False)
        for place, row in enumerate(rows):
            state, action, following = (int(x[row]) for x in (log.states, log.actions, log.next_states))
            here = number(state, past)
            starts += [here] if place == 0 else []
            after = past_of(past, state, action, following)
            switched = past[0] is not None and past[0] != action
            entered = after[1] and not past[1]
            if not (log.next_observed[row] or log.terminals[row]):
                continue
            there = None if log.terminals[row] else number(following, after)
            counts.setdefault((here, action), []).append(there)
            costs.setdefault((here, action), []).append((log.cost("c")[row], float(switched), float(entered)))
            past = after
    size = len(pasts)
    moves, tables, available = np.zeros((size, A, size)), np.zeros((3, size, A)), np.zeros((size, A), dtype=bool)
    for (here, action), arrivals in counts.items():
        available[here, action] = True
        tables[:, here, action] = np.mean(costs[here, action], axis=0)
        for there in arrivals:
            if there is not None:
                moves[here, action, there] += 1 / len(arrivals)
    initial = np.bincount(starts, minlength=size) / len(starts)
    named = dict(zip(("c", "switches", "entries"), tables, strict=True))
    return TabularMDP(moves, named, initial, 0.9, available)


def remembers_action(past, state, action, following):
    return action, False


def remembers_entry(past, state, action, following):
    return None, past[1] or state in BAD or following in BAD


def remembers_both(past, state, action, following):
    return action, remembers_entry(past, state, action, following)[1]


def ended_log(seed, episodes=400):
    """A log without cut-offs, so that every widened state that is reached was left again."""
    mdp = random_mdp(seed, n_constraints=0, n_states=N, n_actions=A, successors=3, ending=0.35)
    uniform = TabularPolicy.uniform(N, A)
    return mdp.simulate(uniform, episodes=episodes, max_steps=400, rng=np.random.default_rng(seed))


CASES = {
    "switching": (remembers_action, {"switches": Switching()}),
    "a set of states": (remembers_entry, {"entries": EverEntered(BAD)}),
    "a function": (remembers_entry, {"entries": EverEntered(lambda states: np.isin(states, list(BAD)))}),
    "both": (remembers_both, {"switches": Switching(), "entries": EverEntered(BAD)}),
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("case", CASES)
def test_limits_on_switching_and_on_ever_entering_have_the_linear_programs_optimum(case, seed):
    past_of, costs = CASES[case]
    log = ended_log(seed)
    exact = widened(log, past_of)
    free = exact.optimum(objective="c").values
    limits = []
    for name, cost in costs.items():
        least = exact.optimum(objective=name).values[name]
        limits.append(AtMost(cost, least + 0.6 * (free[name] - least), name=name))
    asked = [AtMost(limit.name, limit.limit) for limit in limits]
    best = exact.optimum(objective="c", constraints=asked)
    problem = Problem(log, objective="c", constraints=limits, discount=0.9)
    solution = solve(problem, learner=CuttingPlane(100.0), tolerance=1e-6, max_rounds=200, **PLAYERS)
    assert solution.status == "converged"
    assert solution.values["c"] == pytest.approx(best.values["c"], abs=1e-5)
    assert [solution.multipliers[limit.name] for limit in limits] == pytest.approx(
        [best.multipliers[limit.name] for limit in limits], abs=1e-3
    )


def test_the_chance_of_ever_entering_is_the_share_of_logged_episodes_that_did():
    """Of behavior itself, at discount 1; also where the set is entered at the very start or by the last step."""
    log = ended_log(3, episodes=500)
    entered = [
        bool(BAD & {*log.states[log.episodes == e].tolist(), *log.next_states[log.episodes == e].tolist()})
        for e in range(500)
    ]
    problem = Problem(log, objective=None, constraints=[AtMost(EverEntered(BAD), 0.5, name="bad")], discount=1.0)
    counts = np.zeros((problem.dataset.n_states, A))
    np.add.at(counts, (problem.dataset.states, problem.dataset.actions), 1)
    behavior = TabularPolicy((counts + 1e-12) / (counts + 1e-12).sum(axis=1, keepdims=True))
    found = FQE(Tabular())(problem, behavior, rng=np.random.default_rng(0))
    assert found.constraints[0] == pytest.approx(np.mean(entered), abs=1e-6)
    assert problem.constraints[0].range == (0.0, 1.0)  # a probability, whatever the horizon


def test_a_condition_on_the_logs_columns_is_entered_by_the_first_row_where_it_holds():
    log = random_log(4, episodes=50)
    high = log.with_costs({"c": log.cost("c"), "high": log.cost("c") > np.quantile(log.cost("c"), 0.8)})
    problem = Problem(high, objective="c", constraints=[AtMost(EverEntered("high"), 0.5)], discount=0.9)
    per_row = problem.signed_costs(problem.dataset)[:, 1]
    for episode in np.unique(log.episodes):
        rows = log.episodes == episode
        assert per_row[rows].sum() == float((high.cost("high")[rows] > 0).any())
        assert per_row[rows].argmax() == high.cost("high")[rows].argmax()


@pytest.mark.parametrize("finite", [True, False])
def test_an_expression_over_state_columns_is_the_set_of_states_in_which_it_holds(finite):
    table = pl.DataFrame(
        {
            "who": [0, 0, 0, 1, 1, 2, 2],
            "grade": [1, 2, 3, 1, 1, 3, 2],
            "ward": ["er", "icu", "icu", "er", None, "icu", "icu"],
            "dose": [0, 1, 0, 1, 0, 0, 1],
            "harm": [0.0, 1.0, 0.0, 0.0, 2.0, 0.0, 0.0],
        }
    )
    columns = {"episode": "who", "state": ["grade", "ward"], "action": "dose", "costs": ["harm"]}
    log = checkrein.read_logs(table, **columns, finite=finite)

    def entered(condition):
        problem = Problem(
            log, objective="harm", constraints=[AtMost(EverEntered(condition), 1.0, name="it")], discount=1.0
        )
        return problem.signed_costs(problem.dataset)[:, 1].tolist()

    assert entered("grade >= 3 AND ward = 'icu'") == [0, 1, 0, 0, 0, 1, 0]  # by the row that leads there
    assert entered("harm > 0") == [0, 1, 0, 0, 1, 0, 0]
    assert entered("ward IS NULL") == [0, 0, 0, 1, 0, 0, 0]


def test_switching_counts_changes_of_action_within_an_episode():
    log = random_log(5, episodes=30)
    problem = Problem(log, objective="c", constraints=[AtMost(Switching(), 1.0)], discount=0.9)
    order = log.order()
    same = log.episodes[order][1:] == log.episodes[order][:-1]
    changes = (same & (log.actions[order][1:] != log.actions[order][:-1])).sum()
    assert problem.signed_costs(problem.dataset)[:, 1].sum() == changes


def test_features_hold_the_past_as_indicators():
    log = random_log(6, episodes=30)
    features = np.eye(N)[log.states], np.eye(N)[log.next_states], np.eye(N)[log.initial_states]
    names = "states", "next_states", "initial_states"
    vectors = replace(log, **dict(zip(names, features, strict=True)), n_states=None)
    limits = [AtMost(Switching(), 1.0), AtMost(EverEntered(lambda x: x[:, 2] > 0, name="two"), 1.0)]
    problem = Problem(vectors, objective="c", constraints=limits, discount=0.9)
    finite = Problem(log, objective="c", constraints=[limits[0], AtMost(EverEntered({2}), 1.0)], discount=0.9)
    assert problem.dataset.states.shape == (len(log), N + A + 1)
    assert problem.dataset.memory.features(("a", "b", "c")) == ["after a", "after b", "after c", "two before"]
    assert problem.signed_costs(problem.dataset) == pytest.approx(finite.signed_costs(finite.dataset))
    policy = OwnStates(_Uniform(), problem.dataset.memory)
    values = FQE(Linear(ridge=1e-3), iterations=20)(problem, policy, rng=np.random.default_rng(0))
    assert 0 < values.constraints[0] < 10


class _Uniform:
    def probabilities(self, states):
        assert states.shape[1] == N  # the log's own features, without the past
        return np.full((len(states), A), 1 / A)


def test_a_policy_of_the_logs_own_states_is_judged_through_own_states():
    log = random_log(7, episodes=200, ending=0.3, max_steps=50)
    problem = Problem(log, objective="c", constraints=[AtMost(Switching(), 5.0)], discount=0.9)
    uniform = OwnStates(TabularPolicy.uniform(N, A), problem.dataset.memory)
    found = evaluate(uniform, log, costs=[Switching()], discount=0.9, estimators=["fqe"])
    steps = evaluate(
        TabularPolicy.uniform(N, A), log.with_costs({"one": np.ones(len(log))}), costs=["one"], discount=0.9
    )
    later = steps.value("fqe", "one") - 1  # of every later decision two of three differ from the one before
    assert found.value("fqe", "Switching") == pytest.approx(2 / 3 * later, rel=0.05)
    assert certify(uniform, log, constraints=problem.constraints, discount=0.9).verdict in ("pass", "inconclusive")


def test_a_reference_of_the_logs_own_states_serves_where_the_past_has_joined_them():
    log = random_log(8, episodes=200)
    limits = [
        AtMost(Switching(), 1.0),
        AtMost(KLDivergence(), 1.0),
        AtMost(KLDivergence(TabularPolicy.uniform(N, A)), 1.0, name="u"),
    ]
    problem = Problem(log, objective="c", constraints=limits, discount=0.9)
    solution = solve(problem, learner=CuttingPlane(100.0), tolerance=1e-4, max_rounds=100, **PLAYERS)
    assert solution.values["Switching"] <= 1 + 1e-5
    assert solution.values["u"] <= 1 + 1e-5


def test_costs_with_a_memory_can_be_saved(tmp_path):
    log = random_log(9, episodes=30)
    limits = [AtMost(Switching(), 1.0), AtMost(EverEntered({1, 2}), 1.0)]
    kept = Problem(log, objective="c", constraints=limits, discount=0.9).constraints
    storage.save(kept[1], tmp_path / "limit.npz")
    read = storage.load(tmp_path / "limit.npz")
    again = Problem(log, objective="c", constraints=[kept[0], read], discount=0.9)
    assert again.signed_costs(again.dataset).sum(axis=0)[2] > 0


def test_another_past_than_the_states_hold_is_refused():
    log = random_log(9, episodes=30)
    problem = Problem(log, objective="c", constraints=[AtMost(Switching(), 1.0)], discount=0.9)
    with pytest.raises(DataError, match="hold another past, without states 1"):
        Problem(problem.dataset, objective="c", constraints=[AtMost(EverEntered({1}), 1.0)], discount=0.9)
    with pytest.raises(DataError, match="without episodes it is not known what came before"):
        Problem(log.compressed(), objective="c", constraints=[AtMost(Switching(), 1.0)], discount=0.9)


@pytest.mark.parametrize("price", [0.0, 0.5])
def test_a_divergence_stays_finite_where_only_another_past_was_logged_whatever_its_price(price):
    log = random_log(0, episodes=6, max_steps=4, ending=0.1)
    limits = [AtMost(KLDivergence(), 1.0), AtMost(Switching(), 1.0)]
    problem = Problem(log, objective="c", constraints=limits, discount=0.9)
    policy = FQI(Tabular())(problem, np.full(2, price), rng=np.random.default_rng(0))
    assert np.isfinite(FQE(Tabular())(problem, policy, rng=np.random.default_rng(0)).row).all()


def test_two_events_of_one_name_are_refused():
    log = random_log(9, episodes=30)
    one, other = EverEntered(lambda states: states == 1), EverEntered(lambda states: states == 2)
    limits = [AtMost(one, 1.0, name="one"), AtMost(other, 1.0, name="other")]
    with pytest.raises(ProblemError, match="two events are called '<lambda>', but happen in different rows"):
        Problem(log, objective="c", constraints=limits, discount=0.9)
    same = Problem(log, objective=one, constraints=limits[:1], discount=0.9)
    joined = same.signed_costs(same.dataset)
    assert joined[:, 0] == pytest.approx(joined[:, 1])
    assert Problem(same.dataset, objective=one, constraints=[], discount=0.9).dataset is same.dataset
    with pytest.raises(ProblemError, match="hold another event that is called '<lambda>'"):
        Problem(same.dataset, objective="c", constraints=limits[1:], discount=0.9)


@pytest.mark.parametrize("states", [[True, False, True], [1.5], {10**30}, {"critical"}])
def test_what_is_no_set_of_states_is_refused(states):
    with pytest.raises(ProblemError, match="give a set of finite states"):
        EverEntered(states)


@pytest.mark.parametrize("state", [-1, N])
def test_a_state_that_the_log_does_not_have_is_refused_lest_its_chance_be_certified_as_nothing(state):
    with pytest.raises(ProblemError, match=f"holds state {state}, but the log has the states 0 to 5"):
        Problem(random_log(9), objective="c", constraints=[AtMost(EverEntered({1, state}), 0.1)], discount=0.9)


def test_a_past_that_would_make_millions_of_states_is_refused():
    log = random_log(9, episodes=30)
    limits = [AtMost(EverEntered({1}, name=f"event {k}"), 1.0) for k in range(20)]
    with pytest.raises(DataError, match="would be 6,291,456, which is too many"):
        Problem(log, objective="c", constraints=limits, discount=0.9)
