"""Two problem files compared: whether one may use what the other found, and which of their costs are the same."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from checkrein.base.errors import ProblemError
from checkrein.game.reuse import Earlier
from checkrein.runs.problem_file import ProblemFile
from checkrein.runs.sections import Kind

MAY_DIFFER = {
    "data": {"path"},
    "learn": {"certificate", "learner", "bound", "rate", "tolerance", "max_rounds"},
}  # of what decides


class SignedCost(NamedTuple):
    """What is summed, whatever its name, its limit and its unit; signed so that less is better."""

    kind: Kind
    expression: str
    sign: float
    range: tuple[float, float] | None  # of a sum: what has no evidence is valued by it


def require_comparable(old: ProblemFile, new: ProblemFile, run: Path) -> None:
    """Raise unless the policies of a run could have been found for another problem file, too."""
    if old.certificate != new.certificate:
        raise ProblemError(
            f'learn.certificate is "{new.certificate}", but in {run} it is "{old.certificate}": set it to that, or '
            "learn without --from"
        )
    for section, free in MAY_DIFFER.items():
        was, now = (getattr(file, section).model_dump() for file in (old, new))
        for key in now:
            if key not in free and was[key] != now[key]:
                raise ProblemError(
                    f"{section}.{key} is {_shown(now[key])}, but in {run} it is {_shown(was[key])}: policies found "
                    f"there do not serve this problem. Set it to that, or learn without --from"
                )
    was, now = (_remembered(file) for file in (old, new))
    if was != now:
        raise ProblemError(
            f"the policies of {run} remember {_listed(was)}, but those of this problem would remember {_listed(now)}: "
            "keep the constraints that remember what happened before, or learn without --from"
        )


def earlier_costs(old: ProblemFile, new: ProblemFile) -> tuple[Earlier | None, ...]:
    """Return which cost of the old file each of the new one is, the objective first; None: it is not among them."""
    there = _costs(old)
    places = {cost: place for place, (cost, _) in reversed([*enumerate(there)])}
    found = []
    for cost, unit in _costs(new):
        place = places.get(cost)
        found.append(None if place is None else Earlier(place, unit / there[place][1]))
    return tuple(found)


def names_of(file: ProblemFile) -> list[str]:
    """Return what the user calls each cost, the objective first."""
    return [file.objective.label, *(limit.name for limit in file.constraint)]


def _costs(file: ProblemFile) -> list[tuple[SignedCost, float]]:
    """Return each cost, the objective first, and its unit: the factor from discounted sums."""
    sign = -1.0 if file.objective.maximize is not None else 1.0
    objective = SignedCost(Kind.COST, file.objective.expression.strip(), sign, None)
    costs = [(objective, 1.0)]
    for limit in file.constraint:
        unit = 1 - file.learn.discount if limit.per_step else 1.0
        ends = None if limit.ends is None else (limit.ends[0] / unit, limit.ends[1] / unit)
        sign = 1.0 if limit.at_most is not None else -1.0
        expression = limit.expression.strip() if limit.kind.logged else ""
        costs.append((SignedCost(limit.kind, expression, sign, ends), unit))
    return costs


def _remembered(file: ProblemFile) -> set[str]:
    """Return what of the past joins the states."""
    events = {limit.name for limit in file.constraint if limit.kind is Kind.EVER}
    return events | {"the previous action" for limit in file.constraint if limit.kind is Kind.SWITCHING}


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"


def _shown(value: object) -> str:
    return "not set" if value is None else str(dict(value) if isinstance(value, Mapping) else value)
