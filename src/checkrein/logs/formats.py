"""Formats of logs that are no tables: they know their own states, actions and episodes.

A log of the format NAME is written NAME:WHERE, or is a file that ends in .NAME. Other packages add formats by entry
points of the group `checkrein.log_formats`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from checkrein.base.errors import CheckreinError, DataError, PluginError
from checkrein.base.plugins import distribution, loaded, offered
from checkrein.data.dataset import Dataset
from checkrein.logs.hdf5 import read_hdf5
from checkrein.logs.minari import read_minari

GROUP = "checkrein.log_formats"
TABLES = {"csv", "tsv", "parquet"}


class LogFormat(Protocol):
    """Reads a log."""

    def __call__(self, where: str, *, costs: Sequence[str], n_actions: int | None) -> Dataset:
        """Return a log with the costs that are asked for, and others if it likes; `where` is what follows NAME:."""
        ...


class Located(NamedTuple):
    """A log and its format."""

    format: str
    where: str
    is_file: bool


def located(path: str) -> Located | None:
    """Return which format a path is of; None for a table."""
    name, colon, where = path.partition(":")
    suffix = Path(path).suffix.lower().removeprefix(".")
    known = {*BUILT_IN, *offered(GROUP)} - TABLES
    if colon and name in known:
        return Located(name, where, is_file=False)
    return Located(suffix, path, is_file=True) if suffix in known else None


def read(log: Located, *, costs: Sequence[str], n_actions: int | None) -> Dataset:
    """Read a log by its format, and say what it lacks."""
    if log.format in BUILT_IN:
        return _with_costs(log, BUILT_IN[log.format](log.where, costs=costs, n_actions=n_actions), costs)
    offers = offered(GROUP)[log.format]
    whose = f"the log format {log.format!r} of {distribution(offers[0])}"
    reader = loaded("log format", log.format, offers)
    if not callable(reader):
        raise PluginError(f"{whose} cannot be called: offer a function")
    try:
        dataset = reader(log.where, costs=costs, n_actions=n_actions)
    except CheckreinError:
        raise
    except Exception as reason:  # whatever a stranger's reader does with a file it does not like
        raise DataError(f"{whose} cannot read {log.where} ({type(reason).__name__}: {reason})") from reason
    if not isinstance(dataset, Dataset):
        raise PluginError(f"{whose} returned a {type(dataset).__name__}, not a Dataset")
    return _with_costs(log, dataset, costs)


def _with_costs(log: Located, dataset: Dataset, costs: Sequence[str]) -> Dataset:
    lacking = [cost for cost in costs if cost not in dataset.cost_names]
    if lacking:
        raise DataError(f"{log.where} has no cost {lacking[0]!r}: it has {', '.join(dataset.cost_names)}")
    return dataset


def _minari(where: str, *, costs: Sequence[str], n_actions: int | None) -> Dataset:
    """Costs are `reward`, and what the infos hold."""
    return read_minari(where, costs={cost: cost for cost in costs if cost != "reward"}, n_actions=n_actions)


def _hdf5(where: str, *, costs: Sequence[str], n_actions: int | None) -> Dataset:
    """Costs are `reward` and `cost`."""
    del costs
    return read_hdf5(where, n_actions=n_actions)


BUILT_IN: dict[str, LogFormat] = {"minari": _minari, "hdf5": _hdf5, "h5": _hdf5}
