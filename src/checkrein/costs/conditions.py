"""Conditions on a log's columns: a SQL expression over the state columns that its encoding names, and its costs."""

import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from checkrein.base.arrays import Array, BoolArray
from checkrein.base.errors import ProblemError
from checkrein.data.dataset import Dataset
from checkrein.data.expressions import ExpressionError, first_line, shortened, sql_expression

VALUE = "__condition__"


def rows_where(condition: str, dataset: Dataset) -> BoolArray:
    """(n,) the rows in which a condition holds; one of state columns alone also where a row leads to such a state."""
    encoding = dataset.encoding
    states = () if encoding is None else tuple(column.name for column in encoding.columns)
    parsed = _parsed(condition, {*dataset.cost_names, *states}, dataset)
    costs = {name: dataset.cost(name) for name in dataset.cost_names}
    here = _holds(condition, parsed, _frame(dataset, dataset.states).with_columns(**_series(costs)))
    if not set(parsed.meta.root_names()) <= set(states):
        return here
    known = dataset.terminals | dataset.next_observed
    return np.asarray(here | (known & _holds(condition, parsed, _frame(dataset, dataset.next_states))))


def _parsed(condition: str, columns: set[str], dataset: Dataset) -> pl.Expr:
    try:
        parsed = sql_expression(condition)
    except ExpressionError as reason:
        raise ProblemError(f"the condition {shortened(condition)!r} is no cost of the log, and {reason}") from None
    unknown = [name for name in parsed.meta.root_names() if name not in columns]
    if unknown:
        rest = "" if dataset.encoding is not None else " (its state columns have no names)"
        raise ProblemError(
            f"the condition {condition!r} names {unknown[0]!r}: the log has {', '.join(sorted(columns))}{rest}. Give a "
            "set of states or a function, or read the log with a cost that says where it holds"
        )
    return parsed


def _frame(dataset: Dataset, states: Array) -> pl.DataFrame:
    own = states if dataset.memory is None else dataset.memory.own(states)
    if dataset.encoding is None:
        return pl.DataFrame({"__row__": np.arange(len(own))})
    return dataset.encoding.decode(own)


def _series(columns: dict[str, Array]) -> dict[str, pl.Series]:
    return {name: pl.Series(values) for name, values in columns.items()}


def _holds(condition: str, parsed: pl.Expr, table: pl.DataFrame) -> BoolArray:
    try:
        found = table.with_columns(parsed.alias(VALUE))[VALUE].cast(pl.Boolean).fill_null(False)
    except PolarsError as reason:
        raise ProblemError(f"the condition {condition!r} cannot be computed: {first_line(reason)}") from None
    return np.array(found, dtype=bool)
