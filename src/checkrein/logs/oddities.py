"""What is odd but legal about a table of decisions."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from checkrein.base.arrays import BoolArray
from checkrein.data.dataset import Dataset
from checkrein.data.encoding import STEP_NUMBER
from checkrein.logs.kinds import alike, gone


def row_warnings(dataset: Dataset, last: BoolArray, terminal: str | None, *, one_step: bool) -> list[str]:
    """Say what is odd about rows; last: (n,) those that end their episode's rows."""
    return _rare_actions(dataset) if one_step else _row_warnings(dataset, last, terminal)


def column_warnings(table: pl.DataFrame, state: Sequence[str], step: str | None, episode: str | None) -> list[str]:
    """Say what is odd about columns."""
    own = [name for name in state if name != STEP_NUMBER]
    said = [f"state {name!r} is constant: it tells nothing" for name in own if table[name].n_unique() == 1]
    for name in state:
        if lacking := int(gone(table[name]).sum()):
            marked = "they count as a category or a feature of their own"
            said.append(f"state {name!r} is missing in {lacking} of {table.height} rows: {marked}")
        said += alike("state", table[name])
    if episode is not None and step is not None and table[step].dtype.is_integer():
        jump = (table[step] - table[step].shift(1))[1:]
        same = (table[episode] == table[episode].shift(1))[1:]
        gaps = int(((jump != 1) & same).sum())
        if gaps:
            said.append(f"{gaps} steps are not followed by the next number: decisions may be missing from the log")
    return said


def _row_warnings(dataset: Dataset, last: BoolArray, terminal: str | None) -> list[str]:
    said = []
    after = int((dataset.terminals & ~last).sum())
    if after:
        said.append(f"{after} terminal rows are followed by more rows of their episode: is the episode column right?")
    single = int((np.bincount(dataset.episodes) == 1).sum()) if dataset.episodes is not None else 0
    if single:
        said.append(f"{single} episodes have a single row")
    if terminal is None and not dataset.terminals[last].all():
        said.append(
            "no terminal column: the last row of each episode is left out of the regressions, name one if there is"
        )
    elif stops := int((last & ~dataset.terminals & ~dataset.next_observed).sum()):
        said.append(
            f"{stops} of {int(last.sum())} episodes stop without a terminal mark: what follows is not known, so their "
            "last rows are left out of the regressions; mark them as terminal if the episodes end there"
        )
    return said + _rare_actions(dataset)


def _rare_actions(dataset: Dataset) -> list[str]:
    counts = np.bincount(dataset.actions, minlength=dataset.n_actions)
    rare = [dataset.action_labels[action] for action in np.flatnonzero(counts == 1)]
    return [f"actions seen only once: {', '.join(rare[:10])}"] if rare else []
