"""What is kept of a log that streams by: the codes of its values, and the sums over equal transitions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np
import polars as pl

from checkrein.base.arrays import BoolArray, FloatArray, IntArray, frozen
from checkrein.data.compression import Groups, group
from checkrein.data.dataset import Dataset
from checkrein.data.encoding import Encoding, StateColumn, category_codes
from checkrein.logs.kinds import require_no_text_for_missing
from checkrein.logs.sources import ROW, Source
from checkrein.logs.states import encode_actions, ordered_labels, require_no_text_among_numbers

TABLE = 1 << 22  # up to this many integers in a row are looked up in a table, more are searched
DENSE = 1 << 18  # up to this many possible transitions have a sum each
COUNT = "__count__"


@dataclass(frozen=True)
class Lookup:
    """The code of each value that a column of the log takes."""

    values: pl.Series
    codes: IntArray

    @classmethod
    def of(cls, values: pl.Series, codes: IntArray) -> "Lookup":
        """Make a lookup of values, which may occur more than once, and their codes."""
        once = np.array(values.arg_unique())
        return cls(_plain(values)[once], codes[once])

    @cached_property
    def table(self) -> tuple[int, IntArray] | None:
        """The lowest integer, and the codes from it on with that of a missing value last; None: they lie too wide."""
        low, high = (self.values.min(), self.values.max()) if self.values.dtype.is_integer() else (None, None)
        if not isinstance(low, int) or not isinstance(high, int) or high - low >= TABLE or max(-low, high) >= 2**63:
            return None
        table = np.zeros(high - low + 2, dtype=np.int64)
        table[_offsets(self.values, low, high - low + 1)] = self.codes
        return low, table

    def __call__(self, column: pl.Series) -> IntArray:
        """(n,) the code of each value."""
        if self.table is None:
            return _plain(column).replace_strict(self.values, self.codes, return_dtype=pl.Int64).to_numpy()
        low, table = self.table
        return table[_offsets(column, low, table.size - 1)]


def _offsets(values: pl.Series, low: int, missing: int) -> IntArray:
    whole = values.cast(pl.Int64)
    return (whole - low).fill_null(missing).to_numpy() if whole.has_nulls() or low else whole.to_numpy()


def _plain(values: pl.Series) -> pl.Series:
    return values.cast(pl.String) if values.dtype in (pl.Categorical, pl.Enum) else values


@dataclass(frozen=True)
class Coder:
    """Turns rows of the log into states and actions, as `read_logs` would."""

    encoding: Encoding
    action: tuple[str, Lookup]
    columns: tuple[tuple[str, Lookup], ...]
    ranks: tuple[IntArray, ...]  # for each further column, the pairs (code so far, its code) that occur, ascending

    @classmethod
    def learned(cls, source: Source, state: Sequence[str], action: str, n_actions: int | None) -> "Coder":
        """Read the log's distinct states and actions, in one pass."""
        names = list(dict.fromkeys([*state, action]))
        rows = source.table.select(names).with_row_index(ROW).group_by(names).agg(pl.min(ROW), pl.len().alias(COUNT))
        distinct = rows.collect(engine="streaming").sort(ROW)
        actions, labels = encode_actions(source, distinct, action, n_actions)
        for name in state:
            require_no_text_among_numbers(source, distinct, name, distinct[COUNT])
            require_no_text_for_missing(source, distinct, name)
        columns = tuple(StateColumn(name, ordered_labels(distinct[name])) for name in state)
        codes = [category_codes(column, distinct) for column in columns]
        lookups = tuple((name, Lookup.of(distinct[name], code)) for name, code in zip(state, codes, strict=True))
        so_far, ranks = codes[0], []
        for code in codes[1:]:
            known, so_far = np.unique(so_far * (code.max() + 1) + code, return_inverse=True)
            ranks.append(known)
        combinations = np.unique(np.column_stack(codes), axis=0)
        encoding = Encoding(labels, columns, frozen(combinations), distinct[action].dtype.is_integer())
        return cls(encoding, (action, Lookup.of(distinct[action], actions)), lookups, tuple(ranks))

    @property
    def n_states(self) -> int:
        """How many states occur."""
        return 0 if self.encoding.combinations is None else len(self.encoding.combinations)

    def states(self, table: pl.DataFrame) -> IntArray:
        """(n,) the state of each row."""
        name, lookup = self.columns[0]
        states = lookup(table[name])
        for (name, lookup), known in zip(self.columns[1:], self.ranks, strict=True):
            pair = states * (int(lookup.codes.max()) + 1) + lookup(table[name])
            states = np.searchsorted(known, pair) if known[-1] >= TABLE else _places(known)[pair]
        return states

    def actions(self, table: pl.DataFrame) -> IntArray:
        """(n,) the action of each row."""
        name, lookup = self.action
        return lookup(table[name])


def _places(known: IntArray) -> IntArray:
    table = np.zeros(known[-1] + 1, dtype=np.int64)
    table[known] = np.arange(known.size)
    return table


@dataclass(frozen=True)
class Rows:
    """Rows of the log as numbers."""

    states: IntArray  # (n,)
    actions: IntArray  # (n,)
    ends: BoolArray  # (n,)
    costs: tuple[FloatArray, ...]  # k times (n,)

    def __getitem__(self, rows: slice | BoolArray) -> "Rows":
        return Rows(self.states[rows], self.actions[rows], self.ends[rows], tuple(cost[rows] for cost in self.costs))


class Sums:
    """Sums over equal transitions, which grow with how many of them differ, not with the log."""

    def __init__(self, n_states: int, n_actions: int, n_costs: int) -> None:
        self.sizes = (n_states, n_actions, n_states, 4)
        self.starts = np.zeros(n_states)  # episodes that began in each state
        self.lowest, self.highest = np.full(n_costs, np.inf), np.full(n_costs, -np.inf)
        self.n_rows = 0
        self._dense = np.zeros((n_costs + 1, prod(self.sizes))) if prod(self.sizes) <= DENSE else None
        self._parts: list[Groups] = []  # where there are too many transitions to have a place for each

    def begin(self, states: IntArray) -> None:
        """Add the first states of episodes."""
        self.starts += np.bincount(states, minlength=self.starts.size)

    def add(self, rows: Rows, next_states: IntArray, last: BoolArray) -> None:
        """Add rows with the states of the rows after them, which do not matter to the last row of an episode."""
        if not rows.states.size:
            return
        keys = rows.states * self.sizes[1]
        keys += rows.actions
        keys *= self.sizes[2]
        keys += np.where(last, rows.states, next_states)
        keys *= 4
        keys += 2 * rows.ends.view(np.int8) + (rows.ends | ~last).view(np.int8)
        self.n_rows += keys.size
        self.lowest = np.minimum(self.lowest, [cost.min() for cost in rows.costs])
        self.highest = np.maximum(self.highest, [cost.max() for cost in rows.costs])
        if self._dense is None:
            self._add_sparse(keys, rows.costs)
            return
        for place, values in enumerate((None, *rows.costs)):
            self._dense[place] += np.bincount(keys, values, self._dense.shape[1])

    def _add_sparse(self, keys: IntArray, costs: Sequence[FloatArray]) -> None:
        self._parts.append(group(keys.__getitem__, prod(self.sizes), None, np.array(costs).T))
        if sum(part.keys.size for part in self._parts[1:]) > self._parts[0].keys.size:
            self._parts = [self._merged()]

    def _merged(self) -> Groups:
        if self._dense is not None:
            present = np.flatnonzero(self._dense[0])
            counts, *sums = self._dense[:, present]
            return Groups(present, counts, np.array(sums).T / counts[:, None])
        keys, weights, means = (np.concatenate(columns) for columns in zip(*self._parts, strict=True))
        return group(keys.__getitem__, prod(self.sizes), weights, means)

    def dataset(self, encoding: Encoding, names: Sequence[str], longest: int) -> Dataset:
        """Return what `Dataset.compressed` would make of the rows."""
        rows = self._merged()
        states, actions, following, flags = np.unravel_index(rows.keys, self.sizes)
        begun = np.flatnonzero(self.starts)
        dataset = Dataset.from_arrays(
            states=states,
            actions=actions,
            next_states=following,
            costs=dict(zip(names, rows.means.T, strict=True)),
            terminals=flags >= 2,
            next_observed=flags % 2 == 1,
            weights=rows.weights,
            initial_states=begun,
            initial_weights=self.starts[begun],
            n_actions=self.sizes[1],
            n_states=self.sizes[0],
            encoding=encoding,
        )
        lowest, highest = frozen(self.lowest), frozen(self.highest)
        return replace(dataset, lowest=lowest, highest=highest, longest=float(longest))
