"""Engine: the one door for independent work and for sums over rows.

`map` makes independent calls, `sum_rows` adds up what blocks of rows say. Both run in this process unless `using` names
another engine for a while; results do not depend on it, but for the rounding of sums that were added up in blocks.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Protocol, TypeVar

import numpy as np

from checkrein.base.arrays import FloatArray, require_counts

T = TypeVar("T")
R = TypeVar("R")


class Engine(Protocol):
    """Where work runs."""

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield function(item) in the order of the items; nothing may rest on what a call changes but its result."""
        ...

    def sum_rows(self, function: Callable[[slice], FloatArray], n_rows: int) -> FloatArray:
        """Return the sum of function(rows) over slices that make up all rows."""
        ...


@dataclass(frozen=True)
class InProcess:
    """One call after another, each when its result is asked for; all rows at once."""

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield as asked."""
        return map(function, items)

    def sum_rows(self, function: Callable[[slice], FloatArray], n_rows: int) -> FloatArray:
        """Add nothing up: one slice."""
        return function(slice(0, n_rows))


@dataclass(frozen=True)
class Joblib:
    """Several processes on this machine, and threads for sums over rows, which would be dear to send."""

    jobs: int = 2

    def __post_init__(self) -> None:
        require_counts(jobs=self.jobs)

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield in order, while others are under way."""
        from joblib import Parallel, delayed  # type: ignore[import-untyped]  # noqa: PLC0415

        found: Iterator[R] = Parallel(n_jobs=self.jobs, return_as="generator")(
            delayed(function)(item) for item in items
        )
        return found

    def sum_rows(self, function: Callable[[slice], FloatArray], n_rows: int) -> FloatArray:
        """Add up as many slices as there are jobs."""
        from joblib import Parallel, delayed  # noqa: PLC0415

        ends = np.linspace(0, n_rows, min(self.jobs, max(n_rows, 1)) + 1).astype(int).tolist()
        slices = [slice(begin, end) for begin, end in pairwise(ends)]
        return reduce(add, Parallel(n_jobs=self.jobs, prefer="threads")(delayed(function)(rows) for rows in slices))


_CURRENT: ContextVar[Engine] = ContextVar("engine", default=InProcess())  # noqa: B039  frozen


def current() -> Engine:
    """Return the engine in use."""
    return _CURRENT.get()


@contextmanager
def using(engine: Engine) -> Iterator[None]:
    """Let all work inside run on another engine."""
    before = _CURRENT.set(engine)
    try:
        yield
    finally:
        _CURRENT.reset(before)
