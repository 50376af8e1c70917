"""The function class F: what a Q-function may look like."""

from checkrein.functions.ensemble import Ensemble, EnsembleQ
from checkrein.functions.features import OneHot, Polynomial
from checkrein.functions.frozen_features import FrozenFeatures, FrozenQ
from checkrein.functions.learned_features import LearnedFeatures
from checkrein.functions.linear import Linear, LinearQ
from checkrein.functions.neural import Neural, NeuralQ
from checkrein.functions.regressor import Regressor, RegressorQ
from checkrein.functions.tabular import Tabular, TabularQ
from checkrein.functions.trees import Trees, TreesQ
from checkrein.functions.usual import default_functions

__all__ = [
    "Ensemble",
    "EnsembleQ",
    "FrozenFeatures",
    "FrozenQ",
    "LearnedFeatures",
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
    "default_functions",
]
