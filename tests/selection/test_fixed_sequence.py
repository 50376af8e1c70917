from functools import cache

import numpy as np
import pytest

from checkrein import AtLeast, AtMost, Dataset, Problem, Support, TabularPolicy, certify, learn_certified
from checkrein.base.errors import ArgumentError
from checkrein.evaluation.one_step import TabularNuisances
from checkrein.problem import Episodes
from problems import random_mdp, rows_of

MDP = random_mdp(2, n_states=8, n_actions=3, successors=3, ending=0.15, discount=0.95)
UNIFORM = TabularPolicy.uniform(8, 3)
FREE = MDP.optimum(objective="c").values["g0"]
LEAST = MDP.optimum(objective="g0").values["g0"]
LIMIT = 0.5 * (FREE + LEAST)


@cache
def problem_of(seed, episodes=400, limit=LIMIT):
    log = MDP.simulate(UNIFORM, episodes=episodes, max_steps=40, rng=np.random.default_rng(seed))
    return Problem(log, objective="c", constraints=[AtMost("g0", limit)], discount=0.95)


@cache
def certified_with(seed):
    return learn_certified(problem_of(seed), folds=3, seed=seed)


@pytest.mark.parametrize(
    ("seeds", "allowed"),  # to break the limit at 5 %: more in 2 % of all such tests, and in 0.05 % of the small ones
    [(4, 1), pytest.param(12, 2, marks=pytest.mark.slow)],
)
def test_limits_are_kept_and_most_of_what_can_be_gained_is(seeds, allowed):
    best, logged = MDP.optimum(objective="c", constraints=[AtMost("g0", LIMIT)]).values["c"], MDP.values(UNIFORM)["c"]
    gained, broken = [], 0
    for seed in range(seeds):
        found = learn_certified(problem_of(seed), folds=3, seed=seed)
        values = MDP.values(found.policy or UNIFORM)
        broken += found.policy is not None and values["g0"] > LIMIT
        gained.append((logged - values["c"]) / (logged - best))
    assert broken <= allowed
    assert np.mean(gained) > 0.8


def test_a_path_leads_from_the_safest_aim_to_the_first_that_does_not_pass():
    found = certified_with(0)
    assert len(found.candidates) > 2
    assert all(candidate.passed for candidate in found.candidates[:-1])
    assert not found.candidates[-1].passed
    first = [candidate for candidate in found.candidates if candidate.rule == 0]
    assert [candidate.margin for candidate in first] == sorted((candidate.margin for candidate in first), reverse=True)
    for distance in (0.5, 1.0):
        estimates = [one.certificate.estimates["g0"] for one in first if one.distance == distance]
        assert estimates == sorted(estimates)  # bolder: closer to the limit
    assert f"{len(found.candidates) - 1} candidates pass; the next" in found.explanation


def test_of_what_passed_the_boldest_is_returned_with_its_certificate():
    found = certified_with(0)
    assert found.passed in found.candidates
    assert found.policy is found.passed.policy
    certificate = found.certificate
    assert certificate is found.passed.certificate
    assert (certificate.verdict, certificate.method, certificate.guarantee) == ("pass", "one-step", "asymptotic")
    assert certificate.episodes == 400
    assert certificate.bounds["g0"] <= LIMIT
    assert certificate.dataset == problem_of(0).dataset.fingerprint


def test_no_policy_is_judged_by_what_it_was_learned_from(monkeypatch):
    learned, judged = [], []
    tables, score = TabularNuisances.of.__func__, TabularNuisances.score

    def watched_of(cls, problem, support):
        made = tables(cls, problem, support)
        learned.append((made, set(Episodes.of(problem).labels)))
        return made

    def watched_score(self, problem, policy):
        mine = next(labels for made, labels in learned if made is self)
        judged.append((mine, set(Episodes.of(problem).labels)))
        return score(self, problem, policy)

    monkeypatch.setattr(TabularNuisances, "of", classmethod(watched_of))
    monkeypatch.setattr(TabularNuisances, "score", watched_score)
    everything = set(Episodes.of(problem_of(0)).labels)
    found = learn_certified(problem_of(0), folds=4, margins=(3.0, 2.0), seed=0)
    others = [(mine, theirs) for mine, theirs in judged if mine != theirs]  # of its own: the error that is expected
    assert len(others) == 4 * len(found.candidates)
    for mine, theirs in others:
        assert mine.isdisjoint(theirs)
        assert mine | theirs == everything
        assert len(theirs) == 100


def test_at_least_is_at_most_of_the_negative():
    problem = problem_of(0)
    log = problem.dataset.with_costs({"c": problem.dataset.cost("c"), "gain": -problem.dataset.cost("g0")})
    turned = Problem(log, objective="c", constraints=[AtLeast("gain", -LIMIT)], discount=0.95)
    ours, theirs = (learn_certified(p, folds=3, margins=(2.0, 1.0), seed=0) for p in (problem, turned))
    assert len(ours.candidates) == len(theirs.candidates) > 0
    for one, other in zip(ours.candidates, theirs.candidates, strict=True):
        assert other.certificate.bounds["gain"] == pytest.approx(-one.certificate.bounds["g0"])
        assert other.certificate.verdict == one.certificate.verdict


def test_several_limits_share_the_error():
    problem = problem_of(0)
    log = problem.dataset.with_costs({n: problem.dataset.cost(n) for n in ("c", "g0")} | {"g1": log_of(problem)})
    one = learn_certified(problem, folds=3, margins=(2.0,), seed=0).candidates[0].certificate
    both = Problem(log, objective="c", constraints=[AtMost("g0", LIMIT), AtMost("g1", 1e3)], discount=0.95)
    two = learn_certified(both, folds=3, margins=(2.0,), seed=0).candidates[0].certificate
    assert two.bounds["g0"] > one.bounds["g0"]
    assert two.estimates["g0"] == pytest.approx(one.estimates["g0"], rel=0.02)


def log_of(problem):
    return np.random.default_rng(0).random(len(problem.dataset))


def test_starts_that_were_given_are_judged_by():
    """Half of the episodes begin in the dear state; asked about that one alone, nothing is certified."""
    rng = np.random.default_rng(0)
    states = np.arange(400) % 2
    log = Dataset.from_arrays(
        states=states,
        actions=rng.integers(0, 2, 400),
        next_states=states,
        costs={"c": rng.random(400), "g0": np.where(states == 1, 0.6, 0.1) + 0.1 * rng.random(400)},
        terminals=np.ones(400),
        episodes=np.arange(400),
        initial_states=[1],
    )
    limit = [AtMost("g0", 0.5)]
    found = learn_certified(Problem(log, objective="c", constraints=limit, discount=0.9), margins=(2.0,), seed=0)
    assert found.policy is None
    own = rows_of(log, initial_states=None, initial_weights=None)
    asked = Problem(own, objective="c", constraints=limit, discount=0.9)
    assert learn_certified(asked, margins=(2.0,), improvement="not asked", seed=0).policy is not None


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))])
def test_a_cost_that_few_episodes_could_have_shown_is_not_certified(seed):
    """Action 1 is logged in 1 % of 5000 episodes and costs 0.02 on average: that none of them paid proves little."""
    rng = np.random.default_rng(seed)
    actions = (rng.random(5000) < 0.01).astype(int)
    log = Dataset.from_arrays(
        states=np.zeros(5000, dtype=int),
        actions=actions,
        next_states=np.zeros(5000, dtype=int),
        costs={"c": 1.0 - actions, "g0": np.where(actions == 1, 0.0, rng.random(5000) < 0.001)},
        terminals=np.ones(5000),
        episodes=np.arange(5000),
    )
    problem = Problem(log, objective="c", constraints=[AtMost("g0", 0.01, range=(0, 1))], discount=0.9)
    found = learn_certified(problem, seed=seed)
    assert all(
        candidate.policy.probabilities(np.array([0]))[0, 1] < 0.5 for candidate in found.candidates if candidate.passed
    )
    whole = certify(TabularPolicy(np.array([[0.0, 1.0]])), log, constraints=problem.constraints, discount=0.9)
    assert whole.verdict == "inconclusive"


def test_a_fold_that_cannot_tell_how_episodes_end_is_named():
    """Only one episode ever left the circle of two states that it begins in."""
    rows = [(e, t, t % 2, 0, 1 - t % 2, False) for e in range(40) for t in range(4)] + [(40, 0, 0, 1, 0, True)]
    episodes, steps, states, actions, following, ends = map(np.array, zip(*rows, strict=True))
    log = Dataset.from_arrays(
        states=states,
        actions=actions,
        next_states=following,
        costs={"c": np.ones(len(rows)), "g0": np.ones(len(rows))},
        terminals=ends,
        episodes=episodes,
        steps=steps,
    )
    found = learn_certified(Problem(log, objective="c", constraints=[AtMost("g0", 99.0)], discount=1.0))
    assert found.policy is None
    assert "without one of its folds, at discount 1" in found.explanation


def test_the_same_seed_gives_the_same_candidates():
    again = learn_certified(problem_of(0), folds=3, seed=0)
    assert [r.certificate for r in again.candidates] == [r.certificate for r in certified_with(0).candidates]


def test_limits_that_bind_nothing_are_reached():
    found = learn_certified(problem_of(0, limit=2 * FREE), margins=(2.0, 0.0), folds=3, seed=0)
    assert found.candidates[-1].passed
    assert found.explanation == f"all {len(found.candidates)} candidates pass, up to 0 standard errors under the limits"
    assert MDP.values(found.policy)["c"] < 1.1 * MDP.optimum(objective="c").values["c"]


def test_limits_that_cannot_be_met_are_not_tried():
    found = learn_certified(problem_of(0, limit=0.9 * LEAST), seed=0)
    assert (found.candidates, found.policy, found.certificate) == ((), None, None)
    assert "no policy meets the limits in some fold" in found.explanation


def test_a_few_episodes_prove_nothing():
    found = learn_certified(problem_of(0, episodes=20), seed=0)
    assert found.policy is None
    assert "fewer than 30 episodes prove nothing" in found.explanation


def test_a_looser_rule_comes_after_a_stricter_one_has_passed():
    rules = [Support(min_count=150), Support(min_count=10)]
    found = learn_certified(problem_of(0, limit=FREE + 0.8 * (FREE - LEAST)), supports=rules, seed=0)
    assert {candidate.rule for candidate in found.candidates} == {0, 1}
    assert found.passed.objective == min(
        r.objective for r in found.candidates if r.passed and r.margin == found.passed.margin
    )


def test_a_later_look_asks_for_more():
    first, third = (
        learn_certified(problem_of(0), look=look, margins=(2.0,), seed=0).candidates[0].certificate
        for look in (None, 3)
    )
    assert third.alpha < first.alpha
    assert third.bounds["g0"] > first.bounds["g0"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"folds": 1}, "folds is 1"),
        ({"confidence": 0.4}, "confidence is 0.4"),
        ({"margins": (0.0, 1.0)}, "the farthest from the limits first"),
        ({"margins": (1.0, 0.9)}, "0.5 or more from the next"),
        ({"margins": ()}, "margins is"),
        ({"supports": []}, "supports is empty"),
        ({"look": 0}, "look is 0"),
    ],
)
def test_what_makes_no_sense_is_refused(change, message):
    with pytest.raises(ArgumentError, match=message):
        learn_certified(problem_of(0), **change)
    with pytest.raises(ArgumentError, match="without constraints"):
        learn_certified(Problem(problem_of(0).dataset, objective="c", constraints=[], discount=0.95))


def test_what_is_returned_is_shown_better_unless_behavior_breaks_a_limit():
    """Costs do not depend on what is done: nothing can be better, and every policy passes or none does."""
    rng = np.random.default_rng(0)
    log = Dataset.from_arrays(
        states=np.zeros(600, dtype=int),
        actions=rng.integers(0, 2, 600),
        next_states=np.zeros(600, dtype=int),
        costs={"c": rng.random(600), "g0": rng.random(600)},
        terminals=np.ones(600),
        episodes=np.arange(600),
    )
    problem = Problem(log, objective="c", constraints=[AtMost("g0", 0.7)], discount=0.9)
    for asked in ("preferred", "required"):
        found = learn_certified(problem, improvement=asked, seed=0)
        assert any(candidate.passed for candidate in found.candidates)
        assert found.policy is None
        assert "none is shown better than behavior, which may keep the limits as well" in found.explanation
    assert learn_certified(problem, improvement="not asked", seed=0).policy is not None


def test_where_behavior_breaks_a_limit_what_keeps_it_is_returned_unless_it_is_shown_worse():
    """Action 1 is the only one within the limit; it costs as much as action 0, or more."""
    rng = np.random.default_rng(1)
    actions = rng.integers(0, 2, 600)
    for dearer, returned in ((0.0, True), (1.0, False)):
        log = Dataset.from_arrays(
            states=np.zeros(600, dtype=int),
            actions=actions,
            next_states=np.zeros(600, dtype=int),
            costs={"c": rng.random(600) + dearer * actions, "g0": rng.random(600) + (actions == 0)},
            terminals=np.ones(600),
            episodes=np.arange(600),
        )
        problem = Problem(log, objective="c", constraints=[AtMost("g0", 0.7)], discount=0.9)
        assert (learn_certified(problem, seed=0).policy is not None) == returned
        assert learn_certified(problem, improvement="not asked", seed=0).policy is not None


@pytest.mark.slow
def test_actions_that_are_alike_are_seldom_called_better():
    """What folds learn is luck, and each has part in what the others learn: episodes alone would err in 15 %."""
    claimed = 0
    for seed in range(80):
        rng = np.random.default_rng([seed, 7])
        actions, n = rng.integers(5, size=1500), 1500
        costs = {"cost": rng.random(n) < 0.5, "dose": rng.random(n) < 0.2}
        alike = np.zeros(n, int)
        log = Dataset.from_arrays(
            states=alike, actions=actions, next_states=alike, costs=costs, terminals=np.ones(n, bool),
            episodes=np.arange(n), n_actions=5, n_states=1,
        )  # fmt: skip
        problem = Problem(log, objective="cost", constraints=[AtMost("dose", 1.0)], discount=1.0)
        found = learn_certified(problem, distances=(), margins=(0.0,), supports=[Support(min_count=10)], seed=seed)
        claimed += any(candidate.improvement == "better" for candidate in found.candidates)
    assert claimed <= 8  # at 5 %, more in 2 % of such tests; at 15 %, no more in 14 %
