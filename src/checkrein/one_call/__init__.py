"""From a table to a certified policy in one call."""

from checkrein.one_call.fitting import fit
from checkrein.one_call.run import Run

__all__ = ["Run", "fit"]
