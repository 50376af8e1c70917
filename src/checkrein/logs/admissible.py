"""Which actions may ever be chosen: an expression over state and action columns, or a column of yes and no."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from checkrein.base.arrays import Array, BoolArray, frozen
from checkrein.base.errors import DataError
from checkrein.data.expressions import first_line, shortened
from checkrein.logs.costs import expression
from checkrein.logs.known import Decisions
from checkrein.logs.sources import ROW
from checkrein.policies.column_mask import VALUE, ColumnMask, yes
from checkrein.problem.admissible import AdmissibleActions

WHAT = "admissible"


@dataclass(frozen=True)
class Admitted:
    """What may be chosen, and which logged rows chose it."""

    actions: AdmissibleActions
    rows: BoolArray  # (n,)
    warnings: tuple[str, ...] = ()


def admitted(decisions: Decisions, text: str) -> Admitted:
    """Ask an expression for every state and action; one of other columns is known only for what was logged."""
    source = decisions.source
    parsed = expression(source, WHAT, text, what=WHAT)
    earlier = [root for root in parsed.meta.root_names() if root not in source.columns]
    if earlier:
        raise DataError(f"{WHAT}: {shortened(text)!r} names {earlier[0]!r}: make a state column of what came before")
    rows = _flags(decisions, parsed, text)
    others = sorted(set(parsed.meta.root_names()) - {*decisions.state, decisions.action})
    said: tuple[str, ...] = ()
    finite = decisions.states.ndim == 1
    if others and not finite:
        raise DataError(
            f"{WHAT}: {shortened(text)!r} names {others[0]!r}, which is no state column, and states are numbers: what "
            "was logged does not say what may be done elsewhere. Add it to state, or write an expression over the "
            "state columns and the action"
        )
    mask: BoolArray | ColumnMask
    if others:
        mask, said = _by_pairs(decisions, rows)
    elif finite:
        mask = _by_states(decisions, parsed, text)
    else:
        mask = _by_columns(decisions, text, rows)
    actions = AdmissibleActions(mask)
    _require_some(decisions, actions.allowed(decisions.states), text, logged_only=bool(others))
    return Admitted(actions, rows, (*said, *_broken(rows)))


def _flags(decisions: Decisions, parsed: pl.Expr, text: str) -> BoolArray:
    """(n,) what the rows say; each must say yes or no."""
    table = decisions.table
    try:
        values = table.with_columns(parsed.alias(VALUE))[VALUE]
        numbers = values.cast(pl.Float64)
    except PolarsError as reason:
        raise DataError(f"{WHAT}: {shortened(text)!r} cannot be computed: {first_line(reason)}") from None
    wrong = ~numbers.is_in([0.0, 1.0]).fill_null(False)
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        shown = "missing" if values[row] is None else repr(values[row])
        raise DataError(f"{WHAT}: {shortened(text)!r} is {shown} in {_place(decisions, row)}: it must be 1 or 0")
    return np.array(numbers == 1.0)


def _by_states(decisions: Decisions, parsed: pl.Expr, text: str) -> BoolArray:
    """Evaluate it for every finite state and action."""
    pairs = decisions.pairs()
    if pairs is None:
        raise DataError(
            f"{WHAT}: {shortened(text)!r} cannot be asked of actions that were never logged: leave n_actions out"
        )
    found = pairs.with_columns(yes(parsed))[VALUE].to_numpy()
    return frozen(found.reshape(-1, len(decisions.encoding.actions)))


def _by_columns(decisions: Decisions, text: str, rows: BoolArray) -> ColumnMask:
    """Return it as a function of feature vectors, held against what it says of the log's own rows."""
    written = f'"{text}"' if text in decisions.source.columns else text
    schema, encoding = decisions.table.schema, decisions.encoding
    kind = schema[decisions.action]
    actions: Array | None = None
    if kind.is_numeric() or kind == pl.Boolean:
        labels = pl.Series(encoding.actions)
        actions = frozen((labels == "true" if kind == pl.Boolean else labels.cast(kind)).to_numpy())
    booleans = tuple(name for name in decisions.state if schema[name] == pl.Boolean)
    mask = ColumnMask(written, decisions.action, encoding, actions, booleans)
    try:
        found = mask.allowed(decisions.states)[np.arange(len(rows)), decisions.actions]
    except PolarsError as reason:
        raise DataError(
            f"{WHAT}: {shortened(text)!r} cannot be computed of states that are numbers: {first_line(reason)}"
        ) from None
    if not np.array_equal(found, rows):
        row = int(np.argmax(found != rows))
        raise DataError(
            f"{WHAT}: {shortened(text)!r} is {int(rows[row])} in {_place(decisions, row)}, but {int(found[row])} of "
            "its state as numbers: write it so that whole numbers and missing values do not matter"
        )
    return mask


def _by_pairs(decisions: Decisions, rows: BoolArray) -> tuple[BoolArray, tuple[str, ...]]:
    """Allow what was logged in a state and always was admissible there."""
    n_states, n_actions = int(decisions.states.max()) + 1, len(decisions.encoding.actions)
    pair = decisions.states * n_actions + decisions.actions
    logged = np.bincount(pair, minlength=n_states * n_actions)
    yes = np.bincount(pair, rows, n_states * n_actions)
    mixed = int(((yes > 0) & (yes < logged)).sum())
    said = f"{WHAT} is 1 in some rows and 0 in others of {mixed} pairs of a state and an action, which count as 0"
    table = ((logged > 0) & (yes == logged)).reshape(n_states, n_actions)
    return frozen(table), (said,) if mixed else ()


def _require_some(decisions: Decisions, allowed: BoolArray, text: str, *, logged_only: bool) -> None:
    """Raise where no action may be chosen."""
    none = ~allowed.any(axis=1)
    if not none.any():
        return
    row = int(np.argmax(none))
    encoding = decisions.encoding
    where = "" if encoding.combinations is None else f" (the state {encoding.states[decisions.states[row]]})"
    why = "no action that was logged there is admissible" if logged_only else "no action is admissible"
    advice = "write an expression over state and action columns" if logged_only else "allow one"
    raise DataError(f"{WHAT}: {shortened(text)!r}: in {_place(decisions, row)}{where} {why}: {advice}")


def _broken(rows: BoolArray) -> tuple[str, ...]:
    broken = int((~rows).sum())
    if not broken:
        return ()
    share = broken / len(rows)
    return (
        f"in {broken:,} of {len(rows):,} rows ({share:.2%}) behavior took an action that is not admissible: they are "
        "kept as data, and the policy never chooses so",
    )


def _place(decisions: Decisions, row: int) -> str:
    return decisions.source.place(decisions.table[ROW][row])
