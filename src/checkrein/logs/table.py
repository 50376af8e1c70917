"""read_logs: one row per decision, made into a Dataset."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from checkrein.base.arrays import Array, BoolArray, FloatArray, IntArray
from checkrein.base.errors import DataError
from checkrein.base.memory import require_memory
from checkrein.costs import StateActionCost
from checkrein.data.copies import Copies
from checkrein.data.dataset import Dataset
from checkrein.data.encoding import STEP_NUMBER, Encoding, StateColumn, category_codes
from checkrein.logs.admissible import WHAT, Admitted, admitted
from checkrein.logs.costs import CostChoice, columns_needed, cost_column, expression, named_costs
from checkrein.logs.horizon import beyond_words, rows_until, with_step_numbers
from checkrein.logs.kinds import STEPS, alike, gone, ordering, plain, require_kinds, require_present, require_told_apart
from checkrein.logs.known import Decisions
from checkrein.logs.oddities import column_warnings, row_warnings
from checkrein.logs.sources import FIRST, ROW, STEP, UNREADABLE, Source, file_trouble, open_source
from checkrein.logs.states import Finite, encode_actions, encode_states

CELL = 64  # bytes that a cell takes while a table is made into a Dataset, about
YES, NO = ("1", "1.0", "true", "t", "yes", "y"), ("0", "0.0", "false", "f", "no", "n")


@dataclass(frozen=True)
class Columns:
    """What the columns of a log mean: the arguments of `read_logs`, which explains them."""

    episode: str | None
    state: str | Sequence[str]
    action: str
    costs: str | Sequence[str] | Mapping[str, CostChoice]
    step: str | None = None
    terminal: str | None = None
    propensity: str | None = None
    n_actions: int | None = None
    finite: Finite = None
    missing: Sequence[str] = ()
    cluster: str | None = None
    encoding: Encoding | None = None  # of an earlier log, whose numbers for states and actions are to be kept
    horizon: int | None = None
    admissible: str | None = None  # which actions may be chosen: an expression over state and action columns, or 0/1


@dataclass(frozen=True)
class Reading:
    """A log that was read, and what was odd about it."""

    dataset: Dataset
    source: str
    warnings: tuple[str, ...]
    known: Mapping[str, StateActionCost] = field(default_factory=dict)  # the costs that are known for every action
    names: Array | None = None  # (e,) what each episode number is called in the log; None: itself
    copies: Copies | None = None  # the episodes that were left out, once they have been looked for
    copied_rows: int = 0  # of these
    why: str = ""  # states are finite, or not, where that was to be chosen
    beyond: int = 0  # rows after the horizon
    admitted: Admitted | None = None


def read_logs(
    source: object,
    *,
    episode: str | None = None,
    state: str | Sequence[str],
    action: str,
    costs: str | Sequence[str] | Mapping[str, CostChoice],
    step: str | None = None,
    terminal: str | None = None,
    propensity: str | None = None,
    n_actions: int | None = None,
    finite: bool | None = None,
    missing: Sequence[str] = (),
    cluster: str | None = None,
    horizon: int | None = None,
) -> Dataset:
    """Read a table of decisions: the next state is the state of the episode's next row.

    episode: which rows belong together; without it each row is an episode of one decision, which really ends
    source: path or glob of .csv or .parquet files, several of them, or a pandas, polars or Arrow table
    state: columns; integers and text become finite states, fractions make features (`finite` decides otherwise)
    costs: columns, or names with a column, a SQL expression (`previous_x` is x one row earlier), or a function of
        (states, actions, next_states, costs so far)
    step: orders the rows of an episode; without it they stand in the order of the log
    terminal: marks real ends; an episode that stops without one is truncated, and its last row has no next state
    missing: texts of a CSV file that stand for a missing value
    cluster: whose episode it is (a patient's, who has several): episodes of one are not independent of each other
    horizon: after so many decisions an episode ends: the "step number" joins the state, and later rows are left out
    """
    columns = Columns(
        episode,
        state,
        action,
        costs,
        step,
        terminal,
        propensity,
        n_actions=n_actions,
        finite=finite,
        missing=missing,
        cluster=cluster,
        horizon=horizon,
    )
    return read_table(source, columns).dataset


def read_table(source: object, columns: Columns) -> Reading:
    """Read a table of decisions like `read_logs`, and keep what was odd but legal."""
    episode, action, terminal = columns.episode, columns.action, columns.terminal
    state_columns = [columns.state] if isinstance(columns.state, str) else list(columns.state)
    choices = named_costs(columns.costs)
    opened = _opened(source, columns, state_columns)
    table = _collect(opened, _needed(opened, columns, state_columns, choices))
    table, episodes, steps, odd_steps = ordered(opened, table, episode, columns.step)
    logged = table.height
    if columns.horizon is not None:
        table, episodes, steps = rows_until(table, episodes, steps, columns.horizon)
        state_columns.append(STEP_NUMBER)
    last = np.append(episodes[1:] != episodes[:-1], True)
    ends = np.full(table.height, episode is None) if terminal is None else truth_values(opened, table, terminal)
    if columns.horizon is not None:
        ends |= steps == columns.horizon - 1
    why = ""
    if columns.encoding is None:
        actions, labels = encode_actions(opened, table, action, columns.n_actions)
        whole = table[action].dtype.is_integer()
        states, encoding, why = encode_states(
            opened, table, state_columns, labels, columns.finite, integer_actions=whole, action=action
        )
        encoding = replace(encoding, horizon=columns.horizon)
    else:
        encoding = replace(columns.encoding, memory=None)
        actions = category_codes(StateColumn(action, encoding.actions), table)
        states = encoding.encode(table)
    following = np.where(last.reshape(-1, *[1] * (states.ndim - 1)), states, np.roll(states, -1, axis=0))
    computed: dict[str, FloatArray] = {}
    for name, cost in choices.items():
        if isinstance(cost, str):
            computed[name] = cost_column(opened, table, episode, name, cost)
        else:
            computed[name] = np.asarray(cost(states, actions, following, computed), dtype=np.float64)
    decisions = Decisions(opened, table, state_columns, action, states, actions, encoding)
    asked = columns.admissible if columns.encoding is None else None  # a log that judges is asked for no choice
    found = None if asked is None else admitted(decisions, asked)
    dataset = Dataset.from_arrays(
        states=states,
        actions=actions,
        next_states=following,
        costs=computed,
        terminals=ends,
        next_observed=~last,
        episodes=episodes,
        steps=steps,
        propensities=None if columns.propensity is None else _probabilities(opened, table, columns.propensity),
        n_actions=len(encoding.actions),
        n_states=None if encoding.combinations is None else len(encoding.combinations),
        encoding=encoding,
        clusters=None if columns.cluster is None else _clusters(opened, table, episodes, columns),
    )
    dataset = replace(dataset, horizon=columns.horizon)
    beyond = logged - table.height
    warnings = [*opened.warnings, *row_warnings(dataset, last, terminal, one_step=episode is None), *odd_steps]
    warnings += [*column_warnings(table, state_columns, columns.step, episode), *alike("action", table[action])]
    warnings += [*beyond_words(columns.horizon, beyond), *(() if found is None else found.warnings)]
    first = np.flatnonzero(np.diff(episodes, prepend=-1))
    names = np.array(table[episode or ROW].gather(first).cast(pl.String), dtype=np.str_)
    known = decisions.known_costs(choices, computed)
    return Reading(dataset, opened.name, tuple(warnings), known, names, why=why, beyond=beyond, admitted=found)


def _opened(source: object, columns: Columns, state: Sequence[str]) -> Source:
    """Return a log that has all its columns, of kinds that can play their parts."""
    opened = open_source(source, columns.missing)
    opened = replace(opened, table=plain(opened.table))
    if columns.episode is None:
        require_one_step(step=columns.step, terminal=columns.terminal, horizon=columns.horizon)
    if not state:
        raise DataError("state is empty: name at least one column")
    opened.require(*state, *_alone(columns))
    require_kinds(opened, parts_of(columns, state))
    return opened if columns.horizon is None else with_step_numbers(opened, columns.horizon)


def _needed(source: Source, columns: Columns, state: Sequence[str], choices: Mapping[str, CostChoice]) -> list[str]:
    """Return the columns to read."""
    needed = {*state, *columns_needed(source, choices), *(name for name in _alone(columns) if name is not None)}
    if columns.admissible is not None:
        roots = expression(source, WHAT, columns.admissible, what=WHAT).meta.root_names()
        needed |= set(roots) & set(source.columns)
    return sorted(needed)


def _alone(columns: Columns) -> tuple[str | None, ...]:
    """Return the columns that play a part alone."""
    return columns.episode, columns.action, columns.step, columns.terminal, columns.propensity, columns.cluster


def parts_of(columns: Columns, state: Sequence[str]) -> dict[str, Sequence[str | None]]:
    """Return which columns play which part, by what the part is called in messages."""
    return {
        "episode": [columns.episode],
        "state": state,
        "action": [columns.action],
        STEPS: [columns.step],
        "terminal": [columns.terminal],
        "propensity": [columns.propensity],
        "cluster": [columns.cluster],
    }


def _collect(source: Source, columns: Sequence[str]) -> pl.DataFrame:
    require_memory(
        float(CELL) * source.rows * len(columns),
        f"reading {source.rows:,} rows of {len(columns)} columns",
        "read a part of the episodes, or fewer columns; checkrein.logs.stream.read_compressed reads finite states as "
        "they stream by",
    )
    try:
        table = source.table.select(columns).with_row_index(ROW).collect()
    except UNREADABLE as reason:
        trouble = [file_trouble(file, reason) for file in source.files] or [str(reason).splitlines()[0]]
        raise DataError(f"{source.name} cannot be read: {trouble[0]}") from None
    if source.files and table.height != source.rows:
        raise DataError(
            f"{source.name} had {source.rows:,} rows when it was opened, and {table.height:,} when it was read: wait "
            "until it is written"
        )
    return table


def require_one_step(**columns: str | int | None) -> None:
    """Raise where columns are named that make sense only for episodes of several rows."""
    named = next((f"{role} = {name!r}" for role, name in columns.items() if name is not None), None)
    if named is not None:
        raise DataError(
            f"{named}, but no episode column is named: each row is then an episode of one decision, which ends. "
            "Name episode, too, or leave it out"
        )


def ordered(
    source: Source, table: pl.DataFrame, episode: str | None, step: str | None
) -> tuple[pl.DataFrame, IntArray, IntArray, list[str]]:
    """Return the table by episode (in the order of their first rows) and step, with both as integers from 0 on.

    Last come warnings of what is odd about the steps.
    """
    if episode is None:
        return table, np.arange(table.height), np.zeros(table.height, np.int64), []
    odd = ""
    for column in (episode, step):
        if column is not None:
            require_present(source, table, column)
    require_told_apart(source, table, episode, "episode")
    table = table.with_columns(pl.col(ROW).min().over(episode).alias(FIRST))
    if step is None:
        table = table.sort([FIRST, ROW])
    else:
        key, odd = ordering(source, table, step)
        table = table.with_columns(key.alias(STEP)).sort([FIRST, STEP, ROW])
        twice = ((table[FIRST] == table[FIRST].shift(1)) & (table[STEP] == table[STEP].shift(1))).fill_null(False)
        if twice.any():
            row = int(twice.arg_max() or 0)
            earlier, later = sorted((table[ROW][row - 1], table[ROW][row]))
            raise DataError(
                f"step {table[step][row]} of episode {table[episode][row]} is in {source.place(earlier)} "
                f"and again in {source.place(later)}"
            )
    starts = np.array(table[FIRST])
    begins = np.append(True, starts[1:] != starts[:-1])
    episodes = np.cumsum(begins) - 1
    steps = np.arange(table.height) - np.flatnonzero(begins)[episodes]
    return table.drop(FIRST, STEP, strict=False), episodes, steps, [odd] if odd else []


def truth_values(source: Source, table: pl.DataFrame, name: str) -> BoolArray:
    """(n,) of a column of true and false, however they are written."""
    text = table[name].cast(pl.String).str.to_lowercase()
    yes = text.is_in(YES).fill_null(False)
    good = (yes | text.is_in(NO)).fill_null(False)
    if not good.all():
        row = int((~good).arg_max() or 0)
        value = table[name][row]
        shown = "missing" if value is None else repr(value)
        place = source.place(table[ROW][row])
        raise DataError(f"terminal {name!r} is {shown} in {place}: it must be true or false (1 or 0, yes or no)")
    return np.array(yes)


def _probabilities(source: Source, table: pl.DataFrame, name: str) -> FloatArray:
    numbers = table[name].cast(pl.Float64, strict=False)
    good = ((numbers > 0) & (numbers <= 1)).fill_null(False)
    if not good.all():
        row = int((~good).arg_max() or 0)
        value = table[name][row]
        raise DataError(f"propensity {name!r} is {value!r} in {source.place(table[ROW][row])}: it must lie in (0, 1]")
    return np.array(numbers)


def _clusters(source: Source, table: pl.DataFrame, episodes: IntArray, columns: Columns) -> IntArray:
    """(n,) numbers of whose each row is; raise where it is not known, or not one for an episode."""
    name = columns.cluster or ""
    text, rows = table[name].cast(pl.String).fill_null("").to_numpy(), table[ROW]
    missing = gone(table[name])
    if missing.any():
        place = source.place(rows[int(missing.arg_max() or 0)])
        raise DataError(f"cluster {name!r} is missing in {place}: every row must say whose episode it is")
    require_told_apart(source, table, name, "cluster")
    first = np.append(True, episodes[1:] != episodes[:-1])
    begins = np.flatnonzero(first)[episodes]
    other = text != text[begins]
    if other.any():
        row = int(np.argmax(other))
        begin = int(begins[row])
        raise DataError(
            f"episode {table[columns.episode or ROW][row]} has {name!r} {text[begin]} in {source.place(rows[begin])}, "
            f"but {text[row]} in {source.place(rows[row])}: an episode belongs to one cluster, fix the log or split it"
        )
    return np.unique(text.astype(str), return_inverse=True)[1]
