"""Networks of one shape as one batched model, in torch: the first axis of every parameter counts the models.

Each layer is one matrix product for all of them, so that heads for many multipliers or seeds cost little more than
one while the batches are small.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from checkrein.base.arrays import Array, FloatArray
from checkrein.functions.architecture import Architecture, Scaling

PREDICTED = 1 << 13  # rows at once
NUMBERS = 1 << 22  # that the inputs of these rows may hold
FIRST = 0.1  # of the usual size: what is believed of the outputs before anything is fitted


def initialise(shape: Architecture, models: int, rng: np.random.Generator) -> list[Tensor]:
    """Draw weights within sqrt(3 / inputs), biases at zero."""
    parameters = []
    for weight, bias in shape.sizes():
        inputs = np.prod(weight[1:] if len(weight) > 2 else weight[:1])
        reach = np.sqrt(3 / inputs)
        parameters.append(torch.from_numpy(rng.uniform(-reach, reach, (models, *weight)).astype(np.float32)))
        parameters.append(torch.zeros((models, *bias)))
    parameters[-2] *= FIRST
    return parameters


def forward(shape: Architecture, parameters: Sequence[Tensor], inputs: Tensor) -> Tensor:
    """(M, B, outputs) of inputs (B, ...) that all models share."""
    return _dense(features(shape, parameters, inputs), *parameters[-2:])


def features(shape: Architecture, parameters: Sequence[Tensor], inputs: Tensor) -> Tensor:
    """(M or 1, B, d) what the last layer sees."""
    layers = list(zip(parameters[::2], parameters[1::2], strict=True))
    models, hidden = len(parameters[0]), inputs
    for number, (_, _, stride) in enumerate(shape.convolutions):
        weight, bias = layers[number]
        groups = 1 if number == 0 else models  # the first sees one image for all models
        hidden = functional.conv2d(hidden, weight.flatten(0, 1), bias.flatten(), stride=stride, groups=groups).relu()
    if shape.convolutions:
        hidden = hidden.unflatten(1, (models, -1)).transpose(0, 1).flatten(2)
    else:
        hidden = hidden.flatten(1)[None]
    for weight, bias in layers[len(shape.convolutions) : -1]:
        hidden = _dense(hidden, weight, bias).relu()
    return hidden


def _dense(hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    if len(weight) == 1:
        return torch.addmm(bias[0], hidden[0], weight[0])[None]
    return torch.baddbmm(bias, hidden.expand(len(weight), -1, -1), weight)


def predict(
    shape: Architecture, parameters: Sequence[Tensor], scaling: Scaling, states: Array, *, last: bool = True
) -> FloatArray:
    """(M, n, outputs), or what the last layer sees, some rows at a time."""
    device = parameters[0].device
    step = at_once(shape)
    layers = forward if last else features
    with torch.inference_mode():
        parts = [
            layers(shape, parameters, as_inputs(scaling, states[begin : begin + step]).to(device)).cpu()
            for begin in range(0, max(len(states), 1), step)
        ]
    return torch.cat(parts, dim=1).numpy().astype(np.float64)


def at_once(shape: Architecture) -> int:
    """Return how many rows to predict at once."""
    return max(1, min(PREDICTED, NUMBERS // int(np.prod(shape.inputs))))


def as_inputs(scaling: Scaling, states: Array) -> Tensor:
    """Return the inputs of some observations; images by pixel, then by channel."""
    inputs = torch.from_numpy(scaling(states))
    return inputs.contiguous(memory_format=torch.channels_last) if inputs.ndim == 4 else inputs


@dataclass(frozen=True, eq=False)
class Rows:
    """What a network is trained on: vectors as inputs at once, images as they are stored until a batch asks."""

    inputs: Tensor | None
    states: Array
    scaling: Scaling
    actions: Tensor  # (n,)
    weights: Tensor  # (n,) of mean one
    device: torch.device

    @classmethod
    def of(cls, states: Array, actions: Array, weights: FloatArray, scaling: Scaling, device: str) -> "Rows":
        """Encode what is small."""
        where = torch.device(device)
        small = states.ndim == 2
        return cls(
            torch.from_numpy(scaling(states)).to(where) if small else None,
            states,
            scaling,
            torch.from_numpy(np.array(actions, dtype=np.int64)).to(where),
            torch.from_numpy((weights / weights[weights > 0].mean()).astype(np.float32)).to(where),
            where,
        )

    def __getitem__(self, rows: Tensor) -> Tensor:
        if self.inputs is not None:
            return self.inputs[rows]
        return as_inputs(self.scaling, self.states[rows.cpu().numpy()]).to(self.device)


@dataclass(eq=False)
class Training:
    """Parameters on their way, and the moments of their gradients."""

    shape: Architecture
    parameters: list[Tensor]
    optimiser: torch.optim.Optimizer

    @classmethod
    def of(cls, shape: Architecture, parameters: Sequence[Tensor], rate: float, device: torch.device) -> "Training":
        """Begin with these parameters and no moments."""
        own = [parameter.detach().clone().to(device).requires_grad_() for parameter in parameters]
        return cls(shape, own, torch.optim.Adam(own, lr=rate, fused=device.type == "cpu"))

    def kept(self) -> list[Tensor]:
        """Return a copy of the parameters."""
        return [parameter.detach().clone() for parameter in self.parameters]

    def restore(self, parameters: Sequence[Tensor]) -> None:
        """Go back to these."""
        with torch.no_grad():
            for parameter, value in zip(self.parameters, parameters, strict=True):
                parameter.copy_(value)

    def step(self, data: Rows, targets: Tensor, rows: Tensor, penalty: float) -> None:
        """Descend once on the squared errors of a batch."""
        self.optimiser.zero_grad()
        self.loss(data, targets, rows, penalty).sum().backward()
        self.optimiser.step()

    def level(self, data: Rows, targets: Tensor, rows: Tensor) -> None:
        """Shift the outputs of each action so that its errors (M, n, k) are nothing on average."""
        models, k = len(self.parameters[0]), targets.shape[2]
        bias = self.parameters[-1].view(models, -1, k)  # (M, A, k)
        errors, counts = torch.zeros_like(bias), torch.zeros(bias.shape[1], device=bias.device)
        for part in rows.split(at_once(self.shape)):
            _, taken = self.values(data, part, k)
            weights, actions = data.weights[part], data.actions[part]
            errors.index_add_(1, actions, (targets[:, part] - taken) * weights[:, None])
            counts.index_add_(0, actions, weights)
        bias += errors / counts.clamp(min=1e-12)[:, None]

    def values(self, data: Rows, rows: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return what every action (M, B, A, k) and the logged one (M, B, k) is worth."""
        values = forward(self.shape, self.parameters, data[rows]).unflatten(2, (-1, k))
        at = data.actions[rows][None, :, None, None].expand(len(values), -1, 1, k)
        return values, values.gather(2, at).squeeze(2)

    def loss(self, data: Rows, targets: Tensor, rows: Tensor, penalty: float = 0.0) -> Tensor:
        """(M,) the mean squared error of each model; targets (M or 1, n, k).

        penalty: times how much lower the smooth minimum over actions lies than the logged action (conservative
        Q-learning, Kumar et al. 2020, for costs).
        """
        values, taken = self.values(data, rows, targets.shape[2])
        each = (taken - targets[:, rows]).square().sum(dim=2)
        if penalty:
            each = each + 2 * penalty * ((-values).logsumexp(dim=2) + taken).sum(dim=2)
        return (each * data.weights[rows]).mean(dim=1)


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Let torch use so many threads inside; None leaves it as it is."""
    before = torch.get_num_threads()
    if count is not None and count != before:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        if count is not None and count != before:
            torch.set_num_threads(before)
