"""Logs of single decisions: known propensities weigh rows, and wrong ones are found out."""

from dataclasses import replace

import numpy as np
import pytest

import checkrein
from checkrein.evaluation.known_weights import known_propensities
from checkrein.evaluation.one_step import TabularNuisances
from checkrein.policies import Support
from checkrein.problem import Episodes

STATES, ACTIONS = 3, 4


def bandit(seed, n=1500, *, numeric=False):
    """A log of single decisions, what each costs on average, and how likely each was."""
    rng = np.random.default_rng(seed)
    harm, gain = rng.uniform(0.05, 0.4, (2, STATES, ACTIONS))
    chances = rng.dirichlet(np.full(ACTIONS, 3.0), STATES)
    x = rng.integers(0, STATES, n)
    a = (rng.random(n)[:, None] > chances.cumsum(axis=1)[x]).sum(axis=1).clip(max=ACTIONS - 1)
    states = np.eye(STATES)[x] if numeric else x
    log = checkrein.Dataset.from_arrays(
        states=states,
        actions=a,
        next_states=states,
        costs={"loss": -1.0 * (rng.random(n) < gain[x, a]), "harm": 1.0 * (rng.random(n) < harm[x, a])},
        terminals=np.ones(n, bool),
        episodes=np.arange(n),
        propensities=chances[x, a],
        n_actions=ACTIONS,
        **({} if numeric else {"n_states": STATES}),
    )
    return log, harm, gain, chances


def problem_of(log, limit=0.25):
    return checkrein.Problem(log, objective="loss", constraints=[checkrein.AtMost("harm", limit)], discount=1.0)


def test_scores_are_doubly_robust_with_the_logged_propensities():
    log, *_ = bandit(0)
    learning, judging = problem_of(log.part(np.arange(1500) < 700)), problem_of(log.part(np.arange(1500) >= 700))
    policy = checkrein.TabularPolicy(np.random.default_rng(1).dirichlet(np.ones(ACTIONS), STATES))
    found = TabularNuisances.of(learning, Support()).score(judging, policy)
    q = np.zeros((STATES, ACTIONS, 2))
    for x in range(STATES):
        for a in range(ACTIONS):
            rows = (learning.dataset.states == x) & (learning.dataset.actions == a)
            q[x, a] = learning.dataset.costs[rows].mean(axis=0)
    rows = judging.dataset
    weights = policy.table[rows.states, rows.actions] / rows.propensities
    values = np.einsum("xa,xak->xk", policy.table, q)
    expected = values[rows.states] + weights[:, None] * (rows.costs - q[rows.states, rows.actions])
    np.testing.assert_allclose(found.scores, expected)
    np.testing.assert_allclose(found.known_weights, weights)


def test_scores_are_right_on_average_whatever_the_tables_say():
    """Tables of a log with other costs mislead; known weights correct all of it, weights by tables a part."""
    log, harm, _, _ = bandit(1, 20_000)
    policy = checkrein.TabularPolicy(np.full((STATES, ACTIONS), 1 / ACTIONS))
    few = np.arange(len(log)) < 200
    wrong = log.part(few).with_costs({"loss": np.zeros(200), "harm": np.linspace(-5, 5, 200)})
    tables = TabularNuisances.of(problem_of(wrong), Support(1))
    scores = tables.score(problem_of(log.part(~few)), policy).scores[:, 1]
    shares = np.bincount(log.states[~few], minlength=STATES) / (~few).sum()
    truth = shares @ harm.mean(axis=1)
    assert abs(scores.mean() - truth) < 4 * scores.std() / np.sqrt(scores.size)


@pytest.mark.parametrize("change", ["propensities", "next row", "starts", "two rows"])
def test_weights_are_known_only_of_single_decisions(change):
    log, *_ = bandit(0, 40)
    assert known_propensities(problem_of(log)) is not None
    ends = np.ones(40, bool)
    ends[3] = False
    other = {
        "propensities": replace(log, propensities=None),
        "next row": replace(log, terminals=ends),
        "starts": replace(log, initial_states=np.zeros(1, np.int64), initial_weights=np.ones(1)),
        "two rows": replace(log, episodes=np.arange(40) // 2),
    }[change]
    assert known_propensities(problem_of(other)) is None


def test_a_bandit_log_is_certified_by_known_weights():
    log, harm, gain, chances = bandit(3, 4000)
    found = checkrein.learn_certified(problem_of(log, 0.95 * float((chances * harm).sum(axis=1).mean())))
    assert found.certificate.verdict == "pass"
    assert found.certificate.objective.verdict == "better"
    names = [check.name for check in found.certificate.checks]
    assert "mean weight" in names
    assert "calibration" in names
    probabilities = found.policy.probabilities(np.arange(STATES))
    assert (probabilities * gain).sum() > (chances * gain).sum()
    assert (probabilities * harm).sum() < (chances * harm).sum()


@pytest.mark.parametrize(("numeric", "n"), [(False, 3000), pytest.param(True, 800, marks=pytest.mark.slow)])
def test_wrong_propensities_forbid_a_pass(numeric, n):
    log, harm, _, chances = bandit(3, n, numeric=numeric)
    wrong = replace(log, propensities=np.clip(2 * log.propensities, 0, 1))
    found = checkrein.learn_certified(problem_of(wrong, 1.5 * float((chances * harm).sum(axis=1).mean())))
    assert found.policy is None
    assert found.certificate.guarantee == "asymptotic"
    assert "mean weight" in {check.name for check in found.certificate.checks if not check.ok}
    calibrated = [check.ok for check in found.certificate.checks if check.name == "calibration"]
    assert calibrated == ([] if numeric else [False])


def test_the_discount_does_not_matter_where_nothing_follows():
    log, *_ = bandit(4)
    for problem in (problem_of(log), replace(problem_of(log), discount=0.99)):
        np.testing.assert_array_equal(problem.worst(), [0.0, 1.0])
        np.testing.assert_array_equal(problem.value_range()[1], [0.0, 1.0])


def test_values_of_single_decisions_are_regressed_at_once_as_by_the_whole_inverse():
    """What is solved action by action is what one system for all actions gives."""
    from checkrein.evaluation.feature_one_step import FeatureNuisances  # noqa: PLC0415
    from checkrein.functions.learned_features import learn_features  # noqa: PLC0415

    problem = problem_of(bandit(5, 600, numeric=True)[0])
    nuisances = FeatureNuisances(problem, learn_features(Episodes.of(problem), np.random.default_rng(0)))
    q = nuisances.rows.own.shape[1]
    moments = np.random.default_rng(1).normal(size=(ACTIONS, q, 2))
    whole = (nuisances._inverse @ moments.reshape(ACTIONS * q, 2)).reshape(ACTIONS, q, 2)
    np.testing.assert_allclose(nuisances._fitted(moments), whole, rtol=1e-6, atol=1e-9)
