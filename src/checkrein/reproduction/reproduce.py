"""Run a study from nothing, and write what it found: results.json, figures and one page."""

import importlib.metadata
import json
import math
import platform
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from checkrein.base.plugins import offered
from checkrein.base.storage import write_atomically
from checkrein.reproduction.drawing import drawn, require_matplotlib, style
from checkrein.reproduction.registry import GROUP
from checkrein.reproduction.study import Claim, Findings, Study, Tell, TimeLimited

RESULTS, PAGE = "results.json", "index.html"
PACKAGES = ("checkrein", "gymnasium", "joblib", "matplotlib", "torch")  # besides those that a run's numbers depend on


@dataclass(frozen=True, eq=False)
class Reproduction:
    """What a study found, with what, and how long it took."""

    name: str
    command: str
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    seconds: float
    findings: Findings


def reproduce(study: Study, out: Path, *, name: str, command: str, tell: Tell = lambda _: None) -> Reproduction:
    """Run a study and write its folder; every file is whole or not there."""
    require_matplotlib()
    began = time.perf_counter()
    with style():
        findings = study.run(tell)
    tell("writing")
    files = {f"{p.name}.{form}": drawn(p.figure, form) for p in findings.pictures for form in ("svg", "png")}
    seconds = time.perf_counter() - began
    if isinstance(study, TimeLimited):
        took = Claim.at_most("seconds in all, on two cores", seconds, study.most_seconds, unit=" s")
        findings = replace(findings, claims=[*findings.claims, took])
    done = Reproduction(name, command, _settings(study), _versions(name, findings), seconds, findings)
    files[RESULTS] = json.dumps(_plain(_results(done)), indent=1, allow_nan=False).encode() + b"\n"
    files[PAGE] = _page(done, {p.name: files[f"{p.name}.svg"].decode() for p in findings.pictures}).encode()
    out.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        write_atomically(out / file, partial(_fill, content))
    return done


def _fill(content: bytes, file: IO[bytes]) -> None:
    file.write(content)


def _settings(study: Any) -> dict[str, Any]:
    return asdict(study)


def _versions(name: str, findings: Findings) -> dict[str, str]:
    """Return the versions that the numbers depend on, of what is installed."""
    from checkrein.report.summary import versions  # noqa: PLC0415  # listing the studies needs no report

    found = {"python": platform.python_version()} | versions()
    offering = [offer.dist.name for offer in offered(GROUP).get(name, ()) if offer.dist is not None]
    for package in (*PACKAGES, *offering, *findings.packages):
        with suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
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
    from markupsafe import Markup  # noqa: PLC0415  # neither does it need templates

    from checkrein.report.templates import environment  # noqa: PLC0415

    templates = environment("checkrein.reproduction")
    templates.filters["cell"] = cell
    inlined = {name: Markup(text[text.index("<svg") :]) for name, text in pictures.items()}  # noqa: S704 drawn here
    return templates.get_template("page.html.j2").render(done=done, found=done.findings, pictures=inlined)


def cell(value: str | float) -> str:
    """Return a table's cell as text; what is not a number is a dash."""
    if isinstance(value, float) and math.isnan(value):
        return "–"  # noqa: RUF001
    return f"{value:.5g}" if isinstance(value, float) else str(value)
