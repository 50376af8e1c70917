"""Penalties: what costs of the policy itself add to its choice in a state, and the probabilities that answer them best.

In a state, a policy p pays sum_a p(a) Q(a) + entropic * sum_a p(a) log p(a) + sum_a p(a) linear(a) + the weighed total
variations from some references. Entropy and KL divergence are of this form, and so are their sums: one temperature
(`entropic`) and one prior (proportional to exp(-linear / entropic)).
"""

from typing import NamedTuple

import numpy as np

from checkrein.base.arrays import BoolArray, FloatArray
from checkrein.base.errors import ProblemError
from checkrein.policies.greedy import TIE

BISECTIONS = 100  # halvings of a bracket: below the rounding of its ends


class Penalty(NamedTuple):
    """What is paid beside Q, as a function of the probabilities of n states."""

    entropic: float = 0.0  # times sum_a p log p
    linear: FloatArray | float = 0.0  # (n, A) times p
    deviations: tuple[tuple[float, FloatArray], ...] = ()  # weights and references (n, A): total variation from each

    def times(self, factor: float) -> "Penalty":
        """Scale it."""
        parts = tuple((factor * weight, reference) for weight, reference in self.deviations)
        return Penalty(factor * self.entropic, _scaled(self.linear, factor), parts)

    def plus(self, other: "Penalty") -> "Penalty":
        """Add another of the same states."""
        linear = self.linear + other.linear
        return Penalty(self.entropic + other.entropic, linear, self.deviations + other.deviations)

    def paid(self, probabilities: FloatArray) -> FloatArray:
        """(n,) by probabilities (n, A)."""
        linear = np.broadcast_to(self.linear, probabilities.shape)
        paid = np.where(probabilities > 0, probabilities * np.where(probabilities > 0, linear, 0.0), 0.0).sum(axis=1)
        paid += self.entropic * negative_entropy(probabilities)
        for weight, reference in self.deviations:
            paid += weight * total_variation(probabilities, reference)
        return np.asarray(paid)

    def answer(self, q: FloatArray, allowed: BoolArray) -> FloatArray:
        """(n, A) the probabilities that pay least, Q (n, A) included; each state must allow an action."""
        worth = np.where(allowed, q + self.linear, np.inf)
        weights = [weight for weight, _ in self.deviations if weight != 0]
        if self.entropic <= 0 and all(weight <= 0 for weight in weights):
            return self._corner(worth)  # concave: one action
        if self.entropic < 0 or any(weight < 0 for weight in weights):
            raise ProblemError(
                "a price on randomness and a price on the lack of it meet in one problem, where the best answer has no "
                "closed form: leave out AtLeast(TotalVariation(...)) or AtMost(Entropy(), ...)"
            )
        if not weights:
            return _softmin(worth, self.entropic)
        halves = np.array(weights) / 2
        references = np.stack([reference for weight, reference in self.deviations if weight != 0])
        order = np.argsort(references, axis=0)
        sorted_references, steps = np.take_along_axis(references, order, axis=0), halves[order]
        if self.entropic == 0:
            return _filled(worth, sorted_references, steps)
        return _balanced(worth, self.entropic, sorted_references, steps)

    def _corner(self, worth: FloatArray) -> FloatArray:
        """(n, A) the best single action; of nearly equal ones the first."""
        for weight, reference in self.deviations:
            worth = worth + weight * (1 - reference)
        size = np.abs(np.where(np.isfinite(worth), worth, 0.0)).max(axis=1, keepdims=True)
        chosen = np.argmax(worth <= worth.min(axis=1, keepdims=True) + TIE * size, axis=1)
        return np.asarray(chosen[:, None] == np.arange(worth.shape[1]), dtype=np.float64)


def negative_entropy(probabilities: FloatArray) -> FloatArray:
    """(n,) sum_a p log p."""
    return np.asarray((probabilities * np.log(np.where(probabilities > 0, probabilities, 1.0))).sum(axis=1))


def total_variation(probabilities: FloatArray, reference: FloatArray) -> FloatArray:
    """(n,) half the sum of the absolute differences."""
    return np.asarray(0.5 * np.abs(probabilities - reference).sum(axis=1))


def _scaled(linear: FloatArray | float, factor: float) -> FloatArray | float:
    """Return factor * linear; an infinite entry forbids its action, whatever the factor, and is no number to scale."""
    return np.multiply(factor, linear, out=np.zeros_like(linear), where=np.isfinite(linear))


def _softmin(worth: FloatArray, temperature: float) -> FloatArray:
    """(n, A) proportional to exp(-worth / temperature)."""
    exponentials = np.exp((worth.min(axis=1, keepdims=True) - worth) / temperature)
    return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))


def _filled(worth: FloatArray, references: FloatArray, steps: FloatArray) -> FloatArray:
    """(n, A) the least sum of piecewise linear functions of p(a): the cheapest pieces are filled until p is full.

    references: (r, n, A) ascending, where p(a) may have its kinks; steps: (r, n, A) half of what the slope gains there
    """
    pieces = len(references) + 1
    widths = np.diff(np.clip(references, 0.0, 1.0), axis=0, prepend=0.0)
    widths = np.concatenate([widths, np.ones_like(worth)[None]])  # beyond the last kink there is room for all
    below = np.concatenate([np.zeros_like(worth)[None], np.cumsum(2 * steps, axis=0)])
    slopes = (worth - steps.sum(axis=0) + below).transpose(1, 0, 2).reshape(len(worth), -1)
    order = np.argsort(slopes, axis=1, kind="stable")
    filled = np.minimum(np.cumsum(_take(widths.transpose(1, 0, 2).reshape(len(worth), -1), order), axis=1), 1.0)
    poured = np.empty_like(filled)
    np.put_along_axis(poured, order, np.diff(filled, axis=1, prepend=0.0), axis=1)
    return np.asarray(poured.reshape(len(worth), pieces, -1).sum(axis=1))


def _balanced(worth: FloatArray, temperature: float, references: FloatArray, steps: FloatArray) -> FloatArray:
    """(n, A) the same with temperature * p log p added: every action is raised until its marginal cost is one level.

    The level is found by bisection. At a level, p(a) = max_k min(e_k, reference_{k+1}), with e_k the softmin's value
    between the k-th kink and the next.
    """
    n_actions, total = worth.shape[1], steps.sum(axis=0)
    shifts = [total, *(total - 2 * np.cumsum(steps, axis=0))]
    ceilings = [*references, np.full_like(worth, np.inf)]
    least, most = worth.min(axis=1), float(total.max())
    rounding = 8 * np.finfo(np.float64).eps * (np.abs(least) + most)  # of the exponents' numerators
    high = least + most + temperature + rounding
    low = least - most + temperature - temperature * np.log(n_actions) - rounding

    def raised(level: FloatArray) -> FloatArray:
        pieces = []
        for shift, ceiling in zip(shifts, ceilings, strict=True):
            exponent = np.minimum((level[:, None] - worth + shift), 2 * temperature) / temperature - 1
            pieces.append(np.minimum(np.exp(exponent), ceiling))
        return np.asarray(np.max(pieces, axis=0))

    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        enough = raised(middle).sum(axis=1) >= 1
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    found, above = raised(low), raised(high)  # next to each other, yet far apart where the temperature is tiny
    gap = (above - found).sum(axis=1, keepdims=True)
    found = found + (above - found) * np.clip((1 - found.sum(axis=1, keepdims=True)) / np.where(gap > 0, gap, 1), 0, 1)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _take(values: FloatArray, order: np.ndarray) -> FloatArray:
    return np.take_along_axis(values, order, axis=1)
