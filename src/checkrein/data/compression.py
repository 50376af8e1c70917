"""Exact grouping of rows that share an integer key: the sums that all later work is done with."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from checkrein.base.arrays import FloatArray, IntArray

CHUNK = 1 << 17  # rows whose keys and intermediate results stay in the processor's cache
DENSE_BINS = 1 << 22  # up to here, or up to the number of rows, one bin per possible key is cheaper than sorting


class Groups(NamedTuple):
    """Distinct keys with the total weight and the weighted mean of every column."""

    keys: IntArray  # (g,) ascending
    weights: FloatArray  # (g,)
    means: FloatArray  # (g, k)


def group(keys: Callable[[slice], IntArray], n_bins: int, weights: FloatArray | None, columns: FloatArray) -> Groups:
    """Group n rows by key in one pass over chunks; `weights=None` means one each.

    keys: called with a slice of rows, returns their keys in [0, n_bins)
    columns: (n, k)
    """
    n, k = columns.shape
    if n_bins > max(DENSE_BINS, n):
        return _group_sparse(keys(slice(0, n)), weights, columns)
    totals = np.zeros(n_bins)
    sums = np.zeros((k, n_bins))
    chunk = CHUNK if n_bins <= CHUNK else max(n, 1)  # adding up many bins for every chunk would cost more than it saves
    for begin in range(0, n, chunk):
        rows = slice(begin, min(begin + chunk, n))
        key = keys(rows)
        weight = None if weights is None else weights[rows]
        totals += np.bincount(key, weight, n_bins)
        for column in range(k):
            values = columns[rows, column]
            sums[column] += np.bincount(key, values if weight is None else values * weight, n_bins)
    present = np.flatnonzero(totals)
    return Groups(present, totals[present], (sums[:, present] / totals[present]).T)


def _group_sparse(key: IntArray, weights: FloatArray | None, columns: FloatArray) -> Groups:
    distinct, position = np.unique(key, return_inverse=True)
    totals = np.bincount(position, weights, distinct.size).astype(np.float64)
    scaled = columns if weights is None else columns * weights[:, None]
    sums = np.stack([np.bincount(position, scaled[:, j], distinct.size) for j in range(columns.shape[1])], axis=1)
    kept = totals > 0
    return Groups(distinct[kept], totals[kept], sums[kept] / totals[kept, None])
