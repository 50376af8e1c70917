"""How a table's state and action columns become numbers, and what they were called."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import polars as pl

from checkrein.base.arrays import Array, IntArray, frozen
from checkrein.base.errors import DataError
from checkrein.data.columns import LARGEST, TOO_LARGE, require_few_actions
from checkrein.data.encoding import MISSING, Encoding, StateColumn, as_text, category_codes
from checkrein.logs.finite import StateChoice
from checkrein.logs.kinds import gone, require_no_text_for_missing
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
    action: str,
) -> tuple[Array, Encoding, str]:
    """Return states, (n,) or (n, d), their encoding, and why they are what they are where that was to be chosen.

    finite: None takes columns of integers and text as finite states, and any column of fractions as features; "auto"
        goes by how often a combination comes up, and the decisions in it
    """
    kinds = {name: table.schema[name] for name in names}
    for name in names:
        require_no_text_among_numbers(source, table, name, None)
        require_no_text_for_missing(source, table, name)
    why = ""
    if finite == "auto":
        choice = StateChoice.of(table, names, action)
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
    texts = as_text(values.drop_nulls().unique().sort())
    if texts.n_unique() < len(texts):
        twice = texts.filter(texts.is_duplicated())[0]
        raise DataError(
            f"{values.name!r} has values that differ, but are written alike as {twice!r}: make a column of numbers or "
            "text of them"
        )
    distinct = texts.to_list()
    return tuple(distinct + [MISSING] * bool(values.has_nulls()))


def _feature(source: Source, table: pl.DataFrame, name: str) -> StateColumn:
    values = table[name]
    if not (values.dtype.is_numeric() or values.dtype in (pl.Boolean, pl.Null)):
        return _category(table, name)
    numbers = values.cast(pl.Float64).fill_nan(None)
    too_large = (numbers.abs() > LARGEST).fill_null(False)
    if too_large.any():
        row = int(too_large.arg_max() or 0)
        what = f"state {name!r} is {numbers[row]} in {source.place(table[ROW][row])}"
        if numbers.is_infinite()[row]:
            raise DataError(f"{what}: it must be finite")
        raise DataError(f"{what}, which is too large to compute with: {TOO_LARGE}")
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
    said = values.str.to_lowercase() if values.dtype == pl.String else None
    unknown = gone(values) if said is None else values.is_null() | (said == "nan").fill_null(False)
    if unknown.any():
        row = int(unknown.arg_max() or 0)
        raise DataError(f"action {name!r} is missing in {source.place(table[ROW][row])}: every decision needs one")
    if values.dtype.is_float() and values.is_infinite().any():
        row = int(values.is_infinite().arg_max() or 0)
        raise DataError(f"action {name!r} is {values[row]} in {source.place(table[ROW][row])}: it must be finite")
    require_few_actions(values.n_unique() if n_actions is None else n_actions)
    if n_actions is not None:
        return _numbered(source, table, name, n_actions), tuple(map(str, range(n_actions)))
    labels = ordered_labels(values)
    return category_codes(StateColumn(name, labels), table), labels


def _numbered(source: Source, table: pl.DataFrame, name: str, n_actions: int) -> IntArray:
    values = table[name]
    whole = values.cast(pl.Int64, strict=False)
    cut = (whole != values).fill_null(True) if values.dtype.is_float() else pl.repeat(False, len(values), eager=True)
    wrong = (whole.is_null() | cut | (whole < 0) | (whole >= n_actions)).fill_null(True)
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        raise DataError(
            f"action {values[row]!r} in {source.place(table[ROW][row])}, but n_actions is {n_actions}: with n_actions "
            f"actions are the integers 0 to {n_actions - 1}; leave it out to take them as they are"
        )
    return np.array(whole)
