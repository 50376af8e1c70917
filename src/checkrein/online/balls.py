"""Where multipliers live, and the corner of it that hurts most."""

import numpy as np

from checkrein.base.arrays import FloatArray, frozen


def worst_in_simplex(violation: FloatArray, bounds: FloatArray) -> FloatArray:
    """Return the argmax of multipliers . violation over {multipliers >= 0, sum_i multipliers_i / bounds_i <= 1}."""
    worst = np.zeros(violation.size)
    if violation.size:
        place = int(np.argmax(bounds * violation))
        worst[place] = bounds[place] if violation[place] > 0 else 0.0
    return frozen(worst)


def worst_in_ball(violation: FloatArray, bound: float) -> FloatArray:
    """Return the argmax of multipliers . violation over {multipliers >= 0, l2 norm <= bound}."""
    violated = np.maximum(violation, 0.0)
    size = float(np.linalg.norm(violated))
    return frozen(bound * violated / size if size > 0 else np.zeros(violation.size))
