"""The paper's theorems as calculators: numbers in, numbers out, every assumption a named argument.

Each is as printed; `corrected` holds those whose printed form does not follow from its proof (docs/theory.md).
"""

from checkrein.theory import corrected
from checkrein.theory.bound import Bound
from checkrein.theory.combination_lock import Lock, combination_lock, lock_concentration
from checkrein.theory.concentration import Concentration, concentration, logged_concentration, policy_concentration
from checkrein.theory.convergence import (
    empirical_constraint_excess,
    exponentiated_gradient_gap,
    exponentiated_gradient_rate,
    exponentiated_gradient_rounds,
    online_gradient_descent_gap,
    online_gradient_descent_rate,
    online_gradient_descent_rounds,
)
from checkrein.theory.dimension import (
    forest_dimension,
    linear_dimension,
    relu_dimension,
    tabular_dimension,
    tree_dimension,
)
from checkrein.theory.generalization import EndToEnd, end_to_end, fqe_error, fqi_error, joint_bound
from checkrein.theory.samples import Constants, sample_size, smallest_epsilon, value_bound

__all__ = [
    "Bound",
    "Concentration",
    "Constants",
    "EndToEnd",
    "Lock",
    "combination_lock",
    "concentration",
    "corrected",
    "empirical_constraint_excess",
    "end_to_end",
    "exponentiated_gradient_gap",
    "exponentiated_gradient_rate",
    "exponentiated_gradient_rounds",
    "forest_dimension",
    "fqe_error",
    "fqi_error",
    "joint_bound",
    "linear_dimension",
    "lock_concentration",
    "logged_concentration",
    "online_gradient_descent_gap",
    "online_gradient_descent_rate",
    "online_gradient_descent_rounds",
    "policy_concentration",
    "relu_dimension",
    "sample_size",
    "smallest_epsilon",
    "tabular_dimension",
    "tree_dimension",
    "value_bound",
]
