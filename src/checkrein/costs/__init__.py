"""Costs beyond a log's columns: of the policy itself, of what is known for every action, of what happened before."""

from checkrein.costs.actions import Disagreement, StateActionCost
from checkrein.costs.divergences import Entropy, KLDivergence, TotalVariation
from checkrein.costs.history import EverEntered, Switching
from checkrein.costs.references import OwnStates

__all__ = [
    "Disagreement",
    "Entropy",
    "EverEntered",
    "KLDivergence",
    "OwnStates",
    "StateActionCost",
    "Switching",
    "TotalVariation",
]
