"""The game between policies and multipliers: the paper's meta-algorithm."""

from checkrein.game.derandomise import Derandomised, averaged_weights, best_member
from checkrein.game.loop import Round, rounds
from checkrein.game.solution import Solution, Status
from checkrein.game.solve import solve

__all__ = [
    "Derandomised",
    "Round",
    "Solution",
    "Status",
    "averaged_weights",
    "best_member",
    "rounds",
    "solve",
]
