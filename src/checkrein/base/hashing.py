"""Hashes of 64 bits, of many rows at once; the same on every machine, so that they can be kept on disk."""

import numpy as np
from numpy.typing import NDArray

from checkrein.base.arrays import Array, IntArray, chunks

Hashes = NDArray[np.uint64]
STEP = np.uint64(0x9E3779B97F4A7C15)
EXACT = 2.0**53  # integers below are floats, too


def mixed(values: Hashes) -> Hashes:
    """Spread every bit over all others (the finaliser of SplitMix64; Steele et al. 2014)."""
    x = np.atleast_1d(values) + STEP
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


def joined(*columns: Hashes) -> Hashes:
    """(n,) one hash of several columns (n,), in their order."""
    found = np.zeros_like(columns[0])
    for column in columns:
        found = mixed(found ^ column)
    return found


def hashed(rows: Array) -> Hashes:
    """(n,) of numbers (n, ...), by value: 1 and 1.0 are the same, and so are 0.0 and -0.0."""
    found = [_summed(_bits(part.reshape(len(part), -1))) for part in chunks(rows)]
    return np.concatenate(found) if found else np.zeros(0, np.uint64)


def hashed_text(words: Array) -> Hashes:
    """(n,) of text (n,), letter by letter."""
    text = np.ascontiguousarray(words, dtype=np.str_)
    if text.dtype.itemsize == 0 or text.size == 0:
        return np.zeros(len(text), np.uint64)
    letters = text.view(np.uint32).reshape(len(text), -1).astype(np.uint64)
    return np.concatenate([_summed(part, part != 0) for part in chunks(letters)])  # padding must not matter


def sequences(rows: Hashes, begins: IntArray, lengths: IntArray) -> Hashes:
    """(e,) of rows (n,) that stand together, in their order; the first of each sequence: begins (e,)."""
    place = (np.arange(len(rows)) - np.repeat(begins, lengths)).astype(np.uint64)
    sums: Hashes = np.add.reduceat(mixed(rows ^ mixed(place)), begins)
    return mixed(sums ^ lengths.astype(np.uint64))


def _bits(values: Array) -> Hashes:
    numbers = (values.astype(np.float64) + 0.0).view(np.uint64)
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8:
        return numbers
    exact = np.abs(values.astype(np.float64)) < EXACT
    return numbers if exact.all() else np.where(exact, numbers, values.view(np.uint64))


def _summed(bits: Hashes, used: Array | None = None) -> Hashes:
    place = mixed(np.arange(bits.shape[1], dtype=np.uint64))
    each = mixed(bits ^ place)
    return np.asarray(mixed((each if used is None else each * used).sum(axis=1, dtype=np.uint64)))
