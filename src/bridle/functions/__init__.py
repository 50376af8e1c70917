"""The function class F: what a Q-function may look like."""

from bridle.functions.ensemble import Ensemble, EnsembleQ
from bridle.functions.features import OneHot, Polynomial
from bridle.functions.frozen_features import FrozenFeatures, FrozenQ
from bridle.functions.linear import Linear, LinearQ
from bridle.functions.neural import Neural, NeuralQ
from bridle.functions.regressor import Regressor, RegressorQ
from bridle.functions.tabular import Tabular, TabularQ
from bridle.functions.trees import Trees, TreesQ

__all__ = [
    "Ensemble",
    "EnsembleQ",
    "FrozenFeatures",
    "FrozenQ",
    "Linear",
    "LinearQ",
    "Neural",
    "NeuralQ",
    "OneHot",
    "Polynomial",
    "Regressor",
    "RegressorQ",
    "Tabular",
    "TabularQ",
    "Trees",
    "TreesQ",
]
