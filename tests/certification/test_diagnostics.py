"""What forbids a pass: each limit below would be kept by the bound alone."""

from dataclasses import replace

import numpy as np
import pytest

from certification.cases import QUICK, Tilted, bandit_log, circling, coin, coin_log, failed, graph_log, harm, judged
from checkrein import AtMost, Dataset, Problem, TabularPolicy, certify
from checkrein.certification import METHODS, BootstrapFQE, EpisodeScoreBound
from checkrein.certification.diagnostics import little_beyond
from checkrein.functions import Linear
from checkrein.functions.features import Polynomial
from checkrein_studies import graph
from evaluation.references import log_of, policy_near_uniform, world
from problems import rows_of

LOG = coin_log(400)  # of a coin(0.5), which costs 0.15; what a coin(0.4) costs is 0.12


class Rays:
    """Features without a constant."""

    def __call__(self, states):
        return np.abs(states)


def refused(check, certificate):
    assert check in failed(certificate)
    assert certificate.verdict == "inconclusive"
    assert all(c.verdict == "inconclusive" for c in certificate.constraints)
    assert certificate.reason.startswith("these episodes cannot tell: ")
    found = next(c for c in certificate.checks if c.name == check)
    assert found.words in certificate.reason
    assert found.advice in certificate.advice
    assert not any("would pass" in advice for advice in certificate.advice)


def test_too_few_episodes_forbid_a_pass():
    refused("episodes", judged(coin(0.4), coin_log(29), harm(5.0)))
    assert "episodes" not in failed(judged(coin(0.4), coin_log(30), harm(5.0)))


def test_decisions_that_were_never_logged_forbid_a_pass():
    log = coin_log(200, logged=0.0, propensity=1.0)
    refused("unsupported decisions", judged(coin(0.01), log, harm(5.0, range=(0, 1))))
    assert judged(coin(0.0), log, harm(5.0, range=(0, 1))).verdict == "pass"


def test_decisions_that_behavior_hardly_takes_forbid_a_pass_over_features():
    log = bandit_log(400)
    away = rows_of(log, actions=np.where(log.states[:, 0] < 3, 0, 1), propensities=None)
    refused("unsupported decisions", judged(Tilted([[0.0, 0.5]]), away, harm(50.0), method=None))


def test_decisions_that_were_logged_too_seldom_forbid_a_pass():
    seldom = np.zeros(200)
    log = rows_of(
        coin_log(200, logged=0.0), actions=1 * (np.arange(200) < 4), costs={"harm": seldom, "benefit": seldom}
    )
    refused("rare decisions", judged(coin(0.5), log, harm(5.0, range=(0, 1))))
    assert "rare decisions" not in failed(judged(coin(0.005), log, harm(5.0, range=(0, 1))))


def test_an_episode_that_makes_most_of_the_variance_forbids_a_pass():
    log = coin_log(200, costs=1e-3 * np.random.default_rng(0).random(200) + 1.0 * (np.arange(200) == 5))
    refused("influence concentration", judged(coin(0.5), log, harm(5.0)))
    weights = np.where(np.arange(400) == np.argmax(LOG.cost("harm")), 60.0, 1.0)
    heavy = rows_of(LOG, weights=weights, initial_states=None, initial_weights=None)
    refused("influence concentration", judged(coin(0.5), heavy, harm(5.0)))


@pytest.mark.parametrize("features", [Polynomial(1), Rays()], ids=["with a constant", "without"])
def test_a_class_that_cannot_hold_the_values_forbids_a_pass(features):
    log, policy = bandit_log(2000, bend=1.0), Tilted([[0.0, 1.0]])
    found = judged(policy, log, harm(50.0), method=BootstrapFQE("t", Linear(features)))
    assert found.guarantee == "heuristic"
    refused("Bellman error", found)
    assert judged(policy, log, harm(50.0), method=BootstrapFQE("t", Linear(Polynomial(2)))).verdict == "pass"
    assert (
        judged(policy, log, harm(50.0), method=EpisodeScoreBound("dr", "t", Linear(features))).verdict == "pass"
    )  # corrected


def test_weights_that_stand_for_few_episodes_forbid_a_pass():
    mdp, log = graph_log(300, horizon=8)
    steep = graph.constant_policy(mdp, 0.95)
    constraint = AtMost("upper", 50.0)
    found = judged(steep, log, constraint, discount=mdp.discount, method="dr-t")
    refused("effective sample size", found)
    assert judged(steep, log, constraint, discount=mdp.discount).verdict == "pass"  # refits need no weights


def test_a_single_heavy_episode_forbids_a_pass():
    propensities = np.where(np.arange(400) == 7, 1e-4, 0.5)
    log = rows_of(LOG, propensities=propensities)
    refused("largest weight", judged(coin(0.4), log, harm(50.0), method="pdis-t"))


def test_wrong_propensities_forbid_a_pass():
    wrong = rows_of(LOG, propensities=np.full(400, 0.25))
    for name in ("pdis-studentised", "dr-t"):
        refused("mean weight", judged(coin(0.4), wrong, harm(50.0), method=name))
        assert judged(coin(0.4), LOG, harm(50.0), method=name).verdict == "pass"


def test_the_policy_that_wrote_the_log_has_weights_of_one_but_for_rounding():
    mdp = world(3)
    log = log_of(mdp, episodes=200, seed=1)
    found = judged(TabularPolicy.uniform(5, 3), log, AtMost("g0", 50.0), discount=0.9, method="pdis-t")
    assert (found.verdict, failed(found)) == ("pass", set())
    assert found.estimates["g0"] == pytest.approx(log.returns(0.9)[:, 1].mean())


def test_episodes_that_were_logged_too_often_but_count_for_less_do_not():
    log = coin_log(600, logged=0.8, propensity=0.5)
    refused("mean weight", judged(coin(0.2), log, harm(50.0), method="pdis-t"))
    once = rows_of(
        log,
        weights=np.where(log.actions == 1, 0.5 / 0.8, 0.5 / 0.2),
        initial_states=None,
        initial_weights=None,
        propensities=log.propensities,
    )
    assert judged(coin(0.2), once, harm(50.0), method="pdis-t").verdict == "pass"


def test_weighed_sums_that_stop_where_the_log_was_cut_off_forbid_a_pass():
    mdp = world(3, ending=0.0)
    policy = policy_near_uniform(mdp, 1, mildness=0.9)
    log = log_of(mdp, episodes=1000, seed=1, max_steps=5)
    limit = AtMost("g0", 0.8 * mdp.values(policy)["g0"])
    found = judged(policy, log, limit, discount=0.9, method="pdis-t")
    assert found.bounds["g0"] < limit.limit
    refused("cut off", found)
    for method in ("dr-t", QUICK):
        assert judged(policy, log, limit, discount=0.9, method=method).verdict == "fail"
    longer = log_of(mdp, episodes=200, seed=1, max_steps=80)
    later = judged(TabularPolicy.uniform(5, 3), longer, AtMost("g0", 50.0), discount=0.9, method="pdis-t")
    assert later.verdict == "pass"  # what was cut off hardly counts


def test_a_policy_that_never_ends_at_discount_1_forbids_a_pass():
    found = judged(TabularPolicy(np.tile([1.0, 0.0], (2, 1))), circling(), harm(1e6))
    refused("divergence", found)
    assert (found.constraints[0].estimate, found.constraints[0].bound) == (None, None)
    assert np.isnan(found.bounds["harm"])
    assert "no bound could be had" in found.constraints[0].reason


def test_a_fitted_iteration_without_a_limit_forbids_a_pass():
    """The example of Tsitsiklis and Van Roy: one feature, 1 and then 2; the second state is left at once."""
    n = 60
    states = np.tile([[1.0], [2.0]], (n, 1))
    log = Dataset.from_arrays(
        states=states,
        actions=np.zeros(2 * n, dtype=int),
        next_states=np.full((2 * n, 1), 2.0),
        costs={"harm": np.random.default_rng(0).random(2 * n)},
        terminals=np.tile([False, False], n),
        episodes=np.repeat(np.arange(n), 2),
        weights=np.ones(2 * n),
        n_actions=1,
    )
    johnson_t = log.select(~((np.arange(2 * n) % 2 == 1) & (np.arange(2 * n) > 10)))
    alone = Tilted([[0.0]])
    found = judged(alone, johnson_t, harm(1e6), method=BootstrapFQE("t", Linear(features=np.asarray)), discount=0.95)
    refused("divergence", found)


def test_what_never_varies_passes_only_where_enough_episodes_would_have_shown_it():
    """With a true chance of 5 % to be harmed, 21 % of 30 episodes show nothing: that must not pass a limit of 4 %."""
    quiet = coin_log(30, chance=0.0)
    refused("variation", judged(coin(0.5), quiet, harm(0.04, range=(0, 1))))
    refused("variation", judged(coin(0.5), quiet, harm(0.04)))  # what harm would be is not known at all
    even = coin_log(400, chance=0.0)
    for count, verdict in ((38, "pass"), (37, "inconclusive")):  # of each side: 0.96 ** 75 < 0.05
        rows = np.concatenate([np.flatnonzero(even.actions == side)[:count] for side in (0, 1)])
        part = even.part(np.isin(np.arange(len(even)), rows))
        assert judged(coin(0.5), part, harm(0.04, range=(0, 1))).verdict == verdict


def test_diagnostics_say_nothing_against_an_ordinary_log():
    mdp, log = graph_log(300)
    policy = graph.constant_policy(mdp, 0.55)
    for name in METHODS:
        method = METHODS[name]
        if isinstance(method, EpisodeScoreBound):
            method = replace(method, largest_weight=1.1**5)
        constraint = AtMost("upper", 100.0, range=(0, 5))
        found = judged(policy, log, constraint, discount=mdp.discount, method=method)
        assert (found.verdict, failed(found)) == ("pass", set())


def test_a_policy_that_sits_exactly_on_its_limit_is_judged_to_rounding():
    """Eighty steps of 0.1 add up to 7.999999999999988; their values, to 8.000000000000002 or so."""
    steps, episodes = 80, 200
    log = Dataset.from_arrays(
        states=np.tile(np.arange(steps), episodes),
        actions=np.zeros(steps * episodes, dtype=int),
        next_states=np.tile(np.minimum(np.arange(steps) + 1, steps - 1), episodes),
        costs={"g": np.full(steps * episodes, 0.1)},
        terminals=np.tile(np.arange(steps) == steps - 1, episodes),
        episodes=np.repeat(np.arange(episodes), steps),
    )
    only = TabularPolicy(np.ones((steps, 1)))
    for limit in (8.0, np.nextafter(8.0, 0), np.nextafter(8.0, 9)):
        found = certify(only, log, constraints=[AtMost("g", limit)], discount=1.0)
        assert found.constraints[0].estimate == pytest.approx(8.0)
        assert found.verdict == "pass"
    assert certify(only, log, constraints=[AtMost("g", 7.99)], discount=1.0).verdict == "fail"


@pytest.mark.parametrize("seed", range(3))
def test_rounding_is_no_disagreement_and_no_variation(seed):
    """A cost of 0.1 in every step is 0.1 to rounding, however it is summed and refitted."""
    log = coin_log(400, seed=seed)
    log = log.with_costs({"harm": np.full(len(log), 0.1), "cost": log.cost("harm")})
    certificate = judged(coin(0.4), log, harm(1.0), method=None)
    values = {check.name: check.value for check in certificate.checks}
    assert values["disagreement"] == 0
    assert values["Bellman error"] == 0
    assert values["influence concentration"] == 400  # nothing to concentrate
    assert certificate.bounds["harm"] == pytest.approx(0.1, rel=1e-12)
    assert "variation" in values


def cut_off_log(discount):
    """Episodes of ten steps, none of which ended: so much of their value lies beyond."""
    log = Dataset.from_arrays(
        states=np.zeros((600, 1)),
        actions=np.arange(600) % 2,
        next_states=np.zeros((600, 1)),
        costs={"cost": np.ones(600)},
        terminals=np.zeros(600, bool),
        episodes=np.repeat(np.arange(60), 10),
        steps=np.tile(np.arange(10), 60),
    )
    return Problem(log, objective="cost", constraints=[AtMost("cost", 9.0)], discount=discount)


@pytest.mark.parametrize(
    ("discount", "shift", "ok"),
    [(0.8, 9.0, True), (0.9, None, False), (0.9, 0.0, True), (0.9, 1.0, False), (0.9, 0.01, True), (0.95, 0.0, False)],
)
def test_more_may_lie_beyond_the_log_where_like_states_lead_to_the_same_early_and_late(discount, shift, ok):
    """A shift that is clear, but hardly matters beside the standard error of the value, forbids nothing."""
    noise = np.tile([[-1.0], [1.0]], (30, 2)) * (1e-3 if shift == 0.01 else 1.0)
    remembered = None if shift is None else shift + noise
    check = little_beyond(cut_off_log(discount), remembered, np.array([0.2, 0.2]))
    assert check.ok is ok
    assert f"{discount**10:.0%} of what episodes count for" in check.words
