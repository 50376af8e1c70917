"""How networks are fitted, in torch: the rows of a design, and the steps of one fit after another."""

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from checkrein.base.arrays import Array, FloatArray, IntArray, frozen
from checkrein.base.errors import DivergenceError
from checkrein.functions.architecture import Architecture, Scaling
from checkrein.functions.networks import Rows, Training, at_once, initialise, threads
from checkrein.functions.neural import Neural, NeuralQ
from checkrein.protocols import QFunction

IMPROVED = 0.995  # of the best held-out error so far: less is an improvement
FEW = 50  # rows: fewer are not held out
LEAST = 40  # gradient steps of an epoch: a small log is passed over several times


@dataclass(eq=False)
class NeuralDesign:
    """The rows as tensors; remembers the optimiser of its last fit for the next, if that goes on with its numbers."""

    functions: Neural
    data: Rows
    weights: FloatArray  # (n,)
    trained: IntArray  # rows
    held_out: IntArray  # rows
    n_actions: int
    penalty: float = 0.0
    warm: ClassVar[bool] = True  # goes on from the fit of an earlier round
    _last: tuple[np.random.Generator, NeuralQ, Training] | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls, functions: Neural, states: Array, actions: IntArray, weights: FloatArray, n_actions: int
    ) -> "NeuralDesign":
        """Encode the states, and set rows apart for early stopping."""
        kept = np.random.default_rng(0).permutation(np.flatnonzero(weights > 0))
        apart = int(functions.held_out * kept.size) if functions.steps is None and kept.size >= FEW else 0
        data = Rows.of(states, actions, weights, Scaling.of(states, weights), functions.device)
        return cls(functions, data, weights, np.sort(kept[apart:]), np.sort(kept[:apart]), n_actions)

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
        with threads(self.functions.threads):
            wanted = torch.from_numpy(standard).to(self.data.device)
            self._descend(training, wanted, rng)
            self._level(training, wanted)
        parameters = tuple(frozen(parameter.detach().cpu().numpy().copy()) for parameter in training.parameters)
        if not all(np.isfinite(parameter).all() for parameter in parameters):
            raise self._diverged()
        fitted = NeuralQ(
            shape,
            self.data.scaling,
            parameters,
            frozen(np.broadcast_to(centre, (models, k))),
            frozen(np.broadcast_to(scale, (models, k))),
        )
        self._last = rng, fitted, training
        return fitted

    def _begin(self, shape: Architecture, models: int, start: QFunction | None, rng: np.random.Generator) -> Training:
        """Go on from `start`: in units of the new targets it says the same; else begin anew."""
        rate = self.functions.rate
        if not (isinstance(start, NeuralQ) and start.shape == shape and len(start.centre) == models):
            return Training.of(shape, initialise(shape, models, rng), rate, self.data.device)
        if self._last is not None and self._last[0] is rng and self._last[1] is start:
            training = self._last[2]
        else:
            training = Training.of(shape, start._tensors, rate, self.data.device)
        training.restore([torch.tensor(parameter) for parameter in start.parameters])
        return training

    def _descend(self, training: Training, targets: Tensor, rng: np.random.Generator) -> None:
        """Take the steps of one fit, and keep the parameters that did best on held-out rows."""
        settings = self.functions
        chance = torch.Generator().manual_seed(int(rng.integers(2**63 - 1)))
        rows, batch = torch.from_numpy(self.trained), min(settings.batch or self.trained.size, self.trained.size)
        if settings.steps is not None:
            for _ in range(settings.steps):
                drawn = rows if batch == rows.numel() else rows[torch.randint(rows.numel(), (batch,), generator=chance)]
                training.step(self.data, targets, drawn, self.penalty)
            return
        apart = torch.from_numpy(self.held_out)
        least, best, waited = np.inf, training.kept(), 0
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
                least, best = error, training.kept()
            if waited >= settings.patience:
                break
        if apart.numel():
            training.restore(best)

    def _level(self, training: Training, targets: Tensor) -> None:
        """Leave no mean error: it would be carried from one iteration to the next, and add up."""
        if not self.penalty:
            with torch.inference_mode():
                training.level(self.data, targets, torch.from_numpy(np.sort(np.append(self.trained, self.held_out))))

    def _error(self, training: Training, targets: Tensor, rows: Tensor) -> float:
        """Return the held-out error of all models together."""
        step = at_once(training.shape)
        with torch.inference_mode():
            parts = [training.loss(self.data, targets, part, self.penalty) * part.numel() for part in rows.split(step)]
        error = float(torch.stack(parts).sum())
        if not np.isfinite(error):
            raise self._diverged()
        return error

    def _diverged(self) -> DivergenceError:
        return DivergenceError(f"the network's training diverges: lower its rate, {self.functions.rate:g}")
