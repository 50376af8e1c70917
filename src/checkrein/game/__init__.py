"""The game between policies and multipliers: the paper's meta-algorithm."""

from checkrein.game.loop import Round, rounds
from checkrein.game.solution import Solution, Status
from checkrein.game.solve import solve

__all__ = ["Round", "Solution", "Status", "rounds", "solve"]
