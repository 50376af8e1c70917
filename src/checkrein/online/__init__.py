"""Online learners: how the multipliers answer the policies found."""

from checkrein.online.cutting_plane import CuttingPlane
from checkrein.online.exponentiated_gradient import ExponentiatedGradient
from checkrein.online.online_gradient_descent import OnlineGradientDescent

__all__ = ["CuttingPlane", "ExponentiatedGradient", "OnlineGradientDescent"]
