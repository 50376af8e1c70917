"""SQL expressions over a log's columns, and nothing else: no query, no file, no network.

A problem file may come from a stranger, and polars reads what a query names while it parses it. So an expression is
read token by token before polars sees it.
"""

import re
from collections.abc import Iterator

import polars as pl
from polars.exceptions import PolarsError

from checkrein.base.errors import CheckreinError

LONGEST = 20_000  # characters
LARGEST = 600  # tokens, but for numbers, texts and commas: lists of codes are long, and parsing chains takes squares
QUOTED = 200  # characters of it in a message
DEEPEST = 40  # brackets within brackets
QUERIES = frozenset({"select", "from", "with", "values", "table", "exists", "join", "union"})  # where a query begins
SPOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<text>'(?:[^']|'')*')
    |(?P<name>"(?:[^"]|"")+"|`[^`]+`)
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<word>[^\W\d]\w*)
    |(?P<comment>--|/\*|\#)
    |(?P<operator>::|<=>|<>|<=|>=|==|!=|\|\||//|[-+*/%<>=(),.\[\]&|^~!:])""",
    re.VERBOSE,
)


class ExpressionError(CheckreinError):
    """A text is no expression over columns; the message continues a sentence that quotes it."""


def sql_expression(text: str) -> pl.Expr:
    """Return what a text says of a row's columns; raise where it is no such expression."""
    _require_expression(text)
    try:
        return pl.sql_expr(text)
    except (PolarsError, ValueError) as reason:
        raise ExpressionError(f"is not a SQL expression: {first_line(reason)}") from None


def in_floats(text: str) -> str:
    """Return an expression with its whole numbers written as floats."""
    spoken = (f"{word}.0" if kind == "number" and word.isdigit() else word for kind, word in _tokens(text))
    return " ".join(spoken)


def first_line(reason: Exception) -> str:
    """Return what polars says, without its query plan."""
    return str(reason).strip().split("\n")[0]


def shortened(text: str) -> str:
    """Return a text as messages quote it."""
    return text if len(text) <= QUOTED else text[:QUOTED] + "..."


def _require_expression(text: str) -> None:
    if len(text) > LONGEST:
        raise ExpressionError(f"has {len(text):,} characters: at most {LONGEST:,} are read. Compute it as a column")
    counted = depth = 0
    before: list[str] = []  # the last words and brackets
    for kind, spoken in _tokens(text):
        counted += kind not in ("number", "text") and spoken != ","
        depth += (spoken in ("(", "[")) - (spoken in (")", "]"))
        if counted > LARGEST:
            raise ExpressionError(f"has more than {LARGEST} words and operators. Compute it as a column of the log")
        if depth > DEEPEST:
            raise ExpressionError(f"has more than {DEEPEST} brackets within each other. Compute it as a column")
        word = spoken.lower()
        extracting = word == "from" and before[-3:-1] == ["extract", "("]
        if kind == "word" and word in QUERIES and not extracting:
            raise ExpressionError(
                f"has the word {spoken}: only expressions over the log's columns are read, no queries. A column "
                "of that name goes in double quotes"
            )
        before = [*before[-2:], word]


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    place = 0
    while place < len(text):
        found = SPOKEN.match(text, place)
        if found is None or found.lastgroup == "comment":
            shown = text[place : place + 10]
            raise ExpressionError(
                f"cannot be read from {shown!r} on: only names, numbers, texts in single quotes, functions and "
                "operators are"
            )
        if found.lastgroup != "space":
            yield str(found.lastgroup), found.group()
        place = found.end()
