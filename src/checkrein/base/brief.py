"""Short texts of large values: what is printed of a policy fits on a line, however many numbers it holds."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass

import numpy as np

FEW = 6  # numbers that are shown; of more, only how many there are
MOST = 20  # names that are listed; of more, only how many there are
DEEP = 2  # dataclasses inside each other whose fields are shown


def brief(value: object, depth: int = 0) -> str:
    """Return a value in a few words: of arrays their shape, of what lies deep only its class."""
    match value:
        case float() | np.floating():
            return f"{value:.4g}"
        case np.ndarray():
            short = value.ndim == 1 and value.size <= FEW
            return f"[{listed(value.tolist())}]" if short else f"<{' x '.join(map(str, value.shape))} {value.dtype}>"
        case tuple() | list():
            return f"({listed(value, depth)})" if len(value) <= FEW else f"<{len(value)} of {type(value[0]).__name__}>"
        case Mapping():
            return f"{{{', '.join(f'{name}: {brief(one, depth)}' for name, one in value.items())}}}"
    if not is_dataclass(value) or isinstance(value, type):
        return repr(value)
    shown = [f"{f.name}={brief(getattr(value, f.name), depth + 1)}" for f in fields(value)] if depth < DEEP else ["..."]
    return f"{type(value).__name__}({', '.join(shown)})"


def listed(values: list[object] | tuple[object, ...], depth: int = 0) -> str:
    """Return values one after the other."""
    return ", ".join(brief(one, depth) for one in values)


def some(names: Sequence[str]) -> str:
    """Return names one after the other, the first of many."""
    more = f" and {len(names) - MOST:,} more" if len(names) > MOST else ""
    return ", ".join(names[:MOST]) + more


def numbers(named: Mapping[str, float]) -> str:
    """Return named numbers with four digits each."""
    return ", ".join(f"{name} {value:.4g}" for name, value in named.items())
