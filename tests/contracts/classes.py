"""Every function class of the package, with states for it and functions that it can represent: one line each."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge

from checkrein import Ensemble, FrozenFeatures, Linear, Neural, OneHot, Polynomial, Regressor, Tabular, Trees

N_ACTIONS, ROWS, N_STATES = 3, 500, 6
RNG = np.random.default_rng(0)
ACTIONS = RNG.integers(0, N_ACTIONS, ROWS)
FINITE = RNG.integers(0, N_STATES, ROWS)
VECTORS = RNG.uniform(-1.5, 1.5, size=(ROWS, 3))
SCALES = np.array([1.0, 100.0, 1e-3])  # of three costs: none may drown in another
TABLE = RNG.normal(size=(N_STATES, N_ACTIONS, 3)) * SCALES
SLOPES = np.array([[1.0, -0.5, 0.8], [-1.0, 0.6, 0.4], [0.3, 1.0, -0.9]])  # of each action, for each cost


def of_table(states):
    """(n, A, 3) any number for each pair."""
    return TABLE[states]


def of_lines(states):
    """(n, A, 3): each cost hangs on another coordinate (a tree must split for all), each action has its slopes."""
    flat = coordinates(states)
    return np.stack([flat[:, [k % flat.shape[1]]] * SLOPES[:, k] + 0.2 * k for k in range(3)], axis=2) * SCALES


def of_parabolas(states):
    """(n, A, 3) lines and squares."""
    flat = coordinates(states)
    return of_lines(states) + (0.5 * flat[:, 0] ** 2)[:, None, None] * SCALES


def coordinates(states):
    """(n, d) numbers about zero; an image is seen by the mean of each of its channels."""
    return (states.mean(axis=(2, 3)) - 120.0) / 60.0 if states.ndim == 4 else states.astype(float)


class Case(NamedTuple):
    """A class, states for it, what it can represent, and how far it may be off.

    unexplained: the share of the targets' variance that a fit may leave, of what the best constant leaves
    others: root mean squares relative to the targets' deviation, between two fits that should be equal
    """

    functions: Any
    states: Any
    truth: Callable[[Any], Any]
    unexplained: float = 1e-12
    closed_form: bool = False  # has dynamics
    random: bool = False  # another generator gives other values
    stored: bool = True  # can be saved
    columns: float = 1e-8  # all costs at once against each alone
    weights: float = 1e-8  # weights against repeated rows
    order: float = 1e-8  # of the rows
    absent: float = 1e-8  # rows without weight against none


TENTH = 0.1
RELATED = 0.3  # two fits by chance: 9 % of the variance
TIES = 0.02  # of two splits that are equally good, rounding may choose either
TREES = {"unexplained": TENTH, "random": True, "columns": RELATED, "weights": TIES}
FOREST = {"unexplained": TENTH, "random": True, "stored": False}
FOREST |= {"columns": RELATED, "weights": RELATED, "order": RELATED}
NETWORK = {"unexplained": TENTH, "random": True, "columns": RELATED, "weights": RELATED, "order": RELATED}
NETWORK |= {"absent": 1e-3}
GROVE = RandomForestRegressor(10, max_features=0.7, bootstrap=False)
SMALL = Neural((32,), epochs=5, patience=5, batch=128, rate=1e-2)
IMAGES = np.asarray(60 * VECTORS[:, :, None, None].repeat(6, 2).repeat(6, 3) + 120).clip(0, 255).astype(np.uint8)
CASES = {
    "tabular": Case(Tabular(), FINITE, of_table, closed_form=True),
    "linear, one-hot": Case(Linear(OneHot(N_STATES)), FINITE, of_table, closed_form=True),
    "linear, polynomial": Case(Linear(Polynomial(2), ridge=0.0), VECTORS, of_parabolas, closed_form=True),
    "linear, ridge": Case(Linear(Polynomial(1), ridge=3.0), VECTORS, of_lines, 0.01, closed_form=True),
    "trees": Case(Trees(20), VECTORS, of_lines, **TREES),
    "trees, few candidates": Case(Trees(20, candidates=2), VECTORS, of_lines, **TREES | {"unexplained": 0.15}),
    "trees, frozen": Case(Trees(20, freeze_after=1), VECTORS, of_lines, **TREES),
    "trees, finite states": Case(Trees(5), FINITE, of_table),  # of few states each gets its own leaf
    "regressor, ridge": Case(Regressor(Ridge(1e-9)), VECTORS, of_lines),
    "regressor, forest": Case(Regressor(GROVE), VECTORS, of_lines, **FOREST),
    "neural": Case(SMALL, VECTORS, of_lines, **NETWORK),
    "neural, finite states": Case(SMALL, FINITE, of_table, **NETWORK),
    "neural, images": Case(
        Neural((16,), convolutions=((4, 3, 2),), epochs=5, patience=5, batch=128, rate=1e-2),
        IMAGES,
        of_lines,
        **NETWORK,
    ),
    "neural, noisy updates": Case(Neural((32,), steps=300, batch=128, rate=1e-2), VECTORS, of_lines, **NETWORK),
    "ensemble of networks": Case(Ensemble(SMALL, 3), VECTORS, of_lines, **NETWORK),
    "ensemble of trees": Case(Ensemble(Trees(7), 3), VECTORS, of_lines, **TREES),
    "frozen features, linear": Case(
        FrozenFeatures(Polynomial(2), Linear(Polynomial(1), ridge=0.0)), VECTORS, of_parabolas, closed_form=True
    ),
    "frozen features, neural": Case(FrozenFeatures(Polynomial(2), SMALL), VECTORS, of_lines, **NETWORK),
}

ALIKE = ("neural, finite states", "neural, noisy updates", "ensemble of networks", "frozen features, neural")
ALIKE += ("trees, few candidates", "ensemble of trees")  # one network and one forest stand for these in quick runs


def design_of(case, rows=slice(None), weights=None):
    weights = np.ones(len(case.states[rows])) if weights is None else weights
    return case.functions.design(case.states[rows], ACTIONS[rows], weights, n_actions=N_ACTIONS)


def fit(case, targets, rows=slice(None), weights=None, seed=0, start=None):
    return design_of(case, rows, weights).fit(targets, rng=np.random.default_rng(seed), start=start)


def logged(values, actions=ACTIONS):
    """(n, k) of values (n, A, k), those of the logged pairs."""
    return values[np.arange(len(actions)), actions]


def distance(values, others, targets):
    """The worst column's root mean square difference, relative to its targets' deviation."""
    return (np.sqrt(((values - others) ** 2).reshape(-1, values.shape[-1]).mean(axis=0)) / targets.std(axis=0)).max()
