"""Neural: multilayer perceptrons and convolutional networks, one trunk for all costs (the extra `neural`)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bridle.arrays import Array, FloatArray, IntArray, frozen, require_counts, require_positive
from bridle.errors import ArgumentError, DivergenceError, MissingExtraError
from bridle.functions.architecture import Architecture, Convolution, Scaling
from bridle.protocols import QFunction
from bridle.storage import storable

if TYPE_CHECKING:
    from torch import Tensor

    from bridle.functions.networks import Rows, Training

IMPROVED = 0.995  # of the best held-out error so far: less is an improvement
FEW = 50  # rows: fewer are not held out
LEAST = 40  # gradient steps of an epoch: a small log is passed over several times


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
        """Encode the states, and set rows apart for early stopping."""
        networks = import_networks()
        if states.ndim > 2 and not self.convolutions:
            raise ArgumentError(f"states of shape {states.shape[1:]} need convolutions=((32, 8, 4), (64, 4, 2), ...)")
        if states.ndim <= 2 and self.convolutions:
            raise ArgumentError(f"convolutions are for images, but states have shape {states.shape[1:]}")
        kept = np.random.default_rng(0).permutation(np.flatnonzero(weights > 0))
        apart = int(self.held_out * kept.size) if self.steps is None and kept.size >= FEW else 0
        scaling = Scaling.of(states, weights)
        data = networks.Rows.of(states, actions, weights, scaling, self.device)
        return NeuralDesign(self, data, weights, np.sort(kept[apart:]), np.sort(kept[:apart]), n_actions)


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


@dataclass(eq=False)
class NeuralDesign:
    """The rows as tensors; remembers the optimiser of its last fit for the next, if that goes on with its numbers."""

    functions: Neural
    data: "Rows"
    weights: FloatArray  # (n,)
    trained: IntArray  # rows
    held_out: IntArray  # rows
    n_actions: int
    penalty: float = 0.0
    warm: ClassVar[bool] = True  # goes on from the fit of an earlier round
    _last: "tuple[np.random.Generator, NeuralQ, Training] | None" = field(default=None, repr=False)

    def conservative(self, penalty: float) -> "NeuralDesign":
        """Return the same design with low values of actions that were not taken made dear."""
        return replace(self, penalty=penalty, _last=None)

    def fit(self, targets: FloatArray, *, rng: np.random.Generator, start: QFunction | None = None) -> NeuralQ:
        """Regress targets (n, k), from where the last fit ended."""
        return self.fit_many(targets[None], models=1, rng=rng, start=start)

    def fit_many(
        self, targets: FloatArray, *, models: int, rng: np.random.Generator, start: QFunction | None = None
    ) -> NeuralQ:
        """Regress targets (M or 1, n, k) by as many networks at once; with one set of targets they differ by chance."""
        networks = import_networks()
        shares = self.weights / self.weights.sum()
        centre = np.einsum("n,mnk->mk", shares, targets)
        spread = np.sqrt(np.einsum("n,mnk->mk", shares, (targets - centre[:, None]) ** 2))
        scale = np.where(spread > 0, spread, 1.0)
        k = targets.shape[2]
        shape = Architecture(
            self.data.scaling.shape(self.data.states),
            self.functions.convolutions,
            self.functions.hidden,
            self.n_actions * k,
        )
        training = self._begin(shape, models, start, rng)
        standard = ((targets - centre[:, None]) / scale[:, None]).astype(np.float32)
        with networks.threads(self.functions.threads):
            wanted = _tensor(standard).to(self.data.device)
            self._descend(training, wanted, rng)
            self._level(training, wanted)
        fitted = NeuralQ(
            shape,
            self.data.scaling,
            tuple(frozen(parameter.detach().cpu().numpy().copy()) for parameter in training.parameters),
            frozen(np.broadcast_to(centre, (models, k))),
            frozen(np.broadcast_to(scale, (models, k))),
        )
        self._last = rng, fitted, training
        return fitted

    def _begin(self, shape: Architecture, models: int, start: QFunction | None, rng: np.random.Generator) -> "Training":
        """Go on from `start`: in units of the new targets it says the same; else begin anew."""
        networks, rate = import_networks(), self.functions.rate
        if not (isinstance(start, NeuralQ) and start.shape == shape and len(start.centre) == models):
            return networks.Training.of(shape, networks.initialise(shape, models, rng), rate, self.data.device)
        if self._last is not None and self._last[0] is rng and self._last[1] is start:
            training = self._last[2]
        else:
            training = networks.Training.of(shape, start._tensors, rate, self.data.device)
        _assign(training.parameters, start.parameters)
        return training

    def _descend(self, training: "Training", targets: "Tensor", rng: np.random.Generator) -> None:
        """Take the steps of one fit, and keep the parameters that did best on held-out rows."""
        import torch  # noqa: PLC0415

        settings = self.functions
        chance = torch.Generator().manual_seed(int(rng.integers(2**63 - 1)))
        rows, batch = torch.from_numpy(self.trained), min(settings.batch or self.trained.size, self.trained.size)
        if settings.steps is not None:
            for _ in range(settings.steps):
                drawn = rows if batch == rows.numel() else rows[torch.randint(rows.numel(), (batch,), generator=chance)]
                training.step(self.data, targets, drawn, self.penalty)
            return
        apart = torch.from_numpy(self.held_out)
        least, best, waited = np.inf, [p.detach().clone() for p in training.parameters], 0
        passes = math.ceil(LEAST * batch / rows.numel())
        for _ in range(settings.epochs):
            for _ in range(passes):
                order = rows[torch.randperm(rows.numel(), generator=chance)]
                for drawn in order.split(batch):
                    training.step(self.data, targets, drawn, self.penalty)
            if not apart.numel():
                continue
            error = self._error(training, targets, apart)
            waited = 0 if error < IMPROVED * least else waited + 1
            if error < least:
                least, best = error, [p.detach().clone() for p in training.parameters]
            if waited >= settings.patience:
                break
        if apart.numel():
            _assign(training.parameters, best)

    def _level(self, training: "Training", targets: "Tensor") -> None:
        """Leave no mean error: it would be carried from one iteration to the next, and add up."""
        import torch  # noqa: PLC0415

        if not self.penalty:
            with torch.inference_mode():
                training.level(self.data, targets, torch.from_numpy(np.sort(np.append(self.trained, self.held_out))))

    def _error(self, training: "Training", targets: "Tensor", rows: "Tensor") -> float:
        """Return the held-out error of all models together."""
        import torch  # noqa: PLC0415

        step = import_networks().at_once(training.shape)
        with torch.inference_mode():
            parts = [training.loss(self.data, targets, part, self.penalty) * part.numel() for part in rows.split(step)]
        error = float(torch.stack(parts).sum())
        if not np.isfinite(error):
            raise DivergenceError(f"the network's error is {error}: lower its rate, {self.functions.rate:g}")
        return error


def import_networks(what: str = "Neural", module: str = "bridle.functions.networks") -> ModuleType:
    """Import a module that imports torch, only where networks are used."""
    try:
        return import_module(module)
    except ImportError as reason:
        raise MissingExtraError(what, "neural", reason) from None


def _tensor(values: Any) -> "Tensor":
    import torch  # noqa: PLC0415

    return torch.from_numpy(np.ascontiguousarray(values))


def _assign(parameters: "Sequence[Tensor]", values: "Sequence[Any]") -> None:
    import torch  # noqa: PLC0415

    with torch.no_grad():
        for parameter, value in zip(parameters, values, strict=True):
            parameter.copy_(torch.as_tensor(np.array(value)) if isinstance(value, np.ndarray) else value)
