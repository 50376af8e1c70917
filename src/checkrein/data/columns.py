"""What each column of a log must look like; errors name the column, the row and the value."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from checkrein.base.arrays import Array, BoolArray, FloatArray, IntArray, owned, require_counts, require_equal_lengths
from checkrein.base.errors import DataError
from checkrein.data.frames import FrameStack

LARGEST_INTEGER = 2.0**53  # from here on a float no longer tells integers apart
LARGEST = 1e30  # beyond this squares and products of a few numbers overflow, in single precision as they are
TOO_LARGE = f"nothing beyond {LARGEST:g} is taken. Is it a mark for missing values? Else use another unit"
MOST_ACTIONS = 100_000  # more than this are quantities, not actions
SPARSE_STATES = 10_000_000  # more than this is likely an identifier, not a state


@dataclass(frozen=True)
class Rows:
    """Names a row the way its owner knows it."""

    episodes: IntArray | None

    def __getitem__(self, row: int) -> str:
        return f"row {row}" if self.episodes is None else f"row {row} (episode {self.episodes[row]})"

    def require_finite(self, values: Array | FrameStack, names: list[str]) -> None:
        """Raise for the first row of (n, k) values that is not finite; one name stands for all columns."""
        if isinstance(values, FrameStack):
            bad = ~values.finite()
            if bad.any():
                raise DataError(f"{names[0]} hold NaN or infinity in {self[int(np.argmax(bad))]}: fix the frames")
            return
        if values.dtype.kind != "f" or len(values) == 0:
            return
        table = values.reshape(len(values), -1)
        for column in range(table.shape[1]):
            bad = ~(np.abs(table[:, column]) <= LARGEST)
            if bad.any():
                row = int(np.argmax(bad))
                name = names[column] if len(names) > 1 or table.shape[1] == 1 else f"{names[0]}[{column}]"
                what = f"{name} is {table[row, column]} in {self[row]}"
                if np.isfinite(table[row, column]):
                    raise DataError(f"{what}, which is too large to compute with: {TOO_LARGE}")
                raise DataError(f"{what}: it must be finite, fix the log")


def ones(n: int, dtype: type = float) -> Array:
    """(n,) ones that take no memory."""
    return np.broadcast_to(np.ones((), dtype), n)


def observations(values: ArrayLike, name: str) -> Array:
    """Integers of one column are finite states; all else becomes floats (bytes and single precision stay)."""
    array = _array(values, name)
    if isinstance(values, FrameStack):
        return array
    if array.dtype.kind not in "biuf":
        raise DataError(f"{name} hold {array.dtype}, not numbers: encode them as integers 0, 1, ... or as features")
    if array.ndim == 0:
        raise DataError(f"{name} is the single number {array}: give one entry per row")
    integral = array.dtype.kind in "biu"
    if integral and array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if integral and array.ndim == 1:
        if array.size and array.min() < 0:
            row = int(np.argmax(array < 0))
            raise DataError(f"{name} is {array[row]} in row {row}: finite states are integers from 0 on")
        return array.astype(np.int64, copy=False)
    if array.dtype not in (np.uint8, np.float32):
        array = array.astype(np.float64, copy=False)
    return array[:, None] if array.ndim == 1 else array


def _array(values: ArrayLike, name: str) -> Array:
    if isinstance(values, FrameStack):
        return cast(Array, values)  # passes for an array, and cannot be changed
    try:
        return owned(values)
    except ValueError:
        raise DataError(f"{name} are ragged: every row must have the same shape") from None


def column(values: ArrayLike, name: str, n: int, like: str = "states") -> Array:
    """Return one array of n numbers."""
    array = _array(values, name)
    if array.ndim != 1:
        raise DataError(f"{name} must be one-dimensional, but its shape is {array.shape}")
    require_equal_lengths({like: n, name: array.size}, DataError)
    if array.dtype.kind not in "biuf":
        raise DataError(f"{name} hold {array.dtype}, not numbers (the first is {array[0]!r}): encode them first")
    return array


def integers(values: ArrayLike, name: str, n: int) -> IntArray:
    """Return n integers (floats without a fraction will do)."""
    array = column(values, name, n)
    if array.dtype.kind == "f":
        bad = ~((array == np.floor(array)) & (np.abs(array) < LARGEST_INTEGER))
        if bad.any():
            row = int(np.argmax(bad))
            raise DataError(f"{name} is {array[row]} in row {row}: it must be an integer")
    return array.astype(np.int64, copy=False)


def clusters(values: ArrayLike, n: int, episodes: IntArray | None) -> IntArray:
    """Return whose each of n rows is, one of all rows of an episode; labels that are not integers are numbered."""
    array = _array(values, "clusters")
    if array.ndim != 1:
        raise DataError(f"clusters must be one-dimensional, but its shape is {array.shape}")
    require_equal_lengths({"states": n, "clusters": array.size}, DataError)
    if array.dtype.kind not in "biufUSO":
        raise DataError(f"clusters hold {array.dtype} (the first is {array[0]!r}): give integers or text")
    if array.dtype.kind in "fO":
        missing = [value is None or (isinstance(value, float) and np.isnan(value)) for value in array.tolist()]
        if any(missing):
            where = Rows(episodes)[missing.index(True)]
            raise DataError(f"clusters is missing in {where}: say whose episode it is, or leave clusters out")
    if array.dtype.kind in "USO":
        codes = np.unique(array.astype(str), return_inverse=True)[1]
    else:
        codes = integers(array, "clusters", n)
    if episodes is None:
        raise DataError("clusters are of episodes, which are not known: pass episodes=, too")
    _, first, episode = np.unique(episodes, return_index=True, return_inverse=True)
    other = codes != codes[first][episode]
    if other.any():
        row = int(np.argmax(other))
        begin = int(first[episode[row]])
        raise DataError(
            f"episode {episodes[row]} is of cluster {array[begin]} in row {begin}, but of {array[row]} in row {row}: "
            "an episode belongs to one cluster, fix the log or give its parts episode numbers of their own"
        )
    return codes


def flags(values: ArrayLike, name: str, n: int) -> BoolArray:
    """Return n truth values."""
    array = column(values, name, n)
    if array.dtype.kind != "b":
        bad = (array != 0) & (array != 1)
        if bad.any():
            row = int(np.argmax(bad))
            raise DataError(f"{name} is {array[row]} in row {row}: it must be true or false")
    return array.astype(np.bool_, copy=False)


def weights(values: ArrayLike, name: str, n: int, like: str = "states") -> FloatArray:
    """Return n weights, not all zero."""
    array = column(values, name, n, like).astype(np.float64, copy=False)
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(f"{name} is {array[row]} in row {row}: it must be finite and not negative")
    if not array.sum() > 0:
        raise DataError(f"{name} are all zero: at least one row must count")
    return array


def propensities(values: ArrayLike, n: int, where: Rows) -> FloatArray:
    """Return n probabilities of actions that were taken."""
    array = column(values, "propensities", n).astype(np.float64, copy=False)
    bad = ~((array > 0) & (array <= 1))
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(f"propensity is {array[row]} in {where[row]}: it must lie in (0, 1], the action was taken")
    return array


def costs(named: Mapping[str, ArrayLike], n: int) -> tuple[tuple[str, ...], FloatArray]:
    """Return the names and one (n, k) table, each column contiguous."""
    if not isinstance(named, Mapping):
        raise DataError(f"costs is a {type(named).__name__}: give a mapping of names to arrays")
    if not named:
        raise DataError("costs is empty: give at least one named cost")
    table = np.empty((len(named), n))  # one contiguous run per cost
    for place, (name, values) in enumerate(named.items()):
        table[place] = column(values, f"cost {name!r}", n)
    return tuple(named), table.T


def count_actions(actions: IntArray, declared: int | None, where: Rows) -> int:
    """Return the number of actions, declared or found."""
    if declared is not None:
        require_counts(n_actions=declared)
    if actions.min() < 0:
        row = int(np.argmax(actions < 0))
        raise DataError(f"action {actions[row]} in {where[row]}: actions are integers from 0 on")
    needed = int(actions.max()) + 1
    require_few_actions(max(needed, declared or 0))
    if declared is not None and needed > declared:
        row = int(np.argmax(actions >= declared))
        raise DataError(
            f"action {actions[row]} in {where[row]}, but n_actions is {declared}: "
            f"pass n_actions={needed} or fix the log"
        )
    return needed if declared is None else int(declared)


def require_few_actions(count: int) -> None:
    """Raise where there are so many actions that they are none to choose among."""
    if count > MOST_ACTIONS:
        raise DataError(
            f"there would be {count:,} actions, and no more than {MOST_ACTIONS:,} are taken: number them from 0 on "
            "without gaps, and round quantities into groups"
        )


def next_observations(values: ArrayLike, states: Array, *, known: BoolArray, rows: Rows) -> Array:
    """Next states like `states`; where there is none to know, what the log holds does not matter."""
    if isinstance(values, FrameStack) != isinstance(states, FrameStack):
        raise DataError("states and next_states must both be FrameStacks, or both arrays: stack_frames makes both")
    array = _array(values, "next_states")
    if array.dtype.kind == "i" and array.shape == states.shape and states.ndim == 1:
        array = np.where(known, array, np.where(array < 0, states, array))  # -1 after an end is a common habit
    array = observations(array, "next_states")
    require_equal_lengths({"states": len(states), "next_states": len(array)}, DataError)
    if array.shape != states.shape:
        raise DataError(f"states have shape {states.shape}, but next_states {array.shape}: they must be alike")
    if isinstance(values, FrameStack):
        rows.require_finite(values, ["next_states"])  # also after an end: frames are shared
    elif array.dtype.kind == "f" and not np.isfinite(array).all():
        unknown = ~known.reshape(-1, *[1] * (array.ndim - 1))
        array = np.where(unknown, states, array)
        rows.require_finite(array, ["next_states"])
    return array


def count_states(arrays: tuple[Array, ...], declared: int | None) -> int:
    """Return the number of finite states, declared or found."""
    if declared is not None:
        require_counts(n_states=declared)
    needed = 1 + max(int(array.max()) for array in arrays)
    if declared is not None and needed > declared:
        raise DataError(f"state {needed - 1} is logged, but n_states is {declared}: pass n_states={needed}")
    if max(needed, declared or 0) > SPARSE_STATES:
        raise DataError(
            f"there would be {max(needed, declared or 0)} states: number them from 0 on without large gaps, "
            "encode them with np.unique(states, return_inverse=True)"
        )
    return needed if declared is None else int(declared)
