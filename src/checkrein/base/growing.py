"""Growing: rows that come one at a time, and are read as one array each time."""

import numpy as np

from checkrein.base.arrays import FloatArray

FIRST = 16  # rows that there is room for at first


class Growing:
    """Rows of k numbers."""

    def __init__(self, columns: int) -> None:
        self._rows, self._count = np.empty((FIRST, columns)), 0

    def append(self, row: FloatArray) -> None:
        """Add a row (k,); room is doubled where there is none."""
        if self._count == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
        self._rows[self._count] = row
        self._count += 1

    @property
    def rows(self) -> FloatArray:
        """(t, k) all of them; a view that later rows leave as it is."""
        return self._rows[: self._count]
