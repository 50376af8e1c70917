"""The pseudo-dimension of the function class that a problem file asks for, and those of the library's own classes."""

import math

from checkrein.base.errors import ArgumentError
from checkrein.functions import Ensemble, Linear, Neural, OneHot, Polynomial, Tabular, Trees
from checkrein.protocols import FunctionClass
from checkrein.theory import forest_dimension, linear_dimension, relu_dimension, tabular_dimension


def dimension_of(functions: FunctionClass, *, n_inputs: int, n_actions: int, rows: float) -> int:
    """Return the pseudo-dimension of a function class, or a bound on it.

    n_inputs: the number of finite states (tables, one-hot), else of a state's features
    rows: that trees are grown on; their leaves hold `min_leaf` of them at the least
    """
    members = 1
    if isinstance(functions, Ensemble) and functions.quantile is None:  # the mean of several
        members, functions = functions.size, functions.functions
    match functions:
        case Tabular() | Linear(features=OneHot()):
            return tabular_dimension(n_states=n_inputs, n_actions=n_actions)
        case Linear(features=Polynomial(degree=degree)):
            return linear_dimension(n_features=math.comb(n_inputs + degree, degree), n_actions=n_actions)
        case Trees(n_trees=trees, min_leaf=least):
            leaves = max(1, math.floor(rows / least))
            return forest_dimension(n_trees=members * trees, leaves=leaves, n_features=n_inputs, n_actions=n_actions)
        case Neural(hidden=hidden, convolutions=()):
            return relu_dimension(inputs=n_inputs, hidden=hidden, n_actions=n_actions, n_networks=members)
        case _:
            raise ArgumentError(f"no bound on the pseudo-dimension of {functions!r} is known here")
