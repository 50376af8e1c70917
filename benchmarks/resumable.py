"""Runs that take long: side by side, each kept in a file as it ends, and none run twice."""

import argparse
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from checkrein.engine import Joblib

Run = dict[str, Any]


def options(
    text: str | None,
    settings: Iterable[str],
    *,
    runs: int,
    out: str,
    flags: Mapping[str, str] | None = None,
    values: Mapping[str, str] | None = None,
    sizes: Sequence[int] | None = None,
) -> argparse.Namespace:
    """Read the options that all such benchmarks have, flags and values of one with what they are for, and its sizes."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=runs, help="seeds of each setting and size")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=list(settings))
    parser.add_argument("--out", type=Path, default=Path("bench-results") / out)
    if sizes is not None:
        parser.add_argument("--sizes", type=int, nargs="*", default=list(sizes), help="episodes of a log")
    for flag, purpose in (flags or {}).items():
        parser.add_argument(f"--{flag}", action="store_true", help=purpose)
    for name, purpose in (values or {}).items():
        parser.add_argument(f"--{name}", help=purpose)
    return parser.parse_args()


def finished(run: Callable[[str, int, int], Run], name: str, size: int, chosen: argparse.Namespace) -> Sequence[Run]:
    """Return the runs of one setting and size, by seed; those that the file lacks are run, and added to it."""
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    lines = chosen.out.read_text().splitlines() if chosen.out.exists() else []
    kept = {(found["setting"], found["size"], found["seed"]): found for found in map(json.loads, lines)}
    seeds = range(chosen.runs)
    missing = [seed for seed in seeds if (name, size, seed) not in kept]
    new = Joblib(chosen.jobs).map(partial(run, name, size), missing)
    with chosen.out.open("a") as file:
        for found in new:
            kept[name, size, found["seed"]] = found
            print(json.dumps(found), file=file, flush=True)
    return [kept[name, size, seed] for seed in seeds]
