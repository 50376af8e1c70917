"""Stacks of consecutive frames as observations: a frame is held once, and no pixel copied until it is asked for."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, cast, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from checkrein.base.arrays import Array, BoolArray, IntArray, chunks, frozen, owned, require_counts
from checkrein.base.errors import ArgumentError, DataError


@dataclass(frozen=True, eq=False, repr=False)
class FrameStack:
    """Observations that are frames[index[i]], joined along the channels: (n, s, H, W), or (n, s * C, H, W).

    Rows of it share the frames. `np.asarray` copies the pixels, so ask for a part at a time:
    `np.asarray(states[begin:end])`. Any other NumPy function refuses rather than copy all of them.
    """

    frames: Array  # (N, H, W) or (N, C, H, W), as given (a view, or a file mapped to memory): do not change them later
    index: IntArray  # (n, s) the frames of each observation, the oldest first

    def __post_init__(self) -> None:
        frames, index = np.asarray(self.frames), owned(self.index)
        if frames.ndim not in (3, 4) or frames.dtype.kind not in "biuf":
            raise DataError(
                f"frames hold {frames.dtype} of shape {frames.shape}: they must be numbers (N, H, W), or (N, C, H, W), "
                "for channels that come last np.moveaxis(frames, -1, 1)"
            )
        if index.ndim != 2 or index.shape[1] == 0 or index.dtype.kind not in "iu":
            raise DataError(f"the index holds {index.dtype} of shape {index.shape}: it must be integers (n, s)")
        if index.size and not 0 <= index.min() <= index.max() < len(frames):
            row = int(np.argmax(((index < 0) | (index >= len(frames))).any(axis=1)))
            raise DataError(f"the index is {index[row]} in row {row}, but there are {len(frames)} frames, from 0 on")
        narrow = len(frames) <= np.iinfo(np.int32).max
        object.__setattr__(self, "frames", frozen(frames) if frames.flags.writeable else frames)
        object.__setattr__(self, "index", frozen(index.astype(np.int32 if narrow else np.int64, copy=False)))

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the observations: (n, s, H, W), or (n, s * C, H, W)."""
        channels = math.prod(self.frames.shape[1:-2])
        return (len(self.index), self.index.shape[1] * channels, *self.frames.shape[-2:])

    @property
    def ndim(self) -> int:
        """Always 4."""
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the frames."""
        return self.frames.dtype

    @property
    def size(self) -> int:
        """How many numbers the observations have."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes that are really held; the frames may be shared with others."""
        return self.frames.nbytes + self.index.nbytes

    def __len__(self) -> int:
        return len(self.index)

    def __repr__(self) -> str:
        return f"FrameStack({self.dtype} observations {self.shape} of {len(self.frames)} frames)"

    @overload
    def __getitem__(self, rows: int | np.integer[Any]) -> Array: ...

    @overload
    def __getitem__(self, rows: slice | Array | list[int] | list[bool]) -> "FrameStack": ...

    def __getitem__(self, rows: Any) -> "FrameStack | Array":
        """Return some rows, which share the frames; of a single number, its observation as an array."""
        if isinstance(rows, tuple) or np.ndim(rows) > 1:
            raise ArgumentError("a FrameStack is indexed by rows alone: take np.asarray(states[rows])[:, ...]")
        index = self.index[rows]
        return self._stacked(index) if index.ndim == 1 else FrameStack(self.frames, index)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        """Copy the pixels of all rows."""
        if copy is False:
            raise ValueError("frames cannot be stacked without a copy")  # as NumPy asks of this method
        return self._stacked(self.index).astype(self.dtype if dtype is None else dtype, copy=False)

    def __array_function__(self, function: Callable[..., Any], *_: Any) -> NoReturn:
        self._refuse(function)

    def __array_ufunc__(self, function: Callable[..., Any], *_: Any, **__: Any) -> NoReturn:
        self._refuse(function)

    def finite(self) -> BoolArray:
        """(n,) observations without NaN or infinity."""
        if self.dtype.kind != "f":
            return np.ones(len(self), dtype=bool)
        each = [np.isfinite(part).reshape(len(part), -1).all(axis=1) for part in chunks(self.frames)]
        return np.asarray(np.concatenate(each)[self.index].all(axis=1))

    def _stacked(self, index: IntArray) -> Array:
        return self.frames[index].reshape(*index.shape[:-1], *self.shape[1:])

    def _refuse(self, function: Callable[..., Any]) -> NoReturn:
        raise ArgumentError(
            f"numpy.{function.__name__} would copy the pixels of all {len(self)} observations: "
            "apply it to np.asarray(states[begin:end]), a part at a time"
        )


class StackedFrames(NamedTuple):
    """What a log of frames is to `Dataset.from_arrays`: pass it on as `**stack_frames(...)._asdict()`."""

    states: FrameStack
    next_states: FrameStack  # shares the frames
    next_observed: BoolArray  # (n,)


def stack_frames(frames: ArrayLike, episodes: ArrayLike, *, stack: int = 4) -> StackedFrames:
    """Let each row of a log see its frame and those before it, the oldest first.

    frames: (N, H, W), or (N, C, H, W), in time order, episode after episode. Either one frame per row, N = n: what
        follows an episode's last row was not observed. Or one more for each of e episodes, N = n + e: T + 1 frames for
        T rows, the last being what the last row led to.
    episodes: (n,) of the rows, in time order, each episode in one piece
    stack: frames of an observation; before an episode's first frame, that one is repeated
    """
    require_counts(stack=stack)
    pictures, episode = np.asarray(frames), np.asarray(episodes)
    if episode.ndim != 1 or episode.size == 0:
        raise DataError(f"episodes have shape {episode.shape}: give the episode of every row")
    n = episode.size
    begins = np.flatnonzero(np.append(True, episode[1:] != episode[:-1]))
    lengths = np.diff(begins, append=n)
    _require_pieces(episode, begins)
    extra = (len(pictures) if pictures.ndim else 0) - n
    if extra not in (0, begins.size):
        raise DataError(
            f"there are {extra + n} frames for {n} rows in {begins.size} episodes: give one per row ({n}), "
            f"or one more per episode ({n + begins.size})"
        )
    newest = np.arange(n) + (np.repeat(np.arange(begins.size), lengths) if extra else 0)  # (n,)
    first = np.repeat(newest[begins], lengths)[:, None]
    window = newest[:, None] - np.arange(stack)[::-1]  # (n, s)
    observed = np.ones(n, dtype=bool)
    observed[begins + lengths - 1] = extra > 0
    states = FrameStack(pictures, np.maximum(window, first))
    following = np.where(observed[:, None], np.maximum(window + 1, first), states.index)
    return StackedFrames(states, FrameStack(states.frames, following), frozen(observed))


def frozen_states(states: Array | FrameStack) -> Array:
    """Return states that stay what they are: arrays become read-only views, stacks pass for arrays as they stand."""
    return cast(Array, states) if isinstance(states, FrameStack) else frozen(states)


def _require_pieces(episodes: Array, begins: IntArray) -> None:
    labels, counts = np.unique(episodes[begins], return_counts=True)
    if (counts > 1).any():
        label = labels[int(np.argmax(counts > 1))]
        row = int(begins[np.flatnonzero(episodes[begins] == label)[1]])
        raise DataError(f"episode {label} begins again in row {row}: sort the log by episode and step first")
