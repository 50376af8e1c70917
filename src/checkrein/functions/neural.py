"""Neural: multilayer perceptrons and convolutional networks, one trunk for all costs (the extra `neural`)."""

from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, cast

from checkrein.base.arrays import Array, FloatArray, IntArray, frozen, require_counts, require_positive
from checkrein.base.errors import ArgumentError, MissingExtraError
from checkrein.base.storage import storable
from checkrein.functions.architecture import Architecture, Convolution, Scaling

if TYPE_CHECKING:
    from torch import Tensor

    from checkrein.functions.training import NeuralDesign


@dataclass(frozen=True)
class Neural:
    """Q(x, .) for all actions and costs by one network, squared loss on standardised targets, Adam.

    hidden, convolutions: widths of the dense layers; (channels, kernel, stride) of those before them, for images
    epochs: passes over the rows in a fit, at the most: it stops once the error on held-out rows has not shrunk for
        `patience` of them, and keeps the best
    steps: gradient steps in a fit instead ("noisy updates": the moments of the optimiser live on to the next fit)
    batch: rows per gradient step; None takes all
    held_out: share of the rows that early stopping is judged on
    threads: that torch may use meanwhile; None leaves it as it is. Small layers are fastest with one
    """

    hidden: tuple[int, ...] = (256, 256)
    convolutions: tuple[Convolution, ...] = ()
    epochs: int = 10
    steps: int | None = None
    batch: int | None = 512
    rate: float = 1e-3
    held_out: float = 0.1
    patience: int = 1
    device: str = "cpu"
    threads: int | None = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(self.hidden))
        object.__setattr__(self, "convolutions", tuple(map(tuple, self.convolutions)))
        require_counts(epochs=self.epochs, patience=self.patience)
        require_positive(rate=self.rate)
        optional = {"batch": self.batch, "steps": self.steps, "threads": self.threads}
        require_counts(**{name: value for name, value in optional.items() if value is not None})
        require_counts(**{f"hidden[{i}]": width for i, width in enumerate(self.hidden)})
        if not 0 <= self.held_out < 1:
            raise ArgumentError(f"held_out is {self.held_out}: it must be a share of the rows, less than 1")

    def design(self, states: Array, actions: IntArray, weights: FloatArray, *, n_actions: int) -> "NeuralDesign":
        """Put the rows where torch can use them."""
        if states.ndim > 2 and not self.convolutions:
            raise ArgumentError(f"states of shape {states.shape[1:]} need convolutions=((32, 8, 4), (64, 4, 2), ...)")
        if states.ndim <= 2 and self.convolutions:
            raise ArgumentError(f"convolutions are for images, but states have shape {states.shape[1:]}")
        training = import_networks(module="checkrein.functions.training")
        return cast("NeuralDesign", training.NeuralDesign.of(self, states, actions, weights, n_actions))


@storable
@dataclass(frozen=True, eq=False)
class NeuralQ:
    """Values by one network, or the mean of several of one shape."""

    shape: Architecture
    scaling: Scaling
    parameters: tuple[Array, ...]  # weight and bias of each layer, (M, ...)
    centre: FloatArray  # (M, k) of the targets that the outputs are standardised by
    scale: FloatArray  # (M, k)

    def __call__(self, states: Array) -> FloatArray:
        """(n, A, k)"""  # noqa: D400, D415
        return self.members(states).mean(axis=0)

    def members(self, states: Array) -> FloatArray:
        """(M, n, A, k) what each network says."""
        outputs = import_networks().predict(self.shape, self._tensors, self.scaling, states)
        models, k = self.centre.shape
        values = outputs.reshape(models, len(states), self.shape.outputs // k, k)
        return values * self.scale[:, None, None] + self.centre[:, None, None]

    def member(self, number: int) -> "NeuralQ":
        """Return one of the networks."""
        chosen = slice(number, number + 1)
        own = tuple(frozen(parameter[chosen]) for parameter in self.parameters)
        return replace(self, parameters=own, centre=self.centre[chosen], scale=self.scale[chosen])

    def encoder(self) -> "Trunk":
        """Return all but the last layer of the first network, for `FrozenFeatures`."""
        return Trunk(self.member(0))

    @cached_property
    def _tensors(self) -> "list[Tensor]":
        import torch  # noqa: PLC0415

        return [torch.tensor(parameter) for parameter in self.parameters]


@storable
@dataclass(frozen=True, eq=False)
class Trunk:
    """What the last layer of a network sees."""

    q: NeuralQ

    def __call__(self, states: Array) -> FloatArray:
        """(n, d)"""  # noqa: D400, D415
        return import_networks().predict(self.q.shape, self.q._tensors, self.q.scaling, states, last=False)[0]


def import_networks(what: str = "Neural", module: str = "checkrein.functions.networks") -> ModuleType:
    """Import a module that imports torch, only where networks are used."""
    try:
        return import_module(module)
    except ImportError as reason:
        raise MissingExtraError(what, "neural", reason) from None
