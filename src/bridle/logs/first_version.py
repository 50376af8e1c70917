"""init: a first problem file, guessed from a log's columns and commented so that it can be corrected."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from bridle.logs.sources import Source, open_source

GUESSES = {
    "episode": ("episode", "patient", "trajectory", "traj", "trip", "session", "user", "subject", "customer", "run"),
    "step": ("step", "hour", "t", "time", "timestep", "day", "stage", "visit", "seq"),
    "action": ("action", "treatment", "decision", "offer", "arm", "choice", "intervention", "dose"),
    "terminal": ("terminal", "terminated", "done", "ended", "end", "is_last", "final", "last"),
    "propensity": ("propensity", "probability", "prob", "pscore", "behavior_prob"),
    "objective": ("cost", "death", "died", "loss", "mortality", "reward", "return", "revenue", "outcome"),
}
REWARDS = ("reward", "return", "revenue")
CHANGE = "CHANGE ME"


def first_version(log: str, folder: Path) -> str:
    """Return the text of a problem file for a log; what could not be guessed says so."""
    source = open_source(log)
    schema = source.table.collect_schema()
    found: dict[str, str] = {}
    for role in GUESSES:
        name = _guess(role, [column for column in schema if column not in found.values()])
        if name is not None:
            found[role] = name
    rest = [column for column in schema if column not in found.values()]
    costs = [column for column in rest if schema[column].is_numeric() and _named_like_a_cost(column)]
    state = [column for column in rest if column not in costs] or [CHANGE]
    return _text(source, _relative(log, folder), found, state, costs)


def _guess(role: str, columns: Sequence[str]) -> str | None:
    lowered = {column.lower(): column for column in columns}
    for word in GUESSES[role]:
        for candidate in (word, f"{word}_id", f"{word}id", f"{word}s"):
            if candidate in lowered:
                return lowered[candidate]
    return None


def _named_like_a_cost(column: str) -> bool:
    return any(
        word in column.lower() for word in ("cost", "reward", "penalty", "loss", "harm", "risk", "price", "spend")
    )


def _relative(log: str, folder: Path) -> str:
    return log if Path(log).is_absolute() else os.path.relpath(log, folder)


def _text(source: Source, path: str, found: dict[str, str], state: Sequence[str], costs: Sequence[str]) -> str:
    head = source.table.head(3).collect()
    shown = [f"#   {name:<24} {kind!s:<10} {_examples(head[name])}" for name, kind in head.schema.items()]
    objective = found.get("objective", costs[0] if costs else CHANGE)
    direction = "maximize" if objective.lower() in REWARDS else "minimize"
    other = next((cost for cost in costs if cost != objective), CHANGE)
    optional = {
        "step": "orders the rows of an episode; without it they stand as they are",
        "terminal": "marks real ends; an episode that stops without one was merely cut off",
        "propensity": "how likely the logged action was, if that is known",
    }
    lines = [
        "# A first version, guessed from the log's columns: read it, correct it, then run `bridle inspect` on it.",
        "# The columns and the first values of each:",
        *shown,
        "",
        "[data]",
        f"path = {_quoted(path)}            # or a glob, or a list of files",
        f"episode = {_quoted(found.get('episode', CHANGE))}       # which rows belong together",
    ]
    for role, words in optional.items():
        lines.append(f"{'' if role in found else '# '}{role} = {_quoted(found.get(role, '...'))}       # {words}")
    lines += [
        f"state = {json.dumps(list(state), ensure_ascii=False)}     # what is known when the decision is made",
        f"action = {_quoted(found.get('action', CHANGE))}       # what was decided",
        '# missing = ["NA"]          # texts that stand for a missing value, beside the empty one',
        "",
        "[objective]",
        f"{direction} = {_quoted(objective)}      # a column or a SQL expression over the columns; or "
        + ("minimize" if direction == "maximize" else "maximize"),
        "",
        "[[constraint]]",
        f"name = {_quoted(other)}",
        f"cost = {_quoted(other)}   # a column or expression, e.g. \"CASE WHEN action = 'x' THEN 1 ELSE 0 END\"",
        'at_most = "100% of behavior"  # or a number on the expected sum per episode; or at_least',
        "",
        "[learn]",
        "discount = 0.99               # 1 for plain sums over an episode that ends",
        'functions = "tabular"         # finite states; "linear" for numbers',
        "holdout = 0.5                 # the share of episodes to judge by, not to learn from",
        "seed = 0",
        "",
    ]
    return "\n".join(lines)


def _examples(values: pl.Series) -> str:
    return ", ".join("(missing)" if value is None else str(value)[:20] for value in values.to_list())


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
