"""init: a first problem file, guessed from a log's columns and commented so that it can be corrected."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from checkrein.logs.sources import open_source
from checkrein.logs.table import NO, YES

GUESSES = {
    "episode": ("episode", "patient", "trajectory", "traj", "trip", "session", "user", "subject", "customer", "run"),
    "cluster": ("cluster", "patient", "subject", "customer", "client", "user"),  # where they are not episodes already
    "step": ("step", "hour", "t", "time", "timestep", "day", "stage", "visit", "seq"),
    "terminal": ("terminal", "terminated", "done", "ended", "end", "is_last", "final", "last"),
    "action": ("action", "treatment", "decision", "offer", "arm", "choice", "intervention", "dose"),
    "propensity": ("propensity", "probability", "prob", "pscore", "behavior_prob"),
    "objective": ("cost", "death", "died", "loss", "mortality", "reward", "return", "revenue", "outcome", "profit"),
}
REWARDS = ("reward", "return", "revenue", "profit")
COSTS = ("cost", "reward", "penalty", "loss", "harm", "risk", "price", "spend", "usage", "dose")
GUESS_ROWS = 2000  # to guess from
FEW = 20  # texts that an action may have
CHANGE = "CHANGE ME"


def first_version(logs: Sequence[str], folder: Path) -> str:
    """Return the text of a problem file for a log; what could not be guessed says so."""
    source = open_source(list(logs))
    head = source.table.head(GUESS_ROWS).collect()
    found: dict[str, str] = {}
    for role in GUESSES:
        left = [column for column in head.columns if column not in found.values()]
        name = _by_name(role, left) or _by_content(role, head.select(left))
        if name is not None:
            found[role] = name
    rest = [column for column in head.columns if column not in found.values()]
    costs = [column for column in rest if head.schema[column].is_numeric() and _like(column, COSTS)]
    state = [column for column in rest if column not in costs]
    paths = [log if Path(log).is_absolute() else os.path.relpath(log, folder) for log in logs]
    return _text(head, paths, found, state, costs)


def _by_name(role: str, columns: Sequence[str]) -> str | None:
    lowered = {column.lower(): column for column in columns}
    for word in GUESSES[role]:
        for candidate in (word, f"{word}_id", f"{word}id", f"{word}s"):
            if candidate in lowered:
                return lowered[candidate]
    return next((column for column in columns if role == "step" and _like(column, ("date", "time"))), None)


def _by_content(role: str, head: pl.DataFrame) -> str | None:
    """Guess an action from few texts, an end from two that mean yes and no."""
    for column in head.iter_columns():
        words = {str(value).lower() for value in column.drop_nulls().unique().to_list()}
        if role == "terminal" and words and words <= {*YES, *NO} and column.dtype in (pl.String, pl.Boolean):
            return column.name
        if role == "action" and column.dtype == pl.String and 1 < len(words) <= FEW:
            return column.name
    return None


def _like(column: str, words: Sequence[str]) -> bool:
    return any(word in column.lower() for word in words)


def _text(
    head: pl.DataFrame, paths: Sequence[str], found: dict[str, str], state: Sequence[str], costs: Sequence[str]
) -> str:
    shown = [f"#   {name:<24} {kind!s:<10} {_examples(head[name][:3])}" for name, kind in head.schema.items()]
    objective = found.get("objective", costs[0] if costs else CHANGE)
    direction = "maximize" if objective.lower() in REWARDS else "minimize"
    path = _quoted(paths[0]) if len(paths) == 1 else json.dumps(list(paths), ensure_ascii=False)
    other = next((cost for cost in costs if cost != objective), CHANGE)
    optional = {
        "step": "orders the rows of an episode; without it they keep their order",
        "terminal": "marks real ends; an episode that stops without one was merely cut off",
        "propensity": "how likely the logged action was, if that is known",
        "cluster": "whose episode it is, e.g. a patient with several: only clusters are independent then",
    }
    lines = [
        "# A first version, guessed from the log's columns: read it, correct it, then run `checkrein inspect` on it.",
        "# The columns and the first values of each:",
        *shown,
        "",
        "[data]",
        f"path = {path}            # or a glob, or a list of files",
        f"episode = {_quoted(found.get('episode', CHANGE))}       # which rows belong together",
    ]
    for role, words in optional.items():
        lines.append(f"{'' if role in found else '# '}{role} = {_quoted(found.get(role, '...'))}       # {words}")
    lines += [
        "# What is known before the decision is made. Take out outcomes, and everything else that comes after it.",
        f"state = {json.dumps(list(state) or [CHANGE], ensure_ascii=False)}",
        f"action = {_quoted(found.get('action', CHANGE))}       # what was decided",
        '# missing = ["NA"]          # texts that stand for a missing value, besides the empty cell',
        "",
        "[objective]",
        f"{direction} = {_quoted(objective)}      # a column or a SQL expression over the columns; or "
        + ("minimize" if direction == "maximize" else "maximize"),
        "",
        "[[constraint]]",
        f"name = {_quoted(other)}",
        f"cost = {_quoted(other)}   # a column or expression, e.g. \"CASE WHEN action = 'x' THEN 1 ELSE 0 END\"",
        'at_most = "100% of behavior"  # or a number on the expected sum, discounted as below; or at_least',
        "",
        "[learn]",
        "discount = 0.99               # 1 for plain sums over an episode that ends",
        '# functions = "auto"         # tables or features, as `inspect` says; see the docs for others',
        '# certificate = "cross-fitted"  # all episodes learn and judge; or "holdout", which keeps some to judge by',
        "seed = 0",
        "",
    ]
    return "\n".join(lines)


def _examples(values: pl.Series) -> str:
    return ", ".join("(missing)" if value is None else str(value)[:20] for value in values.to_list())


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
