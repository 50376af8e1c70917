"""groups_of: for whom a policy changes what, by the states in which episodes begin."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from checkrein.base.arrays import BoolArray
from checkrein.base.errors import CheckreinError
from checkrein.data.dataset import Dataset
from checkrein.problem.goals import Goal
from checkrein.report.changes import changes_of
from checkrein.report.model import Change, Group
from checkrein.report.words import number
from checkrein.selection.judged_episodes import JudgedEpisodes

LEAST = 30  # units that a group must have to be spoken of
LEVELS = 6  # of a column; numbers with more are cut into thirds, and the rarest texts are left out
COLUMNS = 8  # to show


def groups_of(dataset: Dataset, goals: Sequence[Goal], judged: JudgedEpisodes, alpha: float) -> list[Group]:
    """Return what changes for episodes that begin alike; empty where states have no names.

    dataset: the log as it was read; judged: what its episodes say
    alpha: by which the ends of one column's intervals on one side may err, all its groups together
    """
    if dataset.encoding is None or dataset.episodes is None:
        return []
    first = dataset.first_rows()
    begun = first[np.searchsorted(dataset.episodes[first], judged.labels)]
    try:
        table = dataset.encoding.decode(dataset.states[begun])
    except CheckreinError:
        return []
    found: list[Group] = []
    for column in table.columns[:COLUMNS]:
        levels = [(name, among) for name, among in _levels(table[column]) if judged.n_units(among) >= LEAST]
        if len(levels) > 1:
            intervals = judged.differences_by(alpha / len(levels), [among for _, among in levels])
            for (level, among), interval in zip(levels, intervals, strict=True):
                found += _group(column, level, int(among.sum()), changes_of(goals, interval), goals)
    return found


def _group(column: str, level: str, episodes: int, changes: Sequence[Change], goals: Sequence[Goal]) -> Iterator[Group]:
    """Yield the group; nothing where not all folds know of it."""
    if all(math.isfinite(change.difference) for change in changes):
        names = [goal.name for goal in goals]
        yield Group(column=column, level=level, episodes=episodes, changes=dict(zip(names, changes, strict=True)))


def _levels(values: pl.Series) -> Iterator[tuple[str, BoolArray]]:
    """Yield the levels of a column with the episodes (e,) that begin there."""
    missing = values.is_null()
    distinct = values.drop_nulls().unique()
    if values.dtype.is_numeric() and len(distinct) > LEVELS:
        yield from _thirds(values.to_numpy())
    else:
        counts = values.drop_nulls().value_counts(sort=True).head(LEVELS)
        for value in counts[values.name].sort().to_list():
            named = number(value) if isinstance(value, int | float) else str(value)
            yield named, (values == value).fill_null(False).to_numpy()
    if missing.any():
        yield "(missing)", missing.to_numpy()


def _thirds(values: np.ndarray) -> Iterator[tuple[str, BoolArray]]:
    low, high = np.nanquantile(values, [1 / 3, 2 / 3])
    if low == high:
        yield f"up to {number(low)}", values <= low
        yield f"over {number(low)}", values > low
        return
    yield f"up to {number(low)}", values <= low
    yield f"over {number(low)}, up to {number(high)}", (values > low) & (values <= high)
    yield f"over {number(high)}", values > high
