"""The game between policies and multipliers: the paper's meta-algorithm."""

from bridle.game.loop import Round, rounds
from bridle.game.solution import Solution, Status
from bridle.game.solve import solve

__all__ = ["Round", "Solution", "Status", "rounds", "solve"]
