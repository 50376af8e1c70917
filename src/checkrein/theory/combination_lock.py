"""The combination lock of appendix D (Koenig & Simmons 1996): the concentration coefficient grows exponentially."""

import math
from typing import NamedTuple

import numpy as np

from checkrein.base.arrays import FloatArray, frozen, require_counts
from checkrein.base.errors import ArgumentError
from checkrein.theory.bound import require_discount
from checkrein.theory.concentration import Concentration

ON, BACK = 0, 1
LARGEST = 700.0  # logarithm of a ratio that a float still holds


class Lock(NamedTuple):
    """The lock as a finite MDP, and what its log holds."""

    transitions: FloatArray  # (N, 2, N)
    initial: FloatArray  # (N,)
    log_distribution: FloatArray  # (N, 2)


def combination_lock(*, n_states: int, back: float = 0.5) -> Lock:
    """Return the lock of N states, logged by a policy that goes back with probability `back`, in the long run.

    Going on leads from a state to the next, and stays in the last; going back leads to the first.
    """
    shares = np.exp(_log_shares(n_states, back))
    transitions = np.zeros((n_states, 2, n_states))
    transitions[np.arange(n_states), ON, np.minimum(np.arange(n_states) + 1, n_states - 1)] = 1.0
    transitions[:, BACK, 0] = 1.0
    initial = np.eye(n_states)[0]
    return Lock(frozen(transitions), frozen(initial), frozen(np.outer(shares, [1 - back, back])))


def lock_concentration(*, n_states: int, discount: float, back: float = 0.5) -> Concentration:
    """Return the lock's coefficient in closed form.

    Some policies are in state s after m steps for certain if s <= m (they wait in the first state). So beta(m) is one
    over the least share of a pair up to state m: 1 / (back (1 - back)^m min(back, 1 - back)) before the last two
    states. Each further state multiplies it by 1 / (1 - back), and the coefficient by about discount / (1 - back).
    """
    require_discount(discount)
    rarest = np.minimum.accumulate(_log_shares(n_states, back)) + math.log(min(back, 1 - back))
    if -rarest[-1] > LARGEST:
        raise ArgumentError(f"the coefficient of {n_states} states exceeds 1e300: ask for fewer states")
    ratios = np.exp(-rarest)
    return Concentration(frozen(ratios), float(ratios[-1]), discount, 2 * n_states)


def _log_shares(n_states: int, back: float) -> FloatArray:
    """(N,) the logarithm of the time that the logging policy spends in each state."""
    require_counts(n_states=n_states)
    if not 0 < back < 1:
        raise ArgumentError(f"back is {back}: the probability of going back lies strictly between 0 and 1")
    shares = np.arange(n_states) * math.log(1 - back) + math.log(back)
    shares[-1] -= math.log(back)  # who goes on in the last state stays there
    return np.asarray(shares)
