"""How a table's state and action columns become numbers, and what they were called."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import polars as pl

from checkrein.base.arrays import Array, IntArray, frozen
from checkrein.base.errors import DataError
from checkrein.data.encoding import MISSING, Encoding, StateColumn, as_text, category_codes
from checkrein.logs.finite import StateChoice
from checkrein.logs.sources import ROW, Source

Finite = bool | Literal["auto"] | None  # whether states are finite; None: by the types of their columns
MOSTLY_NUMBERS = 0.5  # a text column of which more than this share are numbers is a number column with text in it


def encode_states(
    source: Source,
    table: pl.DataFrame,
    names: Sequence[str],
    actions: tuple[str, ...],
    finite: Finite,
    *,
    integer_actions: bool,
) -> tuple[Array, Encoding, str]:
    """Return states, (n,) or (n, d), their encoding, and why they are what they are where that was to be chosen.

    finite: None takes columns of integers and text as finite states, and any column of fractions as features; "auto"
        goes by how often a combination comes up
    """
    kinds = {name: table.schema[name] for name in names}
    for name in names:
        require_no_text_among_numbers(source, table, name, None)
    why = ""
    if finite == "auto":
        choice = StateChoice.of(table, names)
        as_finite, why = choice.finite, choice.why
    else:
        as_finite = not any(kind.is_float() for kind in kinds.values()) if finite is None else finite
    columns = tuple(_category(table, name) if as_finite else _feature(source, table, name) for name in names)
    if not as_finite:
        encoding = Encoding(actions, columns, integer_actions=integer_actions)
        return encoding.encode(table), encoding, why
    codes = np.column_stack([category_codes(column, table) for column in columns])
    combinations, states = np.unique(codes, axis=0, return_inverse=True) if len(names) > 1 else _single(codes)
    return states.astype(np.int64, copy=False), Encoding(actions, columns, frozen(combinations), integer_actions), why


def _single(codes: IntArray) -> tuple[IntArray, IntArray]:
    return np.arange(codes.max() + 1)[:, None], codes[:, 0]


def _category(table: pl.DataFrame, name: str) -> StateColumn:
    return StateColumn(name, ordered_labels(table[name]))


def ordered_labels(values: pl.Series) -> tuple[str, ...]:
    """Return the distinct values as text, in the order of the values themselves; a missing one last."""
    distinct = as_text(values.drop_nulls().unique().sort()).to_list()
    return tuple(distinct + [MISSING] * bool(values.has_nulls()))


def _feature(source: Source, table: pl.DataFrame, name: str) -> StateColumn:
    values = table[name]
    if not (values.dtype.is_numeric() or values.dtype in (pl.Boolean, pl.Null)):
        return _category(table, name)
    numbers = values.cast(pl.Float64).fill_nan(None)
    infinite = numbers.is_infinite().fill_null(False)
    if infinite.any():
        row = int(infinite.arg_max() or 0)
        raise DataError(f"state {name!r} is {numbers[row]} in {source.place(table[ROW][row])}: it must be finite")
    if not numbers.has_nulls():
        return StateColumn(name)
    mean = numbers.mean()
    return StateColumn(name, fill=float(mean) if isinstance(mean, float) else 0.0)


def require_no_text_among_numbers(source: Source, table: pl.DataFrame, name: str, counts: pl.Series | None) -> None:
    """Raise where a column is mostly numbers but not only; each row stands for as many as `counts` says."""
    values = table[name]
    if values.dtype != pl.String:
        return
    numbers = values.cast(pl.Float64, strict=False).is_not_null()
    text = ~numbers & values.is_not_null()
    weights = pl.repeat(1, len(values), eager=True) if counts is None else counts
    if text.any() and int((weights * numbers).sum()) > MOSTLY_NUMBERS * int(weights.sum()):
        row = int(text.arg_max() or 0)
        raise DataError(
            f"state {name!r} is {values[row]!r} in {source.place(table[ROW][row])}, but mostly numbers: "
            "fix it, or list the texts that stand for a missing value under missing"
        )


def encode_actions(
    source: Source, table: pl.DataFrame, name: str, n_actions: int | None
) -> tuple[IntArray, tuple[str, ...]]:
    """Return action codes (n,) and what each is called; with `n_actions`, integers are the codes themselves."""
    values = table[name]
    if values.has_nulls():
        row = int(values.is_null().arg_max() or 0)
        raise DataError(f"action {name!r} is missing in {source.place(table[ROW][row])}: every decision needs one")
    if n_actions is not None:
        return _numbered(source, table, name, n_actions), tuple(map(str, range(n_actions)))
    labels = ordered_labels(values)
    return category_codes(StateColumn(name, labels), table), labels


def _numbered(source: Source, table: pl.DataFrame, name: str, n_actions: int) -> IntArray:
    values = table[name]
    whole = values.cast(pl.Int64, strict=False)
    wrong = (whole.is_null() | (whole < 0) | (whole >= n_actions)).fill_null(True)
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        raise DataError(
            f"action {values[row]!r} in {source.place(table[ROW][row])}, but n_actions is {n_actions}: with n_actions "
            f"actions are the integers 0 to {n_actions - 1}; leave it out to take them as they are"
        )
    return np.array(whole)
