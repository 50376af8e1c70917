import numpy as np
import pytest
from scipy.optimize import minimize

from checkrein import FQE, Tabular, TabularMDP
from checkrein.evaluation import DoublyRobust, Magic, propensities_of
from checkrein.evaluation.doubly_robust import corrected
from checkrein.evaluation.importance import StepSums
from checkrein.evaluation.magic import _blend, _replicates
from checkrein.functions.tabular import TabularQ
from checkrein.problem import Episodes
from evaluation.references import exact_q, log_of, policy_near_uniform, problem_of, world


def from_one_state(mdp):
    return TabularMDP(mdp.transitions, mdp.costs, np.eye(mdp.n_states)[0], mdp.discount)


def rng(seed=0):
    return np.random.default_rng(seed)


def estimate(estimator, dataset, policy):
    return estimator(problem_of(dataset), policy, propensities_of(dataset), rng=rng())


def test_it_is_the_direct_method_where_weights_only_add_noise():
    mdp = from_one_state(world(1, ending=0.1))
    policy = policy_near_uniform(mdp, 1, mildness=0.0)
    dataset, q = log_of(mdp, episodes=50, seed=0, max_steps=60), exact_q(mdp, policy)
    found = estimate(Magic(q), dataset, policy)
    assert found.effective < 10
    assert found.values[1:] == pytest.approx([*mdp.values(policy).values()], rel=1e-6)
    assert "100%, 100%" in found.note


def test_it_is_nearly_wdr_where_the_model_is_badly_wrong():
    mdp = from_one_state(world(1, ending=0.3))
    policy = policy_near_uniform(mdp, 1)
    dataset, q = log_of(mdp, episodes=2000, seed=0), exact_q(mdp, policy)
    wrong = TabularQ(q.table + 20.0)
    model = exact_q(mdp, policy).table[0].T @ policy.table[0] + 20.0
    found, wdr = (
        estimate(Magic(wrong), dataset, policy).values,
        estimate(DoublyRobust(wrong, normalised=True), dataset, policy).values,
    )
    assert (np.abs(found - wdr)[1:] < 0.02 * np.abs(model - wdr)[1:]).all()


def test_the_last_return_is_wdr_and_the_first_the_direct_method():
    mdp = world()
    dataset, policy = log_of(mdp, episodes=40, seed=0, max_steps=9), policy_near_uniform(mdp, 1)
    problem, propensities = problem_of(dataset), propensities_of(dataset)
    episodes, q = Episodes.of(problem), exact_q(mdp, policy)
    (part,) = corrected(problem, policy, propensities, q, rng=rng())
    steps = StepSums.of(episodes, part.importance_weights, part.residuals, np.arange(episodes.horizon))
    wdr = DoublyRobust(q, normalised=True)(problem, policy, propensities, rng=rng())
    assert part.start.mean(axis=0) + steps.values[-1] == pytest.approx(wdr.values)
    assert steps.influence[:, -1] + part.start - part.start.mean(axis=0) == pytest.approx(wdr.influence)
    coarse = StepSums.of(episodes, part.importance_weights, part.residuals, np.array([2, 5]))
    assert coarse.values == pytest.approx(steps.values[[2, 5]])
    assert coarse.influence == pytest.approx(steps.influence[:, [2, 5]])


def test_a_replicate_of_the_bootstrap_is_wdr_of_the_episodes_drawn():
    mdp = world()
    dataset, policy = log_of(mdp, episodes=12, seed=0, max_steps=6), policy_near_uniform(mdp, 1)
    problem, q = problem_of(dataset), exact_q(mdp, policy)
    (part,) = corrected(problem, policy, propensities_of(dataset), q, rng=rng())
    drawn = np.array([3, 0, 0, 2, 1, 0, 1, 1, 1, 0, 2, 1])
    weights = drawn[dataset.episodes].astype(float)
    from problems import rows_of  # noqa: PLC0415

    bootstrap_t = rows_of(dataset, weights=weights, propensities=dataset.propensities)
    wdr = estimate(DoublyRobust(q, normalised=True), bootstrap_t, policy)
    once = np.ones_like(drawn)
    replicates = _replicates(Episodes.of(problem), part, np.stack([drawn, once]))
    assert replicates[0] == pytest.approx(wdr.values)
    assert replicates[1] == pytest.approx(estimate(DoublyRobust(q, normalised=True), dataset, policy).values)


def test_the_blend_is_the_least_point_of_the_simplex():
    draw = rng(3)
    for _ in range(5):
        deviations, bias = draw.normal(size=(40, 6)) * draw.uniform(0.1, 2, 6), draw.normal(size=6)
        matrix = deviations.T @ deviations * 40 / 39 + np.outer(bias, bias)
        best = minimize(
            lambda x, m=matrix: x @ m @ x,
            np.full(6, 1 / 6),
            jac=lambda x, m=matrix: 2 * m @ x,
            bounds=[(0, 1)] * 6,
            constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
            method="SLSQP",
            options={"ftol": 1e-14},
        )
        found = _blend(deviations, bias)
        assert found.sum() == pytest.approx(1)
        assert (found >= 0).all()
        assert found @ matrix @ found <= best.fun + 1e-9
    assert _blend(np.zeros((4, 3)), np.zeros(3)).sum() == pytest.approx(1)


def test_long_episodes_are_blended_at_a_few_steps():
    mdp = world(0, ending=0.01)
    dataset, policy = log_of(mdp, episodes=10, seed=0, max_steps=200), policy_near_uniform(mdp, 1, mildness=0.9)
    found = estimate(Magic(FQE(Tabular()), returns=5, replicates=50), dataset, policy)
    assert np.isfinite(found.values).all()
