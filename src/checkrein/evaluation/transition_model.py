"""Dynamics learned from feature vectors, in torch: one network for where actions lead, at what cost, to what end."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import expit, logit
from torch import Tensor

from checkrein.base.arrays import Array, FloatArray, IntArray
from checkrein.base.errors import DivergenceError
from checkrein.functions.architecture import Architecture, Scaling, Schedule
from checkrein.functions.networks import Rows, Training, as_inputs, forward, initialise, threads
from checkrein.problem import Problem

PREDICTED = 1 << 14  # rows at once
HELD_OUT = 0.1  # of the rows: where training is stopped
FEW = 50  # rows: fewer are not held out
IMPROVED = 2e-3  # of the mean logarithm of errors: less is no improvement
SLOWER = 0.1  # of the rate, once before training stops
DOUBT = 10.0  # rows that speak against what an action shows by itself
EXACT = 1e-6  # an error as good as none
STEPS = 20  # in an epoch, at the least: batches are smaller where rows are few,
SMALLEST = 32  # but no smaller than this
NEVER = 1e-9  # the least probability of an end, and of going on


@dataclass(frozen=True, eq=False)
class TransitionModel:
    """What the log says of each action: where it leads, at what cost, and whether it ends there."""

    shape: Architecture
    scaling: Scaling
    parameters: list[Tensor]
    centre: Array  # (A, d + k + 1) of the outputs: differences of the state, costs, the log-odds of the end
    spread: Array  # (d + k + 1,)
    deviation: FloatArray  # (A, d) of the next state about its mean
    low: FloatArray  # (d,) the logged range
    high: FloatArray  # (d,)

    def __call__(self, states: Array) -> tuple[Array, Array, Array]:
        """Return the differences (n, A, d), costs (n, A, k) and the probability of the end (n, A)."""
        d = self.low.size
        with torch.inference_mode():
            outputs = forward(self.shape, self.parameters, as_inputs(self.scaling, states))[0].numpy()
        outputs = outputs.reshape(len(states), *self.centre.shape) * self.spread + self.centre
        return outputs[..., :d], outputs[..., d:-1], expit(outputs[..., -1])

    def within(self, states: FloatArray) -> FloatArray:
        """(n, d) states, moved into the logged range: a model knows nothing of what lies beyond."""
        return np.clip(states, self.low, self.high)


@dataclass(frozen=True, eq=False)
class Lesson:
    """What a model is learned from, in units in which every error is about 1 before anything is learned."""

    rows: Rows
    targets: Tensor  # (n, d + k + 1)
    moved: Tensor  # (n, 1) whether the next state is known
    learned: Tensor  # (d + k + 1,) 0 for what never varies
    odds: float  # of the end in the log, as a logarithm
    entropy: float  # of the end in the log

    def outputs(self, training: Training, chosen: Tensor) -> Tensor:
        """(b, d + k + 1) what the network says of the actions that were taken in some rows."""
        outputs = forward(training.shape, training.parameters, self.rows[chosen])[0]
        every = outputs.unflatten(1, (-1, self.targets.shape[1]))
        return every.gather(1, self.rows.actions[chosen][:, None, None].expand(-1, 1, every.shape[2]))[:, 0]

    def errors(self, training: Training, chosen: Tensor) -> Tensor:
        """(d + k + 1,) mean squared errors, and the cross-entropy of the end, of some rows."""
        outputs, targets, d = self.outputs(training, chosen), self.targets[chosen], training.shape.inputs[0]
        squares = (outputs[:, :-1] - targets[:, :-1]).square()
        end = torch.nn.functional.binary_cross_entropy_with_logits(
            outputs[:, -1:] + self.odds, targets[:, -1:], reduction="none"
        )
        each = torch.cat([squares[:, :d] * self.moved[chosen], squares[:, d:], end / self.entropy], dim=1)
        return (each * self.rows.weights[chosen][:, None]).mean(dim=0) * self.learned

    def held_out(self, training: Training, apart: IntArray) -> float:
        """Return the mean logarithm of errors: what is mostly noise does not drown what can be known well."""
        with torch.inference_mode():
            parts = [self.errors(training, part) * part.numel() for part in _parts(apart, PREDICTED)]
            error = float((torch.stack(parts).sum(dim=0) / apart.size + EXACT).log().mean())
        if not np.isfinite(error):
            raise DivergenceError("the learned model's error is not finite: lower its rate")
        return error


def fit(problem: Problem, settings: Schedule) -> TransitionModel:
    """Train one network on all rows but those that say when to stop; then let each action be right on average."""
    rows = problem.transitions
    states = np.asarray(rows.states, dtype=np.float64)
    d, moved = states.shape[1], rows.next_observed & ~rows.terminals
    targets = np.column_stack([np.where(moved[:, None], rows.next_states - states, 0.0), problem.row_costs])
    counted = rows.weights[:, None] * np.where(np.arange(targets.shape[1]) < d, moved[:, None], 1.0)
    centre = _mean(targets, counted)
    spread = np.sqrt(_mean((targets - centre) ** 2, counted))
    share = float(np.clip(rows.weights @ rows.terminals / rows.weights.sum(), NEVER, 1 - NEVER))
    varies = np.append(spread > 0, NEVER < share < 1 - NEVER)
    standard = (targets - centre) / np.where(spread > 0, spread, 1.0)
    scaling = Scaling.of(states, rows.weights)
    lesson = Lesson(
        Rows.of(states, rows.actions, rows.weights, scaling, "cpu"),
        torch.from_numpy(np.column_stack([standard, rows.terminals]).astype(np.float32)),
        torch.from_numpy(moved[:, None].astype(np.float32)),
        torch.from_numpy(varies.astype(np.float32)),
        float(logit(share)),
        -share * math.log(share) - (1 - share) * math.log1p(-share),
    )
    rng = np.random.default_rng(settings.seed)
    shape = Architecture((d,), (), settings.hidden, rows.n_actions * varies.size)
    training = Training.of(shape, initialise(shape, 1, rng), settings.rate, torch.device("cpu"))
    kept = rng.permutation(np.flatnonzero(rows.weights > 0))
    apart = int(HELD_OUT * kept.size) if kept.size >= FEW else 0
    with threads(settings.threads):
        _train(training, lesson, kept[apart:], kept[:apart], settings, rng)
        with torch.inference_mode():
            every = [lesson.outputs(training, part).numpy()[:, :-1] for part in _parts(np.arange(len(rows)), PREDICTED)]
    errors = targets - centre - spread * np.concatenate(every)
    shift = _by_action(errors, counted, rows.actions, rows.n_actions, np.zeros(spread.size))
    judged = kept[:apart] if apart else kept  # what was not trained on errs as what is to come
    squares, weights = (errors - shift[rows.actions])[judged, :d] ** 2, counted[judged, :d]
    variance = _by_action(squares, weights, rows.actions[judged], rows.n_actions, _mean(squares, weights))
    seen = np.concatenate([states, rows.next_states[moved], rows.initial_states])
    return TransitionModel(
        shape,
        scaling,
        [parameter.detach() for parameter in training.parameters],
        np.column_stack([centre + shift, np.full(rows.n_actions, lesson.odds)]).astype(np.float32),
        (np.append(spread, 1.0) * varies).astype(np.float32),
        np.sqrt(variance),
        seen.min(axis=0),
        seen.max(axis=0),
    )


def _train(
    training: Training,
    lesson: Lesson,
    trained: IntArray,
    apart: IntArray,
    settings: Schedule,
    rng: np.random.Generator,
) -> None:
    """Descend until held-out rows gain no more, then on from the best more slowly; leave what did best on them."""
    least, best, waited, slowed = np.inf, training.kept(), 0, False
    batch = min(settings.batch, max(SMALLEST, math.ceil(trained.size / STEPS)))
    for epoch in range(1, settings.epochs + 1):
        for drawn in _parts(rng.permutation(trained), batch):
            training.optimiser.zero_grad()
            torch.autograd.backward(lesson.errors(training, drawn).sum())
            training.optimiser.step()
        if not apart.size:
            continue
        error = lesson.held_out(training, apart)
        waited = 0 if error < least - IMPROVED else waited + 1
        if error < least:
            least, best = error, training.kept()
        if waited < settings.patience and epoch < settings.epochs:
            continue
        training.restore(best)
        if slowed:
            return
        waited, slowed = 0, True
        for group in training.optimiser.param_groups:
            group["lr"] *= SLOWER


def _parts(rows: IntArray, size: int) -> Iterator[Tensor]:
    for begin in range(0, rows.size, size):
        yield torch.from_numpy(rows[begin : begin + size])


def _mean(values: FloatArray, weights: FloatArray) -> FloatArray:
    """(c,) of values (n, c) by weights (n, c); of nothing, 0."""
    return np.asarray((weights * values).sum(axis=0) / np.maximum(weights.sum(axis=0), np.finfo(float).tiny))


def _by_action(
    values: FloatArray, weights: FloatArray, actions: IntArray, n_actions: int, pooled: FloatArray
) -> FloatArray:
    """Return the means (A, c) of values (n, c) by weights (n, c), drawn towards `pooled` (c,) for rare actions."""
    sums, total = np.zeros((2, n_actions, values.shape[1]))
    np.add.at(sums, actions, weights * values)
    np.add.at(total, actions, weights)
    return (sums + DOUBT * pooled) / (total + DOUBT)
