"""What must hold on any log, whatever the numbers: tested on random ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from checkrein import (
    FQE,
    FQI,
    LSPI,
    LSTDQ,
    AtMost,
    CuttingPlane,
    Linear,
    MixturePolicy,
    OneHot,
    Problem,
    Support,
    Tabular,
    solve,
)
from problems import PLAYERS, binding_limits, exact_problem, problem_of, random_log, random_mdp, random_policy, rows_of

RNG = np.random.default_rng(0)
seeds = st.integers(0, 10_000)
some = settings(max_examples=10, deadline=None)


def values(evaluator, problem, policy):
    found = evaluator(problem, policy, rng=np.random.default_rng(0))
    return found.row


@some
@given(seed=seeds)
def test_tabular_fqe_equals_exact_evaluation_of_the_empirical_mdp(seed):
    log = random_log(seed)
    policy = random_policy(seed, log)
    assert values(FQE(Tabular()), problem_of(log), policy) == pytest.approx(
        oracles.evaluate(log, policy, 0.9), abs=1e-9
    )


@some
@given(seed=seeds)
def test_many_iterations_end_at_the_fixed_point(seed):
    log = random_log(seed)
    problem, policy = problem_of(log), random_policy(seed, log)
    assert values(FQE(Tabular(), iterations=400), problem, policy) == pytest.approx(
        values(FQE(Tabular()), problem, policy), abs=1e-9
    )
    price = np.array([0.3, 1.2])
    direct = FQI(Tabular())(problem, price, rng=RNG)
    iterated = FQI(Tabular(), iterations=600)(problem, price, rng=RNG)
    everywhere = np.arange(log.n_states)
    logged = Support().of(problem).allowed(everywhere)
    assert direct.q(everywhere)[logged] == pytest.approx(iterated.q(everywhere)[logged], abs=1e-9)


@some
@given(seed=seeds)
def test_linear_on_one_hot_features_equals_tabular(seed):
    log = random_log(seed)
    problem, policy, one_hot = problem_of(log), random_policy(seed, log), Linear(OneHot(log.n_states))
    tabular = values(FQE(Tabular()), problem, policy)
    for evaluator in (FQE(one_hot), LSTDQ(one_hot), LSTDQ(Tabular()), FQE(one_hot, iterations=400)):
        assert values(evaluator, problem, policy) == pytest.approx(tabular, abs=1e-9)
    price = np.array([0.7, 0.1])
    answers = [response(problem, price, rng=RNG) for response in (FQI(Tabular()), FQI(one_hot), LSPI(one_hot))]
    best = [values(FQE(Tabular()), problem, answer) @ [1, 0.7, 0.1] for answer in answers]
    assert best == pytest.approx([best[0]] * 3, abs=1e-9)


@some
@given(seed=seeds)
def test_one_vector_fit_equals_separate_ones(seed):
    log = random_log(seed)
    policy = random_policy(seed, log)
    together = values(FQE(Tabular()), problem_of(log), policy)
    alone = [
        values(FQE(Tabular()), Problem(log, objective=name, constraints=[], discount=0.9), policy)[0]
        for name in log.cost_names
    ]
    assert together == pytest.approx(alone, abs=1e-12)


@some
@given(seed=seeds)
def test_weights_equal_repeated_rows_in_every_evaluator(seed):
    log = random_log(seed)
    counts = np.random.default_rng(seed).integers(1, 4, len(log))
    weighted = rows_of(log, weights=counts)
    repeated = rows_of(log, np.repeat(np.arange(len(log)), counts), episodes=None, steps=None)
    policy = random_policy(seed, log)
    for evaluator in (FQE(Tabular()), LSTDQ(Linear(OneHot(log.n_states)))):
        assert values(evaluator, problem_of(weighted), policy) == pytest.approx(
            values(evaluator, problem_of(repeated), policy), abs=1e-9
        )


@some
@given(seed=seeds)
def test_the_order_of_rows_and_the_labels_of_states_do_not_matter(seed):
    log, rng = random_log(seed), np.random.default_rng(seed)
    policy = random_policy(seed, log)
    shuffled = rows_of(log, rng.permutation(len(log)))
    label = rng.permutation(log.n_states)
    renamed = rows_of(
        log,
        states=label[log.states],
        next_states=label[log.next_states],
        initial_states=label[log.initial_states],
    )
    table = np.empty_like(policy.table)
    table[label] = policy.table
    original = values(FQE(Tabular()), problem_of(log), policy)
    assert values(FQE(Tabular()), problem_of(shuffled), policy) == pytest.approx(original, abs=1e-10)
    assert values(FQE(Tabular()), problem_of(renamed), type(policy)(table)) == pytest.approx(original, abs=1e-10)


def test_a_mixture_is_evaluated_by_its_members():
    log = random_log(0)
    members = [random_policy(seed, log) for seed in range(3)]
    mixture = MixturePolicy(tuple(members), np.array([0.2, 0.3, 0.5]))
    expected = sum(
        w * values(FQE(Tabular()), problem_of(log), p) for p, w in zip(members, mixture.weights, strict=True)
    )
    assert values(FQE(Tabular()), problem_of(log), mixture) == pytest.approx(expected, abs=1e-12)


def solved(problem, **kwargs):
    return solve(problem, **PLAYERS, learner=CuttingPlane(100.0), tolerance=1e-9, max_rounds=200, **kwargs)


@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_constraints_does_not_matter(seed):
    mdp = random_mdp(seed, n_constraints=3, n_states=15)
    limits = binding_limits(mdp)
    forth, back = solved(exact_problem(mdp, limits)), solved(exact_problem(mdp, limits[::-1]))
    assert forth.values == pytest.approx(back.values, abs=1e-7)
    assert forth.multipliers == pytest.approx(back.multipliers, abs=1e-6)


@pytest.mark.parametrize("factor", [1e-3, 10.0, 1e4])
def test_scaling_a_cost_and_its_limit_scales_its_multiplier_inversely(factor):
    mdp = random_mdp(1, n_constraints=2, n_states=15)
    limits = binding_limits(mdp)
    log = mdp.exact_log()
    scaled = log.with_costs({n: log.cost(n) * (factor if n == "g0" else 1) for n in log.cost_names})
    limits_ = [AtMost("g0", limits[0].limit * factor), limits[1]]
    one = solved(exact_problem(mdp, limits))
    bound = CuttingPlane(100.0 * max(1.0, 1 / factor))
    other = solve(
        Problem(scaled, objective="c", constraints=limits_, discount=mdp.discount),
        **PLAYERS,
        learner=bound,
        tolerance=1e-9,
        max_rounds=200,
    )
    assert one.multipliers["g0"] > 0.01
    assert other.multipliers["g0"] * factor == pytest.approx(one.multipliers["g0"], rel=1e-5)
    assert other.multipliers["g1"] == pytest.approx(one.multipliers["g1"], rel=1e-5, abs=1e-9)
    assert other.values["c"] == pytest.approx(one.values["c"], abs=1e-7)
