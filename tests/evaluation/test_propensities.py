import numpy as np
import polars as pl
import pytest

from checkrein import Dataset, GreedyPolicy, MixturePolicy, SoftminPolicy, TabularPolicy
from checkrein.base.errors import ArgumentError, DataError
from checkrein.evaluation import Propensities, evaluate, propensities_of, soften
from checkrein.functions.tabular import TabularQ
from evaluation.references import COSTS, log_of, policy_near_uniform, world
from problems import rows_of


def observed_log(episodes=300, steps=5, seed=0):
    """Two features; the first alone decides how likely action 1 is."""
    rng = np.random.default_rng(seed)
    number = np.repeat(np.arange(episodes), steps)
    states = rng.normal(size=(number.size, 2))
    probabilities = 1 / (1 + np.exp(-2 * states[:, 0]))
    actions = (rng.random(number.size) < probabilities).astype(int)
    dataset = Dataset.from_arrays(
        states=states,
        actions=actions,
        next_states=rng.normal(size=states.shape),
        costs={"c": rng.random(number.size)},
        terminals=np.tile(np.arange(steps) == steps - 1, episodes),
        episodes=number,
    )
    return dataset, np.where(actions == 1, probabilities, 1 - probabilities)


def test_the_logs_own_come_first_then_counts_then_a_logistic_model():
    mdp = world()
    logged = log_of(mdp, episodes=50, seed=0)
    assert propensities_of(logged).values == pytest.approx(1 / 3)
    assert "logged" in propensities_of(logged).source
    silent = rows_of(logged)
    assert "counts" in propensities_of(silent).source
    assert "logistic" in propensities_of(observed_log()[0]).source


def test_counts_are_the_shares_of_actions_in_each_state():
    dataset = rows_of(log_of(world(), episodes=50, seed=0))
    values = propensities_of(dataset).values
    for row in range(0, len(dataset), 7):
        here = dataset.states == dataset.states[row]
        assert values[row] == pytest.approx(np.mean(dataset.actions[here] == dataset.actions[row]))


@pytest.mark.parametrize("method", ["logistic", "trees"])
def test_estimates_come_close_to_what_behavior_did_and_are_calibrated(method):
    dataset, truth = observed_log()
    found = propensities_of(dataset, method)
    assert np.abs(found.values - truth).mean() < (0.03 if method == "logistic" else 0.08)
    table = found.calibration()
    assert table["rows"].sum() == 2 * len(dataset)
    well = table.filter(pl.col("rows") > 100)
    assert well["observed"].to_numpy() == pytest.approx(well["probability"].to_numpy(), abs=0.1)


def test_logged_propensities_are_held_against_the_log():
    mdp = world()
    honest = log_of(mdp, episodes=2000, seed=0)
    found = propensities_of(honest)
    assert found.mean_inverse == pytest.approx(3)
    table = found.calibration()
    assert table["observed"].to_numpy() == pytest.approx(table["probability"].to_numpy(), abs=0.02)
    wrong = propensities_of(rows_of(honest, propensities=np.full(len(honest), 0.9)))
    assert wrong.mean_inverse == pytest.approx(1 / 0.9)
    assert abs(wrong.calibration()["observed"][0] - 0.9) > 0.5


def test_trees_ask_no_model_about_an_episode_it_saw():
    dataset, _ = observed_log(episodes=60)
    same = propensities_of(dataset, "trees").values
    flipped = dataset.episodes == 17
    other = Dataset.from_arrays(
        states=dataset.states,
        actions=np.where(flipped, 1 - dataset.actions, dataset.actions),
        next_states=dataset.next_states,
        costs={"c": dataset.cost("c")},
        terminals=dataset.terminals,
        episodes=dataset.episodes,
    )
    assert propensities_of(other, "trees").values[flipped] == pytest.approx(1 - same[flipped])


def test_an_impossible_action_that_was_taken_is_refused_by_row():
    dataset = rows_of(log_of(world(), episodes=5, seed=0))
    from checkrein.evaluation.propensities import _checked  # noqa: PLC0415

    values = np.full(len(dataset), 0.5)
    values[3] = 0.0
    with pytest.raises(DataError, match=r"in row 3 \(episode \d+\) is 0"):
        _checked(dataset, values, "as estimated", estimated=True, probabilities=lambda: np.zeros((1, 1)))


def test_methods_that_do_not_fit_are_refused():
    dataset, _ = observed_log(episodes=5)
    with pytest.raises(ArgumentError, match="counts need finite states"):
        propensities_of(dataset, "counts")
    with pytest.raises(ArgumentError, match="no propensities"):
        propensities_of(dataset, "logged")
    with pytest.raises(ArgumentError, match="logged, counts, logistic, trees"):
        propensities_of(dataset, "guess")


def test_a_greedy_policy_is_softened_to_the_softmin_of_its_values():
    q = TabularQ(np.random.default_rng(0).random((5, 3, 1)))
    greedy = GreedyPolicy(q)
    soft = soften(MixturePolicy((greedy, greedy), [0.5, 0.5]), 0.3)
    states = np.arange(5)
    assert soft.probabilities(states) == pytest.approx(SoftminPolicy(q, 0.3).probabilities(states))
    with pytest.raises(ArgumentError, match="TabularPolicy has no values to soften"):
        soften(TabularPolicy.uniform(5, 3), 0.3)


def test_only_what_weighs_values_the_softened_policy_and_says_so():
    dataset = log_of(world(), episodes=40, seed=0)
    greedy = GreedyPolicy(TabularQ(np.random.default_rng(0).random((5, 3, 1))))
    names = ["fqe", "naive", "pdis", "dr"]
    hard = evaluate(greedy, dataset, costs=COSTS, discount=0.9, estimators=names)
    soft = evaluate(greedy, dataset, costs=COSTS, discount=0.9, estimators=names, temperature=0.5)
    alone = evaluate(soften(greedy, 0.5), dataset, costs=COSTS, discount=0.9, estimators=names)
    assert soft["fqe"].values == pytest.approx(hard["fqe"].values)
    assert soft["pdis"].values == pytest.approx(alone["pdis"].values)
    assert "softened at temperature 0.5" in soft["dr"].note
    assert soft["fqe"].note == ""


def test_propensities_of_ones_own_can_be_given():
    dataset = rows_of(log_of(world(), episodes=40, seed=0))
    policy = policy_near_uniform(world(), 1)
    own = propensities_of(rows_of(dataset, propensities=np.full(len(dataset), 1 / 3)))
    assert isinstance(own, Propensities)
    given = evaluate(policy, dataset, costs=COSTS, discount=0.9, estimators=["is"], propensities=own)
    counted = evaluate(policy, dataset, costs=COSTS, discount=0.9, estimators=["is"], propensities="counts")
    assert given.value("is", "c") != counted.value("is", "c")
    assert given.propensities is own
