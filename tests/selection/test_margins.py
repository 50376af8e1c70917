from dataclasses import replace

import numpy as np
import pytest

from certification.cases import bandit_log, coin, coin_log
from checkrein import FQE, FQI, AtLeast, AtMost, CuttingPlane, Problem, Support, Tabular, solve
from checkrein.base.errors import ArgumentError, EndlessPolicyError
from checkrein.certification import BootstrapFQE, certify
from checkrein.data.split import split_episodes
from checkrein.selection.margins import CHANCES, COUNTS, choose_margins
from checkrein_studies.random_cmdps import random_cmdp
from problems import random_policy

QUICK = BootstrapFQE("t")
ANY = Support()
LIMIT = 0.1


def coin_problem(episodes=400, *, seed=0, constraint=None):
    """Take action 1 as often as its harm, 0.3 on average, permits."""
    log = coin_log(episodes, seed=seed)
    log = log.with_costs({"loss": -1.0 * log.actions, "harm": log.cost("harm"), "benefit": log.cost("benefit")})
    return Problem(log, objective="loss", constraints=[constraint or AtMost("harm", LIMIT)], discount=1.0)


def to_the_limit(problem, support):
    """The best policy that the log makes of it."""
    del support
    constraint, log = problem.constraints[0], problem.dataset
    harm = log.cost("harm")[log.actions == 1].mean()
    room = constraint.limit if constraint.sign > 0 else 1 - constraint.limit
    return coin(float(np.clip(room / harm, 0.0, 1.0)))


def aimed(problem, learn=to_the_limit, *, held_out=400, method=QUICK, supports=(ANY,), **settings):
    return choose_margins(problem, learn, held_out=held_out, method=method, supports=supports, **settings)


class Listening:
    """A learner that remembers what it was asked."""

    def __init__(self):
        self.asked = []

    def __call__(self, problem, support):
        self.asked.append((problem, support))
        return to_the_limit(problem, support)


def test_room_is_left_under_the_limit_and_the_prediction_keeps_it():
    found = aimed(coin_problem())
    assert found.predicted_to_pass
    assert found.constraints[0].limit < LIMIT - 0.01
    assert found.predicted["harm"] <= LIMIT
    assert found.support == ANY
    assert (found.constraints[0].name, found.constraints[0].cost) == ("harm", "harm")


def test_a_limit_that_is_far_away_is_aimed_at_as_it_is():
    found = aimed(coin_problem(constraint=AtMost("harm", 0.9)))
    assert found.constraints[0].limit == 0.9
    assert found.predicted_to_pass


def test_a_margin_never_loosens_a_limit():
    for seed in range(5):
        for limit in (0.05, 0.2, 0.5):
            assert aimed(coin_problem(seed=seed, constraint=AtMost("harm", limit))).constraints[0].limit <= limit


def test_what_is_to_be_reached_is_aimed_above():
    at_most = aimed(coin_problem())
    at_least = aimed(coin_problem(constraint=AtLeast("benefit", 1 - LIMIT)))
    assert at_least.predicted_to_pass
    assert at_least.constraints[0].limit > 1 - LIMIT
    assert at_least.constraints[0].limit == pytest.approx(1 - at_most.constraints[0].limit)
    assert at_least.predicted["benefit"] == pytest.approx(1 - at_most.predicted["harm"])
    assert isinstance(at_least.constraints[0], AtLeast)


def test_fewer_episodes_to_be_judged_on_ask_for_more_room():
    limits = [aimed(coin_problem(), held_out=held).constraints[0].limit for held in (100, 400, 4000)]
    assert limits[0] < limits[1] < limits[2]


def test_more_confidence_asks_for_more_room():
    limits = [aimed(coin_problem(), confidence=confidence).constraints[0].limit for confidence in (0.99, 0.95, 0.8)]
    assert limits[0] < limits[1] < limits[2]


def test_a_policy_that_was_aimed_passes_far_more_often_than_one_at_the_limit():
    passed = {"aimed": 0, "at the limit": 0}
    for seed in range(20):
        whole = coin_problem(800, seed=seed)
        mine, held = split_episodes(whole.dataset, holdout=0.5, seed=seed)
        problem = replace(whole, dataset=mine)
        found = aimed(problem, seed=seed)
        policies = {
            "aimed": to_the_limit(replace(problem, constraints=found.constraints), found.support),
            "at the limit": to_the_limit(problem, ANY),
        }
        for name, policy in policies.items():
            judged = certify(policy, held, constraints=whole.constraints, discount=1.0, method=QUICK)
            passed[name] += judged.verdict == "pass"
    assert passed["aimed"] >= 14
    assert passed["at the limit"] <= 6


def test_only_parts_of_the_given_episodes_are_learned_from_or_judged_on():
    problem, learner = coin_problem(90), Listening()
    judged = []

    class Judging(BootstrapFQE):
        def estimate(self, problem, policy, *, rng):
            judged.append(problem)
            return super().estimate(problem, policy, rng=rng)

    aimed(problem, learner, method=Judging("t"), folds=3)
    everything = set(problem.dataset.episodes.tolist())
    parts = [frozenset(part.dataset.episodes.tolist()) for part in judged]
    assert set().union(*parts) == everything
    for mine, _ in learner.asked:
        learned = frozenset(mine.dataset.episodes.tolist())
        assert len(learned) == 60
        assert everything - learned in parts  # what it was judged on did not choose it
    assert all(part.constraints == problem.constraints for part in judged)


def test_only_the_given_support_rules_are_tried():
    learner, given = Listening(), (Support(min_count=7), Support(min_count=0))
    found = aimed(coin_problem(90), learner, supports=given, folds=3)
    assert found.support in given
    scaled = [0.0, 7 * 2 / 3]  # as many in two thirds of the episodes
    assert sorted({support.min_count for _, support in learner.asked}) == pytest.approx(scaled)


def test_by_default_several_thresholds_are_tried():
    counted, unlikely = Listening(), []
    choose_margins(coin_problem(90), counted, held_out=90, method=QUICK)
    assert len({support.min_count for _, support in counted.asked}) == len(COUNTS)
    features = Problem(bandit_log(120), objective=None, constraints=[AtMost("harm", 9.0)], discount=0.9)

    def learn(problem, support):
        unlikely.append(support.min_probability)
        return Even()

    choose_margins(features, learn, held_out=90)
    assert len(set(unlikely)) == len(CHANCES)


class Even:
    def probabilities(self, states):
        return np.full((len(states), 2), 0.5)


def test_where_no_policy_can_pass_there_is_no_hope_but_an_aim():
    def learn(problem, support):
        return coin(1.0)

    found = aimed(coin_problem(), learn)
    assert not found.predicted_to_pass
    assert found.predicted["harm"] > LIMIT
    assert found.constraints[0].limit <= LIMIT


def test_the_better_of_those_that_can_pass_is_chosen():
    careful, able = Support(min_count=50), Support(min_count=2)

    def learn(problem, support):
        return coin(0.01) if support.min_count > 10 else to_the_limit(problem, support)

    for supports in ((careful, able), (able, careful)):
        assert aimed(coin_problem(), learn, supports=supports).support == able


def test_a_rule_that_leads_to_policies_without_a_value_is_passed_over():
    good, bad = Support(min_count=2), Support(min_count=50)

    def learn(problem, support):
        if support.min_count > 10:
            raise EndlessPolicyError("it circles")
        return to_the_limit(problem, support)

    assert aimed(coin_problem(), learn, supports=(bad, good)).support == good
    with pytest.raises(ArgumentError, match="no support rule leads to policies that can be valued"):
        aimed(coin_problem(), learn, supports=(bad,))


def test_the_seed_decides():
    one, same, other = (aimed(coin_problem(), seed=seed) for seed in (0, 0, 1))
    assert one == same
    assert one != other


def test_what_cannot_be_aimed_at_is_said():
    with pytest.raises(ArgumentError, match="folds is 1"):
        aimed(coin_problem(), folds=1)
    with pytest.raises(ArgumentError, match="nothing to aim at"):
        aimed(replace(coin_problem(), constraints=()))
    with pytest.raises(ArgumentError, match="held_out"):
        aimed(coin_problem(), held_out=0)
    with pytest.raises(ArgumentError, match="no method is called"):
        aimed(coin_problem(), method="best")
    for confidence in (0.5, 1.0, 2.0):
        with pytest.raises(ArgumentError, match="confidence is"):
            aimed(coin_problem(), confidence=confidence)


def test_a_game_that_is_aimed_keeps_the_true_limits_where_one_at_the_limit_breaks_them():
    excess = {"aimed": [], "at the limit": []}
    for seed in range(3):
        mdp = random_cmdp(seed, n_constraints=1, n_states=6, n_actions=3, successors=3, ending=0.2, discount=0.9)
        behavior = random_policy(seed, mdp.exact_log())
        log = mdp.simulate(behavior, episodes=250, max_steps=40, rng=np.random.default_rng(seed))
        least, free = (mdp.optimum(objective=cost).values["g0"] for cost in ("g0", "c"))
        limit = AtMost("g0", 0.5 * (least + free))
        problem = Problem(log, objective="c", constraints=[limit], discount=mdp.discount)

        def learn(problem, support):
            players = {"best_response": FQI(Tabular(), support=support), "evaluator": FQE(Tabular())}
            return solve(problem, **players, learner=CuttingPlane(20.0), tolerance=1e-3, max_rounds=30).policy

        found = choose_margins(problem, learn, held_out=250, supports=[Support(3)], seed=seed)
        policies = {
            "aimed": learn(replace(problem, constraints=found.constraints), found.support),
            "at the limit": learn(problem, Support(3)),
        }
        for name, policy in policies.items():
            excess[name].append(mdp.values(policy)["g0"] - limit.limit)
    assert max(excess["aimed"]) <= 0
    assert np.mean(excess["aimed"]) < np.mean(excess["at the limit"])
