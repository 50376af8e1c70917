import polars as pl
import pytest

from checkrein import EverEntered, Problem, read_logs
from checkrein.base.errors import DataError, ProblemError
from checkrein.data import expressions
from checkrein.data.expressions import ExpressionError, sql_expression

TABLE = pl.DataFrame({"a": [1.0, -2.0, 3.0], "from": [1, 2, 3], "drug": ["none", "it''s", "b"]})

GOOD = {
    "a": "a",
    "arithmetic": "-a * 2.5e-1 + .5 % 3 // 1",
    "a case": "CASE WHEN drug = 'none' THEN 0 WHEN a >= 1 AND NOT a <> 2 THEN 1 ELSE 2 END",
    "a list of codes": "CASE WHEN a IN (" + ", ".join(map(str, range(2000))) + ") THEN 1 ELSE 0 END",
    "a text with words": "CASE WHEN drug = 'select * from x -- ; $' THEN 1 ELSE 0 END",
    "a quoted name": '"from" + 1',
    "a window": "SUM(a) OVER (PARTITION BY drug)",
    "a part of a date": "EXTRACT(YEAR FROM DATE '2020-01-01')",
    "a cast": "CAST(a AS INT) + a::int",
    "nulls": "COALESCE(NULLIF(a, 1), 0) IS NOT NULL",
    "between and like": "a BETWEEN 1 AND 2 OR drug LIKE 'n%'",
}

HOSTILE = {
    "a query": "(SELECT count(*) FROM read_csv('http://localhost:1/x'))",
    "in lower case": "a + (select 1)",
    "a path": "(SELECT 1 FROM read_parquet('/etc/passwd'))",
    "inside a list": "a IN (SELECT a FROM read_csv('/etc/passwd'))",
    "exists": "EXISTS (SELECT 1)",
    "a common table": "(WITH q AS (SELECT 1) SELECT * FROM q)",
    "a bare from": "(FROM read_csv('/etc/passwd'))",
    "values": "(VALUES (1))",
    "a table": "TABLE x",
    "after extract": "EXTRACT(YEAR FROM a) FROM x",
    "between comments": "a /* */ + (/* */ SELECT 1)",
    "a comment": "a -- b",
    "two statements": "a; DROP TABLE x",
    "dollar quotes": "$$a$$",
    "an open text": "a = 'b",
    "a control character": "a \x00",
}


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD)
def test_expressions_over_columns_are_read(text):
    assert TABLE.with_columns(sql_expression(text).alias("x")).height == 3


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_all_else_is_refused_before_polars_sees_it(text, monkeypatch):
    monkeypatch.setattr(expressions.pl, "sql_expr", lambda _: pytest.fail("polars parsed it"))
    with pytest.raises(ExpressionError):
        sql_expression(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a" + " " * 30_000, "30,001 characters"),
        ("a" + "+1" * 5000, "more than 600 words and operators"),
        (" AND ".join(["a > 1"] * 1000), "more than 600 words and operators"),
        ("(" * 50 + "a" + ")" * 50, "more than 40 brackets"),
        ("ABS(" * 5000 + "a" + ")" * 5000, "characters|brackets|words"),
    ],
)
def test_what_would_take_long_to_parse_is_refused_at_once(text, message, monkeypatch):
    monkeypatch.setattr(expressions.pl, "sql_expr", lambda _: pytest.fail("polars parsed it"))
    with pytest.raises(ExpressionError, match=message):
        sql_expression(text)


def test_a_hostile_cost_or_condition_is_an_error_that_quotes_it():
    query = HOSTILE["a query"]
    log = pl.DataFrame({"e": [0, 0, 1], "s": [0, 1, 0], "d": [0, 1, 1]})
    named = {"episode": "e", "state": "s", "action": "d"}
    with pytest.raises(DataError, match=r"cost 'g': .*has the word SELECT"):
        read_logs(log, **named, costs={"g": query})
    dataset = read_logs(log, **named, costs={"d": "d"})
    with pytest.raises(ProblemError, match=r"the condition .*has the word SELECT"):
        Problem(dataset, objective=EverEntered(query), constraints=[], discount=0.9)
