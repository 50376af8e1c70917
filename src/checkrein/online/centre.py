"""Where to ask next: the analytic centre of the multipliers that may still raise the lower bound."""

import numpy as np
import scipy  # its parts are loaded when first used

from checkrein.base.arrays import FloatArray, frozen
from checkrein.online.master import EXACT, sizes
from checkrein.online.simplex import minimise

POINT = 1e-11  # a region of smaller radius, in units of its own size, has nothing left to search
CENTRED = 1e-8  # Newton decrement, squared, at which the centre is found
MAX_NEWTON = 100


def central_multipliers(
    objectives: FloatArray, violations: FloatArray, bounds: FloatArray, lower: float
) -> FloatArray | None:
    """Return the centre of what lies between `lower` and the least Lagrangian of the policies found.

    Every policy cuts that region from above, the lower bound from below (weighing as much as all of them, Goffin,
    Haurie & Vial 1992). Asking in its centre instead of at its top, the price, saves rounds where there are several
    constraints. Units of the costs do not matter. None: nothing is left to search.

    objectives: (t,); violations: (t, m); bounds: (m,)
    """
    t, m = violations.shape
    size, units = sizes(objectives, violations, bounds)
    # slack = facets @ (multipliers, height above lower) + offsets must be positive; both in units of about one
    facets = np.zeros((t + m + 2, m + 1))
    facets[:t, :m] = violations / units
    facets[:t, m] = -1.0
    facets[t : t + m + 1] = np.eye(m + 1)
    facets[-1, :m] = -size / units / bounds
    offsets = np.concatenate([(objectives - lower) / size, np.zeros(m + 1), [1.0]])
    importance = np.ones(t + m + 2)
    importance[t + m] = t
    start = _inside(facets, offsets)
    if start is None:
        return None
    return frozen(_centre(facets, offsets, importance, start)[:m] * size / units)


def _inside(facets: FloatArray, offsets: FloatArray) -> FloatArray | None:
    """Return the centre of the largest ball that fits in, if there is one."""
    radius = np.linalg.norm(facets, axis=1)[:, None]
    rows, charge = np.hstack([-facets, radius]), np.append(np.zeros(facets.shape[1]), -1.0)
    dual = minimise(np.append(offsets, np.zeros(charge.size)), np.hstack([rows.T, -np.eye(charge.size)]), -charge)
    if dual is not None:
        inside = dual.y
    else:
        found = scipy.optimize.linprog(charge, A_ub=rows, b_ub=offsets, method="highs", options=EXACT)
        if not found.success:
            return None
        inside = found.x
    return np.asarray(inside[:-1]) if inside[-1] > POINT else None


def _centre(facets: FloatArray, offsets: FloatArray, importance: FloatArray, point: FloatArray) -> FloatArray:
    """Maximise sum_i importance_i log slack_i by damped Newton steps, which never leave the region."""
    for _ in range(MAX_NEWTON):
        slack = facets @ point + offsets
        if not (slack > 0).all():  # the region is as thin as rounding
            break
        pull = importance / slack
        gradient = pull @ facets
        curvature = facets.T @ (facets * (pull**2 / importance)[:, None])
        step = np.linalg.solve(curvature, gradient)
        decrement = float(gradient @ step)
        if not decrement > CENTRED:
            break
        point = point + step / (1 + np.sqrt(decrement))
    return point
