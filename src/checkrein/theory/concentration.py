"""The concentration coefficient of Assumption 1: exact for a finite MDP, of one policy, or estimated from a log.

beta(m) is the largest ratio, over pairs of state and action and over policies, of the chance to be in the pair after m
steps to the log's share of it. The policies may differ from step to step, and the last may take any action.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from checkrein.base.arrays import BoolArray, FloatArray, IntArray, frozen, require_counts, require_positive
from checkrein.base.errors import ArgumentError
from checkrein.theory.bound import require_discount

SUM = 1e-9  # by which probabilities may miss 1
MOST_STATES = 5000  # of an exact coefficient: it holds a number for every two states
MOST_STEPS = 10_000


@dataclass(frozen=True, eq=False)
class Concentration:
    """beta(0), beta(1), ... and what no later one exceeds; each sum adds the largest remainder, and says how large.

    n_pairs: of state and action that it rests on
    """

    ratios: FloatArray  # (M + 1,) beta(m)
    ceiling: float
    discount: float
    n_pairs: int

    @property
    def value(self) -> float:
        """Assumption 1: (1 - discount)^2 times the sum over m >= 1 of m discount^(m - 1) beta(m)."""
        g, steps = self.discount, np.arange(self.ratios.size, dtype=np.float64)
        return self._sum(steps * g**steps * ((1 - g) ** 2 / g)) + self._remainder(later_weight(g, self.ratios.size - 1))

    @property
    def first_order(self) -> float:
        """(1 - discount) times the sum over m >= 0 of discount^m beta(m): what FQE needs."""
        g = self.discount
        return self._sum((1 - g) * g ** np.arange(self.ratios.size, dtype=np.float64)) + self._remainder(
            g**self.ratios.size
        )

    @property
    def second_order(self) -> float:
        """(1 - discount)^2 times the sum over m >= 0 of (m + 1) discount^m beta(m): what FQI needs."""
        g, steps = self.discount, np.arange(self.ratios.size, dtype=np.float64)
        return self._sum((1 - g) ** 2 * (steps + 1) * g**steps) + self._remainder(later_weight(g, self.ratios.size))

    @property
    def remainder(self) -> float:
        """The most by which the coefficients are too large: what later steps can add at the ceiling."""
        return self._remainder(later_weight(self.discount, self.ratios.size - 1))

    def _sum(self, weights: FloatArray) -> float:
        counted = weights > 0
        return float(weights[counted] @ self.ratios[counted])

    def _remainder(self, weight: float) -> float:
        return 0.0 if self.ceiling == 0 or weight == 0 else self.ceiling * weight


def later_weight(discount: float, last: int) -> float:
    """Return (1 - g)^2 times the sum over m > M of m g^(m - 1): g^M (1 + M (1 - g))."""
    return float(discount**last * (1 + last * (1 - discount)))


def concentration(
    *,
    transitions: ArrayLike,
    initial: ArrayLike,
    log_distribution: ArrayLike,
    discount: float,
    available: ArrayLike | None = None,
    tolerance: float = 1e-6,
    max_steps: int = MOST_STEPS,
) -> Concentration:
    """Return the coefficient of a finite MDP over all policies, to a relative tolerance.

    transitions: (S, A, S), what a row lacks to one is termination; initial: (S,)
    log_distribution: (S, A) mu, that sums to one; a reachable pair without any makes the coefficient infinite
    available: (S, A) the actions that exist; by default all
    """
    moves, start, mu = _checked(transitions, initial, log_distribution)
    usable = np.ones(mu.shape, dtype=bool) if available is None else np.asarray(available, dtype=bool)
    if usable.shape != mu.shape:
        raise ArgumentError(f"available must have shape {mu.shape}, but has {usable.shape}")
    states, actions = np.nonzero(usable)
    rows = sparse.csr_array(moves[states, actions])
    density = _largest_by_state(states, _inverse(mu[states, actions]), len(start))
    return _coefficient(rows, states, density, start, discount, tolerance, max_steps)


def policy_concentration(
    *,
    transitions: ArrayLike,
    initial: ArrayLike,
    log_distribution: ArrayLike,
    policy: ArrayLike,
    discount: float,
    tolerance: float = 1e-6,
    max_steps: int = MOST_STEPS,
) -> Concentration:
    """Return the coefficient of one policy (S, A): the same ratios, but of what this policy visits alone."""
    moves, start, mu = _checked(transitions, initial, log_distribution)
    chosen = np.asarray(policy, dtype=np.float64)
    if chosen.shape != mu.shape or not (chosen >= 0).all() or (abs(chosen.sum(axis=1) - 1) > SUM).any():
        raise ArgumentError(f"policy must be {mu.shape} probabilities that sum to 1 in every state")
    taken = np.nonzero(chosen)
    density = _largest_by_state(taken[0], chosen[taken] * _inverse(mu[taken]), len(start))
    chain = sparse.csr_array(np.einsum("sa,sat->st", chosen, moves))
    found = _coefficient(chain, np.arange(len(start)), density, start, discount, tolerance, max_steps)
    return replace(found, n_pairs=int(taken[0].size))


def logged_concentration(
    *,
    states: IntArray,
    actions: IntArray,
    next_states: IntArray,
    terminals: BoolArray,
    initial_states: IntArray,
    discount: float,
    weights: FloatArray | None = None,
    initial_weights: FloatArray | None = None,
    policy: FloatArray | None = None,
    tolerance: float = 1e-6,
    max_steps: int = MOST_STEPS,
) -> Concentration:
    """Estimate the coefficient from a log of finite states, over policies that keep to logged pairs, or of one policy.

    The frequencies of the log take the place of mu and of the transitions: a plug-in estimate, unreliable where pairs
    were logged rarely. A state in which nothing was logged ends the episode.

    states, actions, next_states, terminals, weights: (n,); initial_states, initial_weights: (e,)
    policy: (S, A) probabilities; one that takes a pair that was never logged makes the coefficient infinite
    """
    counts = np.ones(len(states)) if weights is None else np.asarray(weights, dtype=np.float64)
    size = int(max(states.max(), next_states.max(), initial_states.max())) + 1
    width = int(actions.max()) + 1
    keys, pair = np.unique(states * width + actions, return_inverse=True)
    owner, taken = np.divmod(keys, width)
    totals = np.bincount(pair, counts)
    going = ~terminals
    shares = counts[going] / totals[pair[going]]
    moves = sparse.csr_array((shares, (pair[going], next_states[going])), shape=(keys.size, size))
    start = np.bincount(initial_states, initial_weights, size).astype(np.float64)
    start /= start.sum()
    ratios = totals.sum() / totals
    if policy is None:
        density = _largest_by_state(owner, ratios, size)
        return _coefficient(moves, owner, density, start, discount, tolerance, max_steps)
    chosen = np.asarray(policy, dtype=np.float64)[owner, taken]
    density = _largest_by_state(owner, chosen * ratios, size)
    followed = np.bincount(owner, chosen, size)
    density[(followed < 1 - SUM) & (np.bincount(owner, minlength=size) > 0)] = np.inf
    choice = sparse.csr_array((chosen, (owner, np.arange(owner.size))), shape=(size, owner.size))
    found = _coefficient(choice @ moves, np.arange(size), density, start, discount, tolerance, max_steps)
    return replace(found, n_pairs=int((chosen > 0).sum()))


def _checked(transitions: ArrayLike, initial: ArrayLike, mu: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
    moves, start, log = (np.asarray(given, dtype=np.float64) for given in (transitions, initial, mu))
    if moves.ndim != 3 or moves.shape[0] != moves.shape[2]:
        raise ArgumentError(f"transitions must have shape (S, A, S), but have {moves.shape}")
    if not (moves >= 0).all() or not (moves.sum(axis=2) <= 1 + SUM).all():
        raise ArgumentError("transitions must not be negative and must sum to at most 1 (the rest is termination)")
    for name, given, shape in (("initial", start, moves.shape[:1]), ("log_distribution", log, moves.shape[:2])):
        if given.shape != shape or not (given >= 0).all() or abs(given.sum() - 1) > SUM:
            total = f"sums to {given.sum():g}" if given.shape == shape else f"has shape {given.shape}"
            raise ArgumentError(f"{name} must be {shape} probabilities that sum to 1, but {total}")
    return moves, start, log


def _inverse(shares: FloatArray) -> FloatArray:
    return np.divide(1.0, shares, out=np.full(shares.shape, np.inf), where=shares > 0)


def _largest_by_state(owner: IntArray, ratios: FloatArray, n_states: int) -> FloatArray:
    """(S,) the largest ratio of a state's pairs; 0 where it has none."""
    largest = np.zeros(n_states)
    np.maximum.at(largest, owner, ratios)
    return largest


def _reachable(moves: sparse.csr_array, owner: IntArray, start: FloatArray) -> BoolArray:
    """(S,) whether any policy comes there."""
    found = start > 0
    while True:
        further = found | (moves[np.flatnonzero(found[owner])].sum(axis=0) > 0)
        if (further == found).all():
            return found
        found = further


def _coefficient(
    moves: sparse.csr_array,
    owner: IntArray,
    density: FloatArray,
    start: FloatArray,
    discount: float,
    tolerance: float,
    max_steps: int,
) -> Concentration:
    """Maximise the chance to be in each state after m steps, for m = 0, 1, ..., by one backward step for each m.

    moves: (pairs, S) ordered by their state `owner`; density: (S,) the largest ratio that being in a state makes.
    The chance from the worst start never grows with m, and so gives what no later ratio exceeds.
    """
    require_discount(discount)
    require_positive(tolerance=tolerance)
    require_counts(max_steps=max_steps)
    kept = np.flatnonzero(_reachable(moves, owner, start))
    if kept.size > MOST_STATES:
        raise ArgumentError(f"{kept.size} states can be reached: the coefficient is computed for {MOST_STATES} at most")
    pairs = np.flatnonzero(np.isin(owner, kept))
    moves, density, start = moves[pairs][:, kept], density[kept], start[kept]
    acting, first = np.unique(owner[pairs], return_index=True)
    places = np.searchsorted(kept, acting)
    chance = np.eye(kept.size)  # of a start (row) to be in a target (column) after m steps
    ratios: list[float] = []
    while True:
        ratios.append(_ratio(start @ chance, density))
        ceiling = _ratio(chance.max(axis=0), density)
        found = Concentration(frozen(np.array(ratios)), ceiling, discount, int(pairs.size))
        settled = math.isfinite(ceiling) and found.remainder <= tolerance * min(found.value, found.first_order)
        hopeless = len(ratios) > 1 and math.isinf(ratios[-1])
        if settled or hopeless or len(ratios) > max_steps:
            return found
        following = np.zeros_like(chance)
        if first.size:
            following[places] = np.maximum.reduceat(moves @ chance, first, axis=0)
        chance = following


def _ratio(chances: FloatArray, density: FloatArray) -> float:
    """Return the largest chance * density; what has no chance has no ratio, however dense."""
    possible = chances > 0
    return float((chances[possible] * density[possible]).max(initial=0.0))
