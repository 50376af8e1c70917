"""The game between policies and multipliers: the paper's meta-algorithm."""

from checkrein.game.derandomise import (
    Derandomised,
    SinglePolicies,
    averaged_weights,
    best_deterministic,
    best_member,
    single_policies,
)
from checkrein.game.loop import Round, rounds
from checkrein.game.regularized import Priced, Regularized, multipliers_for
from checkrein.game.regularized_grid import RegularizedGrid
from checkrein.game.solution import Solution, Status
from checkrein.game.solve import solve

__all__ = [
    "Derandomised",
    "Priced",
    "Regularized",
    "RegularizedGrid",
    "Round",
    "SinglePolicies",
    "Solution",
    "Status",
    "averaged_weights",
    "best_deterministic",
    "best_member",
    "multipliers_for",
    "rounds",
    "single_policies",
    "solve",
]
