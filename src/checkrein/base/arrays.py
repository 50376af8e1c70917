"""Names for the arrays that pass between the rooms, and the one way to check and freeze them."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from checkrein.base.errors import ArgumentError, CheckreinError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Array = NDArray[Any]

CHUNK_BYTES = 1 << 22  # what a pass over a large array holds at a time


def frozen(array: Array) -> Array:
    """Return a read-only view, so that a value that holds it stays what it was."""
    view = array.view()
    view.flags.writeable = False
    return view


def owned(values: ArrayLike) -> Array:
    """Return an array that nobody else can change: a copy, if the given one could be."""
    array = np.asarray(values)
    return array.copy() if isinstance(values, np.ndarray) and array.flags.writeable else array


def chunks(array: Array) -> Iterator[Array]:
    """Yield the rows of (n, ...), a few megabytes at a time."""
    rows = max(1, CHUNK_BYTES // max(1, array.itemsize * math.prod(array.shape[1:])))
    for begin in range(0, len(array), rows):
        yield array[begin : begin + rows]


def require_counts(**values: float) -> None:
    """Raise unless every named parameter is a whole number of at least 1."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ArgumentError(f"{name} is {value!r}: it must be a whole number, at least 1")


def finite_vector(values: ArrayLike, name: str, error: type[CheckreinError] = ArgumentError) -> FloatArray:
    """Return a read-only float vector, or say which entry is not a finite number."""
    try:
        vector = owned(values).astype(np.float64, copy=False)
    except (TypeError, ValueError) as reason:
        raise error(f"{name} must be numbers: {reason}") from None
    if vector.ndim != 1:
        raise error(f"{name} must be one-dimensional, but its shape is {vector.shape}")
    bad = ~np.isfinite(vector)
    if bad.any():
        place = int(np.argmax(bad))
        raise error(f"{name}[{place}] is {vector[place]}: it must be finite")
    return frozen(vector)


def require_positive(**values: float) -> None:
    """Raise unless every named parameter is a finite number above zero."""
    for name, value in values.items():
        if not (isinstance(value, int | float | np.number) and math.isfinite(value) and value > 0):
            raise ArgumentError(f"{name} is {value}: it must be finite and above 0")


def require_equal_lengths(lengths: Mapping[str, int], error: type[CheckreinError]) -> None:
    """Raise unless all arrays have as many rows as the first one."""
    first, expected = next(iter(lengths.items()))
    for name, length in lengths.items():
        if length != expected:
            raise error(f"{name} has {length} rows, but {first} has {expected}: give one row per transition")


def require_seed(seed: int) -> None:
    """Raise unless a seed is a whole number that is not negative."""
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ArgumentError(f"seed is {seed!r}: it must be a whole number, not negative")
