"""HDF5 logs of other libraries: D4RL and DSRL, and what d3rlpy dumps (version 1: flat; version 2: by episode).

All become the flat arrays of D4RL: a row per decision, episodes one after the other. `terminals` mark real ends,
`timeouts` rows after which logging stopped: what comes next in the file belongs to another episode.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from checkrein.base.arrays import Array, BoolArray, IntArray
from checkrein.base.errors import DataError, MissingExtraError
from checkrein.base.memory import require_memory
from checkrein.data import columns
from checkrein.data.dataset import Dataset

Discretise = Callable[[Array], ArrayLike]  # (n, dim) actions -> (n,) integers
SPARSE, PACKED = 1 << 24, 20_000  # bytes that may be filled in without being stored; times that packing makes smaller
COPIES = 3  # of an array, on its way into a Dataset
EPISODE_KEYS = ("observations", "actions", "rewards")  # of d3rlpy 2, each with the number of its episode


def read_hdf5(
    path: str | Path,
    *,
    discretise: Discretise | None = None,
    cost_name: str = "cost",
    n_actions: int | None = None,
) -> Dataset:
    """Read a D4RL, DSRL or d3rlpy file, told apart by its keys.

    Rewards are the cost "reward", as they are (maximise it); `costs` are called `cost_name`. Integer actions are used
    as they are; `discretise` turns (n, dim) continuous ones into (n,) integers. Where an episode was cut off and the
    file does not hold the state that followed, `next_observed` is false. A last episode without an end is cut off.
    """
    if cost_name == "reward":
        raise DataError("cost_name is 'reward', which is what the file's rewards are called: choose another name")
    try:
        import h5py  # noqa: PLC0415
    except ImportError as reason:
        raise MissingExtraError(f"reading {path}", "minari", reason) from None
    if not Path(path).is_file():
        raise DataError(f"{path} does not exist, or is not a file")
    try:
        with h5py.File(path, "r") as file:
            rows = _by_episode(file) if "num_episodes" in file else _flat(file)
    except DataError as reason:
        raise DataError(f"{path}: {reason}") from None
    except (OSError, RuntimeError, KeyError, TypeError, ValueError) as reason:  # how h5py tells of damage
        raise DataError(f"{path} is not a whole HDF5 file: {reason}") from None
    try:
        return _dataset(rows, discretise, cost_name, n_actions)
    except DataError as reason:
        raise DataError(f"{path}: {reason}") from None


def finite_actions(actions: Array, discretise: Discretise | None) -> IntArray:
    """(n,) integers: the actions themselves, or what `discretise` makes of (n, dim) of them."""
    n = len(actions)
    if discretise is not None:
        chosen = np.asarray(discretise(actions.reshape(n, -1)))
        if chosen.shape != (n,) or chosen.dtype.kind not in "biu":
            raise DataError(
                f"discretise turned actions of shape {actions.shape} into {chosen.dtype} of shape {chosen.shape}: "
                f"it must return integers of shape ({n},)"
            )
        return chosen.astype(np.int64)
    if actions.dtype.kind not in "biu" or actions.size != n:
        raise DataError(
            f"actions are {actions.dtype} of shape {actions.shape}, but finite actions are one integer per row: "
            "pass discretise=, a function that turns such an array (n, dim) into (n,) integers 0, 1, ..."
        )
    return actions.reshape(n).astype(np.int64)


def episodes_and_steps(ends: BoolArray) -> tuple[IntArray, IntArray]:
    """Return the number of each row's episode, each closed by an end, and of its step there."""
    first = np.append(True, ends[:-1])
    episodes = np.cumsum(first) - 1
    return episodes, np.arange(len(ends)) - np.flatnonzero(first)[episodes]


def _flat(file: Mapping[str, Any]) -> dict[str, Array]:
    rows = {key: _read(file, key) for key in ("observations", "actions", "rewards", "terminals")}
    rows |= {key: _read(file, key) for key in ("next_observations", "costs") if key in file}
    if "timeouts" in file:
        return rows | {"timeouts": _read(file, "timeouts")}
    if "discrete_action" not in file and "episode_terminals" not in file:
        raise DataError(
            "there is no 'timeouts', so where an episode was cut off cannot be told from where it went on: "
            "add it (all false if every episode ends with a terminal row)"
        )
    if "discrete_action" in file and bool(_read(file, "discrete_action", scalar=True)):
        rows["actions"] = _integral(rows["actions"])
    cuts = _read(file, "episode_terminals") if "episode_terminals" in file else rows["terminals"]
    return rows | {"timeouts": cuts}


def _by_episode(file: Mapping[str, Any]) -> dict[str, Array]:
    count = int(_read(file, "num_episodes", scalar=True))
    if count <= 0:
        raise DataError(f"num_episodes is {count}: there is nothing to learn from")
    parts: dict[str, list[Array]] = {key: [] for key in (*EPISODE_KEYS, "terminals", "timeouts")}
    for episode in range(count):
        if f"observations_{episode}_0" in file:
            raise DataError(f"'observations_{episode}_0' is one of several observations per step: store them as one")
        arrays = {key: _read(file, f"{key}_{episode}") for key in EPISODE_KEYS}
        lengths = {f"{key}_{episode}": len(array) for key, array in arrays.items()}
        if len(set(lengths.values())) > 1:
            raise DataError(f"episode {episode} has arrays of unequal length: {lengths}")
        last = np.zeros(len(arrays["actions"]), dtype=bool)
        last[-1:] = True
        ended = bool(_read(file, f"terminated_{episode}", scalar=True))
        for key, array in (arrays | {"terminals": last & ended, "timeouts": last & (not ended)}).items():
            parts[key].append(array)
    for key, arrays_of_key in parts.items():
        shapes = {array.shape[1:] for array in arrays_of_key}
        if len(shapes) > 1:
            raise DataError(f"{key} differ in shape from episode to episode: {sorted(shapes)}")
    rows = {key: np.concatenate(arrays_of_key) for key, arrays_of_key in parts.items()}
    return rows | {"actions": _integral(rows["actions"])}


def _read(file: Mapping[str, Any], key: str, *, scalar: bool = False) -> Any:
    if key not in file:
        shown = sorted(file)
        raise DataError(f"there is no {key!r}: the keys are {', '.join(shown[:12])}{', ...' if shown[12:] else ''}")
    _require_own(file, key)
    values = np.asarray(file[key][()])
    if (values.ndim == 0) != scalar:
        raise DataError(f"{key!r} has shape {values.shape}: it must {'be one value' if scalar else 'have rows'}")
    return values


def _require_own(file: Any, key: str) -> None:
    """Raise unless an array is in the file itself, with the numbers that it declares: it may come from a stranger."""
    if type(file.get(key, getlink=True)).__name__ == "ExternalLink":
        raise DataError(f"{key!r} lies in another file: copy it into this one")
    found = file[key]
    if not hasattr(found, "shape"):
        raise DataError(f"{key!r} is a group, not an array")
    if found.external or found.is_virtual:
        raise DataError(f"{key!r} takes its numbers from other files: copy them into this one")
    stored = found.id.get_storage_size()
    if found.nbytes > SPARSE and found.nbytes > PACKED * stored:
        raise DataError(f"{key!r} declares {found.shape} of {found.dtype}, but {stored:,} bytes of it are in the file")
    require_memory(
        COPIES * float(found.nbytes), f"reading {key!r}, {found.shape} of {found.dtype}", "read a part of it"
    )


def _integral(actions: Array) -> Array:
    """Return actions without a fraction as integers: d3rlpy takes them for discrete, however they are stored."""
    return actions.astype(np.int64) if (actions == np.floor(actions)).all() else actions


def _column(rows: Mapping[str, Array], key: str) -> Array:
    """(n,) one number per row; (n, 1) will do."""
    values = rows[key]
    n = len(rows["observations"])
    if values.shape not in ((n,), (n, 1)):
        raise DataError(f"{key!r} has shape {values.shape}, but 'observations' has {n} rows: it must be ({n},)")
    return values.reshape(n)


def _dataset(
    rows: Mapping[str, Array], discretise: Discretise | None, cost_name: str, n_actions: int | None
) -> Dataset:
    states = rows["observations"]
    n = len(states)
    if n == 0 or len(rows["actions"]) != n:
        raise DataError(f"'observations' has {n} rows and 'actions' {len(rows['actions'])}: one of each per decision")
    terminals = columns.flags(_column(rows, "terminals"), "terminals", n)
    ends = terminals | columns.flags(_column(rows, "timeouts"), "timeouts", n)
    episodes, steps = episodes_and_steps(ends)
    last = ends | (np.arange(n) == n - 1)
    following = rows.get("next_observations")
    held = np.ones(n, dtype=bool) if following is not None else terminals | ~last
    if following is None:
        following = np.concatenate([states[1:], states[-1:]])
        following[last] = states[last]  # no episode runs into the next
    costs = {"reward": _column(rows, "rewards")} | ({cost_name: _column(rows, "costs")} if "costs" in rows else {})
    return Dataset.from_arrays(
        states=states,
        actions=finite_actions(rows["actions"], discretise),
        next_states=following,
        costs=costs,
        terminals=terminals,
        next_observed=held,
        episodes=episodes,
        steps=steps,
        n_actions=n_actions,
    )
