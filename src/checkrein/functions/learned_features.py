"""Features of numeric states, learned once from a log and then frozen: columns, products, units of a small network.

The network is trained on what decisions need: what a step costs, what the next steps cost, and how the state changes,
with one linear head for each action. Its last layer, the standardised state and its products are then whitened, so that
one ridge suits all directions. It is small enough to be trained with numpy alone.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from checkrein.base.arrays import Array, FloatArray, IntArray, frozen
from checkrein.base.errors import ArgumentError
from checkrein.base.storage import storable
from checkrein.problem import Episodes

CLIPPED = 4.0  # standard deviations of a state: beyond, single rows would decide
CROSSED = 12  # up to so many columns their products are features, beyond only their squares
UNITS = (64, 48)
STEPS, BATCH, RATE = 600, 256, 3e-3
AHEAD = (3, 9)  # steps whose costs are foretold
LEAST = 1e-3  # of the mean variance: a direction with less is left out
SAMPLED = 20_000  # rows that whitening looks at

Kind = Literal["columns", "products", "network"]  # each has what those before it have


@storable
@dataclass(frozen=True, eq=False)
class LearnedFeatures:
    """(n, d) -> (n, q): a constant, then whitened directions of columns, products and hidden units."""

    centre: FloatArray  # (d,)
    scale: FloatArray  # (d,)
    first: FloatArray  # (d + 1, h1) weights and bias of the first layer; of no unit where there is no network
    second: FloatArray  # (h1 + 1, h2)
    middle: FloatArray  # (p,) means of what is whitened
    whitening: FloatArray  # (p, q - 1)
    products: bool = True

    def __call__(self, states: Array) -> FloatArray:
        """(n, q)"""  # noqa: D400, D415
        whitened = (self._raw(states) - self.middle) @ self.whitening
        return np.hstack([np.ones((len(whitened), 1)), whitened])

    def _raw(self, states: Array) -> FloatArray:
        x = np.clip((np.asarray(states, np.float64) - self.centre) / self.scale, -CLIPPED, CLIPPED)
        return _raw(x, self.first, self.second, self.products)


class Targets(NamedTuple):
    """What the network foretells of rows, standardised."""

    inputs: FloatArray  # (n, d)
    actions: IntArray  # (n,)
    outcomes: FloatArray  # (n, t)


def learn_features(log: Episodes, rng: np.random.Generator, kind: Kind = "network") -> LearnedFeatures:
    """Learn features from the rows of a log."""
    states = np.asarray(log.states, np.float64)
    if states.ndim != 2:
        raise ArgumentError(f"features are learned from columns of numbers, but states have shape {states.shape[1:]}")
    centre, spread = states.mean(axis=0), states.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    x = np.clip((states - centre) / scale, -CLIPPED, CLIPPED)
    if kind == "network":
        first, second = _trained(_targets(log, x, centre, scale), log.n_actions, rng)
    else:
        first, second = np.zeros((x.shape[1] + 1, 0)), np.zeros((1, 0))
    sampled = x if len(x) <= SAMPLED else x[rng.choice(len(x), SAMPLED, replace=False)]
    raw = _raw(sampled, first, second, kind != "columns")
    middle = raw.mean(axis=0)
    size = raw.std(axis=0)
    unit = np.where(size > 1e-9, size, np.inf)  # what never varies tells nothing
    variances, directions = np.linalg.eigh(np.cov(((raw - middle) / unit).T, bias=True).reshape(raw.shape[1], -1))
    kept = variances > LEAST * max(variances.mean(), 1e-300)
    whitening = directions[:, kept] / np.sqrt(variances[kept]) / unit[:, None]
    arrays = map(frozen, (centre, scale, first, second, middle, whitening))
    return LearnedFeatures(*arrays, products=kind != "columns")


def _raw(x: FloatArray, first: FloatArray, second: FloatArray, products: bool) -> FloatArray:
    """(n, p) the columns, their products, and the hidden units."""
    d = x.shape[1]
    parts = [x]
    if products:
        left, right = np.triu_indices(d) if d <= CROSSED else (np.arange(d), np.arange(d))
        parts.append(x[:, left] * x[:, right])
    if second.shape[1]:
        parts.append(_hidden(x, first, second)[1])
    return np.hstack(parts)


def _hidden(x: FloatArray, first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
    one = np.tanh(x @ first[:-1] + first[-1])
    return one, np.tanh(one @ second[:-1] + second[-1])


def _targets(log: Episodes, x: FloatArray, centre: FloatArray, scale: FloatArray) -> Targets:
    known = np.flatnonzero(log.terminals | log.next_observed)
    costs = log.row_costs
    columns = [costs, *(sums_ahead(log, costs, steps) for steps in AHEAD)]
    moved = (np.asarray(log.next_states, np.float64) - centre) / scale - x
    columns.append(np.where(log.terminals[:, None], 0.0, np.clip(moved, -CLIPPED, CLIPPED)))
    outcomes = np.hstack(columns)[known]
    spread = outcomes.std(axis=0)
    varies = spread > 1e-12
    outcomes = (outcomes[:, varies] - outcomes[:, varies].mean(axis=0)) / spread[varies]
    return Targets(x[known], log.actions[known], outcomes)


def sums_ahead(log: Episodes, costs: FloatArray, steps: int) -> FloatArray:
    """(n, k) discounted sums of costs (n, k) over so many steps from each row on, or to its episode's end."""
    total, left = costs.copy(), np.repeat(log.begins + log.lengths, log.lengths) - np.arange(len(costs))
    for step in range(1, steps):
        rows = np.flatnonzero(left > step)
        total[rows] += log.discount**step * costs[rows + step]
    return total


def _trained(data: Targets, n_actions: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Return the two hidden layers after Adam (Kingma & Ba 2015) on the squared error of the heads of what was done."""
    d, t, (h1, h2) = data.inputs.shape[1], data.outcomes.shape[1], UNITS
    layers = [
        np.vstack([rng.standard_normal((d, h1)) / np.sqrt(d), np.zeros((1, h1))]),
        np.vstack([rng.standard_normal((h1, h2)) / np.sqrt(h1), np.zeros((1, h2))]),
        np.zeros((n_actions, h2 + 1, t)),
    ]
    means, squares = [np.zeros_like(w) for w in layers], [np.zeros_like(w) for w in layers]
    for step in range(1, STEPS + 1):
        rows = rng.integers(len(data.inputs), size=min(BATCH, len(data.inputs)))
        gradients = _gradients(layers, data.inputs[rows], data.actions[rows], data.outcomes[rows])
        rate = RATE * (1 - (step - 1) / STEPS)
        for i, gradient in enumerate(gradients):
            means[i] = 0.9 * means[i] + 0.1 * gradient
            squares[i] = 0.999 * squares[i] + 0.001 * gradient**2
            first, second = means[i] / (1 - 0.9**step), squares[i] / (1 - 0.999**step)
            layers[i] = layers[i] - rate * first / (np.sqrt(second) + 1e-8)
    return layers[0], layers[1]


def _gradients(layers: list[FloatArray], x: FloatArray, actions: IntArray, y: FloatArray) -> list[FloatArray]:
    first, second, heads = layers
    one, two = _hidden(x, first, second)
    padded = np.hstack([two, np.ones((len(two), 1))])
    chosen = heads[actions]  # (b, h + 1, t)
    error = (np.einsum("bh,bht->bt", padded, chosen) - y) / len(x)
    head_gradient = np.zeros_like(heads)
    for action in np.unique(actions):
        mine = actions == action
        head_gradient[action] = padded[mine].T @ error[mine]
    back = np.einsum("bt,bht->bh", error, chosen[:, :-1]) * (1 - two**2)
    second_gradient = np.vstack([one.T @ back, back.sum(axis=0)])
    back = (back @ second[:-1].T) * (1 - one**2)
    return [np.vstack([x.T @ back, back.sum(axis=0)]), second_gradient, head_gradient]
