import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.base.errors import ArgumentError
from checkrein.theory import forest_dimension, linear_dimension, relu_dimension, tabular_dimension, tree_dimension
from theory.monotone import require_growing

few = st.integers(1, 30)


def shattered(values, targets):
    """Whether some function (a row of values) lies on every combination of sides of the targets."""
    return len({tuple(row) for row in (np.asarray(values) > targets)}) == 2 ** len(targets)


def test_tables_and_linear_functions_have_the_dimension_of_their_space():
    assert tabular_dimension(n_states=3, n_actions=2) == 6
    assert linear_dimension(n_features=3, n_actions=2) == 6
    tables = list(itertools.product([-1.0, 1.0], repeat=6))
    assert shattered(tables, np.zeros(6))  # six free entries take any signs


@given(few, few, few)
def test_trees_grow_with_leaves_features_and_actions_and_shatter_as_many_points_as_leaves(
    leaves, n_features, n_actions
):
    arguments = {"leaves": leaves, "n_features": n_features, "n_actions": n_actions}
    require_growing(tree_dimension, arguments, list(arguments))
    assert tree_dimension(**arguments) >= leaves * n_actions  # a point in each leaf takes any side
    assert tree_dimension(**arguments) == n_actions * tree_dimension(leaves=leaves, n_features=n_features)


def test_a_single_leaf_is_a_constant_which_has_dimension_one():
    assert tree_dimension(leaves=1, n_features=5) == 1


@pytest.mark.parametrize("seed", range(5))
def test_no_two_leaves_on_one_feature_shatter_more_points_than_the_bound(seed):
    n = tree_dimension(leaves=2, n_features=1) + 1
    targets = np.random.default_rng(seed).normal(size=n)
    levels = np.sort(np.concatenate([targets - 1e-6, targets + 1e-6]))
    stumps = [
        np.where(np.arange(n) < split, low, high)
        for split, low, high in itertools.product(range(n + 1), levels, levels)
    ]
    assert not shattered(stumps, targets)
    assert shattered([np.array(pair) for pair in itertools.product(levels, repeat=2)], targets[:2])


@given(few, few, few, few)
def test_forests_grow_with_everything_and_contain_their_trees(n_trees, leaves, n_features, n_actions):
    arguments = {"n_trees": n_trees, "leaves": leaves, "n_features": n_features, "n_actions": n_actions}
    require_growing(forest_dimension, arguments, list(arguments))
    one = {name: value for name, value in arguments.items() if name != "n_trees"}
    assert forest_dimension(**arguments) >= tree_dimension(**one)


@given(few, st.lists(few, min_size=1, max_size=4), few, st.integers(1, 5))
def test_networks_grow_in_every_layer_and_count_at_least_their_weights(inputs, hidden, n_actions, n_networks):
    arguments = {"inputs": inputs, "n_actions": n_actions, "n_networks": n_networks}
    require_growing(lambda **changed: relu_dimension(hidden=hidden, **changed), arguments, list(arguments))
    base = relu_dimension(hidden=hidden, **arguments)
    for layer in range(len(hidden)):
        wider = [width + (place == layer) for place, width in enumerate(hidden)]
        assert relu_dimension(hidden=wider, **arguments) > base
    assert relu_dimension(hidden=[*hidden, hidden[-1]], **arguments) > base
    widths = [inputs, *hidden, n_actions]
    assert base >= n_networks * sum((a + 1) * b for a, b in itertools.pairwise(widths))


def test_the_theorem_of_bartlett_and_others_worked_by_hand():
    # 2 inputs, 3 hidden units, 1 output: 9 weights up to layer 1, 13 up to layer 2; R = 3 + 2
    expected = 2 + 22 * math.log2(4 * math.e * 5 * math.log2(2 * math.e * 5))
    assert relu_dimension(inputs=2, hidden=[3]) == math.floor(expected) == 178


def test_the_growth_of_networks_is_that_of_the_theorem():
    """The count of sign patterns behind the bound is below 2^n one point beyond it."""
    n = relu_dimension(inputs=2, hidden=[3]) + 1
    layers = [(9, 3, 1), (13, 1, 2)]  # weights so far, units, degree
    log_patterns = sum(1 + w * math.log2(2 * math.e * n * k * degree / w) for w, k, degree in layers)
    assert log_patterns < n


def test_a_network_without_hidden_layers_is_linear():
    assert relu_dimension(inputs=4, hidden=[], n_actions=3) == linear_dimension(n_features=5, n_actions=3)


@pytest.mark.parametrize("name", ["leaves", "n_features", "n_actions"])
def test_a_count_below_one_is_named(name):
    with pytest.raises(ArgumentError, match=name):
        tree_dimension(**{"leaves": 3, "n_features": 2, "n_actions": 2} | {name: 0})


def test_a_layer_without_units_is_named():
    with pytest.raises(ArgumentError, match=r"hidden\[1\]"):
        relu_dimension(inputs=2, hidden=[3, 0])
