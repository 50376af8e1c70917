"""Online learners: how the multipliers answer the policies found."""

from bridle.online.cutting_plane import CuttingPlane
from bridle.online.exponentiated_gradient import ExponentiatedGradient
from bridle.online.online_gradient_descent import OnlineGradientDescent

__all__ = ["CuttingPlane", "ExponentiatedGradient", "OnlineGradientDescent"]
