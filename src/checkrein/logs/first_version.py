"""init: a first problem file, guessed from a log's columns and commented so that it can be corrected."""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from checkrein.logs.roles import Roles, roles_of
from checkrein.logs.sources import open_source

GUESS_ROWS = 10_000  # to guess from
SHOWN = 60  # columns to list
CHANGE = "CHANGE ME"
MEANINGS = {
    "episode": "which rows belong together",
    "step": "orders the rows of an episode",
    "terminal": "marks real ends; an episode that stops without one was merely cut off",
    "propensity": "how likely the logged action was",
    "cluster": "whose episode it is: only clusters are independent then",
}
QUESTIONS = {
    "episode": "Which rows belong together? Without such a column, each row is an episode of one decision",
    "step": "Which column orders the rows of an episode? Without one they keep their order",
    "terminal": "Which column marks real ends? An episode that stops without a mark was merely cut off",
    "propensity": "Was it logged how likely the action was?",
    "cluster": "Whose episode is it, e.g. a patient with several? Only clusters are independent then",
}
ONE_STEP = {"step", "terminal"}  # not asked where each row is an episode
SAME_LENGTH = (
    "all episodes have {rows} rows here: if they end there by design, add a column that is 1 in their last rows and "
    "name it, and set discount = 1"
)
MOVED = "decisions that change"
NEAREST, FARTHEST = 0.8, 0.99  # discounts: they look 5 and 100 steps ahead


def first_version(logs: Sequence[str], folder: Path) -> str:
    """Return the text of a problem file for a log; what could not be guessed, or may be wrong, says so."""
    head = open_source(list(logs)).table.head(GUESS_ROWS).collect()
    paths = [log if Path(log).is_absolute() else os.path.relpath(log, folder) for log in logs]
    return "\n".join((*_columns(head), *_data(paths, roles := roles_of(head)), *_question(roles), *_learn(roles), ""))


def _columns(head: pl.DataFrame) -> Iterator[str]:
    yield "# A first version, guessed from the names and values of the log's columns: read it, correct it, then run"
    yield "# `checkrein inspect` on it. What is marked DOUBTFUL is more of a question than an answer."
    yield "# The columns and the first values of each:"
    for name, kind in list(head.schema.items())[:SHOWN]:
        yield _comment(f"{_said(name):<24} {kind!s:<10} {_examples(head[name][:3])}")
    if head.width > SHOWN:
        yield f"#   and {head.width - SHOWN} more"
    yield ""


def _data(paths: Sequence[str], roles: Roles) -> Iterator[str]:
    path = _quoted(paths[0]) if len(paths) == 1 else json.dumps(list(paths), ensure_ascii=False)
    yield "[data]"
    yield f"path = {path}            # or a glob, or a list of files"
    for role, meaning in MEANINGS.items():
        if role in roles.found:
            yield f"{role} = {_quoted(roles.found[role])}       # {_doubted(roles, role)}{meaning}"
        elif "episode" in roles.found or role not in ONE_STEP:
            yield f'# {role} = "..."       # {QUESTIONS[role]}'
            if role == "terminal" and roles.shortest == roles.longest > 1:
                yield _comment(SAME_LENGTH.format(rows=roles.longest))
    yield "# What is known before the decision is made. Take out outcomes, and everything else that comes after it."
    if roles.steady and len(roles.steady) < len(roles.state):
        yield f"# The same throughout an episode: {_said(', '.join(roles.steady))}"
    yield f"state = {json.dumps(roles.state or [CHANGE], ensure_ascii=False)}"
    for name, why in roles.left_out.items():
        yield _comment(f"left out: {_said(name) or '(no name)'} {_said(why)}")
    if "action" in roles.found:
        yield f"action = {_quoted(roles.found['action'])}       # {_doubted(roles, 'action')}what was decided"
    else:
        yield f"action = {_quoted(CHANGE)}       # which column says what was decided? None looks like it"
    yield '# missing = ["NA"]          # texts that stand for a missing value, besides the empty cell'
    yield ""


def _question(roles: Roles) -> Iterator[str]:
    objective = roles.found.get("objective") or next(iter(roles.costs), CHANGE)
    direction, other = ("maximize", "minimize") if roles.maximise else ("minimize", "maximize")
    yield "[objective]"
    doubt = _doubted(roles, "objective") if objective != CHANGE else "What should there be less of, or more? "
    yield f"{direction} = {_quoted(objective)}      # {doubt}A column or a SQL expression over the columns; or {other}"
    yield ""
    limited = next((cost for cost in roles.costs if cost != objective), None)
    yield "# What must not grow? Any number of limits, each on a column or an expression, for instance"
    yield _comment("""cost = "CASE WHEN action = 'x' THEN 1 ELSE 0 END\"""")
    yield "[[constraint]]"
    if limited is not None:
        yield f"name = {_quoted(limited)}"
        yield f"cost = {_quoted(limited)}"
        yield 'at_most = "105% of behavior"  # or a number on the expected sum, discounted as below; or at_least'
    else:
        yield f"name = {_quoted(MOVED)}  # no column looks like a cost: this limits how far the policy may move"
        yield 'kind = "total variation"'
        yield f"at_most = {roles.longest}  # of the decisions of an episode; {roles.longest} allows any"
    for cost in roles.costs:
        if cost not in (objective, limited):
            yield _comment(f"another cost: {_said(cost)}")
    yield ""


def _learn(roles: Roles) -> Iterator[str]:
    yield "[learn]"
    yield _discount(roles)
    yield '# functions = "auto"         # tables or features, as `inspect` says; see the docs for others'
    yield '# certificate = "cross-fitted"  # all episodes learn and judge; or "holdout", which keeps some to judge by'
    yield "seed = 0"


def _discount(roles: Roles) -> str:
    """Look as far ahead as episodes go, where nothing marks their ends: beyond, only stitches of them tell."""
    if "episode" not in roles.found:
        return "discount = 1                  # each row is an episode: nothing follows"
    if "terminal" in roles.found:
        return f"discount = {FARTHEST:g}               # 1 for plain sums over an episode that ends"
    discount = max(NEAREST, min(FARTHEST, round(1 - 1 / roles.longest, 2)))
    ahead = f"looks {1 / (1 - discount):.0f} steps ahead; the longest episode here has {roles.longest:,} rows"
    return f"discount = {discount:g}               # {ahead}"


def _doubted(roles: Roles, role: str) -> str:
    if role not in roles.doubts:
        return ""
    doubt = _said(roles.doubts[role])
    return f"DOUBTFUL: {doubt}{'' if doubt.endswith('?') else '.'} "


def _examples(values: pl.Series) -> str:
    return ", ".join("(missing)" if value is None else _said(str(value)[:20]) for value in values.to_list())


def _comment(text: str) -> str:
    return f"#   {text}"


def _said(text: str) -> str:
    """Return text of the log as a comment may hold it: on one line, and nothing but what is printed."""
    return "".join(character if character.isprintable() else " " for character in text)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
