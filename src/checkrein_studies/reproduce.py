"""Run a study from nothing, and write what it found: results.json, figures and one page."""

import difflib
import importlib.metadata
import json
import math
import platform
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import IO, Any, get_args, get_origin, get_type_hints

import numpy as np
from markupsafe import Markup

from checkrein.base.errors import ArgumentError
from checkrein.base.storage import write_atomically
from checkrein.report.summary import versions
from checkrein.report.templates import environment
from checkrein_studies.binding_lake import FrozenLakeBinding
from checkrein_studies.cmdp_study import RandomCmdps
from checkrein_studies.combination_lock import CombinationLock
from checkrein_studies.drawing import drawn, require_matplotlib, style
from checkrein_studies.paper_lake import FrozenLakeOfThePaper
from checkrein_studies.sepsis_study import IcuSepsis
from checkrein_studies.study import Claim, Findings, Study, Tell

RESULTS, PAGE = "results.json", "index.html"
MORE = ("checkrein", "gymnasium", "joblib", "matplotlib")  # packages that a study's numbers depend on besides a run's
SOME = ("torch", "icu-sepsis")  # which not every study needs

STUDIES: dict[str, type[Study]] = {
    "frozen-lake": FrozenLakeOfThePaper,
    "frozen-lake-binding": FrozenLakeBinding,
    "icu-sepsis": IcuSepsis,
    "random-cmdps": RandomCmdps,
    "combination-lock": CombinationLock,
}


@dataclass(frozen=True, eq=False)
class Reproduction:
    """What a study found, with what, and how long it took."""

    name: str
    command: str
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    seconds: float
    findings: Findings


def lines() -> dict[str, str]:
    """Return what each study is about, by name."""
    return {name: (study.__doc__ or "").strip().splitlines()[0] for name, study in STUDIES.items()}


def study_of(name: str, *, quick: bool = False, changes: Sequence[str] = ()) -> Study:
    """Return a study by its name, with changed settings.

    changes: each "setting=value"
    """
    if name not in STUDIES:
        near = difflib.get_close_matches(name, STUDIES, n=1, cutoff=0.4)
        meant = f"did you mean {near[0]!r}? " if near else ""
        raise ArgumentError(f"no study is called {name!r}: {meant}There are {', '.join(STUDIES)}")
    kind: Any = STUDIES[name]
    study = kind.quick() if quick else kind()
    return replace(study, **dict(_change(kind, change) for change in changes))


def reproduce(study: Study, out: Path, *, name: str, command: str, tell: Tell = lambda _: None) -> Reproduction:
    """Run a study and write its folder; every file is whole or not there."""
    require_matplotlib()
    began = time.perf_counter()
    with style():
        findings = study.run(tell)
    tell("writing")
    files = {f"{p.name}.{form}": drawn(p.figure, form) for p in findings.pictures for form in ("svg", "png")}
    seconds = time.perf_counter() - began
    limit: float | None = getattr(study, "most_seconds", None)
    if limit is not None:
        took = Claim.at_most("seconds in all, on two cores", seconds, limit, unit=" s")
        findings = replace(findings, claims=[*findings.claims, took])
    done = Reproduction(name, command, asdict(study), _versions(), seconds, findings)  # type: ignore[call-overload]
    files[RESULTS] = json.dumps(_plain(_results(done)), indent=1, allow_nan=False).encode() + b"\n"
    files[PAGE] = _page(done, {p.name: files[f"{p.name}.svg"].decode() for p in findings.pictures}).encode()
    out.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        write_atomically(out / file, partial(_fill, content))
    return done


def _fill(content: bytes, file: IO[bytes]) -> None:
    file.write(content)


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


def _versions() -> dict[str, str]:
    """Return the versions that the numbers depend on, of what is installed."""
    found = {"python": platform.python_version()} | versions()
    for name in (*MORE, *SOME):
        with suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def _results(done: Reproduction) -> dict[str, Any]:
    found = done.findings
    return {
        "study": done.name,
        "title": found.title,
        "command": done.command,
        "settings": done.settings,
        "versions": done.versions,
        "seconds": round(done.seconds, 2),
        "holds": found.holds,
        "claims": [asdict(claim) for claim in found.claims],
        "tables": [asdict(table) for table in found.tables],
        "differences": found.differences,
        "numbers": found.numbers,
        "figures": [{"name": p.name, "caption": p.caption} for p in found.pictures],
    }


def _plain(value: Any) -> Any:
    """Return what JSON has words for; what is not a finite number is null."""
    match value:
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case np.ndarray() | np.generic():
            return _plain(value.tolist())
        case float():
            return value if math.isfinite(value) else None
        case list() | tuple():
            return [_plain(item) for item in value]
        case _:
            return value


def _page(done: Reproduction, pictures: Mapping[str, str]) -> str:
    templates = environment("checkrein_studies")
    templates.filters["cell"] = cell
    inlined = {name: Markup(text[text.index("<svg") :]) for name, text in pictures.items()}  # noqa: S704 drawn here
    return templates.get_template("page.html.j2").render(done=done, found=done.findings, pictures=inlined)


def cell(value: str | float) -> str:
    """Return a table's cell as text; what is not a number is a dash."""
    if isinstance(value, float) and math.isnan(value):
        return "–"  # noqa: RUF001
    return f"{value:.5g}" if isinstance(value, float) else str(value)
