"""learn_certified where states are numbers."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from checkrein import AtMost, Support, learn_certified, load_policy, save_policy
from checkrein.base.errors import ArgumentError
from checkrein.selection.feature_learning import FeatureFold
from checkrein.selection.folds import parts_of
from checkrein.selection.learning import Aim
from numeric_worlds import logged, true_values

BEHAVIOR = true_values(None)  # "ill" and "dose"


@cache
def certified(seed, episodes=1500, limit=2.2):
    return learn_certified(logged(seed, episodes, limit=limit), folds=3, seed=seed)


def test_what_is_certified_is_better_than_behavior_and_keeps_its_limit():
    found = certified(0)
    assert found.certificate.verdict == "pass"
    assert found.certificate.objective.verdict == "better"
    assert found.certificate.guarantee == "heuristic"
    ill, dose = true_values(found.policy)
    assert dose <= 2.2
    assert ill < 0.97 * BEHAVIOR[0]


def test_candidates_go_from_near_behavior_to_bold():
    found = certified(0)
    distances = [one.distance for one in found.candidates if one.margin == found.candidates[0].margin]
    assert distances == sorted(distances)
    moved = [one.certificate.objective.estimate for one in found.candidates]
    assert moved[0] > min(moved)


def test_behavior_that_breaks_a_limit_itself_is_replaced_by_what_keeps_it():
    limit = 0.85 * BEHAVIOR[1]
    found = certified(1, limit=limit)
    assert found.certificate.verdict == "pass"
    assert true_values(found.policy)[1] <= limit


def test_a_limit_that_nothing_meets_leaves_nothing_to_try():
    found = certified(2, episodes=300, limit=0.05)
    assert found.policy is None
    assert "nothing was tried" in found.explanation or not found.candidates[0].passed


def test_a_stored_policy_acts_like_the_one_that_was_learned(tmp_path):
    found = certified(0)
    save_policy(found.policy, tmp_path / "policy.npz")
    states = logged(9, 20).dataset.states
    again = load_policy(tmp_path / "policy.npz").policy
    for (one, weight), (other, same) in zip(
        zip(found.policy.members, found.policy.weights, strict=True),
        zip(again.members, again.weights, strict=True),
        strict=True,
    ):
        assert weight == same
        assert (one.probabilities(states) == other.probabilities(states)).all()


def test_tighter_limits_are_aimed_at_with_higher_prices():
    problem = logged(4, 1000)
    mine, others = parts_of(problem, 3, 0)[0]
    fold = FeatureFold(mine, others, 0).begun()
    doses = []
    for margin in (0.0, 4.0, 8.0):
        policy = fold.learner.learned(Aim(0.5, margin))
        doses.append(fold.score(policy).scores[:, 1].mean())
    assert doses == sorted(doses, reverse=True)
    assert doses[0] > doses[-1] + 0.05


def test_images_are_refused_with_what_to_do():
    problem = logged(0, 50)
    log = problem.dataset
    shaped = [np.zeros((len(s), 2, 2)) for s in (log.states, log.next_states, log.initial_states)]
    images = replace(log, states=shaped[0], next_states=shaped[1], initial_states=shaped[2])
    with pytest.raises(ArgumentError, match=r"states have shape \(2, 2\)"):
        learn_certified(replace(problem, dataset=images))


def test_what_is_for_finite_states_is_refused_and_not_passed_over():
    with pytest.raises(ArgumentError, match="learn and supports are for finite states"):
        learn_certified(logged(0, 50), supports=[Support(min_count=3)])


@pytest.mark.slow
def test_wrong_passes_are_as_rare_as_they_are_said_to_be():
    """The limit lies just under what a bold policy would use: of 40 logs at 5 %, more than 5 in 1.4 % of all tests."""
    wrong = passed = 0
    for seed in range(40):
        found = learn_certified(logged(100 + seed, 400, limit=2.0), folds=3, seed=seed, improvement="not asked")
        if found.policy is not None:
            ill, dose = true_values(found.policy, episodes=100_000)
            passed += 1
            wrong += dose > 2.0 + 0.005 or (found.passed.improvement == "better" and ill > BEHAVIOR[0] + 0.01)
    assert wrong <= 5
    assert passed > 5


def test_two_constraints_are_kept_together():
    problem = logged(5, 1200)
    both = replace(problem, objective="ill", constraints=(AtMost("dose", 2.2), AtMost("ill", 1.02 * BEHAVIOR[0])))
    found = learn_certified(both, folds=3)
    assert found.certificate.verdict == "pass"
    ill, dose = true_values(found.policy)
    assert dose <= 2.2
    assert ill <= 1.02 * BEHAVIOR[0]
