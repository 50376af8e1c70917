"""All kinds of single policies side by side: their estimates, their prices and their certificates."""

from dataclasses import replace

import numpy as np
import pytest

from checkrein import (
    FQE,
    FQI,
    AtMost,
    CuttingPlane,
    Dataset,
    GreedyPolicy,
    Linear,
    MixturePolicy,
    Polynomial,
    Problem,
    Support,
    TabularPolicy,
    Values,
    certify,
    derandomise,
    load_policy,
    save_policy,
    solve,
)
from checkrein.base.errors import ArgumentError, DivergenceError
from checkrein.data.split import split_episodes
from checkrein.functions import LinearQ
from checkrein.game import averaged_weights, best_deterministic, best_member
from checkrein.policies import MajorityPolicy
from problems import PLAYERS, problem_of, random_log

KINDS = ["best member", "deterministic", "averaged weights"]
LEARNING, HELD_OUT = split_episodes(random_log(5, episodes=400), holdout=0.5, seed=0)
PROBLEM, JUDGED = problem_of(LEARNING, limits=(2.3, 2.6)), problem_of(HELD_OUT, limits=(2.3, 2.6))
SOLUTION = solve(PROBLEM, **PLAYERS, learner=CuttingPlane(30.0), tolerance=1e-6, max_rounds=60)
EVALUATOR = PLAYERS["evaluator"]
FOUND = derandomise(PROBLEM, SOLUTION, evaluator=EVALUATOR)


def test_each_kind_has_the_evaluators_own_estimate_and_its_price():
    assert SOLUTION.status == "converged"
    assert [one.kind for one in FOUND] == KINDS
    assert FOUND.left_out == {}
    for one in FOUND:
        values = EVALUATOR(PROBLEM, one.policy, rng=np.random.default_rng(0))
        assert one.values == pytest.approx(PROBLEM.named(values))
        assert one.price == pytest.approx(values.objective - SOLUTION.values["c"])
        worst = (values.constraints - PROBLEM.limits).max()
        assert one.worst_violation == pytest.approx(max(worst, 0.0))
        assert one.meets_limits == (worst <= 1e-9)
        assert one.certificate is None
        assert f"than the mixture's {SOLUTION.values['c']:.6g}" in one.explanation
    member, deterministic, averaged = FOUND
    assert member.policy is best_member(PROBLEM, SOLUTION).policy
    assert deterministic.price <= member.price + 1e-9
    states = np.arange(6)
    expected = averaged_weights(SOLUTION.policy).probabilities(states)
    assert np.array_equal(averaged.policy.probabilities(states), expected)


def test_the_best_is_the_cheapest_that_keeps_the_limits():
    kept = [one for one in FOUND if one.meets_limits]
    assert kept
    assert FOUND.best.price == min(one.price for one in kept)
    broken = [replace(one, meets_limits=False, worst_violation=excess) for one, excess in zip(FOUND, (3, 1, 2))]  # noqa: B905
    assert type(FOUND)(broken, {}).best.worst_violation == 1


def test_certificates_share_the_error_evenly_and_come_from_the_held_out_episodes():
    found = derandomise(PROBLEM, SOLUTION, evaluator=EVALUATOR, held_out=JUDGED, confidence=0.94)
    assert [one.kind for one in found] == KINDS
    for one in found:
        alone = certify(one.policy, HELD_OUT, constraints=JUDGED.constraints, discount=0.9, confidence=0.98)
        assert one.certificate == alone
        assert one.certificate.alpha == pytest.approx(0.06 / 3)


def test_a_kind_that_does_not_apply_is_left_out_with_its_reason():
    states = np.arange(6)
    members = (SOLUTION.policy.members[0], TabularPolicy(SOLUTION.rounds[0].policy.probabilities(states)))
    mixed = replace(SOLUTION, policy=MixturePolicy(members, np.array([0.5, 0.5])))
    found = derandomise(PROBLEM, mixed, evaluator=EVALUATOR, held_out=JUDGED)
    assert [one.kind for one in found] == KINDS[:2]
    assert found.left_out == {
        "averaged weights": "a member is a TabularPolicy: only the weights of greedy policies can be averaged"
    }
    assert [one.certificate.alpha for one in found] == pytest.approx([0.025, 0.025])


def test_what_cannot_be_valued_is_left_out_too():
    known = {id(played.policy) for played in SOLUTION.rounds}

    def evaluator(problem, policy, *, rng):
        if id(policy) not in known:
            raise DivergenceError("it diverges")
        return EVALUATOR(problem, policy, rng=rng)

    found = derandomise(PROBLEM, SOLUTION, evaluator=evaluator)
    assert [one.kind for one in found] == KINDS[:2]  # the members are deterministic, and valued already
    assert found[1].values == pytest.approx(found[0].values)
    assert found.left_out == {"averaged weights": "it diverges"}


def test_the_episodes_that_chose_a_policy_do_not_certify_it():
    with pytest.raises(ArgumentError, match="held_out has the same log as problem"):
        derandomise(PROBLEM, SOLUTION, evaluator=EVALUATOR, held_out=PROBLEM)
    with pytest.raises(ArgumentError, match=r"confidence is 0\.5"):
        derandomise(PROBLEM, SOLUTION, evaluator=EVALUATOR, held_out=JUDGED, confidence=0.5)


def features_log(seed=0, episodes=150):
    """Each step, action 1 costs `c` less where the state is positive, and always one of `g0`."""
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(episodes * 4, 1))
    actions = rng.integers(0, 2, len(states))
    steps = np.tile(np.arange(4), episodes)
    return Dataset.from_arrays(
        states=states,
        actions=actions,
        next_states=np.roll(states, -1, axis=0),
        costs={"c": -1.0 * actions * states[:, 0], "g0": 1.0 * actions},
        terminals=steps == 3,
        episodes=np.repeat(np.arange(episodes), 4),
        steps=steps,
        n_actions=2,
    )


def test_over_features_the_majority_vote_is_compared_with_the_members(tmp_path):
    problem = Problem(features_log(), objective="c", constraints=[AtMost("g0", 0.8)], discount=0.9)
    functions, support = Linear(Polynomial(1), ridge=1e-6), Support(0, 0)
    evaluator = FQE(functions, support=support)
    solution = solve(
        problem,
        best_response=FQI(functions, support=support),
        evaluator=evaluator,
        learner=CuttingPlane(30.0),
        tolerance=1e-4,
        max_rounds=30,
    )
    found = derandomise(problem, solution, evaluator=evaluator)
    assert [one.kind for one in found] == KINDS
    assert found[1].values["c"] <= found[0].values["c"] + 1e-9
    vote = MajorityPolicy(solution.policy)
    save_policy(vote, tmp_path / "policy.npz")
    states = problem.dataset.states
    assert np.array_equal(load_policy(tmp_path / "policy.npz").probabilities(states), vote.probabilities(states))


def test_the_majority_vote_is_taken_where_it_is_the_best():
    """Three rules that each err somewhere else: their vote does not."""
    rules = [GreedyPolicy(LinearQ(Polynomial(1), np.array([[[0.0], [0.0]], [[b], [-1.0]]]))) for b in (-9, 0.0, 9)]
    problem = Problem(features_log(), objective="c", constraints=[], discount=0.9)

    def evaluator(problem, policy, *, rng):
        del rng
        chosen = policy.probabilities(problem.dataset.states).argmax(axis=1)
        return Values(float(np.mean(-chosen * problem.dataset.states[:, 0])), np.zeros(0))

    solution = solve(
        problem, **(PLAYERS | {"best_response": lambda *_, **__: rules[0], "evaluator": evaluator}),
        learner=CuttingPlane(1.0), tolerance=1.0, max_rounds=1,
    )  # fmt: skip
    mixed = replace(solution, policy=MixturePolicy(tuple(rules), np.array([0.3, 0.3, 0.4])))
    found = best_deterministic(problem, mixed, evaluator=evaluator)
    assert isinstance(found.policy, MajorityPolicy)
    expected = problem.dataset.states[:, 0] > 0
    assert np.array_equal(found.policy.probabilities(problem.dataset.states).argmax(axis=1), expected)
