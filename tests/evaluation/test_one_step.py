from dataclasses import replace

import numpy as np
import pytest

from checkrein import FQE, FQI, AtMost, Dataset, Problem, Support, Tabular, TabularMDP, TabularPolicy
from checkrein.base import chain
from checkrein.base.errors import ArgumentError
from checkrein.evaluation import one_step
from checkrein.evaluation.one_step import TabularNuisances
from problems import problem_of, random_log, random_mdp, random_policy, rows_of

RNG = np.random.default_rng(0)
MDP = random_mdp(5, n_states=12, n_actions=3, successors=3, ending=0.1, discount=0.95)
UNIFORM = TabularPolicy.uniform(12, 3)


def logged(seed, episodes, mdp=MDP):
    log = mdp.simulate(UNIFORM, episodes=episodes, max_steps=40, rng=np.random.default_rng(seed))
    return Problem(log, objective="c", constraints=[AtMost("g0", 1.0)], discount=mdp.discount)


def true_values(policy):
    return np.array(list(MDP.values(policy).values()))


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_by_their_own_tables_episodes_say_what_fqe_does(discount, monkeypatch):
    monkeypatch.setattr(one_step, "BLOCKS", 1)  # there is nothing to correct: blocks would only be corrected by others
    problem = problem_of(random_log(3), discount=discount)
    policy = random_policy(3, problem.dataset)
    said = TabularNuisances.of(problem, Support(1)).score(problem, policy)
    values = FQE(Tabular())(problem, policy, rng=RNG)
    assert said.scores.mean(axis=0) == pytest.approx([values.objective, *values.constraints])
    assert said.unsupported == 0


def test_a_weight_of_two_is_an_episode_logged_twice():
    log, first = random_log(4), one_step.BLOCKS  # one episode of each block: its copy falls into the same
    twice = np.flatnonzero(log.episodes < first)
    own = {"initial_states": None, "initial_weights": None}
    both = np.concatenate([np.arange(len(log)), twice])
    doubled = rows_of(log, both, episodes=np.concatenate([log.episodes, log.episodes[twice] + 60]), **own)
    weighed = rows_of(log, weights=np.where(log.episodes < first, 2.0, 1.0), **own)
    policy = random_policy(4, log)
    for tables in (
        TabularNuisances.of(problem_of(random_log(5)), Support(1)),
        *(TabularNuisances.of(problem_of(d), Support(1)) for d in (doubled, weighed)),
    ):
        copies, heavy = (tables.score(problem_of(part), policy).scores for part in (doubled, weighed))
        assert heavy == pytest.approx(copies[:60])
        assert copies[:first] == pytest.approx(copies[60:])


def test_starts_that_were_given_are_valued_by_all():
    log = random_log(4)
    given = rows_of(log, initial_states=np.array([2]), initial_weights=np.ones(1))
    tables, policy = TabularNuisances.of(problem_of(given), Support(1)), random_policy(4, log)
    each = tables.score(problem_of(given), policy).scores
    values = FQE(Tabular())(problem_of(given), policy, rng=RNG)
    assert each.mean(axis=0) == pytest.approx([values.objective, *values.constraints], rel=0.1)
    own = TabularNuisances.of(problem_of(log), Support(1)).score(problem_of(log), policy).scores
    assert each.mean(axis=0) != pytest.approx(own.mean(axis=0), rel=1e-3)


def test_rows_without_a_next_state_say_nothing():
    log = random_log(4)
    lost = np.zeros(len(log), dtype=bool)
    lost[::7] = ~np.asarray(log.terminals)[::7]
    cut = rows_of(log, next_observed=~lost)
    tables, policy = TabularNuisances.of(problem_of(random_log(5)), Support(1)), random_policy(4, log)
    changed = rows_of(cut, next_observed=~lost, costs={n: cut.cost(n) + 99.0 * lost for n in cut.cost_names})
    one, other = (tables.score(problem_of(part), policy).scores for part in (cut, changed))
    assert one == pytest.approx(other)


def test_other_episodes_take_away_what_the_tables_have_wrong():
    """The tables are of 60 episodes; over many of them, values corrected by other episodes are right on average."""
    policy = TabularPolicy(np.random.default_rng(9).dirichlet(np.ones(3), 12))
    truth, apart, scores = true_values(policy), [], []
    for seed in range(150):
        tables, judging = TabularNuisances.of(logged(seed, 60), Support(1)), logged(10_000 + seed, 200)
        each = tables.score(judging, policy).scores
        apart.append(each.mean(axis=0) - truth)
        scores.append(apart[-1] / (each.std(axis=0) / np.sqrt(200)))
    error = np.std(apart, axis=0) / np.sqrt(len(apart))
    assert (np.abs(np.mean(apart, axis=0)) < 3 * error).all()
    assert np.std(scores, axis=0) == pytest.approx(1, abs=0.2)


def waiting_room(n_states=4, n_actions=4, leave=0.3):
    """Every step costs 1, and every action leads on as seldom as any other: what looks quicker is chance."""
    transitions = np.zeros((n_states, n_actions, n_states))
    for state in range(n_states):
        transitions[state, :, state] = 1 - leave
        transitions[state, :, min(state + 1, n_states - 1)] += leave if state + 1 < n_states else 0.0
    costs = {name: np.ones((n_states, n_actions)) for name in ("c", "g0")}
    return TabularMDP(transitions, costs, np.eye(n_states)[0], 1.0)


def test_of_a_policy_that_the_tables_chose_visits_must_be_corrected_too(monkeypatch):
    """It looks quick, and as if it came to few steps: the first term leaves a share of that, the second less."""
    room, uniform = waiting_room(), TabularPolicy.uniform(4, 4)
    truth = room.values(uniform)["c"]

    def problem(seed, episodes):
        log = room.simulate(uniform, episodes=episodes, max_steps=1000, rng=np.random.default_rng(seed))
        return Problem(log, objective="c", constraints=[AtMost("g0", 1.0)], discount=1.0)

    cases = []
    for seed in range(100):
        mine, judging = problem(seed, 100), problem(10_000 + seed, 200)
        cases.append((mine, judging, FQI(Tabular())(mine, np.zeros(1), rng=RNG)))

    def bias():
        said = [
            TabularNuisances.of(mine, Support(1)).score(judging, policy).scores[:, 0] for mine, judging, policy in cases
        ]
        return np.mean([each.mean() for each in said]) - truth

    claimed = np.mean([FQE(Tabular())(mine, policy, rng=RNG).objective for mine, _, policy in cases]) - truth
    twice = bias()
    monkeypatch.setattr(one_step, "BLOCKS", 1)
    once = bias()
    assert claimed < 2 * once < 0
    assert abs(twice) < 0.5 * abs(once)


def test_what_has_no_evidence_costs_the_dearest_step_and_then_what_the_worst_state_does():
    problem = problem_of(random_log(3), discount=1.0)
    tables = TabularNuisances.of(problem, Support(1))
    policy = random_policy(3, problem.dataset)
    known = TabularNuisances.of(problem, Support(1)).score(problem, policy)
    evidence = tables.evidence.copy()
    evidence[0] = False
    blind = replace(tables, evidence=evidence).score(problem, policy)
    assert blind.unsupported > 0
    assert (blind.scores.mean(axis=0) > known.scores.mean(axis=0)).all()
    assert (blind.scores.mean(axis=0) < known.scores.mean(axis=0) + problem.worst()).all()


def test_tables_need_finite_states():
    log = random_log(0)
    features = rows_of(
        log,
        states=np.eye(6)[log.states],
        next_states=np.eye(6)[log.next_states],
        initial_states=np.eye(6)[log.initial_states],
        n_states=None,
    )
    with pytest.raises(ArgumentError, match="finite states"):
        TabularNuisances.of(problem_of(features), Support(1))


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_many_states_are_solved_for_sparsely_with_the_same_scores(discount, monkeypatch):
    mdp = random_mdp(2, n_states=400, n_actions=3, successors=4, ending=0.1, discount=discount)
    uniform = TabularPolicy.uniform(400, 3)
    log = mdp.simulate(uniform, episodes=900, max_steps=30, rng=np.random.default_rng(0))
    problem = Problem(log, objective="c", constraints=[AtMost("g0", 1.0)], discount=discount)
    policy, rule = random_policy(3, log), Support(2)
    dense = TabularNuisances.of(problem, rule).score(problem, policy)
    monkeypatch.setattr(chain, "DENSE_STATES", 0)
    sparse = TabularNuisances.of(problem, rule).score(problem, policy)
    assert sparse.scores == pytest.approx(dense.scores, rel=1e-8, abs=1e-8)
    assert sparse.visits == pytest.approx(dense.visits, rel=1e-8, abs=1e-10)


def begun_in(states):
    """Single decisions that begin in some of six states."""
    states = np.asarray(states)
    n = len(states)
    log = Dataset.from_arrays(
        states=states,
        actions=np.arange(n) % 2,
        next_states=states,
        costs={"c": np.ones(n), "g": np.zeros(n)},
        terminals=np.ones(n, bool),
        episodes=np.arange(n),
        n_actions=2,
        n_states=6,
    )
    return Problem(log, objective="c", constraints=[AtMost("g", 1.0)], discount=1.0)


def test_episodes_that_begin_where_the_tables_have_nothing_are_decisions_without_evidence():
    tables, policy = TabularNuisances.of(begun_in([0, 0, 1, 1]), Support()), TabularPolicy.uniform(6, 2)
    assert tables.score(begun_in([0, 0, 1, 1]), policy).unsupported == 0
    assert tables.score(begun_in([0, 0, 1, 5]), policy).unsupported == pytest.approx(0.25)
