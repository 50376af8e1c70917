"""Bound: what a theorem promises, beside what the costs allow anyway; and the checks of a theorem's arguments."""

import math
from dataclasses import dataclass

import numpy as np

from checkrein.base.errors import ArgumentError


@dataclass(frozen=True)
class Bound:
    """A number that a theorem promises not to be exceeded.

    trivial: what the costs allow anyway; a bound that is not below it says nothing
    what: of what it is the bound, in words
    """

    value: float
    trivial: float
    what: str

    @property
    def vacuous(self) -> bool:
        """Whether the bound says nothing that the costs do not say already."""
        return not self.value < self.trivial

    @property
    def words(self) -> str:
        """One sentence."""
        if self.vacuous:
            return f"{self.what} is at most {self.value:.4g}: vacuous, the costs allow only {self.trivial:.4g} anyway"
        return f"{self.what} is at most {self.value:.4g}; the costs alone would allow {self.trivial:.4g}"


def require_discount(discount: float) -> None:
    """Raise unless the discount lies strictly between 0 and 1."""
    if not (_is_number(discount) and 0 < discount < 1):
        raise ArgumentError(
            f"discount is {discount}: it must lie strictly between 0 and 1 (the theorems divide by 1 - discount)"
        )


def require_delta(delta: float) -> None:
    """Raise unless the permitted probability of failure lies strictly between 0 and 1."""
    if not (_is_number(delta) and 0 < delta < 1):
        raise ArgumentError(f"delta is {delta}: a probability of failure lies strictly between 0 and 1")


def require_not_negative(**values: float) -> None:
    """Raise unless every named parameter is a finite number that is not negative."""
    for name, value in values.items():
        if not (_is_number(value) and math.isfinite(value) and value >= 0):
            raise ArgumentError(f"{name} is {value}: it must be finite and not negative")


def require_concentration(**values: float) -> None:
    """Raise unless every coefficient is above zero; it may be infinite, as where the log misses a reachable pair."""
    for name, value in values.items():
        if not (_is_number(value) and value > 0):
            raise ArgumentError(f"{name} is {value}: it must be above 0 (infinity is allowed)")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
