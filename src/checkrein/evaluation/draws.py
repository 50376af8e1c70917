"""How often each unit (an episode, or a cluster of them) occurs in samples of all with replacement."""

from collections.abc import Iterator

import numpy as np

from checkrein.base.arrays import FloatArray, IntArray

AT_ONCE, BLOCK = 1 << 24, 1 << 22  # numbers that are drawn in one block, and in each of several where they are more
FEWER = 4  # times: units that are so much fewer when equal ones are merged are drawn merged


def draws(units: int, replicates: int, rng: np.random.Generator) -> FloatArray:
    """(B, u) how often each unit occurs."""
    return rng.multinomial(units, np.full(units, 1 / units), size=replicates).astype(np.float64)


def draws_in_blocks(units: int, replicates: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield the same replicates, as many at once as memory is meant for: all of them where units are few."""
    for size in _sizes(units, replicates):
        yield draws(units, size, rng)


def draws_of_alike(
    rows: FloatArray, replicates: int, rng: np.random.Generator
) -> tuple[IntArray | None, Iterator[FloatArray]]:
    """Return units (g,) that stand for all that are alike, and blocks (b, g) of how often their likes occur.

    Many units of logs of single decisions are alike. Where units are few, or hardly any are alike, each stands for
    itself: None.

    rows: (u, j) what is to be alike
    """
    if len(rows) * replicates > AT_ONCE:
        first, count = _alike(rows)
        if FEWER * first.size <= len(rows):
            sizes = _sizes(first.size, replicates)
            return first, (rng.multinomial(len(rows), count / len(rows), size=n).astype(np.float64) for n in sizes)
    return None, draws_in_blocks(len(rows), replicates, rng)


def _sizes(units: int, replicates: int) -> Iterator[int]:
    size = replicates if units * replicates <= AT_ONCE else max(1, BLOCK // units)
    return (min(size, replicates - begin) for begin in range(0, replicates, size))


def _alike(rows: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the first of each kind of rows (g,), and how many are of it; by a hash that is checked."""
    bits = np.ascontiguousarray(rows + 0.0).view(np.uint64)  # (-0.0 is 0.0)
    factors = np.random.default_rng(0).integers(1, 1 << 62, bits.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(
        1
    )
    _, first, kind, count = np.unique(bits @ factors, return_index=True, return_inverse=True, return_counts=True)
    if not (rows[first][kind] == rows).all():
        return np.arange(len(rows)), np.ones(len(rows), dtype=np.int64)
    return first, count
