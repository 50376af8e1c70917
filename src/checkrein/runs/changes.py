"""changed: a problem file with some of its keys set to other values, as `--set learn.discount=0.95` asks."""

import tomllib
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from checkrein.base.errors import ArgumentError, ProblemError
from checkrein.base.toml import written

SECTIONS = ("data", "objective", "constraint", "learn", "certify")
LIKE = "learn.discount=0.95, certify.confidence=0.9 or constraint.NAME.at_most=2"


def changed(text: str, path: Path, settings: Sequence[str]) -> str:
    """Return the text of a problem file with settings like "learn.discount=0.95"; its comments are lost.

    path: what the file is called in errors
    """
    if not settings:
        return text
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as reason:
        raise ProblemError(f"{path} is not valid TOML: {reason}") from None
    for setting in settings:
        _set(content, setting)
    said = f"{path.name} with {', '.join(settings)}"
    return f"# {''.join(one if one.isprintable() else ' ' for one in said)}\n{written(content)}"


def _set(content: dict[str, Any], setting: str) -> None:
    name, equals, value = setting.partition("=")
    place = name.strip().split(".")
    if not equals or not all(place):
        raise ArgumentError(f"--set {setting}: write it like {LIKE}")
    if place == ["title"]:
        content["title"] = value.strip()
        return
    if place[0] not in SECTIONS:
        near = get_close_matches(place[0], SECTIONS, n=1)
        meant = f", did you mean {near[0]}?" if near else f": there are {', '.join(SECTIONS)}"
        raise ArgumentError(f"--set {setting}: {place[0]!r} is not a section{meant}")
    section = content.setdefault(place[0], {})
    if place[0] == "constraint":
        section = _constraint(section, ".".join(place[1:-1]), setting)
    elif len(place) != 2:
        raise ArgumentError(f"--set {setting}: write it like {LIKE}")
    if not isinstance(section, dict):
        raise ArgumentError(f"--set {setting}: {place[0]} is no section of the problem file")
    key = place[-1]
    for other in _OTHERS.get(key, ()):  # of which one is given
        section.pop(other, None)
    section[key] = _parsed(value.strip())


_OTHERS = {"at_most": ["at_least"], "at_least": ["at_most"], "minimize": ["maximize"], "maximize": ["minimize"]}


def _constraint(found: object, name: str, setting: str) -> dict[str, Any]:
    limits = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    for one in limits:
        if one.get("name") == name:
            return one
    names = ", ".join(str(one.get("name")) for one in limits) or "none"
    raise ArgumentError(f"--set {setting}: no constraint is called {name!r}: there are {names}")


def _parsed(value: str) -> Any:
    """Return a value as TOML reads it, or else as the text that it is: a shell takes quotes away."""
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return value
