"""The choice of features by what they foretell of held episodes."""

import numpy as np
import pytest

from checkrein import AtMost, Dataset, Problem
from checkrein.evaluation.doubly_robust import folds_of
from checkrein.evaluation.feature_choice import choose_features, forecast_errors
from checkrein.evaluation.feature_one_step import FeatureNuisances, FeatureRows
from checkrein.functions.learned_features import learn_features
from checkrein.problem import Episodes
from numeric_worlds import logged


def decided_once(episodes, cost, *, seed=0):
    """Single decisions whose cost is a function of the state (n, 2), with noise."""
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(episodes, 2))
    dataset = Dataset.from_arrays(
        states=states,
        actions=rng.integers(2, size=episodes),
        next_states=states,
        costs={"cost": cost(states) + 0.1 * rng.normal(size=episodes), "dose": rng.random(episodes)},
        terminals=np.ones(episodes, bool),
        episodes=np.arange(episodes),
        n_actions=2,
    )
    return Problem(dataset, objective="cost", constraints=[AtMost("dose", 1.0)], discount=1.0)


@pytest.mark.parametrize(
    ("cost", "products", "network"),
    [
        (lambda x: x[:, 0] - x[:, 1], False, False),
        (lambda x: x[:, 0] * x[:, 1], True, False),
        (lambda x: 1.0 * (np.sin(4 * x[:, 0]) > 0), True, True),
    ],
)
def test_no_more_is_chosen_than_costs_ask_for(cost, products, network):
    found = [choose_features(decided_once(600, cost, seed=seed), np.random.default_rng(0)) for seed in range(3)]
    assert sum(one.products == products and (one.second.shape[1] > 0) == network for one in found) >= 2


def cut_off(problem):
    """The same log without its ends."""
    log = problem.dataset
    kept = {name: getattr(log, name) for name in ("states", "actions", "next_states", "episodes", "steps", "n_actions")}
    costs = {name: log.cost(name) for name in ("ill", "dose")}
    dataset = Dataset.from_arrays(**kept, costs=costs, terminals=np.zeros(len(log.actions), bool))
    return Problem(dataset, objective="ill", constraints=problem.constraints, discount=0.9)


@pytest.mark.parametrize("cut", [False, True])
def test_what_is_foretold_is_what_followed_by_a_plain_loop(cut):
    """Of episodes that were cut off: of their first halves, with V after the last row."""
    log = Episodes.of(cut_off(logged(3, 60)) if cut else logged(3, 60))
    fold = folds_of(log, 3, np.random.default_rng(0))
    mine, held = log.part(fold != 0), log.part(fold == 0)
    features = learn_features(Episodes.of(mine), np.random.default_rng(0), "products")
    nuisances, rows = FeatureNuisances(mine, features), FeatureRows.of(held, features)
    weights = nuisances.follow(nuisances.behavior).weights
    low, high = nuisances.value_range(nuisances.behavior)
    squares = []
    for begin, length in zip(rows.log.begins, rows.log.lengths, strict=True):
        last = features(rows.log.next_states[begin + length - 1][None])
        chances = nuisances.behavior.of_features(last)[0]
        beyond = sum(p * np.clip(last[0] @ w, low, high) for p, w in zip(chances, weights, strict=True))
        for row in range(begin, begin + (length + 1) // 2 if cut else begin + length):
            ahead = np.arange(begin + length - row)
            followed = rows.log.discount**ahead @ rows.log.row_costs[row : begin + length]
            if cut:
                followed += rows.log.discount**ahead.size * beyond
            q = np.clip(rows.own[row] @ weights[rows.log.actions[row]], low, high)
            squares.append((followed - q) ** 2)
    assert forecast_errors(mine, held, features) == pytest.approx(np.mean(squares, axis=0), rel=1e-9)
