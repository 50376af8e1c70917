"""read_compressed: a log of finite states, larger than memory, made into a compressed Dataset as it streams by."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from checkrein.base.arrays import BoolArray, FloatArray
from checkrein.base.errors import DataError
from checkrein.data.dataset import Dataset
from checkrein.logs.costs import CostChoice, columns_needed, cost_column, expression, named_costs
from checkrein.logs.kinds import plain, require_kinds
from checkrein.logs.sources import ROW, TEXT, UNREADABLE, Source, file_trouble, open_source
from checkrein.logs.stream_runs import Keep, Runs
from checkrein.logs.stream_sums import Coder, Rows, Sums
from checkrein.logs.table import Columns, parts_of, truth_values

BATCH = 1 << 17  # rows that are summed at a time
SLAB = 1 << 19  # rows that polars reads at a time, one slab ahead of us


def read_compressed(
    source: object,
    *,
    episode: str,
    state: str | Sequence[str],
    action: str,
    costs: str | Sequence[str] | Mapping[str, str],
    step: str | None = None,
    terminal: str | None = None,
    n_actions: int | None = None,
    missing: Sequence[str] = (),
    keep: Keep | None = None,
    cluster: str | None = None,
) -> Dataset:
    """Return what `read_logs(..., finite=True).compressed()` does, in memory that does not grow with the rows.

    The rows of an episode must follow each other, by `step` where given; this is checked. Arguments are those of
    `read_logs`; a cost is a column or a SQL expression of a row and its `previous_` one. A Parquet file is read by
    its row groups, which have to fit into memory. Episode ids that neither rise nor fall throughout cost one more pass
    over that column, and memory that grows with it.

    keep: which of these episode ids to use, the same answer whenever asked; states are numbered by the whole log
    cluster: a column that says whose episode it is; `keep` is then asked for its values, so that clusters stay whole
    """
    opened = open_source(source, missing)
    opened = replace(opened, table=plain(opened.table))
    names = [state] if isinstance(state, str) else list(state)
    if not names:
        raise DataError("state is empty: name at least one column")
    opened.require(episode, *names, action, step, terminal, cluster)
    require_kinds(opened, parts_of(Columns(episode, names, action, costs, step, terminal, cluster=cluster), names))
    texts = _texts(opened, named_costs(costs))
    needed = {episode, *names, action, *columns_needed(opened, texts)}
    needed |= {column for column in (step, terminal, cluster) if column is not None}
    runs = Runs(opened, episode, step, keep, cluster)
    try:
        coder = Coder.learned(opened, names, action, n_actions)
        sums = Sums(coder.n_states, len(coder.encoding.actions), len(texts))
        _add_all(sums, runs, _batches(opened, sorted(needed)), _Reader(opened, coder, terminal, texts, episode))
        runs.require_no_return()
    except UNREADABLE as reason:
        trouble = [file_trouble(file, reason) for file in opened.files] or [str(reason).splitlines()[0]]
        raise DataError(f"{opened.name} cannot be read: {trouble[0]}") from None
    if not sums.n_rows:
        raise DataError(f"keep chose none of the {runs.number} episodes of {opened.name}")
    return sums.dataset(coder.encoding, tuple(texts), runs.longest)


def _texts(source: Source, costs: Mapping[str, CostChoice]) -> dict[str, str]:
    """Return costs that can be computed from a row and the one before it."""
    if not costs:
        raise DataError("costs is empty: give at least one named cost")
    texts = {name: cost for name, cost in costs.items() if isinstance(cost, str)}
    for name in costs:
        if name not in texts:
            raise DataError(f"cost {name!r} is a function: give a column or an expression, or read with read_logs")
        if not _by_row(expression(source, name, texts[name])):
            raise DataError(f"cost {name!r}: {texts[name]!r} is not computed row by row: read the log with read_logs")
    return texts


def _by_row(cost: pl.Expr) -> bool:
    """Tell whether no part of an expression looks at several rows (an average, a window)."""
    try:
        if not (cost.meta.is_literal() or cost.meta.is_row_separable()):
            return False
    except PolarsError:
        pass  # arithmetic and IN of SQL, which polars knows by their types only: row by row, if their parts are
    return all(_by_row(part) for part in cost.meta.pop())


def _batches(source: Source, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Yield tables of BATCH rows; Parquet is entered slab by slab, as polars reads far ahead of us otherwise."""
    table = source.table.select(columns)
    if any(file.suffix.lower() in TEXT for file in source.files):
        slabs = [table]
    else:
        n_rows = table.select(pl.len()).collect().item()
        slabs = [table.slice(begin, SLAB) for begin in range(0, n_rows, SLAB)]
    row = 0
    for batch in _one_ahead(slabs):
        if batch.height:
            yield batch.with_row_index(ROW, row)
            row += batch.height


def _one_ahead(slabs: Sequence[pl.LazyFrame]) -> Iterator[pl.DataFrame]:
    """Yield the batches of each slab while polars reads the next one."""
    current: Iterable[pl.DataFrame] = ()
    for slab in slabs:
        following = slab.collect_batches(chunk_size=BATCH, maintain_order=True)
        yield from current
        current = following
    yield from current


def _add_all(sums: Sums, runs: Runs, batches: Iterable[pl.DataFrame], reader: "_Reader") -> None:
    """Add every row once the row after it is known: the last of a batch waits for the next one."""
    held = None
    for batch in batches:
        first, kept = runs.of(batch)
        rows = reader.read(batch)
        sums.begin(rows.states[first & kept])
        if held is not None:
            sums.add(held, rows.states[:1], first[:1])
        some = slice(None) if kept.all() else kept[:-1]
        sums.add(rows[:-1][some], rows.states[1:][some], first[1:][some])
        held = rows[-1:][kept[-1:]]
    if held is not None:
        sums.add(held, held.states, np.ones(held.states.size, dtype=bool))


@dataclass
class _Reader:
    """Turns batches of the log into numbers."""

    source: Source
    coder: Coder
    terminal: str | None
    costs: dict[str, str]
    episode: str
    before: pl.DataFrame | None = None  # the last row of the batch before

    def read(self, batch: pl.DataFrame) -> Rows:
        """Return the rows of a batch, in the order of the log."""
        ends = np.zeros(batch.height, dtype=bool) if self.terminal is None else self._ends(batch, self.terminal)
        costs = tuple(self._cost(batch, name, cost) for name, cost in self.costs.items())
        self.before = batch.tail(1)
        return Rows(self.coder.states(batch), self.coder.actions(batch), ends, costs)

    def _ends(self, batch: pl.DataFrame, name: str) -> BoolArray:
        values = batch[name]
        plain = values.dtype == pl.Boolean or (values.dtype.is_integer() and values.is_between(0, 1).all())
        if plain and not values.has_nulls():
            return values.cast(pl.Boolean).to_numpy()
        return truth_values(self.source, batch, name)

    def _cost(self, batch: pl.DataFrame, name: str, cost: str) -> FloatArray:
        if cost not in batch.columns:
            table = batch if self.before is None else pl.concat([self.before, batch])
            return cost_column(self.source, table, self.episode, name, cost)[-batch.height :]
        values = batch[cost].to_numpy() if batch[cost].dtype.is_numeric() and not batch[cost].has_nulls() else None
        if values is not None and np.isfinite(values.min()) and np.isfinite(values.max()):
            return values.astype(np.float64, copy=False)
        return cost_column(self.source, batch, self.episode, name, cost)
