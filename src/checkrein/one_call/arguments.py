"""The arguments of `fit` as a problem file, so that both are checked, learned from and judged in the same way."""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from checkrein.base.errors import ArgumentError, ProblemError
from checkrein.base.toml import written
from checkrein.runs.problem_file import ProblemFile, parse_problem
from checkrein.runs.sections import SHARE

IN_MEMORY = "a table in memory"  # the path of a log that is no file
LIMIT = re.compile(r"^\s*at (most|least)\s+(.+?)(\s+per\s+step)?\s*$", re.IGNORECASE)
EXAMPLES = '"at most 2.5", "at least 0.3", "at most 75% of behavior"'
PLACE = re.compile(r"^  (?:(constraint)\.(\d+)|data|objective|learn|certify)(?:\.(\w+))?:", re.MULTILINE)

Toml = str | float | int | Sequence[str]


def problem_of(
    path: str | Sequence[str],
    columns: Mapping[str, str | Sequence[str] | None],
    *,
    chosen: Mapping[str, str | int | None],
    minimize: str | None,
    maximize: str | None,
    limits: Mapping[str, str] | None,
    costs: Mapping[str, str] | None,
    learn: Mapping[str, Toml | None],
    confidence: float,
) -> tuple[ProblemFile, str]:
    """Return a checked problem and its text; columns and chosen: by their keys in `[data]`."""
    limits, costs = _mapping("limits", limits), _mapping("costs", costs)
    objective = _objective(minimize, maximize, costs)
    _require_used(costs, {*limits, minimize or maximize or ""})
    for name, value in columns.items():
        _require_columns(name, value)
    text = written(
        {
            "data": {"path": path, **columns, **chosen},
            "objective": objective,
            "constraint": [_constraint(name, limit, costs.get(name)) for name, limit in limits.items()],
            "learn": learn,
            "certify": {"confidence": confidence},
        }
    )
    try:
        return parse_problem(text, Path("what fit was given")), text
    except ProblemError as reason:
        raise ArgumentError(_in_words(str(reason), list(limits))) from None


def _mapping(name: str, value: Mapping[str, str] | None) -> Mapping[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ArgumentError(f"{name} is a {type(value).__name__}: give a dict of names to texts")
    return value


def _objective(minimize: str | None, maximize: str | None, costs: Mapping[str, str]) -> dict[str, Toml | None]:
    given = {"minimize": minimize, "maximize": maximize}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise ArgumentError("give either minimize= or maximize=: a column of the table, or a SQL expression over them")
    (way,) = named
    cost = given[way]
    if not isinstance(cost, str):
        raise ArgumentError(f"{way} is {cost!r}: give a column's name, or a SQL expression, as text")
    return {way: costs.get(cost, cost), "name": cost if cost in costs else None}


def _require_used(costs: Mapping[str, str], named: set[str]) -> None:
    """Raise where a cost is neither limited nor the objective."""
    for name, expression in costs.items():
        if name not in named:
            near = get_close_matches(name, named, n=1)
            meant = f", did you mean {near[0]!r}?" if near else f": there are {', '.join(sorted(named))}"
            raise ArgumentError(f"costs[{name!r}] is neither limited nor what is minimised or maximised{meant}")
        if not isinstance(expression, str):
            raise ArgumentError(f"costs[{name!r}] is {expression!r}: give a SQL expression over the columns, as text")


def _require_columns(name: str, value: object) -> None:
    if value is None and name in ("state", "action"):
        raise ArgumentError(f"{name}= is missing: name {'the columns' if name == 'state' else 'the column'} of the log")
    several = name == "state" and isinstance(value, Sequence) and all(isinstance(one, str) for one in value)
    if value is not None and not isinstance(value, str) and not several:
        wanted = "a column's name, or several" if name == "state" else "a column's name"
        raise ArgumentError(f"{name} is {value!r}: give {wanted}")


def _constraint(name: str, limit: object, cost: str | None) -> dict[str, Toml | None]:
    """Return a limit like "at most 75% of behavior" in the keys of a problem file."""
    found = LIMIT.match(limit) if isinstance(limit, str) else None
    if found is None:
        meant = f": write {f'at most {limit:g}'!r} or {f'at least {limit:g}'!r}" if _is_number(limit) else ""
        raise ArgumentError(f"limits[{name!r}] is {limit!r}{meant or f': write it like {EXAMPLES}'}")
    way, amount, per_step = found.groups()
    value: str | float = amount
    if not SHARE.match(amount):
        try:
            value = float(amount)
        except ValueError:
            raise ArgumentError(
                f"limits[{name!r}] is {limit!r}: {amount!r} is neither a number nor like '75% of behavior'. "
                f"Write it like {EXAMPLES}"
            ) from None
    unit = "per step" if per_step else None
    return {"name": name, "cost": cost, f"at_{way.lower()}": value, "unit": unit}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _in_words(text: str, limits: Sequence[str]) -> str:
    """Return what is wrong by the names of arguments in place of keys."""

    def argument(found: re.Match[str]) -> str:
        constraint, place, key = found.groups()
        return f"  limits[{limits[int(place) - 1]!r}]:" if constraint else f"  {key or 'the arguments'}:"

    return PLACE.sub(argument, text)
