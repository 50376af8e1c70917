"""Which features to use: those over which behavior's Q foretells best what episodes cost that it was not fitted to.

Not those with the least Bellman error: its square holds the variance of the next state's value as well, so that a Q
that says less of the future has the smaller one. What followed in an episode has Q as its mean, whatever the class.
"""

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.evaluation.doubly_robust import folds_of
from checkrein.evaluation.feature_one_step import FeatureNuisances, FeatureRows, probabilities_at
from checkrein.evaluation.feature_scores import values_of
from checkrein.functions.learned_features import Kind, LearnedFeatures, learn_features
from checkrein.problem import Episodes, Problem

KINDS: tuple[Kind, ...] = ("columns", "products", "network")
PARTS = 3  # of which one is foretold


def choose_features(problem: Problem, rng: np.random.Generator) -> LearnedFeatures:
    """Learn features of each kind from two thirds of the episodes, and then of the best kind from all."""
    log = Episodes.of(problem)
    fold = folds_of(log, PARTS, rng)
    mine, held = log.part(fold != 0), log.part(fold == 0)
    errors = [forecast_errors(mine, held, learn_features(Episodes.of(mine), rng, kind)) for kind in KINDS]
    score = np.log(np.maximum(errors, 1e-300)).sum(axis=1)  # by ratios: costs have units of their own
    return learn_features(log, rng, KINDS[int(score.argmin())])


def forecast_errors(mine: Problem, held: Problem, features: LearnedFeatures) -> FloatArray:
    """(k,) mean squares of what followed in the held episodes, less Q of behavior as fitted to the others.

    Where episodes were cut off, what follows the cut is V; only rows of their first halves are asked.
    """
    nuisances, rows = FeatureNuisances(mine, features), FeatureRows.of(held, features)
    followed, log = nuisances.follow(nuisances.behavior), rows.log
    values, q = values_of(nuisances, rows, followed, probabilities_at(nuisances.behavior, rows, features))
    asked = log.ended[log.episode] | (2 * log.step < np.repeat(log.lengths, log.lengths))
    weights = (rows.row_weights * asked)[:, None]
    return np.asarray(
        (weights * (_followed(rows, log.costs(nuisances.behavior), values) - q) ** 2).sum(axis=0) / weights.sum()
    )


def _followed(rows: FeatureRows, costs: FloatArray, values: FloatArray) -> FloatArray:
    """(n, k) discounted costs (n, k) from each row to its episode's end, and V (N, k) beyond where it was cut off."""
    log = rows.log
    sums = costs.copy()
    sums[log.last] += log.continuation[log.last, None] * values[rows.following[log.last]]
    for step in range(int(log.lengths.max()) - 2, -1, -1):
        at = log.begins[log.lengths > step + 1] + step
        sums[at] += log.discount * sums[at + 1]
    return sums
