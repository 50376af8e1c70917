"""Costs of a log: columns, SQL expressions over its columns, or functions of the transitions."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from checkrein.base.arrays import Array, FloatArray, IntArray
from checkrein.base.brief import some
from checkrein.base.errors import DataError
from checkrein.data.columns import LARGEST, TOO_LARGE
from checkrein.data.expressions import ExpressionError, first_line, in_floats, shortened, sql_expression
from checkrein.logs.kinds import AS_NUMBERS, NO_PART, TEMPORAL, as_floats
from checkrein.logs.sources import ROW, Source

VALUE = "__cost__"  # a constant, too, then has a value in every row
WIDE = 2.0**31  # from here on whole numbers may have wrapped around
SAME = 1e-6  # relative
PREVIOUS = "previous_"  # `previous_action` is the column `action` one row earlier in the episode
CostFunction = Callable[[Array, IntArray, Array, dict[str, FloatArray]], Array]
CostChoice = str | CostFunction


def named_costs(costs: str | Sequence[str] | Mapping[str, CostChoice]) -> dict[str, CostChoice]:
    """Return costs by name; a bare column or expression is its own name."""
    if isinstance(costs, str):
        return {costs: costs}
    return dict(costs) if isinstance(costs, Mapping) else {name: name for name in costs}


def columns_needed(source: Source, costs: Mapping[str, CostChoice]) -> list[str]:
    """Return the log's columns that the costs are computed from."""
    needed: list[str] = []
    for name, cost in costs.items():
        if isinstance(cost, str):
            roots = expression(source, name, cost).meta.root_names()
            needed += [root.removeprefix(PREVIOUS) if root not in source.columns else root for root in roots]
    return needed


def expression(source: Source, name: str, cost: str, *, what: str | None = None) -> pl.Expr:
    """Return a column, or a SQL expression whose columns the log has; what: that it is, in messages."""
    what = what or f"cost {name!r}"
    if cost in source.columns:
        return pl.col(cost)
    try:
        parsed = sql_expression(cost)
    except ExpressionError as reason:
        raise DataError(f"{what}: {shortened(cost)!r} {reason}") from None
    known = set(source.columns)
    for root in parsed.meta.root_names():
        if root not in known and root.removeprefix(PREVIOUS) not in known:
            raise DataError(
                f"{what}: {cost!r} names {root!r}, which is no column of {source.name}: it has "
                f"{some(source.columns)} (and each as {PREVIOUS}...). Text goes in single quotes"
            )
    return parsed


def cost_column(source: Source, table: pl.DataFrame, episode: str | None, name: str, cost: str) -> FloatArray:
    """(n,) the values of a column or expression over the ordered table, checked to be finite numbers."""
    parsed = expression(source, name, cost)
    earlier = [root for root in parsed.meta.root_names() if root not in source.columns]
    if earlier and episode is None:
        raise DataError(
            f"cost {name!r}: {cost!r} names {earlier[0]!r}, but each row is an episode of its own, without an earlier "
            "row: name the episode column, or leave it out"
        )
    shifted = [pl.col(root.removeprefix(PREVIOUS)).shift(1).over(episode).alias(root) for root in earlier]
    try:
        shifted_table = table.with_columns(shifted)
        values = shifted_table.with_columns(parsed.alias(VALUE))[VALUE].alias(name)
    except PolarsError as reason:
        raise DataError(f"cost {name!r}: {shortened(cost)!r} cannot be computed: {first_line(reason)}") from None
    numbers = finite_numbers(source, table, values, f"cost {(cost if cost in source.columns else name)!r}")
    if cost not in source.columns:
        _require_no_wrap(source, shifted_table, numbers, name, cost)
    return numbers


def _require_no_wrap(source: Source, table: pl.DataFrame, numbers: FloatArray, name: str, cost: str) -> None:
    """Raise where whole numbers went round: the same in floats then comes to something else."""
    floats = as_floats(table)
    for text in (in_floats(cost), cost):  # the first is none where a function takes whole numbers alone
        try:
            found = floats.with_columns(sql_expression(text).alias(VALUE))[VALUE].cast(pl.Float64).to_numpy()
            break
        except (PolarsError, ExpressionError):
            continue
    else:
        return
    with np.errstate(invalid="ignore"):
        near = np.isfinite(found) & (np.abs(numbers - found) <= SAME * np.abs(found))
    wrong = ~near & ~np.isnan(found) & ((np.abs(found) >= WIDE) | (np.abs(numbers) >= WIDE))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"cost {name!r}: {shortened(cost)!r} comes to {found[row]:g} in {source.place(table[ROW][row])}, but to "
            f"{numbers[row]:g} in whole numbers, which go round: write its numbers with a point, as in 10.0"
        )


def finite_numbers(source: Source, table: pl.DataFrame, values: pl.Series, what: str) -> FloatArray:
    """(n,) the same values as floats, or an error that names the first that is missing, text or infinite."""
    if len(values) != table.height:
        raise DataError(f"{what} has {len(values)} values for {table.height} rows")
    kind = values.dtype.base_type()
    if kind in NO_PART:
        raise DataError(f"{what} holds {NO_PART[kind]}: it must be a number in every row")
    if kind in TEMPORAL:
        raise DataError(f"{what} is {TEMPORAL[kind]}, not a number: {AS_NUMBERS}")
    numbers = (values.cast(pl.String) if kind in (pl.Enum, pl.Categorical) else values).cast(pl.Float64, strict=False)
    good = (numbers.abs() <= LARGEST).fill_null(False) & ~numbers.is_nan().fill_null(True)
    if not good.all():
        row = int((~good).arg_max() or 0)
        value, place = values[row], source.place(table[ROW][row])
        if value is None:
            raise DataError(
                f"{what} is missing in {place}: every row needs a number. Say what a missing one counts as, like "
                "COALESCE(column, 0), or leave out the episodes that have one"
            )
        shown = repr(value)
        if numbers.is_finite()[row]:
            raise DataError(f"{what} is {shown} in {place}, which is too large to compute with: {TOO_LARGE}")
        raise DataError(f"{what} is {shown} in {place}: it must be a finite number")
    return np.array(numbers)
