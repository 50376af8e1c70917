"""Costs that are functions of state and action columns alone: known for every action, logged or not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from checkrein.base.arrays import Array, FloatArray, IntArray
from checkrein.base.storage import storable
from checkrein.costs import StateActionCost
from checkrein.data.encoding import Encoding
from checkrein.data.expressions import sql_expression
from checkrein.logs.costs import VALUE, CostChoice, expression
from checkrein.logs.sources import Source

SAME = 1e-9  # relative, of a cost computed row by row and by state and action


@dataclass(frozen=True)
class Decisions:
    """The decisions of a log, as a table and as numbers."""

    source: Source
    table: pl.DataFrame
    state: Sequence[str]
    action: str
    states: Array
    actions: IntArray
    encoding: Encoding

    def known_costs(
        self, costs: Mapping[str, CostChoice], computed: Mapping[str, FloatArray]
    ) -> dict[str, StateActionCost]:
        """Return the costs whose expressions use only state and action columns, by name."""
        found = {}
        for name, cost in costs.items():
            if isinstance(cost, str) and self._is_known(name, cost):
                known = self._table_of(name, cost) if self.states.ndim == 1 else self._function_of(cost)
                if known is not None and self._agrees(known, computed[name]):
                    found[name] = known
        return found

    def _is_known(self, name: str, cost: str) -> bool:
        roots = expression(self.source, name, cost).meta.root_names()
        return set(roots) <= {*self.state, self.action}

    def _table_of(self, name: str, cost: str) -> StateActionCost | None:
        """Evaluate it for every finite state and action, by one row of each; None where the log lacks a state."""
        pairs = self.pairs()
        values = None if pairs is None else _numbers(pairs, expression(self.source, name, cost))
        return None if values is None else StateActionCost(values.reshape(-1, len(self.encoding.actions)))

    def pairs(self) -> pl.DataFrame | None:
        """Return a row for every finite state and action, in that order; None where the log lacks some."""
        every_state, rows = np.unique(self.states, return_index=True)
        n_states = len(self.encoding.combinations) if self.encoding.combinations is not None else 0
        every_action = self._every_action()
        if every_state.size < n_states or every_action is None:
            return None
        state_columns = [column for column in self.state if column != self.action]
        states = self.table[rows.tolist()].select(state_columns)
        return states.join(every_action, how="cross", maintain_order="left_right")

    def _every_action(self) -> pl.DataFrame | None:
        """Return the actions as the log writes them, also those it never shows; None where that is not known."""
        every, rows = np.unique(self.actions, return_index=True)
        if every.size == len(self.encoding.actions):
            return self.table[rows.tolist()].select(self.action)
        kind = self.table.schema[self.action]
        if not (kind.is_integer() or kind == pl.String):
            return None
        return pl.DataFrame(pl.Series(self.action, self.encoding.actions).cast(kind))

    def _function_of(self, cost: str) -> StateActionCost | None:
        written = f'"{cost}"' if cost in self.source.columns else cost
        function = ColumnFunction(written, self.action, self.encoding)
        return StateActionCost(function, n_actions=len(self.encoding.actions))

    def _agrees(self, known: StateActionCost, computed: FloatArray) -> bool:
        """Say whether it gives what was computed from the log's own rows."""
        try:
            rows = known.of_actions(self.states)[np.arange(len(self.actions)), self.actions]
        except (PolarsError, ValueError, TypeError):
            return False
        return bool(np.allclose(rows, computed, rtol=SAME, atol=SAME))


@storable
@dataclass(frozen=True, eq=False)
class ColumnFunction:
    """A SQL expression over state and action columns, as a function of feature vectors and actions."""

    expression: str
    action: str  # the column
    encoding: Encoding

    def __call__(self, states: Array, actions: IntArray) -> FloatArray:
        """(n,)"""  # noqa: D400, D415
        labels = np.array(self.encoding.actions)[actions]
        column = pl.Series(self.action, labels.astype(np.int64) if self.encoding.integer_actions else labels)
        values = _numbers(self.encoding.decode(states).with_columns(column), sql_expression(self.expression))
        return np.full(len(states), np.nan) if values is None else values


def _numbers(table: pl.DataFrame, parsed: pl.Expr) -> FloatArray | None:
    """Return an expression's values as floats; None where it has none, or not only numbers."""
    try:
        values = table.with_columns(parsed.alias(VALUE))[VALUE].cast(pl.Float64)
    except PolarsError:
        return None
    found = np.array(values.fill_null(np.nan), dtype=np.float64)
    return found if np.isfinite(found).all() else None
