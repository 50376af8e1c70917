"""What each episode says of a policy, by nuisances over features that were learned from other episodes.

A row counts as often as the policy comes to it and does what was done. Where the state is enough, that is the density
ratio of the state LAG steps before times the ratios of decisions since. Where it is not, what was done before that
matters, too, and the product of all ratios since the start says how much, but its spread grows with every step. Its
first-order part, the sum of ratios less one, says most of it at a fraction of the spread: so a row's weight has, in
place of what the density says of the sum, the sum itself. Values are then right to first order in how far a policy
moves from behavior, whatever the state lacks, as long as decisions rest on the state.
"""

from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.evaluation import behavior_value
from checkrein.evaluation.behavior_value import CutOff
from checkrein.evaluation.feature_one_step import (
    FeatureNuisances,
    FeatureRows,
    Followed,
    come_before,
    expected,
    probabilities_at,
)
from checkrein.evaluation.scores import RowWeights
from checkrein.policies import members_of
from checkrein.problem import Episodes
from checkrein.protocols import Policy

LAG = 2  # steps whose decisions count in full


@dataclass(frozen=True, eq=False)
class FeatureScores:
    """Scores of episodes, and what single rows count for."""

    scores: FloatArray  # (e, k)
    exposure: RowWeights
    weights: FloatArray  # (e,) of what was done in all of each episode


def score(nuisances: FeatureNuisances, rows: FeatureRows, policy: Policy) -> FeatureScores:
    """Value a policy by nuisances, corrected by each episode of a log."""
    found = [
        (weight, _scored(nuisances, rows, nuisances.follow(member)))
        for member, weight in members_of(policy)
        if weight > 0
    ]
    scores = np.asarray(sum(weight * one.scores for weight, one in found))
    exposures = [one.exposure.times(weight) for weight, one in found]
    weights = np.asarray(sum(weight * one.weights for weight, one in found))
    return FeatureScores(scores, reduce(lambda one, other: one + other, exposures), weights)


@dataclass(frozen=True, eq=False)
class BehaviorScores:
    """What episodes say of who wrote them."""

    scores: FloatArray  # (e, k)
    remembered: FloatArray | None = None  # (e, k) of TD errors, what time and the past tell beyond the state


def behavior_scores(nuisances: FeatureNuisances, rows: FeatureRows) -> BehaviorScores:
    """Sum what episodes cost; where cut off, add what follows by nuisances, corrected by rows that look like it.

    Where states say all that matters, what was remembered beyond them has mean zero: like states then lead to the same,
    early and late, and so also where the log does not reach.
    """
    followed, log = nuisances.follow(nuisances.behavior), rows.log
    within = nuisances.value_range(followed.policy)

    def following(cut: CutOff) -> FloatArray:
        at = np.where(cut.beyond, rows.following[cut.rows], cut.rows)
        part = replace(rows, features=rows.features[at], states=rows.states[at])
        chances = probabilities_at(followed.policy, part, nuisances.features)
        return np.clip(expected(part.features, chances, followed.weights), *within)

    scores = behavior_value.behavior_scores(log, log.costs(nuisances.behavior), following)
    if log.ended.all():
        return BehaviorScores(scores)
    chances = probabilities_at(followed.policy, rows, nuisances.features)
    values = np.clip(expected(rows.features, chances, followed.weights), *within)
    ahead = log.continuation[:, None] * values[rows.following]
    td_error = (log.costs(nuisances.behavior) + ahead - values[: len(rows.own)]) * rows.known[:, None]
    beyond = rows.own @ nuisances.beyond_first_order(followed, 0)
    from_states = rows.own @ followed.density - beyond  # what states say of how much a row counts
    scores += log.sums(beyond[:, None] * td_error)
    return BehaviorScores(scores, log.sums((log.factors - from_states)[:, None] * td_error))


def values_of(
    nuisances: FeatureNuisances, rows: FeatureRows, followed: Followed, chances: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return V (N, k) of all states of a log, where a policy has chances (N, A), and Q (n, k) of what was done."""
    within, log = nuisances.value_range(followed.policy), rows.log
    values = expected(rows.features, chances, followed.weights, within)
    return values, expected(rows.own, np.eye(log.n_actions)[log.actions], followed.weights, within)


def _scored(nuisances: FeatureNuisances, rows: FeatureRows, followed: Followed) -> FeatureScores:
    log = rows.log
    chances = probabilities_at(followed.policy, rows, nuisances.features)
    values, q = values_of(nuisances, rows, followed, chances)
    td_error = log.costs(followed.policy) + log.continuation[:, None] * values[rows.following] - q
    ratios = nuisances.ratios(rows, chances) * rows.known
    come = come_before(log, ratios) + rows.own @ nuisances.beyond_first_order(followed, LAG)
    weights = _weights(log, ratios, come)
    worth = values[rows.starts]
    begun = worth if rows.starts is log.begins else np.broadcast_to(rows.start_weights @ worth, (len(log), q.shape[1]))
    relative = weights * log.weights[log.episode] / log.weights.sum()
    squared = relative[:, None] ** 2
    sides = [np.maximum(side, 0.0) for side in (td_error, -td_error)]
    errors = np.stack([[(squared * side**power).sum(axis=0) for side in sides] for power in (2, 3)])
    exposure = RowWeights(float((relative**4).sum()), float((np.abs(relative) ** 5).sum()), errors)
    scores = np.asarray(begun + log.sums(weights[:, None] * td_error))
    return FeatureScores(scores, exposure, weights[log.last])


def _weights(log: Episodes, ratios: FloatArray, come: FloatArray) -> FloatArray:
    """(n,) how often the policy comes to each row: to the state LAG steps before, times the ratios since.

    Nearer to the start it is all ratios since the start.
    """
    rows = np.arange(len(ratios))
    product = np.ones(len(ratios))
    for back in range(LAG + 1):
        product = np.where(log.step >= back, product * ratios[np.maximum(rows - back, 0)], product)
    from_there = log.discount**LAG * come[np.maximum(rows - LAG, 0)]
    return np.asarray(product * np.where(log.step >= LAG, from_there, log.factors))
