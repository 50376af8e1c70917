"""A study with other settings, each written as text."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, get_args, get_origin, get_type_hints

from checkrein.base.errors import ArgumentError
from checkrein.reproduction.registry import load_study
from checkrein.reproduction.study import Study


def study_of(name: str, *, quick: bool = False, changes: Sequence[str] = ()) -> Study:
    """Return a study by its name, with changed settings.

    changes: each "setting=value"
    """
    kind: Any = load_study(name)
    study = kind.quick() if quick else kind()
    return replace(study, **dict(_change(kind, change) for change in changes))


def _change(kind: type, change: str) -> tuple[str, Any]:
    """Return one setting and its value, of the setting's own type."""
    name, equals, text = change.partition("=")
    hints = get_type_hints(kind)
    known = [f.name for f in fields(kind)]
    if not equals or name not in known:
        raise ArgumentError(f"{change!r} sets nothing: write SETTING=VALUE with one of {', '.join(known)}")
    wanted = hints[name]
    if choices := get_args(wanted) if get_origin(wanted) is not tuple else ():
        if text not in map(str, choices):
            raise ArgumentError(f"{name} is {text!r}: choose from {', '.join(map(str, choices))}")
        return name, next(choice for choice in choices if str(choice) == text)
    if wanted not in (int, float, str):
        raise ArgumentError(f"{name} cannot be set from here: it is {wanted}")
    try:
        return name, wanted(text)
    except ValueError:
        raise ArgumentError(f"{name} is {text!r}: it must be of type {wanted.__name__}") from None
