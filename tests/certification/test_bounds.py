from dataclasses import replace

import numpy as np
import pytest

from certification.cases import Tilted, bandit_log, coin, coin_log, graph_log, upper_value
from checkrein import AtLeast, AtMost, MixturePolicy, Problem, Tabular
from checkrein.base.errors import ArgumentError
from checkrein.certification import METHODS, BootstrapFQE, EpisodeScoreBound, certify
from checkrein.certification.bounds import method_of
from checkrein.evaluation import propensities_of
from checkrein.functions import Linear
from checkrein_studies import graph
from problems import rows_of

HARM = AtMost("harm", 0.2, range=(0, 1))


def problem_of(dataset, *constraints, discount=1.0):
    return Problem(dataset, objective=None, constraints=constraints or (HARM,), discount=discount)


def bound(method, problem, policy, alpha=0.05, seed=0):
    return method(problem, policy, alpha=alpha, rng=np.random.default_rng(seed))


def test_every_method_is_called_what_it_calls_itself():
    assert all(method.name == name for name, method in METHODS.items())
    assert len(METHODS) == 13
    problem = problem_of(coin_log(5))
    assert all(method_of(name, problem) is method for name, method in METHODS.items())
    mine = EpisodeScoreBound("pdis", "t")
    assert method_of(mine, problem) is mine
    with pytest.raises(ArgumentError, match="no method is called 'magic': choose from fqe-studentised"):
        method_of("magic", problem)


def test_the_default_refits_tables_in_finite_states_and_corrects_a_linear_class_elsewhere():
    assert method_of(None, problem_of(coin_log(5))).name == "fqe-studentised"
    features = problem_of(bandit_log(40))
    assert method_of(None, features).name == "dr-studentised"
    assert isinstance(method_of("fqe-t", features).functions, Linear)


@pytest.mark.parametrize("name", METHODS)
def test_finite_sample_is_said_only_of_independent_sums_with_logged_propensities(name):
    method, bounded = METHODS[name], name in ("pdis-bernstein", "pdis-betting")
    logged = coin_log(40)
    silent = replace(logged, propensities=None)
    assert method.guarantee(problem_of(logged)) == ("finite-sample" if bounded else "asymptotic")
    assert method.guarantee(problem_of(silent)) == "asymptotic"
    if isinstance(method, EpisodeScoreBound):
        estimated = replace(method, propensities=propensities_of(logged, "counts"))
        assert estimated.guarantee(problem_of(logged)) == "asymptotic"


def test_a_class_that_may_miss_q_or_a_model_of_behavior_is_heuristic():
    silent = problem_of(bandit_log(200, propensities=False))
    assert all(method_of(name, silent).guarantee(silent) == "heuristic" for name in METHODS)
    known = problem_of(bandit_log(200))
    assert EpisodeScoreBound("dr").guarantee(known) == "asymptotic"
    assert BootstrapFQE(functions=Linear()).guarantee(known) == "heuristic"


@pytest.mark.parametrize("estimator", ["pdis", "dr"])
@pytest.mark.parametrize("kind", ["bernstein", "betting"])
def test_finite_sample_bounds_ask_for_what_cannot_be_read_off_the_data(estimator, kind):
    problem = problem_of(coin_log(60), discount=0.9)
    with pytest.raises(ArgumentError, match="needs largest_weight=.*must not be read off the data"):
        bound(EpisodeScoreBound(estimator, kind), problem, coin(0.4))
    method = EpisodeScoreBound(estimator, kind, largest_weight=1.2)
    for constraint in (AtMost("harm", 0.2), AtMost("harm", 0.2, range=(-1, 1))):
        with pytest.raises(ArgumentError, match="needs the range of 'harm', and costs of one sign"):
            bound(method, problem_of(coin_log(60), constraint, discount=0.9), coin(0.4))
    uneven = rows_of(coin_log(60), weights=1.0 + np.arange(60) % 2, propensities=np.full(60, 0.5))
    with pytest.raises(ArgumentError, match="episodes that all count the same"):
        bound(method, problem_of(uneven, discount=0.9), coin(0.4))
    assert np.isfinite(bound(method, problem, coin(0.4)).upper).all()


def test_a_doubly_robust_sum_has_no_range_at_discount_1():
    with pytest.raises(ArgumentError, match="has no range at discount 1"):
        bound(EpisodeScoreBound("dr", "betting", largest_weight=2), problem_of(coin_log(60)), coin(0.4))


@pytest.mark.parametrize("kind", ["bernstein", "betting"])
def test_a_weight_that_the_data_exceed_is_refused(kind):
    problem = problem_of(coin_log(60, chance=0.0))
    with pytest.raises(ArgumentError, match="an episode weighs 1.8, more than largest_weight=1.5"):
        bound(EpisodeScoreBound("pdis", kind, largest_weight=1.5), problem, coin(0.9))
    narrow = problem_of(coin_log(60), AtMost("harm", 0.2, range=(0, 0.5)))
    with pytest.raises(ArgumentError, match="of 'harm', above the declared range"):
        bound(EpisodeScoreBound("pdis", kind, largest_weight=1.8), narrow, coin(0.9))


def test_bad_settings_are_refused():
    for wrong in ({"replicates": 0}, {"folds": 0}, {"largest_weight": -1.0}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            EpisodeScoreBound(**wrong)
    with pytest.raises(ArgumentError, match="replicates"):
        BootstrapFQE(replicates=0)


@pytest.mark.parametrize("name", [name for name in METHODS if not name.endswith(("bernstein", "betting"))])
def test_at_least_is_at_most_of_the_negative_with_bounds_on_the_other_side(name):
    log = coin_log(80)
    costs = {"benefit": log.cost("benefit"), "lack": -log.cost("benefit")}
    problem = problem_of(log.with_costs(costs), AtLeast("benefit", 0.5))
    mirrored = problem_of(log.with_costs(costs), AtMost("lack", -0.5))
    for mine, theirs in zip(
        bound(METHODS[name], problem, coin(0.4)), bound(METHODS[name], mirrored, coin(0.4)), strict=True
    ):
        assert mine == pytest.approx(theirs)


@pytest.mark.parametrize("name", ["bernstein", "betting"])
def test_a_declared_range_is_turned_with_the_sign(name):
    method = EpisodeScoreBound("pdis", name, largest_weight=1.2)
    found = bound(method, problem_of(coin_log(200), AtLeast("benefit", 0.5, range=(0, 1))), coin(0.4))
    assert -1.2 <= found.lower[0] < found.estimates[0] < found.upper[0] <= 0


@pytest.mark.parametrize("name", METHODS)
def test_bounds_lie_on_both_sides_of_the_truth_of_an_easy_case(name):
    mdp, log = graph_log(400, horizon=3, seed=1)
    policy = graph.constant_policy(mdp, 0.55)
    method = METHODS[name]
    if isinstance(method, EpisodeScoreBound):
        method = replace(method, largest_weight=1.1**3)
    constraint = AtMost("upper", 1.0, range=(0, 3))
    found = bound(method, problem_of(log, constraint, discount=mdp.discount), policy, alpha=0.01)
    assert found.lower[0] < upper_value(mdp, policy) < found.upper[0]
    values, errors = method.estimate(
        problem_of(log, constraint, discount=mdp.discount), policy, rng=np.random.default_rng(0)
    )
    assert values[1:] == pytest.approx(found.estimates)
    assert errors[1:] == pytest.approx(found.standard_errors)


@pytest.mark.parametrize("name", ["fqe-studentised", "dr-studentised", "pdis-studentised"])
def test_two_constraints_take_more_room_than_one_and_never_more_than_each_at_half_the_error(name):
    log = coin_log(150)
    rng = np.random.default_rng(5)
    log = log.with_costs({"harm": log.cost("harm"), "other": rng.lognormal(size=150)})
    method = replace(METHODS[name], replicates=2000)
    both = bound(method, problem_of(log, HARM, AtMost("other", 3.0)), coin(0.45))
    alone, halved = (bound(method, problem_of(log, AtMost("other", 3.0)), coin(0.45), alpha) for alpha in (0.05, 0.025))
    assert alone.upper[0] <= both.upper[1] <= halved.upper[0] * 1.02
    twice = bound(method, problem_of(log, HARM, replace(HARM, name="again")), coin(0.45))
    single = bound(method, problem_of(log, HARM), coin(0.45))
    assert twice.upper == pytest.approx(np.repeat(single.upper, 2), rel=0.02)


@pytest.mark.parametrize("name", ["fqe-t", "dr-t", "pdis-t"])
def test_an_episode_that_weighs_two_counts_like_two(name):
    log = coin_log(60)
    twice = np.flatnonzero(np.arange(60) % 3 == 0)
    weighed = rows_of(
        log,
        weights=1.0 + (np.arange(60) % 3 == 0),
        initial_states=None,
        initial_weights=None,
        propensities=log.propensities,
    )
    rows = np.append(np.arange(60), twice)
    repeated = rows_of(
        log,
        rows,
        episodes=np.arange(rows.size),
        initial_states=None,
        initial_weights=None,
        propensities=np.full(rows.size, 0.5),
    )
    mine, theirs = (bound(METHODS[name], problem_of(of), coin(0.4)) for of in (weighed, repeated))
    if name != "dr-t":  # whose folds differ
        assert mine.estimates == pytest.approx(theirs.estimates)
    assert mine.standard_errors > theirs.standard_errors  # what is repeated exactly is no new evidence


def test_per_decision_weights_of_a_deterministic_policy_vanish_and_nothing_passes():
    """No logged episode does all that the policy would: its sums read nearly 0, and that is no evidence."""
    mdp, log = graph_log(200, horizon=20, up=0.5)
    policy = graph.constant_policy(mdp, 1.0)
    truth = upper_value(mdp, policy)
    for name in ("pdis-studentised", "pdis-t"):
        constraint = AtMost("upper", 0.9 * truth, range=(0, 20))
        found = bound(METHODS[name], problem_of(log, constraint, discount=mdp.discount), policy)
        assert found.estimates[0] < 0.8 * truth
        certificate = certify(policy, log, constraints=[constraint], discount=mdp.discount, method=name)
        assert certificate.verdict == "inconclusive"
        assert {"effective sample size"} <= {check.name for check in certificate.checks if not check.ok}


def test_a_sum_of_nothing_is_no_evidence_that_costs_are_low():
    mdp, log = graph_log(200, horizon=20, up=0.5)
    policy = graph.constant_policy(mdp, 1.0)
    last = log.with_costs({"upper": 1.0 * log.terminals})  # paid at the end, which no logged episode comes to
    constraint = AtMost("upper", 0.1, range=(0, 1))
    for kind in ("studentised", "t", "bernstein", "betting"):
        method = EpisodeScoreBound("pdis", kind, largest_weight=2.0**20)
        certificate = certify(policy, last, constraints=[constraint], discount=mdp.discount, method=method)
        assert certificate.estimates["upper"] == 0
        assert certificate.verdict == "inconclusive"


@pytest.mark.parametrize("name", ["fqe-studentised", "pdis-t", "dr-t"])
def test_a_mixtures_estimate_is_its_members_weighed(name):
    mdp, log = graph_log(200)
    members = [graph.constant_policy(mdp, chance) for chance in (0.4, 0.7)]
    problem = problem_of(log, AtMost("upper", 1.0), discount=mdp.discount)
    rng = [np.random.default_rng(0) for _ in range(3)]
    mixed = METHODS[name].estimate(problem, MixturePolicy(tuple(members), [0.25, 0.75]), rng=rng[0])[0]
    alone = [METHODS[name].estimate(problem, m, rng=r)[0] for m, r in zip(members, rng[1:], strict=True)]
    assert mixed == pytest.approx(0.25 * alone[0] + 0.75 * alone[1])


def test_fitted_kinds_share_their_replicates():
    mdp, log = graph_log(150)
    problem = problem_of(log, AtMost("upper", 1.0), discount=mdp.discount)
    policy = graph.constant_policy(mdp, 0.6)
    fits = BootstrapFQE(replicates=300).replicate(problem, policy, alpha=0.05, rng=np.random.default_rng(0))
    for kind in ("studentised", "pivotal", "bias-corrected", "t"):
        shared = BootstrapFQE(kind, Tabular(), replicates=300).bound(fits, 0.05)
        own = bound(BootstrapFQE(kind, replicates=300), problem, policy)
        assert shared.upper == pytest.approx(own.upper)
        assert abs(shared.upper - shared.estimates) == pytest.approx(1.7 * shared.standard_errors, rel=0.35)


def test_a_linear_refit_is_bounded_over_features():
    problem = problem_of(bandit_log(300), AtMost("harm", 2.0))
    policy = Tilted([[0.0, 1.0]])
    fitted = bound(BootstrapFQE(functions=Linear(), replicates=300), problem, policy)
    corrected = bound(EpisodeScoreBound("dr", "t"), problem, policy)
    assert fitted.estimates == pytest.approx(corrected.estimates, abs=2 * corrected.standard_errors[0])


def test_of_single_decisions_the_largest_weight_is_read_off_the_log_and_called_asymptotic():
    problem, policy = problem_of(coin_log(400), AtMost("harm", 0.5, range=(0, 1))), coin(0.2)
    read, declared = (EpisodeScoreBound("pdis", "betting", largest_weight=most) for most in ("logged", 2.0))
    found = [method(problem, policy, alpha=0.05, rng=np.random.default_rng(0)).upper for method in (read, declared)]
    np.testing.assert_array_equal(*found)
    assert 0.06 < found[0][0] < 0.2
    assert (read.guarantee(problem), declared.guarantee(problem)) == ("asymptotic", "finite-sample")
    silent = replace(problem, dataset=replace(problem.dataset, propensities=None))
    with pytest.raises(ArgumentError, match="largest_weight='logged' is for single decisions with logged propensities"):
        read(silent, policy, alpha=0.05, rng=np.random.default_rng(0))
