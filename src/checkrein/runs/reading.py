"""The log of a problem file, read with the objective and each constraint as costs."""

from collections.abc import Mapping
from dataclasses import replace
from glob import glob
from pathlib import Path
from typing import cast

import numpy as np

from checkrein.base.errors import ProblemError
from checkrein.costs import Entropy, EverEntered, KLDivergence, StateActionCost, Switching, TotalVariation
from checkrein.data.dataset import Dataset
from checkrein.data.encoding import Encoding
from checkrein.logs.formats import Located, located
from checkrein.logs.formats import read as read_format
from checkrein.logs.horizon import beyond_words
from checkrein.logs.states import Finite
from checkrein.logs.table import Columns, Reading, read_table
from checkrein.protocols import Cost
from checkrein.runs.problem_file import ProblemFile
from checkrein.runs.sections import Kind, Limit


def read(file: ProblemFile, folder: Path, encoding: Encoding | None = None, *, table: object | None = None) -> Reading:
    """Read the log with the objective and each constraint as costs, in the units that the user speaks of.

    Episodes that are copies of others are left out, and a warning says so.

    encoding: of an earlier log, whose numbers for states and actions are to be kept
    table: the log itself, where it lies in memory
    """
    reading = _read(file, folder, encoding, table)
    dataset = _first_entries(file, reading.dataset)
    factors = _factors(file)
    known = {name: cost.times(factors.get(name, 1.0)) for name, cost in reading.known.items()}
    ever = {c.name for c in file.constraint if c.kind is Kind.EVER}
    known = {name: cost for name, cost in known.items() if name not in ever}
    return _counted_once(replace(reading, dataset=_in_user_units(dataset, factors), known=known))


def cost_of(limit: Limit, known: Mapping[str, StateActionCost]) -> str | Cost:
    """Return what a constraint of a problem file is on."""
    match limit.kind:
        case Kind.COST:
            return known.get(limit.name, limit.name)
        case Kind.EVER:
            return EverEntered(limit.name)
        case Kind.KL:
            return KLDivergence()
        case Kind.VARIATION:
            return TotalVariation()
        case Kind.ENTROPY:
            return Entropy()
        case Kind.SWITCHING:
            return Switching()


def _read(file: ProblemFile, folder: Path, encoding: Encoding | None, table: object | None) -> Reading:
    data, expressions = file.data, {objective_of(file): file.objective.expression}
    expressions |= {c.name: c.expression for c in file.constraint if c.kind.logged}
    paths = paths_of(file, folder)
    finite: Finite = file.learn.functions == "tabular" or ("auto" if file.learn.functions == "auto" else False)
    if data.is_table:
        columns = Columns(
            data.episode,
            data.state or [],
            data.action or "",
            expressions,
            data.step,
            data.terminal,
            data.propensity,
            n_actions=data.n_actions,
            finite=finite,
            missing=data.missing,
            cluster=data.cluster,
            encoding=encoding,
            horizon=data.horizon,
            admissible=data.admissible,
        )
        return read_table(paths if table is None else table, columns)
    dataset = read_format(cast(Located, located(paths[0])), costs=[*expressions.values()], n_actions=data.n_actions)
    if finite is True and dataset.n_states is None:
        raise ProblemError(f"{paths[0]} has no finite states: functions = 'tabular' needs them, use another class")
    why = "features: states are numbers" if dataset.n_states is None else "tables: states are finite"
    costs = {name: dataset.cost(cost) for name, cost in expressions.items()}
    whole = dataset.with_costs(costs)
    log = whole if data.horizon is None else whole.until(data.horizon)
    beyond = len(whole) - len(log)
    said = beyond_words(data.horizon, beyond)
    return Reading(log, paths[0], said, why=why if finite == "auto" else "", beyond=beyond)


def by_folds(file: ProblemFile, dataset: Dataset) -> bool:
    """Say whether all episodes learn and judge: a log of rows alone has none to make folds of."""
    return file.certificate == "cross-fitted" and dataset.episodes is not None


def settled(file: ProblemFile, dataset: Dataset) -> ProblemFile:
    """Return a problem file with the function class that it comes to on its log."""
    if file.learn.functions == "features" and dataset.n_states is not None:
        raise ProblemError('functions = "features" is for columns of numbers, but states are finite: use "tabular"')
    width = int(np.prod(dataset.states.shape[1:]))
    return file.settled(finite=dataset.n_states is not None, width=width, by_folds=by_folds(file, dataset))


def paths_of(file: ProblemFile, folder: Path) -> list[str]:
    """Return where the log lies, seen from a folder."""
    paths = [file.data.path] if isinstance(file.data.path, str) else file.data.path
    return [str(folder / path) if is_file(path) else path for path in paths]


def with_path(file: ProblemFile, path: str) -> ProblemFile:
    """Return the same problem on a log that lies elsewhere."""
    return file.model_copy(update={"data": file.data.model_copy(update={"path": path})})


def missing(file: ProblemFile, folder: Path) -> list[str]:
    """Return the files of the log that are not there, seen from a folder."""
    return [path for path in paths_of(file, folder) if is_file(path) and not glob(path)]


def folder_of(file: ProblemFile, folder: Path) -> Path:
    """Return the folder of the log, or the given one where it is no file."""
    first = paths_of(file, folder)[0]
    return Path(first).parent if is_file(first) else folder


def is_file(path: str) -> bool:
    """Say whether a log is a file (or a glob of files), and not something that its format finds elsewhere."""
    log = located(path)
    return log is None or log.is_file


def objective_of(file: ProblemFile) -> str:
    """Return the name of the objective's cost, which is always minimised."""
    return file.objective.label if file.objective.maximize is None else f"minus {file.objective.label}"


def _counted_once(reading: Reading) -> Reading:
    """Return the log without copies."""
    copies = replace(reading.dataset.copies, names=reading.names)
    said = [copies.words()] if len(copies) else []
    said += [copies.near_words()] if copies.near else []
    once = reading.dataset.counted_once
    copied = len(reading.dataset) - len(once)
    return replace(reading, dataset=once, warnings=(*reading.warnings, *said), copies=copies, copied_rows=copied)


def _first_entries(file: ProblemFile, dataset: Dataset) -> Dataset:
    """Return the log with conditions that count once an episode, so that their sums are whether they ever held."""
    names = [c.name for c in file.constraint if c.kind is Kind.EVER]
    if not names:
        return dataset
    order, costs = dataset.order(), {name: dataset.cost(name) for name in dataset.cost_names}
    episodes = (np.zeros(len(dataset), np.int64) if dataset.episodes is None else dataset.episodes)[order]
    for name in names:
        holds = order[costs[name][order] != 0]
        _, first = np.unique(episodes[costs[name][order] != 0], return_index=True)
        once = np.zeros(len(dataset))
        once[holds[first]] = 1.0
        costs[name] = once
    return dataset.with_costs(costs)


def _factors(file: ProblemFile) -> dict[str, float]:
    """Return what costs are multiplied by, so that their discounted sums are what the user speaks of."""
    factors = {c.name: 1 - file.learn.discount for c in file.constraint if c.per_step}
    if file.objective.maximize is not None:
        factors[objective_of(file)] = -1.0
    return factors


def _in_user_units(dataset: Dataset, factors: Mapping[str, float]) -> Dataset:
    """Return the log with costs in the user's units."""
    if not factors:
        return dataset
    return dataset.with_costs({name: factors.get(name, 1.0) * dataset.cost(name) for name in dataset.cost_names})
