"""Every policy passes these: a new one is a line in POLICIES, with what its probabilities must be."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from checkrein import (
    Dataset,
    GreedyPolicy,
    MixturePolicy,
    SoftminPolicy,
    TabularPolicy,
    Trees,
    load_policy,
    save_policy,
)
from checkrein.functions.tabular import TabularQ
from checkrein.policies import BehaviorMask, CountMask, MajorityPolicy, RegressedMask, behavior_policy
from problems import random_log

STATES, ACTIONS = 6, 3
RNG = np.random.default_rng(0)
LOG = random_log(0)
VALUES = RNG.normal(size=(STATES, ACTIONS, 1))
ALLOWED = RNG.random((STATES, ACTIONS)) < 0.6
ALLOWED[np.arange(STATES), (VALUES[..., 0].argmin(axis=1) + 1) % ACTIONS] = True  # each state has one
ALLOWED[0, VALUES[0, :, 0].argmin()] = False  # and in some the best has none
TABLE = RNG.dirichlet(np.ones(ACTIONS), STATES)
Q, MASK = TabularQ(VALUES), CountMask(ALLOWED)
FINITE, VECTORS = np.arange(STATES), RNG.normal(size=(40, 2))


class Case(NamedTuple):
    """A policy, states for it, and its probabilities (n, A) by the definition (None: no closed form)."""

    policy: Any
    states: Any
    truth: Callable[[], np.ndarray] | None


def least(values, allowed=None):
    """(S, A) all on the least value, by a loop."""
    table = np.zeros(values.shape)
    for state, row in enumerate(values):
        candidates = [a for a in range(len(row)) if allowed is None or allowed[state, a]]
        table[state, min(candidates, key=lambda action, row=row: row[action])] = 1.0
    return table


def softmin(values, temperature, allowed=True):
    likely = np.exp(-values / temperature) * allowed
    return likely / likely.sum(axis=1, keepdims=True)


def shares():
    """How often each action was taken in each state of the log, by a loop."""
    counts = np.zeros((STATES, ACTIONS))
    for state, action, weight in zip(LOG.states, LOG.actions, LOG.weights, strict=True):
        counts[state, action] += weight
    return counts / counts.sum(axis=1, keepdims=True)


def behavior_of_vectors():
    """A log over feature vectors, whose behavior prefers action 1 where the first is large."""
    rng = np.random.default_rng(1)
    states = rng.normal(size=(300, 2))
    return Dataset.from_arrays(
        states=states,
        actions=(rng.random(300) < 1 / (1 + np.exp(-2 * states[:, 0]))).astype(int),
        next_states=states,
        costs={"c": np.zeros(300)},
        terminals=np.ones(300, dtype=bool),
        episodes=np.arange(300),
        n_actions=2,
    )


OF_VECTORS = behavior_of_vectors()
POLICIES = {
    "tabular": Case(TabularPolicy(TABLE), FINITE, lambda: TABLE),
    "greedy": Case(GreedyPolicy(Q), FINITE, lambda: least(VALUES[..., 0])),
    "greedy, supported": Case(GreedyPolicy(Q, MASK), FINITE, lambda: least(VALUES[..., 0], ALLOWED)),
    "softmin": Case(SoftminPolicy(Q, 0.5), FINITE, lambda: softmin(VALUES[..., 0], 0.5)),
    "softmin, supported": Case(SoftminPolicy(Q, 0.5, MASK), FINITE, lambda: softmin(VALUES[..., 0], 0.5, ALLOWED)),
    "mixture": Case(
        MixturePolicy((TabularPolicy(TABLE), GreedyPolicy(Q, MASK)), [0.3, 0.7]),
        FINITE,
        lambda: 0.3 * TABLE + 0.7 * least(VALUES[..., 0], ALLOWED),  # of the first step
    ),
    "majority": Case(
        MajorityPolicy(MixturePolicy((TabularPolicy(TABLE), GreedyPolicy(Q, MASK)), [0.7, 0.3])),
        FINITE,
        lambda: least(-0.7 * TABLE - 0.3 * least(VALUES[..., 0], ALLOWED)),
    ),
    "behavior": Case(behavior_policy(LOG), FINITE, shares),
    "behavior, logistic": Case(BehaviorMask.estimate(OF_VECTORS, 0.01), VECTORS, None),
    "behavior, regressed": Case(RegressedMask.estimate(OF_VECTORS, 0.01, Trees(10)), VECTORS, None),
}


def check_probabilities(case):
    """Rows sum to one, none is negative, and what a state is given does not hang on the others."""
    found = case.policy.probabilities(case.states)
    assert found.dtype == np.float64
    assert found.shape[0] == len(case.states)
    assert found.sum(axis=1) == pytest.approx(np.ones(len(found)))
    assert (found >= 0).all()
    assert case.policy.probabilities(case.states[::-1]) == pytest.approx(found[::-1])
    assert case.policy.probabilities(case.states[2:3]) == pytest.approx(found[2:3])
    assert case.policy.probabilities(case.states[:0]).shape == (0, found.shape[1])


def check_probabilities_are_those_of_the_definition(case):
    assert case.policy.probabilities(case.states) == pytest.approx(case.truth())


def check_what_was_saved_decides_alike(case, path):
    save_policy(case.policy, path)
    assert np.array_equal(load_policy(path).probabilities(case.states), case.policy.probabilities(case.states))


@pytest.fixture(params=POLICIES.values(), ids=POLICIES.keys())
def case(request):
    return request.param


def test_probabilities_are_probabilities_of_each_state_alone(case):
    check_probabilities(case)


@pytest.mark.parametrize("name", [name for name, case in POLICIES.items() if case.truth])
def test_probabilities_are_those_of_the_definition(name):
    check_probabilities_are_those_of_the_definition(POLICIES[name])


@pytest.mark.parametrize("name", ["behavior, logistic", "behavior, regressed"])
def test_estimated_behavior_is_near_what_was_done(name):
    """Within 0.12 on average of 300 decisions; who says one half everywhere is off by 0.3."""
    found = POLICIES[name].policy.probabilities(VECTORS)[:, 1]
    assert np.abs(found - 1 / (1 + np.exp(-2 * VECTORS[:, 0]))).mean() < 0.12


def test_what_was_saved_decides_alike(case, tmp_path):
    check_what_was_saved_decides_alike(case, tmp_path / "policy.npz")
