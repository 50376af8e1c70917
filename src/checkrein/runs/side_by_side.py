"""side_by_side: finished runs beside each other, what they came to and what differs."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl

from checkrein.base.arrays import Array, FloatArray
from checkrein.base.errors import CheckreinError, DataError
from checkrein.base.storage import write_atomically
from checkrein.certification import Certificate
from checkrein.data.encoding import Encoding
from checkrein.logs.horizon import rows_until
from checkrein.logs.sources import ROW, Source, open_source
from checkrein.logs.table import ordered
from checkrein.report.improvement import improvement_of
from checkrein.report.model import BEHAVIOR, LEARNED, CostRow, Estimate, Summary
from checkrein.report.model_card import model_card
from checkrein.report.side_by_side_model import (
    ComparedCost,
    ComparedRun,
    Decisions,
    Setting,
    SideBySide,
    StateDecisions,
)
from checkrein.runs.folder import SUMMARY, RunFolder
from checkrein.runs.problem_file import ProblemFile
from checkrein.runs.reading import missing, paths_of

NOT_SET = "-"
SHOWN = 12  # states in which decisions differ most
ROWS = 50_000  # of the log, the first, whose states are compared
MOVED = 0.005  # of a state's decisions, from which on they differ


def side_by_side(runs: Sequence[Path], data: str | None = None) -> SideBySide:
    """Compare finished runs.

    data: a log to compare decisions on; None: that of the first run, if it is still there
    """
    if len(runs) < 2:
        raise DataError("there is one run: name at least two to compare")
    folders = [RunFolder.opened(path) for path in runs]
    summaries = [folder.summary() for folder in folders]
    names = _names(runs)
    compared = [_run(*one) for one in zip(names, folders, summaries, strict=True)]
    files = [folder.problem_file() for folder in folders]
    costs = dict.fromkeys(name for one in compared for name in one.costs)
    try:
        decisions, why = _decisions(folders, files[0], data), ""
    except CheckreinError as reason:
        if data is not None:
            raise
        decisions, why = None, str(reason)
    return SideBySide(
        runs=compared,
        costs=list(costs),
        settings=_settings(files),
        same_log=len({one.dataset for one in compared}) == 1,
        decisions=decisions,
        undecided=why,
    )


def runs_in(folder: Path) -> list[Path]:
    """Return the run folders in a folder, whatever lies between, the newest last."""
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder")
    found = [file.parent for file in folder.rglob(SUMMARY)]
    return sorted(found, key=lambda run: (run / SUMMARY).stat().st_mtime)


def write_card(folder: RunFolder, path: Path) -> None:
    """Write the model card of a run."""
    summary = folder.summary()
    card = model_card(summary, deploys=_deploys(folder, summary.certificate))
    write_atomically(path, lambda file: file.write(card.encode()))  # no part of the manifest: people may edit it


def _deploys(folder: RunFolder, judged: Certificate | None) -> bool:
    """Say whether the policy of a run may act: it passed, or there was no limit to keep."""
    return not folder.uncertified and (judged is None or judged.may_act)


def compared_run(path: Path) -> ComparedRun:
    """Return what one run came to."""
    folder = RunFolder.opened(path)
    return _run(str(path), folder, folder.summary())


def _names(runs: Sequence[Path]) -> list[str]:
    """Return what to call each: its folder, or the whole path where two have the same."""
    short = [path.resolve().name for path in runs]
    return short if len(set(short)) == len(short) else [str(path) for path in runs]


def _run(name: str, folder: RunFolder, summary: Summary) -> ComparedRun:
    judged = summary.certificate
    return ComparedRun(
        name=name,
        title=summary.title,
        headline=summary.verdict,
        level=summary.level,
        finished=datetime.fromtimestamp((folder.path / SUMMARY).stat().st_mtime).isoformat(" ", "minutes"),
        dataset=summary.repeat.dataset,
        method=None if judged is None else judged.method,
        guarantee=None if judged is None else judged.guarantee,
        verdict=None if judged is None else judged.verdict,
        episodes=summary.learning_episodes if judged is None else judged.episodes,
        look=None if judged is None else judged.look,
        deploys=_deploys(folder, judged),
        costs={row.name: _cost(row, judged) for row in summary.costs},
    )


def _cost(row: CostRow, judged: Certificate | None) -> ComparedCost:
    learned, behavior = (row.values.get(policy) for policy in (LEARNED, BEHAVIOR))
    value = [None if one is None else _judged(one) for one in (learned, behavior)]
    bound: float | None = None
    verdict: str | None = None
    if judged is not None and row.role == "objective":
        improvement = improvement_of(judged, row.name, row.direction)
        verdict = None if improvement is None else improvement.verdict
    elif judged is not None:
        one = next((one for one in judged.constraints if one.name == row.name), None)
        believed = all(check.ok for check in judged.checks)
        bound, verdict = (None, None) if one is None else (one.bound if believed else None, one.verdict)
    return ComparedCost(
        role=row.role,
        goal=row.goal,
        learned=value[0],
        behavior=value[1],
        bound=bound,
        verdict=verdict,
        unit=row.unit,
        share=row.share,
    )


def _judged(estimate: Estimate) -> float | None:
    """Return the held-out estimate, if there is one."""
    return estimate.learning if estimate.held_out is None else estimate.held_out


def _settings(files: Sequence[ProblemFile]) -> list[Setting]:
    """Return the keys whose values differ, as the files say, or as they are by default."""
    flat = [_flat(file.model_dump(exclude_none=True)) for file in files]
    keys = dict.fromkeys(key for one in flat for key in one)
    found = [Setting(key=key, values=[str(one.get(key, NOT_SET)) for one in flat]) for key in keys]
    return [setting for setting in found if len(set(setting.values)) > 1]


def _flat(content: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for section, value in content.items():
        if section == "constraint":
            for one in value:
                found |= {f"{section}.{one['name']}.{key}": inner for key, inner in one.items() if key != "name"}
        elif isinstance(value, dict):
            found |= {f"{section}.{key}": inner for key, inner in value.items()}
        else:
            found[section] = value
    return found


def _decisions(folders: Sequence[RunFolder], file: ProblemFile, data: str | None) -> Decisions:
    """Compare what policies do first in the states of a log."""
    if data is None and (gone := missing(file, Path())):
        raise DataError(f"there is no {gone[0]} here: pass --data with a log to compare decisions on")
    opened = open_source(data if data is not None else paths_of(file, Path()), file.data.missing)
    table = _with_steps(opened, folders, file).head(ROWS)
    tables: list[FloatArray] = []
    actions: list[tuple[str, ...]] = []
    for folder in folders:
        encoding = folder.encoding()
        if encoding is None:
            raise DataError(f"{folder.path} learned from numbers, and not from a table")
        tables.append(folder.policy(uncertified=True).probabilities(encoding.encode(table)))
        actions.append(encoding.actions)
    every = list(dict.fromkeys(label for names in actions for label in names))
    placed = [_placed(one, names, every) for one, names in zip(tables, actions, strict=True)]
    alike = [[float(np.minimum(one, other).sum(axis=1).mean()) for other in placed] for one in placed]
    first = cast(Encoding, folders[0].encoding())
    states = []
    if first.combinations is not None:
        states = _states(placed, np.array(first.states)[first.encode(table)], every)
    return Decisions(source=opened.name, rows=table.height, alike=alike, states=states)


def _with_steps(source: Source, folders: Sequence[RunFolder], file: ProblemFile) -> pl.DataFrame:
    """Return a log's rows, with the step numbers that horizons ask for, up to the nearest of these."""
    found = [folder.problem_file().data.horizon for folder in folders]
    horizons = [horizon for horizon in found if horizon is not None]
    if not horizons:
        return source.table.head(ROWS).collect()
    every = source.table.with_row_index(ROW).collect()
    table, episodes, steps, _ = ordered(source, every, file.data.episode, file.data.step)
    return rows_until(table, episodes, steps, min(horizons))[0]


def _placed(table: FloatArray, names: Sequence[str], every: Sequence[str]) -> FloatArray:
    """(n, A) probabilities in columns that all runs share."""
    found = np.zeros((len(table), len(every)))
    found[:, [every.index(name) for name in names]] = table
    return found


def _states(placed: Sequence[FloatArray], labels: Array, actions: Sequence[str]) -> list[StateDecisions]:
    """Return where decisions differ most, by how much and how often."""
    states, rows, counts = np.unique(labels, return_index=True, return_counts=True)
    first = placed[0][rows]
    apart = np.max([1 - np.minimum(first, other[rows]).sum(axis=1) for other in placed], axis=0)
    order = np.argsort(-apart * counts, kind="stable")
    return [
        StateDecisions(
            state=str(states[i]),
            share=float(counts[i] / counts.sum()),
            usual=[_usual(table[rows[i]], actions) for table in placed],
        )
        for i in order[:SHOWN]
        if apart[i] > MOVED
    ]


def _usual(probabilities: FloatArray, actions: Sequence[str]) -> str:
    likeliest = int(np.argmax(probabilities))
    return f"{actions[likeliest]} ({probabilities[likeliest]:.0%})"
