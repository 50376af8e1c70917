import numpy as np
import pytest
from scipy.optimize import linprog

from checkrein import AtLeast, AtMost, Dataset, MixturePolicy, Problem, TabularPolicy
from checkrein.base.errors import ArgumentError
from checkrein.evaluation import confounding
from checkrein.evaluation.confounded_decisions import ConfoundedDecisions, worst_ratio
from checkrein.evaluation.confounding import ConfoundedTables, tilt
from checkrein.evaluation.refits import Refits
from checkrein.functions import Tabular
from evaluation.hidden import HiddenWorld, worst_mean, worst_value, worst_world

ODDS = (1.0, 1.2, 2.0, 7.0)


def problem_of(log, discount=0.9):
    return Problem(
        log,
        objective=None,
        constraints=[AtMost("cost", 1.0), AtLeast("cost", 0.0, name="floor")],
        discount=discount,
    )


def deterministic(rng, states=3, actions=2):
    return TabularPolicy(np.eye(actions)[rng.integers(actions, size=states)])


@pytest.mark.parametrize("odds", ODDS)
def test_the_tilt_is_the_solution_of_the_linear_program(odds):
    rng = np.random.default_rng(0)
    for _ in range(20):
        sizes = rng.integers(1, 8, size=4)
        groups = rng.permutation(np.repeat(np.arange(4), sizes))
        outcomes = np.round(rng.normal(size=groups.size), 1)  # with ties
        shares = rng.uniform(0.1, 1, groups.size)
        shares /= np.bincount(groups, shares)[groups]
        propensities = rng.uniform(0.05, 1, 4)
        found = tilt(outcomes, shares, groups, propensities, odds)
        for group in range(4):
            rows = groups == group
            expected, _ = worst_mean(outcomes[rows], shares[rows], propensities[group], odds)
            assert found.shares[rows].sum() == pytest.approx(1, abs=1e-12)
            assert found.shares[rows] @ outcomes[rows] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_robust_values_equal_value_iteration_with_a_linear_program_for_each_pair(discount):
    rng = np.random.default_rng(1)
    for _ in range(3):
        world, policy = HiddenWorld.draw(rng), TabularPolicy(rng.dirichlet([1, 1], size=3))
        confounded = ConfoundedTables(problem_of(world.log(), discount), policy)
        for odds in (1.3, 3.0):
            expected, _ = worst_value(world, policy, discount, odds)
            assert confounded.worst(1, odds).value == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_many_states_are_solved_for_sparsely_with_the_same_result(discount, monkeypatch):
    rng = np.random.default_rng(1)
    world, policy = HiddenWorld.draw(rng), TabularPolicy(rng.dirichlet([1, 1], size=3))
    dense = ConfoundedTables(problem_of(world.log(), discount), policy).worst(1, 2.0)
    monkeypatch.setattr(confounding, "DENSE_STATES", 0)
    sparse = ConfoundedTables(problem_of(world.log(), discount), policy).worst(1, 2.0)
    assert sparse.value == pytest.approx(dense.value, rel=1e-8)
    assert sparse.influence == pytest.approx(dense.influence, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_what_is_true_under_a_hidden_factor_lies_within_the_bounds_of_its_strength(discount):
    rng = np.random.default_rng(2)
    for _ in range(60):
        world = HiddenWorld.draw(rng, actions=3)
        policy = TabularPolicy(rng.dirichlet([1, 1, 1], size=3))
        confounded, truth = ConfoundedTables(problem_of(world.log(), discount), policy), world.truth(policy, discount)
        assert -confounded.worst(2, world.odds).value <= truth + 1e-9
        assert truth <= confounded.worst(1, world.odds).value + 1e-9


@pytest.mark.parametrize("odds", [1.3, 2.5])
@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_the_worst_hidden_factor_attains_the_bound_and_leaves_the_log_as_it_is(odds, discount):
    rng = np.random.default_rng(3)
    for _ in range(4):
        world, policy = HiddenWorld.draw(rng, actions=3), deterministic(rng, actions=3)
        worst = worst_world(world, policy, discount, odds)
        np.testing.assert_allclose(worst.observed, world.observed, atol=1e-12)
        np.testing.assert_allclose(worst.marginal, world.marginal, atol=1e-12)
        chosen = policy.table.astype(bool)
        ratio = (worst.behavior / (1 - worst.behavior) * ((1 - worst.marginal) / worst.marginal)[:, None])[:, 1][chosen]
        np.testing.assert_allclose(ratio, 1 / odds)
        confounded = ConfoundedTables(problem_of(worst.log(), discount), policy)
        truth = worst.truth(policy, discount)
        assert confounded.worst(1, odds).value == pytest.approx(truth, abs=1e-6)
        assert confounded.worst(1, 1 + 0.9 * (odds - 1)).value < truth


def test_without_a_hidden_factor_it_is_the_plain_value_and_it_grows_with_the_factor():
    rng = np.random.default_rng(4)
    for _ in range(5):
        world = HiddenWorld.draw(rng)
        problem, policy = problem_of(world.log()), TabularPolicy(rng.dirichlet([1, 1], size=3))
        values, influence = Refits.of(problem, policy, Tabular()).point()
        confounded = ConfoundedTables(problem, policy)
        for column in (1, 2):
            one = confounded.worst(column, 1.0)
            assert one.value == pytest.approx(values[column], abs=1e-10)
            np.testing.assert_allclose(one.influence, influence[:, column], atol=1e-10)
            found = [confounded.worst(column, odds).value for odds in (1.0, 1.01, 1.5, 4.0, 100.0)]
            assert all(np.diff(found) > 0)
            assert ConfoundedTables(problem, policy).worst(column, 1.5).value == pytest.approx(found[2], abs=1e-9)


def test_the_influence_of_an_episode_is_how_far_its_weight_moves_the_worst_value():
    world = HiddenWorld.draw(np.random.default_rng(5))
    log, policy, step = world.log(), TabularPolicy(np.array([[0.3, 0.7], [1, 0], [0.5, 0.5]])), 1e-5
    found = ConfoundedTables(problem_of(log), policy).worst(1, 1.7)
    total = log.weights.sum()
    for row in range(0, len(log), 3):
        weights = log.weights.copy()
        weights[row] *= 1 + step
        moved = ConfoundedTables(problem_of(reweighed(log, weights)), policy).worst(1, 1.7).value
        assert (moved - found.value) / step * total / log.weights[row] == pytest.approx(found.influence[row], abs=2e-3)


def reweighed(log, weights):
    return Dataset.from_arrays(
        states=log.states,
        actions=log.actions,
        next_states=log.next_states,
        costs={"cost": log.cost("cost")},
        terminals=log.terminals,
        episodes=log.episodes,
        weights=weights,
        initial_states=log.initial_states,
        initial_weights=log.initial_weights,
        n_states=log.n_states,
        n_actions=log.n_actions,
    )


def test_an_action_that_behavior_always_takes_has_no_hidden_part():
    log = Dataset.from_arrays(
        states=[0] * 4,
        actions=[0] * 4,
        next_states=[0] * 4,
        costs={"cost": [0.0, 0.0, 1.0, 3.0]},
        terminals=[True] * 4,
        episodes=range(4),
        n_states=1,
        n_actions=2,
    )
    found = ConfoundedTables(problem_of(log), TabularPolicy(np.array([[1.0, 0.0]])))
    assert found.worst(1, 50.0).value == pytest.approx(1.0)


def test_members_of_a_mixture_are_each_at_their_worst():
    rng = np.random.default_rng(6)
    world, members = HiddenWorld.draw(rng), tuple(deterministic(rng) for _ in range(2))
    problem = problem_of(world.log())
    mixed = ConfoundedTables(problem, MixturePolicy(members, np.array([0.25, 0.75]))).worst(1, 2.0)
    alone = [ConfoundedTables(problem, member).worst(1, 2.0) for member in members]
    assert mixed.value == pytest.approx(0.25 * alone[0].value + 0.75 * alone[1].value)
    np.testing.assert_allclose(mixed.influence, 0.25 * alone[0].influence + 0.75 * alone[1].influence)


def test_weighted_means_of_single_decisions_equal_the_linear_program():
    rng = np.random.default_rng(7)
    for _ in range(30):
        n = int(rng.integers(1, 9))
        outcomes, least = np.round(rng.normal(size=n), 1), rng.uniform(0.1, 1, n)
        most = least + rng.uniform(0, 2, n) * rng.integers(0, 2, n)
        found, weights = worst_ratio(outcomes, least, most)
        # with x = weights / total and t = 1 / total (Charnes & Cooper 1962)
        found_lp = linprog(
            np.append(-outcomes, 0.0),
            A_ub=np.vstack([np.hstack([-np.eye(n), least[:, None]]), np.hstack([np.eye(n), -most[:, None]])]),
            b_ub=np.zeros(2 * n),
            A_eq=np.append(np.ones(n), 0.0)[None],
            b_eq=[1.0],
            method="highs",
        )
        assert found == pytest.approx(-found_lp.fun, abs=1e-9)
        assert (weights >= least - 1e-12).all()
        assert (weights <= most + 1e-12).all()


def decisions(episodes, odds, seed):
    """Features, a hidden factor that changes the odds of action 1 by `odds` or 1 / odds, and what actions cost."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(episodes, 2))
    share = 1 / (1 + np.exp(-0.5 * features[:, 0]))
    # the factor is 1 so often that behavior's share stays what it is
    high, low = (1 / (1 + (1 - share) / share * by) for by in (1 / odds, odds))
    factor = rng.random(episodes) < (share - low) / (high - low)
    actions = 1 * (rng.random(episodes) < np.where(factor, high, low))
    means = 1 + features @ np.array([0.5, -0.3]) + 0.2 * actions
    costs = means + np.where(factor, -0.5, 0.5) + 0.3 * rng.normal(size=episodes)
    expected = (share - low) / (high - low)
    truth = float((1 + features @ np.array([0.5, -0.3]) + 0.2 + 0.5 - expected).mean())  # of action 1
    log = Dataset.from_arrays(
        states=features,
        actions=actions,
        next_states=features,
        costs={"cost": costs},
        terminals=np.ones(episodes, dtype=bool),
        episodes=np.arange(episodes),
    )
    return log, truth


class Always:
    """Always takes one action."""

    def __init__(self, action):
        self.action = action

    def probabilities(self, states):
        return np.tile(np.eye(2)[self.action], (len(states), 1))


def test_single_decisions_over_features_are_bounded_and_only_by_factors_that_are_strong_enough():
    log, truth = decisions(20_000, odds=2.0, seed=8)
    found = ConfoundedDecisions(problem_of(log), Always(1))
    plain, weak, strong = (found.worst(1, odds) for odds in (1.0, 1.1, 2.0))
    error = strong.influence.std() / np.sqrt(len(log))
    assert plain.value < truth - 5 * error  # the log is misleading
    assert weak.value < truth
    assert truth < strong.value + 2 * error
    assert strong.value - truth < 0.3
    assert abs(strong.influence.mean()) < 1e-10


def test_features_over_several_steps_are_refused_in_words():
    rng = np.random.default_rng(0)
    log = Dataset.from_arrays(
        states=rng.normal(size=(6, 1)),
        actions=[0, 1] * 3,
        next_states=rng.normal(size=(6, 1)),
        costs={"cost": np.ones(6)},
        terminals=[False, True] * 3,
        episodes=np.repeat(np.arange(3), 2),
    )
    with pytest.raises(ArgumentError, match="up to 2 steps: group the features into finite states"):
        ConfoundedDecisions(problem_of(log), Always(1))
