import numpy as np
import pytest

from checkrein import MixturePolicy, TabularPolicy
from checkrein.base.errors import DataError
from checkrein.evaluation import evaluate
from checkrein_studies import graph
from evaluation.references import COSTS, by_loops, log_of, policy_near_uniform, world
from problems import rows_of

WEIGHED = ["naive", "is", "pdis", "wis", "cwpdis"]


def estimates(policy, dataset, names=WEIGHED, discount=0.9, costs=COSTS, **kwargs):
    return evaluate(policy, dataset, costs=costs, discount=discount, estimators=names, **kwargs)


@pytest.mark.parametrize("max_steps", [4, 1000])
def test_all_equal_a_plain_loop_over_episodes_of_any_length_also_for_mixtures(max_steps):
    mdp = world()
    dataset = log_of(mdp, episodes=40, seed=1, max_steps=max_steps)
    one, other = policy_near_uniform(mdp, 1), policy_near_uniform(mdp, 2, mildness=0.0)
    mixture = MixturePolicy((one, MixturePolicy((other, one), [0.6, 0.4])), [0.3, 0.7])
    for policy in (one, other, mixture):
        found = estimates(policy, dataset)
        for name, values in by_loops(dataset, policy, 0.9).items():
            assert [found.value(name, cost) for cost in COSTS] == pytest.approx(values, rel=1e-9)


def test_a_mixture_of_one_policy_with_itself_is_that_policy():
    mdp = world()
    dataset, policy = log_of(mdp, episodes=30, seed=0), policy_near_uniform(mdp, 3)
    names = [*WEIGHED, "dr", "wdr", "magic", "fqe", "lstdq", "model"]
    alone = estimates(policy, dataset, names)
    twice = estimates(MixturePolicy((policy, policy), [0.25, 0.75]), dataset, names)
    for name in names:
        assert twice[name].values == pytest.approx(alone[name].values, rel=1e-9)


def test_a_policy_that_acts_like_behavior_weighs_nothing_and_agrees_with_the_naive_mean():
    mdp = world()
    dataset = log_of(mdp, episodes=30, seed=0)
    found = estimates(TabularPolicy.uniform(mdp.n_states, mdp.n_actions), dataset)
    for name in WEIGHED:
        assert found[name].values == pytest.approx(found["naive"].values)
        assert found[name].standard_errors() == pytest.approx(found["naive"].standard_errors())
    assert found["is"].effective == pytest.approx(30)
    assert found["is"].largest == pytest.approx(1 / 30)


def test_a_constant_cost_over_a_fixed_length_is_exact_for_whatever_normalises_itself():
    mdp = graph.graph(7)
    logged = graph.log(mdp, graph.constant_policy(mdp, 0.4), episodes=200, rng=np.random.default_rng(0))
    dataset = logged.with_costs({"one": np.ones(len(logged))})
    names = ["wis", "cwpdis", "wdr", "magic", "dr", "fqe", "model"]
    found = estimates(graph.constant_policy(mdp, 0.8), dataset, names, costs=["one"])
    for name in names:
        assert found.value(name, "one") == pytest.approx((1 - 0.9**7) / 0.1)
    assert found["wis"].standard_errors() == pytest.approx(0, abs=1e-12)


def test_the_cost_of_a_terminal_step_counts():
    mdp = graph.graph(4)
    logged = graph.log(mdp, graph.constant_policy(mdp, 0.5), episodes=200, rng=np.random.default_rng(0))
    dataset = logged.with_costs({"end": 5.0 * logged.terminals})
    names = ["wis", "cwpdis", "naive", "fqe", "lstdq", "model", "wdr"]
    found = estimates(graph.constant_policy(mdp, 0.4), dataset, names, costs=["end"])
    for name in names:
        assert found.value(name, "end") == pytest.approx(5 * 0.9**3)


def test_neither_the_order_of_rows_nor_the_numbers_of_episodes_matter():
    mdp = world()
    dataset, policy = log_of(mdp, episodes=30, seed=4), policy_near_uniform(mdp, 5)
    order = np.random.default_rng(0).permutation(len(dataset))
    renumbered = 7 * dataset.episodes[order] - 3
    shuffled = rows_of(dataset, order, episodes=renumbered, propensities=dataset.propensities[order])
    names = [*WEIGHED, "dr", "wdr", "magic", "fqe", "model"]
    before, after = estimates(policy, dataset, names), estimates(policy, shuffled, names)
    for name in names:
        assert after[name].values == pytest.approx(before[name].values, rel=1e-9)
        assert after[name].standard_errors() == pytest.approx(before[name].standard_errors(), rel=1e-9, nan_ok=True)
    reversed_ = rows_of(dataset, episodes=-dataset.episodes, propensities=dataset.propensities)
    backwards = estimates(policy, reversed_)
    for name in WEIGHED:
        assert backwards[name].values == pytest.approx(before[name].values, rel=1e-9)


def test_an_episode_of_weight_two_counts_as_two():
    mdp = world()
    dataset, policy = log_of(mdp, episodes=20, seed=4), policy_near_uniform(mdp, 5)
    doubled = dataset.episodes < 5
    weighed = rows_of(dataset, weights=1.0 + doubled, propensities=dataset.propensities)
    order = np.append(np.arange(len(dataset)), np.flatnonzero(doubled))
    numbers = np.append(dataset.episodes, 100 + dataset.episodes[doubled])
    repeated = rows_of(dataset, order, episodes=numbers, propensities=dataset.propensities[order])
    for name in WEIGHED:
        assert estimates(policy, weighed)[name].values == pytest.approx(estimates(policy, repeated)[name].values)


def test_a_policy_that_no_episode_follows_is_said_to_be_so():
    mdp = graph.graph(5)
    dataset = graph.log(mdp, graph.constant_policy(mdp, 0.01), episodes=5, rng=np.random.default_rng(1))
    found = estimates(graph.constant_policy(mdp, 1.0), dataset, costs=["reward"])
    assert np.isnan(found.value("wis", "reward"))
    assert found.value("is", "reward") == 0
    assert "no logged episode" in found["wis"].note
    assert "step 0" in found["cwpdis"].note


def test_rows_of_one_episode_that_weigh_differently_are_refused_by_row():
    mdp = world()
    dataset = log_of(mdp, episodes=5, seed=0)
    weights = np.ones(len(dataset))
    row = int(np.flatnonzero(np.diff(dataset.episodes) == 0)[0]) + 1
    weights[row] = 3.0
    uneven = rows_of(dataset, weights=weights, propensities=dataset.propensities)
    with pytest.raises(DataError, match=f"row {row} of episode .* weighs 3, but .* 1"):
        estimates(policy_near_uniform(mdp, 0), uneven)


def test_without_episodes_there_is_nothing_to_weigh():
    dataset = world().exact_log()
    with pytest.raises(DataError, match="pass episodes="):
        estimates(TabularPolicy.uniform(5, 3), dataset)
