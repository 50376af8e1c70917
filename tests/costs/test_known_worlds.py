"""Three logged costs and a KL constraint at once, where the truth is known."""

from dataclasses import replace

import numpy as np
import pytest

from checkrein import (
    FQE,
    FQI,
    AtMost,
    CuttingPlane,
    KLDivergence,
    Problem,
    Tabular,
    TabularMDP,
    TabularPolicy,
    certify,
    solve,
)
from checkrein.policies import members_of
from checkrein_studies import frozen_lake, sepsis

PLAYERS = {"best_response": FQI(Tabular()), "evaluator": FQE(Tabular())}


def exact_divergence(mdp, policy, reference):
    """The expected sum of KL divergences in the MDP itself, of each member by its own."""
    total = 0.0
    for member, weight in members_of(policy):
        table = member.probabilities(np.arange(mdp.n_states))
        ratio = np.divide(table, reference, out=np.ones_like(table), where=table > 0)
        each = np.repeat((table * np.log(ratio)).sum(axis=1, keepdims=True), mdp.n_actions, axis=1)
        total += weight * TabularMDP(mdp.transitions, {"kl": each}, mdp.initial, mdp.discount).values(member)["kl"]
    return total


def lake():
    mdp = frozen_lake.lake()
    return replace(mdp, costs={**mdp.costs, "steps": 1.0 * mdp.transitions.any(axis=2)})


def test_on_the_binding_lake_a_kl_constraint_joins_three_logged_costs():
    mdp = lake()
    behavior = frozen_lake.behavior(mdp)
    limits = [AtMost("hole", 0.05), AtMost("steps", 60.0), AtMost(KLDivergence(behavior), 20.0, name="kl")]
    problem = Problem(mdp.exact_log(), objective="goal", constraints=limits, discount=mdp.discount)
    solution = solve(problem, learner=CuttingPlane(50.0), tolerance=1e-3, max_rounds=100, **PLAYERS)
    assert solution.status == "converged"
    assert solution.gap <= 1e-3
    exact = mdp.values(solution.policy)
    for name in ("goal", "hole", "steps"):
        assert solution.values[name] == pytest.approx(exact[name], abs=1e-6)
    divergence = exact_divergence(mdp, solution.policy, behavior.table)
    assert solution.values["kl"] == pytest.approx(divergence, rel=1e-6)
    assert divergence == pytest.approx(20.0, abs=1e-4)


@pytest.mark.slow
def test_certified_values_of_policy_costs_come_to_the_exact_ones():
    mdp = lake()
    behavior = frozen_lake.behavior(mdp)
    policy = TabularPolicy(0.7 * behavior.table + 0.3 * mdp.optimum(objective="goal").policy.table)
    truth = exact_divergence(mdp, policy, behavior.table)
    log = frozen_lake.log(mdp, behavior, episodes=20_000, seed=0, max_steps=2000)
    limit = AtMost(KLDivergence(behavior), 2 * truth, name="kl")
    found = certify(policy, log, constraints=[limit], discount=mdp.discount)
    assert found.verdict == "pass"
    judged = found.constraints[0]
    assert abs(judged.estimate - truth) <= 4 * judged.standard_error
    assert judged.standard_error <= 0.01 * truth


@pytest.mark.slow
def test_in_intensive_care_a_kl_constraint_joins_three_logged_costs():
    ward = sepsis.load()
    limits = [*sepsis.limits(ward, 0.75), AtMost(KLDivergence(ward.clinicians), 3.0, name="kl")]
    problem = Problem(ward.mdp.exact_log(), objective=sepsis.DEATH, constraints=limits, discount=1.0)
    solution = solve(problem, learner=CuttingPlane(5.0), tolerance=1e-3, max_rounds=100, **PLAYERS)
    assert solution.status == "converged"
    assert solution.gap <= 1e-3
    assert solution.values == pytest.approx(
        ward.mdp.values(solution.policy) | {"kl": exact_divergence(ward.mdp, solution.policy, ward.clinicians.table)},
        rel=1e-6,
    )
