"""ColumnMask: which actions an expression over a log's columns allows, for states that are numbers."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from checkrein.base.arrays import Array, BoolArray
from checkrein.base.storage import storable
from checkrein.data.encoding import Encoding
from checkrein.data.expressions import sql_expression

VALUE = "__admissible__"


@storable
@dataclass(frozen=True, eq=False)
class ColumnMask:
    """A SQL expression over state and action columns, of feature vectors; where it has no value, nothing is allowed.

    actions: (A,) what the log's action column holds, by the number of each action; None: the encoding's labels
    booleans: the state columns that hold yes and no
    """

    expression: str
    action: str  # the column
    encoding: Encoding
    actions: Array | None
    booleans: tuple[str, ...]

    def allowed(self, states: Array) -> BoolArray:
        """(n, A)"""  # noqa: D400, D415
        table = self.encoding.decode(states).with_columns(pl.col(name) > 0.5 for name in self.booleans)
        labels = list(self.encoding.actions) if self.actions is None else self.actions.tolist()
        parsed = sql_expression(self.expression)
        columns = []
        for label in labels:
            there = table.with_columns(pl.lit(label).alias(self.action))
            columns.append(there.with_columns(yes(parsed))[VALUE].to_numpy())
        return np.column_stack(columns)


def yes(parsed: pl.Expr) -> pl.Expr:
    """Return where an expression holds: not where it has no value."""
    return parsed.cast(pl.Boolean).fill_null(False).alias(VALUE)
