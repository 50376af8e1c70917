"""A Dataset as one Parquet file, and back without loss.

A row is a transition. Columns: `state`, `action`, `next_state`, one `cost:<name>` per cost, `terminal`,
`next_observed`, and where the dataset has them `weight`, `episode`, `step`, `propensity`, `cluster`. A state that is
not finite is a fixed-size array of numbers (images are flattened, row by row).

What is not per row stands in the file's key-value metadata. `checkrein` is a JSON object: `format`, `n_actions`,
`n_states`, `observation` (the shape of one state), `initial_states`, `initial_weights`, `lowest`, `highest`, `longest`,
`encoding` and, where there is one, `horizon`. Arrays in it are `{"dtype", "shape", "data"}`, the data being base64 of
zlib of the numbers, row by row. `checkrein:sha256` is a digest of that text and of all columns: a file that was cut,
damaged or edited is told from a whole one.
"""

import base64
import hashlib
import json
import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl
from polars.exceptions import PanicException, PolarsError

from checkrein.base.arrays import Array, frozen
from checkrein.base.errors import DataError
from checkrein.base.storage import write_atomically
from checkrein.data.encoding import Encoding, StateColumn
from checkrein.data.frames import FrameStack

T = TypeVar("T")
FORMAT = 1
HEADER, DIGEST = "checkrein", "checkrein:sha256"  # keys of the file's metadata
COST = "cost:"
Fields = Any  # a Dataset, which is made of this and so cannot be named here
OPTIONAL = {
    "weight": "weights",
    "episode": "episodes",
    "step": "steps",
    "propensity": "propensities",
    "cluster": "clusters",
}


def write_fields(dataset: Fields, path: str | Path) -> None:
    """Write a dataset's fields to one Parquet file, whole or not at all."""
    if not dataset.weights.sum() > 0:
        raise DataError(f"{len(dataset)} rows that weigh {dataset.weights.sum()} are no dataset: nothing to write")
    if any(isinstance(states, FrameStack) for states in (dataset.states, dataset.next_states, dataset.initial_states)):
        raise DataError(
            f"the states are stacks of shared frames, and a table of {len(dataset)} rows would repeat their pixels: "
            "keep the frames in a file of their own (np.save) and build the dataset with stack_frames again"
        )
    if dataset.memory is not None:
        raise DataError("the states of this dataset hold the past of their episodes: write the log itself instead")
    columns, header = _columns(dataset), json.dumps(_header(dataset))
    table = pl.DataFrame(columns)
    metadata = {HEADER: header, DIGEST: _digest(columns, header)}
    write_atomically(Path(path), lambda file: table.write_parquet(file, metadata=metadata))


def read_fields(path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what `Dataset.from_arrays` takes, and what is to be set beside it."""
    path = Path(path)
    metadata = _attempt(path, lambda: pl.read_parquet_metadata(path))
    if HEADER not in metadata or DIGEST not in metadata:
        raise DataError(
            f"{path} is a Parquet file, but not one that Dataset.write_parquet wrote: its metadata has no {HEADER!r}. "
            "Read a table of decisions with checkrein.read_logs"
        )
    table = _attempt(path, lambda: pl.read_parquet(path, glob=False, hive_partitioning=False))
    columns = {name: table[name].to_numpy() for name in table.columns}
    found = _digest(columns, metadata[HEADER])
    if found != metadata[DIGEST]:
        raise DataError(
            f"{path} is not as it was written, it was damaged or edited: the digest of its {table.height} rows and "
            f"{table.width} columns is {found[:12]}..., but it should be {metadata[DIGEST][:12]}..."
        )
    header = json.loads(metadata[HEADER])
    if header["format"] != FORMAT:
        raise DataError(f"{path} has format {header['format']}, but this checkrein reads format {FORMAT}: upgrade it")
    return _arrays(columns, header), _kept(header)


def _attempt(path: Path, read: Callable[[], T]) -> T:
    try:
        return read()
    except FileNotFoundError:
        raise DataError(f"{path} does not exist") from None
    except (OSError, PolarsError, PanicException) as reason:
        line = (str(reason).splitlines() or [type(reason).__name__])[0]
        raise DataError(f"{path} is not a whole Parquet file: {line}") from None


def _columns(dataset: Fields) -> dict[str, Array]:
    """Return one array per column: (n,), or (n, d) where states are not finite."""
    columns = {"state": dataset.states, "action": dataset.actions, "next_state": dataset.next_states}
    columns |= {COST + name: dataset.cost(name) for name in dataset.cost_names}
    columns |= {"terminal": dataset.terminals, "next_observed": dataset.next_observed}
    optional = {column: getattr(dataset, name) for column, name in OPTIONAL.items()}
    columns |= {column: values for column, values in optional.items() if values is not None}
    if (dataset.weights == 1.0).all():
        del columns["weight"]
    for name in ("state", "next_state") if dataset.n_states is None else ():
        columns[name] = columns[name].reshape(len(dataset), math.prod(dataset.states.shape[1:]))
    return {name: np.ascontiguousarray(values) for name, values in columns.items()}


def _header(dataset: Fields) -> dict[str, Any]:
    encoding = dataset.encoding
    words = None
    if encoding is not None:
        combinations = None if encoding.combinations is None else _pack(encoding.combinations)
        columns = [asdict(column) for column in encoding.columns]
        words = {"actions": encoding.actions, "columns": columns, "combinations": combinations}
        words["integer_actions"] = encoding.integer_actions
    return {
        "format": FORMAT,
        "n_actions": dataset.n_actions,
        "n_states": dataset.n_states,
        "observation": dataset.states.shape[1:],
        "initial_states": _pack(dataset.initial_states),
        "initial_weights": _pack(dataset.initial_weights),
        "lowest": None if dataset.lowest is None else _pack(dataset.lowest),
        "highest": None if dataset.highest is None else _pack(dataset.highest),
        "longest": dataset.longest,
        "encoding": words,
        **({} if dataset.horizon is None else {"horizon": dataset.horizon}),
    }


def _arrays(columns: Mapping[str, Array], header: Mapping[str, Any]) -> dict[str, Any]:
    n, shape = len(columns["action"]), header["observation"]
    return {
        "states": columns["state"].reshape(n, *shape),
        "actions": columns["action"],
        "next_states": columns["next_state"].reshape(n, *shape),
        "costs": {name.removeprefix(COST): values for name, values in columns.items() if name.startswith(COST)},
        "terminals": columns["terminal"],
        "next_observed": columns["next_observed"],
        **{name: columns.get(column) for column, name in OPTIONAL.items()},
        "initial_states": _unpack(header["initial_states"]),
        "initial_weights": _unpack(header["initial_weights"]),
        "n_actions": header["n_actions"],
        "n_states": header["n_states"],
        "encoding": None if header["encoding"] is None else _encoding(header["encoding"], header.get("horizon")),
    }


def _kept(header: Mapping[str, Any]) -> dict[str, Any]:
    ranges = {name: None if header[name] is None else _unpack(header[name]) for name in ("lowest", "highest")}
    return {**ranges, "longest": header["longest"], "horizon": header.get("horizon")}


def _encoding(words: Mapping[str, Any], horizon: int | None) -> Encoding:
    def state_column(name: str, categories: list[str] | None, fill: float | None) -> StateColumn:
        return StateColumn(name, None if categories is None else tuple(categories), fill)

    combinations = None if words["combinations"] is None else _unpack(words["combinations"])
    columns = tuple(state_column(**column) for column in words["columns"])
    return Encoding(tuple(words["actions"]), columns, combinations, words["integer_actions"], horizon=horizon)


def _pack(array: Array) -> dict[str, Any]:
    data = base64.b64encode(zlib.compress(np.ascontiguousarray(array).tobytes())).decode("ascii")
    return {"dtype": array.dtype.str, "shape": array.shape, "data": data}


def _unpack(packed: Mapping[str, Any]) -> Array:
    numbers = zlib.decompress(base64.b64decode(packed["data"]))
    return frozen(np.frombuffer(numbers, dtype=packed["dtype"]).reshape(packed["shape"]))


def _digest(columns: Mapping[str, Array], header: str) -> str:
    digest = hashlib.sha256(header.encode())
    for name, values in columns.items():
        digest.update(repr((name, values.shape, values.dtype.str)).encode())
        digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()
