from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

from checkrein import (
    FQE,
    FQI,
    LSPI,
    LSTDQ,
    AtLeast,
    AtMost,
    CuttingPlane,
    Dataset,
    Entropy,
    ExponentiatedGradient,
    KLDivergence,
    Linear,
    OneHot,
    Problem,
    Tabular,
    TabularPolicy,
    TotalVariation,
    solve,
)
from costs.exact import divergence, expected_sum, kl_optimum, soft_values, variation_optimum
from problems import PLAYERS, random_log, random_mdp

LIMIT = 0.5


def world(seed, **changes):
    mdp = random_mdp(seed, n_constraints=1, n_states=10, **changes)
    return mdp, np.random.default_rng(seed).dirichlet(np.ones(mdp.n_actions), mdp.n_states)


def solved(mdp, *constraints, players=PLAYERS, **changes):
    problem = Problem(mdp.exact_log(), objective="c", constraints=constraints, discount=mdp.discount)
    choices = {"learner": CuttingPlane(200.0), "tolerance": 1e-6, "max_rounds": 200} | players | changes
    return problem, solve(problem, **choices)


PLAYED = {
    "fqi": PLAYERS,
    "lspi": {"best_response": LSPI(Tabular(), max_iterations=1000), "evaluator": LSTDQ(Tabular())},
    "iterations": {"best_response": FQI(Tabular(), iterations=400), "evaluator": FQE(Tabular())},
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("players", PLAYED)
def test_a_kl_constraint_has_the_convex_programs_optimum_and_its_price_is_the_temperature(players, seed):
    mdp, prior = world(seed)
    best, temperature, _ = kl_optimum(mdp, prior, LIMIT)
    limit = AtMost(KLDivergence(TabularPolicy(prior)), LIMIT, name="kl")
    _, solution = solved(mdp, limit, players=PLAYED[players])
    assert solution.status == "converged"
    assert solution.values["c"] == pytest.approx(best, abs=1e-4)
    assert solution.values["kl"] == pytest.approx(LIMIT, abs=1e-6)
    assert solution.multipliers["kl"] == pytest.approx(temperature, rel=1e-2)


@pytest.mark.parametrize("seed", range(3))
def test_limit_to_multiplier_to_limit_closes_both_ways(seed):
    mdp, prior = world(seed)
    limit = AtMost(KLDivergence(TabularPolicy(prior)), LIMIT, name="kl")
    problem, solution = solved(mdp, limit, tolerance=1e-10)
    answer = FQI(Tabular())(problem, np.array([solution.multipliers["kl"]]), rng=np.random.default_rng(0))
    found = FQE(Tabular())(problem, answer, rng=np.random.default_rng(0))
    assert found.constraints[0] == pytest.approx(LIMIT, abs=1e-4)
    temperature = 2.0 * solution.multipliers["kl"]
    softer = FQI(Tabular())(problem, np.array([temperature]), rng=np.random.default_rng(0))
    reached = float(FQE(Tabular())(problem, softer, rng=np.random.default_rng(0)).constraints[0])
    _, again = solved(mdp, replace(limit, limit=reached), tolerance=1e-10)
    assert again.multipliers["kl"] == pytest.approx(temperature, abs=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_an_entropy_constraint_has_the_convex_programs_optimum(seed):
    mdp, _ = world(seed)
    uniform = np.full((mdp.n_states, mdp.n_actions), 1 / mdp.n_actions)
    wanted = 0.5 * np.log(mdp.n_actions) / (1 - mdp.discount)

    def lacking(log_temperature):
        table = soft_values(mdp, mdp.costs["c"], np.ones_like(uniform), np.exp(log_temperature))
        return expected_sum(mdp, table, -divergence(table, np.ones_like(table))) - wanted

    temperature = np.exp(brentq(lacking, np.log(0.02), np.log(1e3), xtol=1e-12))
    table = soft_values(mdp, mdp.costs["c"], np.ones_like(uniform), temperature)
    _, solution = solved(mdp, AtLeast(Entropy(), wanted))
    assert solution.values["c"] == pytest.approx(
        expected_sum(mdp, table, (table * mdp.costs["c"]).sum(axis=1)), abs=1e-4
    )
    assert solution.values["Entropy"] == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_a_total_variation_constraint_has_the_linear_programs_optimum_and_dual(seed):
    mdp, reference = world(seed)
    best, price = variation_optimum(mdp, reference, 1.3)
    _, solution = solved(mdp, AtMost(TotalVariation(TabularPolicy(reference)), 1.3, name="tv"))
    assert solution.values["c"] == pytest.approx(best, abs=1e-5)
    assert solution.values["tv"] == pytest.approx(1.3, abs=1e-6)
    assert solution.multipliers["tv"] == pytest.approx(price, rel=1e-3)


@pytest.mark.parametrize("seed", range(2))
def test_two_divergences_an_entropy_and_a_logged_cost_meet_in_one_problem(seed):
    """No closed form: the bound says that nothing is better, and weak duality at its own prices says so again."""
    mdp, prior = world(seed)
    other = np.random.default_rng(100 + seed).dirichlet(np.ones(mdp.n_actions), mdp.n_states)
    limits = [
        AtMost("g0", 0.0),
        AtMost(KLDivergence(TabularPolicy(prior)), 0.0, name="one"),
        AtMost(TotalVariation(TabularPolicy(other)), 0.0, name="other"),
        AtLeast(Entropy(), 0.0),
    ]
    between = TabularPolicy(0.5 * prior + 0.5 * other)  # keeps all limits, so there is something to find
    problem = Problem(mdp.exact_log(), objective="c", constraints=limits, discount=mdp.discount)
    reached = FQE(Tabular())(problem, between, rng=np.random.default_rng(0)).constraints
    slack = 0.02 * np.abs(reached)
    limits = [replace(c, limit=c.sign * (r + s)) for c, r, s in zip(limits, reached, slack, strict=True)]
    problem, solution = solved(mdp, *limits, tolerance=1e-4)
    assert solution.status == "converged"
    for limit in limits:
        value = solution.values[limit.cost if isinstance(limit.cost, str) else limit.name]
        assert limit.sign * value <= limit.sign * limit.limit + 1e-5
    prices = np.array([solution.multipliers[limit.name] for limit in limits])
    for _ in range(30):  # policies near the prior, and any: none has a lower Lagrangian than the proven bound
        rng = np.random.default_rng(_)
        table = rng.dirichlet(np.ones(mdp.n_actions), mdp.n_states) * 0.3 + 0.7 * prior
        values = FQE(Tabular())(problem, TabularPolicy(table), rng=rng)
        assert values.objective + prices @ (values.constraints - problem.limits) >= solution.lower_bound - 1e-9


def test_exponentiated_gradient_plays_with_policy_costs_too():
    mdp, prior = world(0)
    best, _, _ = kl_optimum(mdp, prior, LIMIT)
    limit = AtMost(KLDivergence(TabularPolicy(prior)), LIMIT)
    _, solution = solved(mdp, limit, learner=ExponentiatedGradient(10.0, 0.5), tolerance=5e-3, max_rounds=500)
    assert solution.status == "converged"
    assert solution.values["c"] == pytest.approx(best, abs=5e-3)


def test_a_divergence_can_be_the_objective():
    """Stay as close to a reference as a limit on a logged cost allows: the same curve from the other side."""
    mdp, prior = world(1)
    best, temperature, _ = kl_optimum(mdp, prior, LIMIT)
    problem = Problem(
        mdp.exact_log(),
        objective=KLDivergence(TabularPolicy(prior)),
        constraints=[AtMost("c", best)],
        discount=mdp.discount,
    )
    solution = solve(problem, learner=CuttingPlane(50.0), tolerance=1e-6, max_rounds=200, **PLAYERS)
    assert solution.values["KLDivergence"] == pytest.approx(LIMIT, abs=1e-4)
    assert solution.multipliers["c"] == pytest.approx(1 / temperature, rel=1e-2)


def test_behavior_is_the_logs_own_and_stays_fixed_when_the_log_is_split():
    log = random_log(0, episodes=200)
    problem = Problem(log, objective="c", constraints=[AtMost(KLDivergence(), 0.2)], discount=0.9)
    counts = np.zeros((log.n_states, log.n_actions))
    np.add.at(counts, (log.states, log.actions), 1)
    reference = problem.constraints[0].cost.reference
    assert reference.table == pytest.approx(counts / counts.sum(axis=1, keepdims=True))
    part = replace(problem, dataset=log.part(log.episodes < 100))
    assert part.constraints[0].cost.reference is reference
    behavior = TabularPolicy(counts / counts.sum(axis=1, keepdims=True))
    assert FQE(Tabular())(problem, behavior, rng=np.random.default_rng(0)).constraints[0] == pytest.approx(0, abs=1e-12)


def test_near_behavior_the_policy_moves_as_far_as_the_limit_allows():
    log = random_log(1, episodes=300)
    for limit in (0.01, 0.1, 0.5):
        problem = Problem(log, objective="c", constraints=[AtMost(KLDivergence(), limit, name="kl")], discount=0.9)
        solution = solve(problem, learner=CuttingPlane(100.0), tolerance=1e-5, max_rounds=100, **PLAYERS)
        assert solution.values["kl"] == pytest.approx(limit, rel=1e-4)


def test_linear_classes_answer_softly_too():
    """One indicator per state makes the linear class a table, so both must agree."""
    mdp, prior = world(2)
    limit = AtMost(KLDivergence(TabularPolicy(prior)), LIMIT, name="kl")
    functions = Linear(OneHot(mdp.n_states))
    players = {"best_response": FQI(functions), "evaluator": FQE(functions)}
    _, tables = solved(mdp, limit)
    _, linear = solved(mdp, limit, players=players)
    assert linear.values == pytest.approx(tables.values, abs=1e-5)


@pytest.mark.parametrize("best_response", [FQI(Tabular()), LSPI(Tabular())])
def test_a_reference_with_zeros_is_kept_to_where_nothing_was_logged_though_its_divergence_has_no_price(best_response):
    """State 1 is reached and never left; the reference never takes the first action there."""
    log = Dataset.from_arrays(
        states=[0, 0], actions=[0, 1], next_states=[1, 1], terminals=[False, False], episodes=[0, 1],
        costs={"c": [1.0, 2.0]}, n_states=2, n_actions=2,
    )  # fmt: skip
    reference = TabularPolicy(np.array([[0.5, 0.5], [0.0, 1.0]]))
    problem = Problem(log, objective="c", constraints=[AtMost(KLDivergence(reference), 9.0)], discount=0.9)
    rng = np.random.default_rng(0)
    policy = best_response(problem, np.zeros(1), rng=rng)
    assert policy.probabilities(np.arange(2)) == pytest.approx(np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert np.isfinite(FQE(Tabular())(problem, policy, rng=rng).constraints).all()
