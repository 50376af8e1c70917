"""The pseudo-dimension of each function class, or an explicit bound on it; Q(x, a) is one function of x and a."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from checkrein.base.arrays import require_counts


def tabular_dimension(*, n_states: int, n_actions: int) -> int:
    """Return that of tables: S A, exactly, for each entry is free."""
    require_counts(n_states=n_states, n_actions=n_actions)
    return n_states * n_actions


def linear_dimension(*, n_features: int, n_actions: int) -> int:
    """Return that of linear functions with own weights for each action: A d, exactly.

    It is the dimension of the vector space (Anthony & Bartlett 1999, Theorem 11.4); d counts the constant feature too.
    """
    require_counts(n_features=n_features, n_actions=n_actions)
    return n_features * n_actions


def tree_dimension(*, leaves: int, n_features: int, n_actions: int = 1) -> int:
    """Bound that of regression trees with at most so many leaves, one tree for each action.

    On n points a tree of L leaves has one of Catalan(L - 1) shapes, at each of its L - 1 splits one of d features and
    one of n + 1 thresholds that differ, and in a leaf of k points one of k + 1 values that differ among the targets:
    at most Catalan(L - 1) (d (n + 1))^(L - 1) (1 + n / L)^L patterns. Points with fewer than 2^n patterns are not
    shattered (the partitions are counted as in Gyorfi et al. 2002, chapter 13). The trees of different actions share
    nothing: their dimensions add up.
    """
    require_counts(leaves=leaves, n_features=n_features, n_actions=n_actions)

    def patterns(n: int) -> float:
        return _log_structures(n, leaves, n_features) + leaves * math.log2(1 + n / leaves)

    return n_actions * _largest(patterns)


def forest_dimension(*, n_trees: int, leaves: int, n_features: int, n_actions: int = 1) -> int:
    """Bound that of averages of so many regression trees, a forest for each action.

    Given the structure of N trees, their averages are a vector space of dimension at most D = N (L - 1) + 1, which has
    at most (e n / D)^D sign patterns on n >= D points (Sauer); the structures are counted as in `tree_dimension`.
    """
    require_counts(n_trees=n_trees, leaves=leaves, n_features=n_features, n_actions=n_actions)
    if n_trees == 1:
        return tree_dimension(leaves=leaves, n_features=n_features, n_actions=n_actions)
    space = n_trees * (leaves - 1) + 1

    def patterns(n: int) -> float:
        signs = float(n) if n <= space else space * math.log2(math.e * n / space)
        return n_trees * _log_structures(n, leaves, n_features) + signs

    return n_actions * _largest(patterns)


def relu_dimension(*, inputs: int, hidden: Sequence[int], n_actions: int = 1, n_networks: int = 1) -> int:
    """Bound that of ReLU networks with one output for each action, or of the mean of several of the same shape.

    L + w log2(4 e R log2(2 e R)), with R = sum_i i k_i over the layers' units k_i (of the outputs, a row sees one)
    and w = sum_i W_i over the weights and biases up to layer i (Bartlett, Harvey, Liaw & Mehrabian 2019, Theorem 7,
    at two linear pieces): the explicit form of O(W L log W). Targets only shift the output polynomials, so it bounds
    the pseudo-dimension as it does the VC dimension. Without hidden layers the class is linear.
    """
    require_counts(inputs=inputs, n_actions=n_actions, n_networks=n_networks)
    require_counts(**{f"hidden[{i}]": width for i, width in enumerate(hidden)})
    if not hidden:
        return linear_dimension(n_features=inputs + 1, n_actions=n_actions)
    widths = [inputs, *hidden, n_actions]
    sizes = [(before + 1) * after for before, after in pairwise(widths)]
    weights = n_networks * sum(sum(sizes[: i + 1]) for i in range(len(sizes)))
    units = [n_networks * width for width in hidden] + [1]
    polynomials = 2 * math.e * sum(i * k for i, k in enumerate(units, 1))
    return math.floor(len(units) + weights * math.log2(2 * polynomials * math.log2(polynomials)))


def _log_structures(n: int, leaves: int, n_features: int) -> float:
    """Return log2 of how many ways trees of so many leaves part n points, at the most."""
    splits = leaves - 1
    catalan = math.lgamma(2 * splits + 1) - math.lgamma(splits + 1) - math.lgamma(splits + 2)
    return catalan / math.log(2) + splits * math.log2(n_features * (n + 1))


def _largest(patterns: Callable[[int], float]) -> int:
    """Return the largest n with 2^n <= patterns, given their concave logarithm to base 2, which is at least 1 at 1."""
    high = 1
    while patterns(high) >= high:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if patterns(middle) >= middle else (low, middle)
    return max(low, 1)
