"""What each episode says of a policy, by nuisances over features that were learned from other episodes."""

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
    expected,
    probabilities_at,
)
from checkrein.evaluation.scores import RowWeights
from checkrein.policies import members_of
from checkrein.problem import Episodes
from checkrein.protocols import Policy

BLOCKS = 10  # of judging episodes, each corrected by the others


@dataclass(frozen=True, eq=False)
class FeatureScores:
    """Scores of episodes by one way to weigh, and what single rows count for."""

    scores: FloatArray  # (e, k)
    exposure: RowWeights
    weights: FloatArray  # (e,) of what was done in all of each episode


EVERYTHING = None


def score(
    nuisances: FeatureNuisances, rows: FeatureRows, policy: Policy, *, lag: int | None, second_order: bool = False
) -> FeatureScores:
    """Value a policy by nuisances, corrected by each episode of a log.

    lag: steps that weights remember. 0: a row counts as often as the policy comes to its state. k: as often as it comes
        to the state k steps before, and then does what was done. EVERYTHING: as often as it does all that was done
        since the start, which is right whether or not the state is enough, and most left to chance
    second_order: estimate what errors of Q and of the density make of each other, within the features
    """
    found = [
        (weight, _scored(nuisances, rows, nuisances.follow(member), lag, second_order=second_order))
        for member, weight in members_of(policy)
        if weight > 0
    ]
    scores = np.asarray(sum(weight * one.scores for weight, one in found))
    exposures = [one.exposure.times(weight) for weight, one in found]
    weights = np.asarray(sum(weight * one.weights for weight, one in found))
    return FeatureScores(scores, reduce(lambda one, other: one + other, exposures), weights)


def behavior_scores(nuisances: FeatureNuisances, rows: FeatureRows) -> FloatArray:
    """(e, k) what episodes say of who wrote them: their own sums; where cut off, what follows by nuisances."""
    followed = nuisances.follow(nuisances.behavior)

    def following(cut: CutOff) -> FloatArray:
        at = np.where(cut.beyond, rows.following[cut.rows], cut.rows)
        part = replace(rows, features=rows.features[at], states=rows.states[at])
        chances = probabilities_at(followed.policy, part, nuisances.features)
        return np.clip(expected(part.features, chances, followed.weights), *nuisances.value_range(followed.policy))

    return behavior_value.behavior_scores(rows.log, rows.log.costs(nuisances.behavior), following)


def _scored(
    nuisances: FeatureNuisances, rows: FeatureRows, followed: Followed, lag: int | None, *, second_order: bool
) -> FeatureScores:
    log = rows.log
    chances = probabilities_at(followed.policy, rows, nuisances.features)
    within = nuisances.value_range(followed.policy)
    values = expected(rows.features, chances, followed.weights, within)
    q = expected(rows.own, np.eye(log.n_actions)[log.actions], followed.weights, within)
    td_error = log.costs(followed.policy) + log.continuation[:, None] * values[rows.following] - q
    ratios = nuisances.ratios(rows, chances) * rows.known
    density = rows.own @ followed.density
    if lag is EVERYTHING:
        weights = log.factors * log.products(ratios)
    else:
        weights = _lagged(log, ratios, rows.own @ nuisances.density(followed, lag), lag)
    worth = values[rows.starts]
    begun = worth if rows.starts is log.begins else np.broadcast_to(rows.start_weights @ worth, (len(log), q.shape[1]))
    scores = begun + log.sums(weights[:, None] * td_error)
    if second_order:
        scores = scores + _second_order(rows, followed, ratios, density, td_error)
    relative = weights * log.weights[log.episode] / log.weights.sum()
    squared = relative[:, None] ** 2
    sides = [np.maximum(side, 0.0) for side in (td_error, -td_error)]
    errors = np.stack([[(squared * side**power).sum(axis=0) for side in sides] for power in (2, 3)])
    exposure = RowWeights(float((relative**4).sum()), float((np.abs(relative) ** 5).sum()), errors)
    return FeatureScores(np.asarray(scores), exposure, weights[log.last])


def _lagged(log: Episodes, ratios: FloatArray, density: FloatArray, lag: int) -> FloatArray:
    """(n,) how often the policy comes to each row: its density `lag` steps before, times the ratios since.

    Nearer to the start it is all ratios since the start.
    """
    rows = np.arange(len(ratios))
    product = np.ones(len(ratios))
    for back in range(lag + 1):
        product = np.where(log.step >= back, product * ratios[np.maximum(rows - back, 0)], product)
    later = log.step >= lag
    from_there = log.discount**lag * density[np.maximum(rows - lag, 0)]
    return np.asarray(product * np.where(later, from_there, log.factors))


def _second_order(
    rows: FeatureRows, followed: Followed, ratios: FloatArray, density: FloatArray, td_error: FloatArray
) -> FloatArray:
    """(e, k) arrivals @ chain^-1 @ gains, the two from different blocks of episodes.

    arrivals (q,): by how much more the policy comes to each feature than the density says; gains (q, k): what TD errors
    leave in each feature. Both are zero in the mean where the nuisances are right.
    """
    log, own = rows.log, rows.own
    count = min(BLOCKS, log.n_units)
    if count < 2:
        return np.zeros((len(log), td_error.shape[1]))
    ahead = rows.features[rows.following] * (log.continuation * ratios)[:, None]
    arrivals = -log.sums((density * rows.known)[:, None] * (own - ahead))
    if rows.starts is log.begins:
        arrivals += rows.features[rows.starts]
    else:
        arrivals += rows.start_weights @ rows.features[rows.starts]
    inverse = np.linalg.inv(followed.chain)
    gains = np.stack([log.sums(own * (ratios * column)[:, None]) for column in td_error.T], axis=2)  # (e, q, k)
    block = log.unit % count
    total = np.bincount(block, log.weights, count)

    def others(each: FloatArray) -> FloatArray:
        sums = np.zeros((count, *each.shape[1:]))
        np.add.at(sums, block, log.weights.reshape(-1, *[1] * (each.ndim - 1)) * each)
        return (sums.sum(axis=0) - sums) / (total.sum() - total).reshape(-1, *[1] * (each.ndim - 1))

    ahead_gain = np.einsum("pq,bqk->bpk", inverse, others(gains))
    behind = others(arrivals) @ inverse  # (b, q)
    mine = np.einsum("eq,eqk->ek", arrivals, ahead_gain[block])
    theirs = np.einsum("eq,eqk->ek", behind[block], gains)
    return np.asarray(mine + theirs - log.mean(mine))
