"""The function class F: what a Q-function may look like."""

from bridle.functions.features import OneHot, Polynomial
from bridle.functions.linear import Linear, LinearQ
from bridle.functions.tabular import Tabular, TabularQ

__all__ = ["Linear", "LinearQ", "OneHot", "Polynomial", "Tabular", "TabularQ"]
