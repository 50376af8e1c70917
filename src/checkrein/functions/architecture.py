"""The shape of a network, and how observations become its inputs; what a saved network needs besides its weights."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from checkrein.base.arrays import Array, FloatArray, frozen
from checkrein.base.errors import ArgumentError
from checkrein.base.storage import storable

Convolution = tuple[int, int, int]  # channels, kernel, stride
PIXEL = 255.0


@storable
@dataclass(frozen=True)
class Architecture:
    """Convolutions, then dense layers, each followed by max(0, .), then one linear layer."""

    inputs: tuple[int, ...]  # (d,) or (channels, height, width)
    convolutions: tuple[Convolution, ...]
    hidden: tuple[int, ...]
    outputs: int

    def sizes(self) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Yield the shape of each layer's weight and bias, for one model."""
        channels, *sides = self.inputs
        for filters, kernel, stride in self.convolutions:
            yield (filters, channels, kernel, kernel), (filters,)
            channels, sides = filters, [(side - kernel) // stride + 1 for side in sides]
            if min(sides) < 1:
                raise ArgumentError(f"images of {self.inputs} are too small for the convolutions {self.convolutions}")
        width = channels * int(np.prod(sides, dtype=np.int64))
        for following in (*self.hidden, self.outputs):
            yield (width, following), (1, following)
            width = following


class Schedule(NamedTuple):
    """How a network is trained, as `Neural` says it."""

    hidden: tuple[int, ...]
    epochs: int
    batch: int
    rate: float
    patience: int
    seed: int
    threads: int | None


@storable
@dataclass(frozen=True, eq=False)
class Scaling:
    """Standardises feature vectors, scales pixels to [0, 1], and gives each finite state an input of its own."""

    centre: FloatArray  # (d,), or () for pixels
    scale: FloatArray
    n_states: int = 0  # 0: not finite

    @classmethod
    def of(cls, states: Array, weights: FloatArray) -> "Scaling":
        """Measure the inputs that count."""
        if states.ndim == 1:
            return cls(frozen(np.zeros(())), frozen(np.ones(())), int(states.max()) + 1)
        if states.ndim > 2:
            return cls(frozen(np.zeros(())), frozen(np.full((), PIXEL if states.dtype == np.uint8 else 1.0)))
        values = states.astype(np.float64, copy=False)
        shares = weights / weights.sum()
        centre = shares @ values
        spread = np.sqrt(shares @ (values - centre) ** 2)
        return cls(frozen(centre), frozen(np.where(spread > 0, spread, 1.0)))

    def shape(self, states: Array) -> tuple[int, ...]:
        """Return what one observation becomes; an image without channels has one."""
        if self.n_states:
            return (self.n_states,)
        return (1, *states.shape[1:]) if states.ndim == 3 else tuple(states.shape[1:])

    def __call__(self, states: Array) -> NDArray[np.float32]:
        """(n, ...) inputs; a finite state that was never seen is all zeros."""
        if self.n_states:
            return np.asarray(states)[:, None].__eq__(np.arange(self.n_states)).astype(np.float32)
        scaled = np.asarray(states).astype(np.float32)
        scaled -= self.centre.astype(np.float32)
        scaled /= self.scale.astype(np.float32)
        return scaled[:, None] if scaled.ndim == 3 else scaled
