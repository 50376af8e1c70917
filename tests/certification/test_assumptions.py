"""What a log says about its own assumptions, held against worlds in which they hold or not."""

from dataclasses import replace

import numpy as np
import pytest

from certification.cases import coin, coin_log, harm, judged
from checkrein import AtMost, Dataset, Problem, TabularPolicy, certify
from checkrein.certification import moments
from checkrein.certification.assumptions import (
    BEHAVIOR,
    CALIBRATION,
    DRIFT,
    MARKOV,
    assumption_checks,
    assumption_warnings,
)
from checkrein.certification.calibration import calibration_of
from checkrein.certification.given import Tables, known_of
from checkrein.certification.moments import CLEAR, SUSPECT, orthogonal
from checkrein.certification.past import Compared, past_tested, returns_to_go
from checkrein.evaluation.propensities import propensities_of
from checkrein.policies import behavior_policy
from checkrein.problem import Episodes
from checkrein_studies import random_cmdps


def world(seed=0, n_states=12):
    return random_cmdps.random_cmdp(seed, n_constraints=1, n_states=n_states, n_actions=3, ending=0.15)


def log_of(episodes=600, seed=0, mdp=None):
    """Log a random MDP whose limited cost is drawn; behavior does the same in states 2 i and 2 i + 1."""
    mdp, rng = world() if mdp is None else mdp, np.random.default_rng(seed)
    behavior = TabularPolicy(np.repeat(rng.dirichlet(np.ones(3), 6), 2, axis=0))
    log = mdp.simulate(behavior, episodes=episodes, max_steps=60, rng=rng)
    return log.with_costs({"c": log.cost("c"), "g0": 1.0 * (rng.random(len(log)) < log.cost("g0"))})


def problem_of(log, limit=2.0):
    return Problem(log, objective="c", constraints=[AtMost("g0", limit)], discount=0.95)


def merged(log):
    halves = {name: getattr(log, name) // 2 for name in ("states", "next_states", "initial_states")}
    return replace(log, **halves, n_states=6, propensities=None)


def checks_of(log, **more):
    return {check.name: check for check in assumption_checks(problem_of(log, **more))}


def with_later(log, worse):
    """Return the log with as many more events of g0 in later episodes, by a share of the rows."""
    more = (log.episodes > np.median(log.episodes)) & (np.random.default_rng(9).random(len(log)) < worse)
    return log.with_costs({"c": log.cost("c"), "g0": np.maximum(log.cost("g0"), more)})


def test_a_complete_log_of_a_world_that_stays_shows_nothing():
    checks = checks_of(log_of())
    assert list(checks) == [MARKOV, DRIFT, BEHAVIOR]
    assert all(check.ok and check.value > SUSPECT and check.limit == CLEAR for check in checks.values())
    assert assumption_warnings(problem_of(log_of())) == []


def test_states_that_cannot_be_told_apart_forbid_a_pass():
    check = checks_of(merged(log_of()))[MARKOV]
    assert not check.ok
    assert check.value < CLEAR
    assert "the state lacks something" in check.words
    assert check.advice.startswith("add what is missing to the state")
    assert any(check.words in warning for warning in assumption_warnings(problem_of(merged(log_of()))))


def test_telling_the_past_mends_a_state_that_lacked_it():
    """The cost of a step is the last action: a state that holds it is enough."""
    rng, n = np.random.default_rng(0), 400
    actions = rng.integers(0, 2, (n, 6))
    before = np.column_stack([np.zeros(n, dtype=int), actions[:, :-1]])
    fields = {
        "actions": actions.ravel(),
        "costs": {"c": rng.random(6 * n), "g0": 1.0 * (rng.random((n, 6)) < 0.2 + 0.5 * before).ravel()},
        "terminals": np.zeros(6 * n, dtype=bool),
        "episodes": np.repeat(np.arange(n), 6),
        "n_actions": 2,
    }
    nothing = np.zeros(6 * n, dtype=int)
    lacking = Dataset.from_arrays(states=nothing, next_states=nothing, **fields)
    check = checks_of(lacking)[MARKOV]
    assert not check.ok
    assert "the last action foretells what a step costs" in check.words
    assert "the last action" in check.advice
    told = Dataset.from_arrays(states=before.ravel(), next_states=actions.ravel(), **fields)
    assert checks_of(told)[MARKOV].value > SUSPECT


def test_decisions_that_remember_do_not_make_a_state_incomplete():
    """Behavior repeats its last action; what a step costs, and where it leads, depends on state and action alone."""
    rng, n, mdp = np.random.default_rng(1), 500, world()
    moves = np.asarray(mdp.transitions)
    rows = {name: [] for name in ("states", "actions", "next_states", "terminals", "episodes")}
    for episode in range(n):
        state, last = 0, 0
        for _ in range(12):
            action = last if rng.random() < 0.7 else int(rng.integers(3))
            odds = moves[state, action] / moves[state, action].sum()
            following = int(rng.choice(12, p=odds))
            for name, value in zip(rows, (state, action, following, False, episode), strict=True):
                rows[name].append(value)
            state, last = following, action
    drawn = 1.0 * (rng.random(12 * n) < mdp.costs["g0"][rows["states"], rows["actions"]])
    log = Dataset.from_arrays(costs={"c": mdp.costs["c"][rows["states"], rows["actions"]], "g0": drawn}, **rows)
    assert checks_of(log)[MARKOV].value > SUSPECT
    found = calibration_of(Episodes.of(problem_of(log)), propensities_of(log))
    assert found.tested.p < CLEAR
    assert "decisions depend on the past" in found.wrong


def test_one_step_logs_have_no_past():
    assert MARKOV not in {check.name for check in judged(coin(0.4), coin_log(400), harm(0.3)).checks}


def test_what_never_varies_is_not_tested():
    log = log_of(100)
    still = log.with_costs({"c": np.full(len(log), 0.1), "g0": np.full(len(log), 1e6 / 3)})
    alone = replace(still, next_states=np.zeros_like(log.states), states=np.zeros_like(log.states))
    alone = replace(alone, terminals=np.zeros(len(log), dtype=bool), actions=np.zeros_like(log.actions))
    assert past_tested(problem_of(alone)) is None


def test_a_single_action_leaves_nothing_to_decide():
    log = log_of(300)
    alone = replace(log, actions=np.zeros_like(log.actions), n_actions=1, propensities=None)
    assert BEHAVIOR not in checks_of(alone)
    assert calibration_of(Episodes.of(problem_of(alone)), propensities_of(alone)) is None


def test_too_few_episodes_are_not_tested():
    assert checks_of(log_of(3)) == {}


def test_unknown_next_states_and_weights_of_zero_count_for_nothing():
    log = log_of(300)
    n = len(log)
    twice = {
        name: np.concatenate([getattr(log, name), getattr(log, name)])
        for name in ("states", "actions", "next_states", "terminals", "steps")
    }
    both = Dataset.from_arrays(
        **twice,
        costs={name: np.concatenate([log.cost(name), 100 * log.cost(name)]) for name in log.cost_names},
        episodes=np.concatenate([log.episodes, log.episodes + 1000]),
        weights=np.repeat([1.0, 0.0], n),
        n_actions=3,
        n_states=12,
    )
    cut = Dataset.from_arrays(
        **{name: getattr(log, name) for name in twice},
        costs={name: log.cost(name) for name in log.cost_names},
        episodes=log.episodes,
        next_observed=~log.truncated,
        n_actions=3,
        n_states=12,
    )
    for one in (both, cut):
        assert all(check.value > SUSPECT for check in checks_of(one).values())


def test_copies_under_one_cluster_tell_no_more_than_once():
    log = merged(log_of(60, seed=3))
    copies = 20
    parts = {name: np.tile(getattr(log, name), copies) for name in ("states", "actions", "next_states", "terminals")}
    fields = {
        **parts,
        "costs": {name: np.tile(log.cost(name), copies) for name in log.cost_names},
        "episodes": np.concatenate([log.episodes + 60 * i for i in range(copies)]),
        "steps": np.tile(log.steps, copies),
    }
    alone = Dataset.from_arrays(**fields)
    whole = Dataset.from_arrays(**fields, clusters=np.tile(log.episodes, copies))
    checks = checks_of(whole)
    assert all(check.value > CLEAR for check in checks.values())
    assert checks_of(alone)[MARKOV].value < CLEAR


def test_costs_that_grow_forbid_a_pass_where_the_limit_is_near():
    worse = with_later(log_of(), 0.3)
    check = checks_of(worse, limit=2.0)[DRIFT]
    assert not check.ok
    assert "g0" in check.words
    assert "worse in the later half" in check.words
    far = checks_of(worse, limit=100.0)[DRIFT]
    assert far.ok
    assert far.value == pytest.approx(check.value)
    assert "forbids nothing" in far.words


def test_costs_that_fall_forbid_nothing():
    log = with_later(log_of(), 0.3)
    better = replace(log, episodes=log.episodes.max() - log.episodes)
    check = checks_of(better)[DRIFT]
    assert check.ok
    assert check.value < CLEAR
    assert "better in the later half" in check.words


def test_a_shuffled_log_shows_no_drift():
    log = with_later(log_of(), 0.3)
    numbers = np.random.default_rng(0).permutation(int(log.episodes.max()) + 1)
    assert checks_of(replace(log, episodes=numbers[log.episodes]))[DRIFT].value > SUSPECT


def test_a_change_of_behavior_is_said_and_is_no_change_of_costs():
    mdp = world()
    log = log_of(400, mdp=mdp)
    other = mdp.simulate(
        TabularPolicy(np.tile([0.8, 0.1, 0.1], (12, 1))), episodes=400, max_steps=60, rng=np.random.default_rng(4)
    )
    drawn = 1.0 * (np.random.default_rng(5).random(len(other)) < other.cost("g0"))
    names = ("states", "actions", "next_states", "terminals", "steps")
    both = Dataset.from_arrays(
        **{name: np.concatenate([getattr(log, name), getattr(other, name)]) for name in names},
        costs={"c": np.append(log.cost("c"), other.cost("c")), "g0": np.append(log.cost("g0"), drawn)},
        episodes=np.append(log.episodes, other.episodes + 400),
    )
    checks = checks_of(both)
    assert checks[DRIFT].value > SUSPECT
    assert checks[BEHAVIOR].value < CLEAR
    assert checks[BEHAVIOR].ok
    assert "0 is chosen more often later on" in checks[BEHAVIOR].words


def test_a_certificate_lists_the_checks_and_a_hidden_state_forbids_its_pass():
    log = merged(log_of())
    found = certify(TabularPolicy(np.full((6, 3), 1 / 3)), log, constraints=[AtMost("g0", 50.0)], discount=0.95, seed=0)
    assert found.verdict == "inconclusive"
    assert "the state lacks something" in found.reason
    complete = certify(behavior_policy(log_of()), log_of(), constraints=[AtMost("g0", 50.0)], discount=0.95, seed=0)
    assert complete.verdict == "pass"
    assert {MARKOV, DRIFT} <= {check.name for check in complete.checks}
    assert CALIBRATION not in {check.name for check in complete.checks}


@pytest.mark.parametrize(("propensity", "ok"), [(0.7, False), (0.5, True)])
def test_logged_propensities_that_do_not_add_up_forbid_a_pass(propensity, ok):
    found = judged(coin(0.4), coin_log(2000, logged=0.5, propensity=propensity), harm(5.0), method="dr-t")
    check = next(c for c in found.checks if c.name == CALIBRATION)
    assert check.ok is ok
    assert ("do not agree" in check.words) is not ok


def test_logged_propensities_may_depend_on_more_than_the_state():
    """Exploration fell over time: no state says so, and the propensities are right."""
    rng, n = np.random.default_rng(2), 3000
    first = np.where(np.arange(n) < n // 2, 0.3, 0.8)
    action = 1 * (rng.random(n) < first)
    nothing = np.zeros(n, dtype=int)
    fields = {"states": nothing, "actions": action, "next_states": nothing, "terminals": np.ones(n, dtype=bool)}
    drawn = {"c": rng.random(n), "g0": rng.random(n)}
    log = Dataset.from_arrays(
        **fields, costs=drawn, episodes=np.arange(n), propensities=np.where(action == 1, first, 1 - first)
    )
    assert calibration_of(Episodes.of(problem_of(log)), propensities_of(log)).tested.p > SUSPECT
    pooled = replace(log, propensities=np.where(action == 1, 0.65, 0.35))
    assert calibration_of(Episodes.of(problem_of(pooled)), propensities_of(pooled)).tested.p < CLEAR


@pytest.mark.parametrize("seed", range(20))
def test_an_action_that_is_hardly_ever_taken_is_no_reason_to_doubt_its_propensity(seed):
    log = rare_decisions(seed)
    found = calibration_of(Episodes.of(problem_of(log)), propensities_of(log))
    assert found is None or found.tested.p > CLEAR


def rare_decisions(seed, n=400, share=0.004):
    rng = np.random.default_rng(seed)
    action, nothing = 1 * (rng.random(n) < share), np.zeros(n, dtype=int)
    return Dataset.from_arrays(
        states=nothing,
        actions=action,
        next_states=nothing,
        costs={"c": rng.random(n), "g0": rng.random(n)},
        terminals=np.ones(n, dtype=bool),
        episodes=np.arange(n),
        propensities=np.where(action == 1, share, 1 - share),
        n_actions=2,
    )


@pytest.mark.parametrize(("bend", "wrong"), [(0.0, False), (3.0, True)])
def test_a_logistic_model_that_misses_a_bend_is_found(bend, wrong):
    rng, n = np.random.default_rng(3), 4000
    x = rng.standard_normal((n, 2))
    action = 1 * (rng.random(n) < 1 / (1 + np.exp(-(x[:, 0] + bend * (x[:, 1] ** 2 - 1)))))
    log = Dataset.from_arrays(
        states=x,
        actions=action,
        next_states=x,
        costs={"c": rng.random(n), "g0": rng.random(n)},
        terminals=np.ones(n, dtype=bool),
        episodes=np.arange(n),
    )
    found = calibration_of(Episodes.of(problem_of(log)), propensities_of(log))
    assert (found.tested.p < CLEAR) is wrong
    assert found.material is wrong


def test_features_warn_and_forbid_nothing():
    """A second feature that persists is left out."""
    rng, n, steps = np.random.default_rng(4), 400, 8
    x = rng.standard_normal((n, steps + 1))
    hidden = np.repeat(rng.standard_normal(n), steps)
    states, following = x[:, :-1].reshape(-1, 1), x[:, 1:].reshape(-1, 1)
    fields = {
        "actions": rng.integers(0, 2, n * steps),
        "costs": {"c": rng.random(n * steps), "g0": states[:, 0] + hidden + rng.standard_normal(n * steps)},
        "terminals": np.zeros(n * steps, dtype=bool),
        "episodes": np.repeat(np.arange(n), steps),
    }
    check = checks_of(Dataset.from_arrays(states=states, next_states=following, **fields))[MARKOV]
    assert check.value < CLEAR
    assert check.ok
    assert "forbids nothing" in check.words
    both = [np.column_stack([part, hidden]) for part in (states, following)]
    assert checks_of(Dataset.from_arrays(states=both[0], next_states=both[1], **fields))[MARKOV].value > SUSPECT


def test_sums_over_units_follow_students_t():
    parts = np.random.default_rng(0).normal([0.0, 0.2, 0.0], 1.0, (400, 3))
    parts[:, 2] = 0.0
    parts[0, 2] = 5.0
    found = moments.measured(parts)
    expected = parts[:, :2].sum(axis=0) / np.sqrt((parts[:, :2] ** 2).sum(axis=0))
    np.testing.assert_allclose(found.scores[:2], expected)
    assert np.isnan(found.p_values[2])
    assert found.comparisons == 2
    assert found.strongest == 1
    assert found.p == pytest.approx(2 * found.p_values[1])


def test_the_moment_equals_its_definition_row_by_row():
    """Four parts, each judged with means of the next two: by loops over rows."""
    episodes = Episodes.of(problem_of(log_of(80, seed=6)))
    known = known_of(episodes)
    assert isinstance(known, Tables)
    outcome = episodes.row_costs[:, 1:]
    instrument = np.log1p(episodes.step)[:, None]
    used = np.ones(len(outcome), dtype=bool)
    got = orthogonal(episodes, used, known, lambda _: Compared(outcome, [], instrument))
    part = (np.random.default_rng(0).permutation(len(episodes)) % 4)[episodes.episode]
    expected = np.zeros(len(episodes))
    for row in range(len(outcome)):
        alike = (episodes.states == episodes.states[row]) & (episodes.actions == episodes.actions[row])
        first, second = (alike & (part == (part[row] + i) % 4) for i in (1, 2))
        if first.any() and second.any():
            left = outcome[row, 0] - outcome[first, 0].mean()
            expected[episodes.episode[row]] += left * (instrument[row, 0] - instrument[second, 0].mean())
    np.testing.assert_allclose(got[:, 0], expected, atol=1e-12)


def test_returns_to_go_are_sums_to_the_end_of_the_episode():
    episodes = Episodes.of(problem_of(log_of(20)))
    got = returns_to_go(episodes, episodes.row_costs)
    for begin, length in zip(episodes.begins, episodes.lengths, strict=True):
        for row in range(begin, begin + length):
            rest = episodes.row_costs[row : begin + length]
            np.testing.assert_allclose(got[row], 0.95 ** np.arange(len(rest)) @ rest)


@pytest.mark.slow
def test_false_alarms_are_as_rare_as_they_say():
    """200 logs of complete worlds: warnings at most 4 % (three checks of 1 %), and no pass forbidden."""
    found = [checks_of(log_of(150, seed=seed, mdp=world(seed)), limit=0.1) for seed in range(200)]
    assert sum(any(check.value < SUSPECT for check in checks.values()) for checks in found) <= 12
    assert all(check.ok for checks in found for check in checks.values())


def logistic_log(seed, n=300, steps=4):
    """Log decisions that are logistic in two features, episodes of four rows."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n * steps, 2))
    action = 1 * (rng.random(n * steps) < 1 / (1 + np.exp(-(x @ [1.0, -0.5]))))
    return Dataset.from_arrays(
        states=x,
        actions=action,
        next_states=rng.standard_normal((n * steps, 2)),
        costs={"c": rng.random(n * steps), "g0": rng.random(n * steps)},
        terminals=np.zeros(n * steps, dtype=bool),
        episodes=np.repeat(np.arange(n), steps),
    )


@pytest.mark.slow
@pytest.mark.parametrize("method", ["counts", "logged", "logistic"])
def test_propensities_that_are_right_are_seldom_doubted(method):
    """400 logs: warnings at most 2.5 % (1 %, and three standard errors), and no pass forbidden."""
    found = []
    for seed in range(400):
        log = logistic_log(seed) if method == "logistic" else log_of(150, seed=seed, mdp=world(seed))
        found.append(calibration_of(Episodes.of(problem_of(log)), propensities_of(log, method)))
    p_values = np.array([one.tested.p for one in found if one is not None])
    assert len(p_values) > 300
    assert (p_values < SUSPECT).mean() <= 0.025
    assert (p_values > CLEAR).all()
