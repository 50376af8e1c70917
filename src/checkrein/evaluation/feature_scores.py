"""What each episode says of a policy, by nuisances over features that were learned from other episodes."""

from dataclasses import dataclass, replace

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.evaluation.feature_one_step import FeatureNuisances, FeatureRows, Followed, expected, probabilities_at
from checkrein.policies import members_of
from checkrein.protocols import Policy

BLOCKS = 10  # of judging episodes, each corrected by the others


@dataclass(frozen=True, eq=False)
class Leverage:
    """How much single rows weigh in what episodes say: sums of powers of their weights, and the size of TD errors."""

    squares: float  # sum over rows of weight^2
    cubes: float  # sum over rows of |weight|^3
    errors: FloatArray  # (2, 2, k) sums of weight^2 times squared and cubed TD errors, above and below zero

    def __add__(self, other: "Leverage") -> "Leverage":
        return Leverage(self.squares + other.squares, self.cubes + other.cubes, self.errors + other.errors)

    def times(self, share: float) -> "Leverage":
        """Return it for rows that all weigh so much of what they do."""
        return Leverage(share**2 * self.squares, share**3 * self.cubes, share**2 * self.errors)

    @property
    def event(self) -> FloatArray:
        """(k,) what one event more would come to (Fay & Feuer 1997): a row's usual weight, times how far TD errors lie.

        Both are averaged as they enter the variance.
        """
        weight = self.cubes / self.squares if self.squares > 0 else 0.0
        squares, cubes = self.errors
        return np.asarray(weight * np.divide(cubes, squares, out=np.zeros_like(cubes), where=squares > 0).sum(axis=0))


@dataclass(frozen=True, eq=False)
class FeatureScores:
    """Scores of episodes, and what they rest on."""

    scores: FloatArray  # (e, k)
    leverage: Leverage


def score(
    nuisances: FeatureNuisances, rows: FeatureRows, policy: Policy, *, lag: int = 0, second_order: bool = True
) -> FeatureScores:
    """Value a policy by nuisances, corrected by each episode of a log.

    lag: steps whose ratios are multiplied: a row is weighed by where the policy comes to so many steps before it, and
        what it does from there on. More of the past is right then, and more of it is chance
    """
    found = [
        (weight, _scored(nuisances, rows, nuisances.follow(member), lag, second_order=second_order))
        for member, weight in members_of(policy)
        if weight > 0
    ]
    scores = np.asarray(sum(weight * one.scores for weight, one in found))
    leverage = [one.leverage.times(weight) for weight, one in found]
    return FeatureScores(scores, sum(leverage[1:], start=leverage[0]))


def behavior_scores(nuisances: FeatureNuisances, rows: FeatureRows) -> FloatArray:
    """(e, k) what episodes say of who wrote them: their own sums; where cut off, what follows by nuisances."""
    log = rows.log
    followed = nuisances.follow(nuisances.behavior)
    sums = log.sums((log.factors * rows.known)[:, None] * log.costs(nuisances.behavior))
    if log.ended.all():
        return np.asarray(sums)
    last = log.last
    at = np.where(log.next_observed[last], rows.following[last], last)
    onward = np.where(log.next_observed[last], log.discount, 1.0) * log.factors[last] * ~log.ended
    values = _values(nuisances, rows, followed, at)
    return np.asarray(sums + onward[:, None] * values)


def _values(nuisances: FeatureNuisances, rows: FeatureRows, followed: Followed, at: np.ndarray) -> FloatArray:
    """(n, k) values at places of the mapped states, within what costs allow."""
    part = replace(rows, features=rows.features[at], states=rows.states[at])
    chances = probabilities_at(followed.policy, part, nuisances.features)
    low, high = nuisances.value_range(followed.policy)
    return np.clip(expected(part.features, chances, followed.weights), low, high)


def _scored(
    nuisances: FeatureNuisances, rows: FeatureRows, followed: Followed, lag: int, *, second_order: bool
) -> FeatureScores:
    log, n = rows.log, len(rows.following)
    chances = probabilities_at(followed.policy, rows, nuisances.features)
    low, high = nuisances.value_range(followed.policy)
    values = np.clip(expected(rows.features, chances, followed.weights), low, high)
    taken = np.eye(log.n_actions)[log.actions]
    q = np.clip(expected(rows.own, taken, followed.weights), low, high)
    td_error = log.costs(followed.policy) + log.continuation[:, None] * values[rows.following] - q
    ratios = nuisances.ratios(rows, chances) * rows.known
    density = rows.own @ followed.density
    weights = _lagged(rows, ratios, density, lag)
    worth = values[rows.starts]
    begun = worth if rows.starts is log.begins else np.broadcast_to(rows.start_weights @ worth, (len(log), q.shape[1]))
    scores = begun + log.sums(weights[:, None] * td_error)
    if second_order:
        scores = scores + _second_order(rows, followed, ratios, density, td_error)
    relative = weights * log.weights[log.episode] / log.weights.sum()
    squared = relative[:, None] ** 2
    sides = [np.maximum(side, 0.0) for side in (td_error, -td_error)]
    errors = np.stack([[(squared * side**power).sum(axis=0) for side in sides] for power in (2, 3)])
    leverage = Leverage(float((relative**2).sum()), float((np.abs(relative) ** 3).sum()), errors)
    return FeatureScores(np.asarray(scores), leverage)


def _lagged(rows: FeatureRows, ratios: FloatArray, density: FloatArray, lag: int) -> FloatArray:
    """(n,) how often the policy comes to each row: its density so many steps before, times the ratios since."""
    log = rows.log
    weights = np.zeros(len(ratios))
    product = np.ones(len(ratios))  # of the ratios of so many rows up to this one
    for back in range(lag + 1):
        earlier = np.maximum(np.arange(len(ratios)) - back, 0)
        there = log.step >= back
        product = np.where(there, product * ratios[earlier], product)
        if back < lag:
            first = log.step == back  # a row nearer to the start than the lag: all that was done since the start
            weights[first] = log.discount**back * product[first]
    later = log.step >= lag
    at = np.arange(len(ratios)) - lag
    weights[later] = log.discount**lag * density[at[later]] * product[later]
    return weights


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
    e, q, k = len(log), own.shape[1], td_error.shape[1]
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
