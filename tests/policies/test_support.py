from dataclasses import replace

import numpy as np
import pytest

from checkrein import FQE, FQI, Dataset, Neural, Problem, Support, Tabular, TabularPolicy, Trees
from checkrein.base import storage
from checkrein.base.errors import ArgumentError, EndlessPolicyError
from checkrein.evaluation.refits import Refits


def finite_log(counts):
    """Pairs logged as often as a table says, all ending."""
    states, actions = np.nonzero(counts)
    return Dataset.from_arrays(
        states=states,
        actions=actions,
        next_states=states,
        costs={"c": np.zeros(states.size)},
        terminals=np.ones(states.size),
        weights=counts[states, actions],
        initial_states=[0],
        n_states=counts.shape[0],
        n_actions=counts.shape[1],
    )


COUNTS = np.array([[5, 20, 0], [3, 0, 4], [0, 0, 0]])


@pytest.mark.parametrize(
    ("minimum", "expected"),
    [
        (1, [[1, 1, 0], [1, 0, 1], [0, 0, 0]]),
        (5, [[1, 1, 0], [0, 0, 1], [0, 0, 0]]),  # in state 1 none has five: the most logged one stays
        (0, [[1, 1, 1], [1, 1, 1], [1, 1, 1]]),
    ],
)
def test_finite_states_count_occurrences(minimum, expected):
    mask = Support(min_count=minimum).fit(finite_log(COUNTS))
    assert mask.allowed(np.arange(3)).astype(int).tolist() == expected


def waiting_log(starts=(0,)):
    """From state 0, action 0 was seen to stay or to end, action 1 to stay alone, and to lead to 1; 1 was never left."""
    rows = [(0, 0, 0, 0), (0, 0, 0, 1), (0, 1, 0, 0), (0, 2, 1, 0), (1, 0, 1, 0)]
    states, actions, following, ends = map(list, zip(*rows, strict=True))
    return Dataset.from_arrays(
        states=states,
        actions=actions,
        next_states=following,
        costs={"c": np.ones(5)},
        terminals=ends,
        episodes=np.arange(5),
        initial_states=list(starts),
        n_actions=3,
    )


def test_at_discount_one_what_only_stays_is_not_chosen():
    problem = Problem(waiting_log(), objective="c", constraints=[], discount=1.0)
    assert Support().choices(problem).allowed(np.arange(2)).tolist() == [[True, False, True], [False] * 3]
    rng = np.random.default_rng(0)
    policy = FQI(Tabular())(problem, np.zeros(0), rng=rng)
    assert policy.actions(np.array([0])) == [0]
    assert FQE(Tabular())(problem, policy, rng=rng).objective == pytest.approx(2)  # half of the time it stays
    patient = Problem(waiting_log(), objective="c", constraints=[], discount=0.9)
    assert Support().choices(patient).allowed(np.arange(2)).tolist() == [[True] * 3, [True, False, False]]


def test_at_discount_one_whoever_stays_is_valued_as_logged():
    """Of 11 decisions one ended the episode and ten stayed, one action each: nobody knows better than their mean."""
    log = Dataset.from_arrays(
        states=np.zeros(20, dtype=int),
        actions=np.tile([1, 0], 10),
        next_states=np.zeros(20, dtype=int),
        costs={"c": np.tile([0.0, 0.1], 10)},
        terminals=np.tile([0, 1], 10),
        episodes=np.repeat(np.arange(10), 2),
    )
    problem = Problem(log, objective="c", constraints=[], discount=1.0)
    values = FQE(Tabular())(problem, TabularPolicy(np.array([[0.5, 0.5]])), rng=np.random.default_rng(0))
    assert values.objective == pytest.approx(0.1)


def test_at_discount_one_a_policy_is_valued_at_its_worst_where_it_was_never_seen_to_end():
    problem = Problem(waiting_log(), objective="c", constraints=[], discount=1.0)
    leaves = TabularPolicy(np.array([[0.5, 0.0, 0.5], [1.0, 0.0, 0.0]]))
    value = FQE(Tabular())(problem, leaves, rng=np.random.default_rng(0)).objective
    assert value == pytest.approx((1 + 0.5 * problem.worst()[0]) / 0.75)  # a quarter of the time it stays
    assert Refits.of(problem, leaves, Tabular()).point()[0][0] == pytest.approx(value)


def test_at_discount_one_a_start_that_was_never_left_is_valued_at_its_worst():
    problem = Problem(waiting_log(starts=(0, 1)), objective="c", constraints=[], discount=1.0)
    rng = np.random.default_rng(0)
    policy = FQI(Tabular())(problem, np.zeros(0), rng=rng)
    value = FQE(Tabular())(problem, policy, rng=rng).objective
    assert value == pytest.approx((2 + problem.worst()[0]) / 2)
    assert Refits.of(problem, policy, Tabular()).point()[0][0] == pytest.approx(value)


def test_at_discount_one_starts_none_of_which_was_ever_left_are_named():
    problem = Problem(waiting_log(starts=(1,)), objective="c", constraints=[], discount=1.0)
    with pytest.raises(EndlessPolicyError, match="circle for ever"):
        FQI(Tabular())(problem, np.zeros(0), rng=np.random.default_rng(0))


def feature_log(n=4000, seed=0):
    """Behavior takes action 0 on the left, 1 on the right, 2 never."""
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(n, 2))
    right = rng.random(n) < 1 / (1 + np.exp(-4 * states[:, 0]))
    return Dataset.from_arrays(
        states=states,
        actions=right.astype(int),
        next_states=states,
        costs={"c": np.zeros(n)},
        terminals=np.ones(n),
        initial_states=states[:1],
        n_actions=3,
    )


def test_features_are_judged_by_the_estimated_behavior():
    mask = Support(min_probability=0.1).fit(feature_log())
    here = np.array([[-3.0, 0.0], [0.0, 0.0], [3.0, 0.0]])
    assert mask.allowed(here).astype(int).tolist() == [[1, 0, 0], [1, 1, 0], [0, 1, 0]]
    assert mask.probabilities(np.array([[0.5, 0.0]]))[0, 1] == pytest.approx(1 / (1 + np.exp(-2)), abs=0.03)


def test_an_action_never_logged_is_never_supported_by_default():
    assert not Support().fit(feature_log()).allowed(np.random.default_rng(1).normal(size=(50, 2)))[:, 2].any()


def test_a_log_of_one_action_supports_it_alone():
    rows = feature_log(50)
    only = rows.select(rows.actions == 1)
    assert Support().fit(only).allowed(np.zeros((1, 2))).tolist() == [[False, True, False]]


def test_a_threshold_of_zero_allows_everything():
    assert Support(min_probability=0).fit(feature_log(50)).allowed(np.zeros((2, 2))).all()


def test_three_logged_actions_are_estimated_together():
    rng = np.random.default_rng(0)
    states = rng.normal(size=(3000, 1))
    scores = np.column_stack([np.zeros(3000), states[:, 0], -states[:, 0]])
    probabilities = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    actions = (rng.random(3000)[:, None] > probabilities.cumsum(axis=1)).sum(axis=1)
    rows = Dataset.from_arrays(
        states=states, actions=actions, next_states=states, costs={"c": actions}, terminals=np.ones(3000),
        initial_states=states[:1],
    )  # fmt: skip
    mask = Support().fit(rows)
    assert mask.probabilities(states) == pytest.approx(probabilities, abs=0.05)


@pytest.mark.parametrize("bad", [{"min_count": -1}, {"min_probability": 1.0}, {"min_probability": -0.1}])
def test_thresholds_outside_their_range_are_refused(bad):
    with pytest.raises(ArgumentError, match=next(iter(bad))):
        Support(**bad)


def test_images_have_no_estimated_behavior():
    pictures = np.zeros((2, 4, 4), dtype=np.uint8)
    rows = Dataset.from_arrays(
        states=pictures, actions=[0, 1], next_states=pictures, costs={"c": [0, 0]}, terminals=[1, 1],
        initial_states=pictures[:1],
    )  # fmt: skip
    with pytest.raises(ArgumentError, match="min_probability=0"):
        Support().fit(rows)


def test_behavior_can_be_estimated_by_any_class_where_it_is_not_logistic(tmp_path):
    rng = np.random.default_rng(0)
    states = rng.uniform(-2, 2, (2000, 1))
    inside = np.abs(states[:, 0]) < 1  # the second action is taken in the middle alone
    actions = np.where(inside & (rng.random(2000) < 0.5), 1, 0)
    rows = Dataset.from_arrays(
        states=states, actions=actions, next_states=states, costs={"c": actions}, terminals=np.ones(2000),
        initial_states=states[:1],
    )  # fmt: skip
    asked = np.array([[-1.5], [0.0], [1.5]])
    mask = Support(min_probability=0.2, behavior=Trees(20, min_leaf=20)).fit(rows)
    assert mask.allowed(asked)[:, 1].tolist() == [False, True, False]
    assert mask.probabilities(asked).sum(axis=1) == pytest.approx(1)
    assert Support(min_probability=0.2).fit(rows).allowed(asked)[:, 1].all()  # which a logistic model cannot see
    storage.save(mask, tmp_path / "mask.npz")
    assert np.array_equal(storage.load(tmp_path / "mask.npz").probabilities(asked), mask.probabilities(asked))


def test_behavior_in_images_is_estimated_by_a_network():
    rng = np.random.default_rng(0)
    actions = rng.integers(0, 2, 200)
    pictures = np.where(actions, 200, 50)[:, None, None] + rng.integers(-20, 20, (200, 6, 6))
    rows = Dataset.from_arrays(
        states=pictures.astype(np.uint8), actions=actions, next_states=pictures.astype(np.uint8),
        costs={"c": actions}, terminals=np.ones(200), initial_states=pictures[:1].astype(np.uint8),
    )  # fmt: skip
    network = Neural((16,), convolutions=((4, 3, 1),), batch=32, epochs=3)
    allowed = Support(min_probability=0.3, behavior=network).fit(rows).allowed(rows.states)
    assert (allowed == (actions[:, None] == [0, 1])).mean() > 0.95


def test_in_part_of_a_log_the_rule_of_the_whole_log_decides():
    """Pair (0, 1) is logged six times, of which the part has four; (0, 2) four times, all of them in the part."""
    actions = np.array([0] * 20 + [1] * 6 + [2] * 4)
    rows = len(actions)
    log = Dataset.from_arrays(
        states=np.zeros(rows, dtype=int),
        actions=actions,
        next_states=np.zeros(rows, dtype=int),
        costs={"c": np.zeros(rows)},
        terminals=np.ones(rows),
        episodes=np.arange(rows),
        n_states=1,
    )
    whole = Problem(log, objective="c", constraints=[], discount=0.9)
    rule = Support(min_count=5).within(whole)
    part = replace(whole, dataset=log.part(~np.isin(np.arange(rows), [20, 21])))
    assert rule.of(part).allowed(np.zeros(1, dtype=int)).tolist() == [[True, True, False]]
    only_seldom = replace(whole, dataset=log.part(actions == 2))  # nothing else is left to choose
    assert rule.of(only_seldom).allowed(np.zeros(1, dtype=int)).tolist() == [[False, False, True]]
