"""Plain content as TOML, which Python reads but does not write."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

UNLIKE_JSON = {"Infinity": "inf", "-Infinity": "-inf", "NaN": "nan"}


def written(content: Mapping[str, Any]) -> str:
    """Return sections and lists of sections as a TOML file; what is None is left out."""
    return "\n".join(_lines(content, ())).lstrip("\n") + "\n"


def _lines(content: Mapping[str, Any], place: tuple[str, ...]) -> Iterator[str]:
    tables = {key: value for key, value in content.items() if _is_table(value)}
    for key, value in content.items():
        if key not in tables and value is not None:
            yield f"{_key(key)} = {_value(value)}"
    for key, value in tables.items():
        inner = (*place, _key(key))
        header, several = ".".join(inner), not isinstance(value, Mapping)
        for one in value if several else [value]:
            yield f"\n[[{header}]]" if several else f"\n[{header}]"
            yield from _lines(one, inner)


def _is_table(value: object) -> bool:
    listed = isinstance(value, list) and bool(value) and all(isinstance(one, Mapping) for one in value)
    return isinstance(value, Mapping) or listed


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else _value(key)


def _value(value: object) -> str:
    """Return a text, a number, a truth value or a list of them: mostly as in JSON."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(one) for one in value)}]"
    text = json.dumps(value, ensure_ascii=False, default=str).replace("\x7f", "\\u007f")
    return UNLIKE_JSON.get(text, text)
