"""The game as arithmetic: L(policy, multipliers) and its two sides. Nothing here knows where values come from."""

import numpy as np

from checkrein.base.arrays import FloatArray


def lagrangian(objectives: FloatArray, violations: FloatArray, multipliers: FloatArray) -> FloatArray:
    """(..., t) L = C + multipliers . (G - limit) (Section 3.1 of the paper).

    objectives: (t,); violations: (t, m); multipliers: (..., m)
    """
    return objectives + multipliers @ violations.T


def upper(objective: float, violation: FloatArray, worst_multipliers: FloatArray) -> float:
    """L_max: the Lagrangian of a mixture against the worst multipliers of the learner's own ball."""
    return float(objective + worst_multipliers @ violation)


def dual_values(before: FloatArray, objectives: FloatArray, violations: FloatArray, visited: FloatArray) -> FloatArray:
    """(t,) the least Lagrangian that any of t policies has at each of the t multipliers visited.

    A best response was sought at each of them, so each is a lower bound on the game's value: L_min is the largest.
    Where best responses are noisy, a policy found elsewhere may be the better answer; taking the least over all of
    them keeps the bound honest, and the gap from ever being negative.

    before: (t - 1,) the same before the newest policy and the newest multipliers; objectives: (t,);
    violations, visited: (t, m)
    """
    newest_policy = lagrangian(objectives[-1:], violations[-1:], visited[:-1])[:, 0]
    newest_multipliers = lagrangian(objectives, violations, visited[-1]).min()
    return np.append(np.minimum(before, newest_policy), newest_multipliers)
