"""Are later episodes like earlier ones? What behavior costs for the same decisions, and what it decides in a state."""

from typing import NamedTuple

import numpy as np

from checkrein.base.arrays import BoolArray, FloatArray, IntArray
from checkrein.certification.given import Known, known_of
from checkrein.certification.moments import STILL, Tested, measured, parts_of
from checkrein.certification.past import frequent_actions, returns_to_go
from checkrein.problem import Episodes, Problem

FOLDS = 2


class Drift(NamedTuple):
    """How costs and decisions change along the log; each is tested as a trend, then as later half against earlier."""

    costs: Tested | None  # of 2 * 2 (1 + m): of each half of `shift` in turn
    shift: FloatArray  # (2 (1 + m),) by how much later episodes cost more, for like decisions; less is better
    decisions: Tested | None  # of 2 * a
    actions: list[int]  # (a,) the frequent ones


def drift_of(problem: Problem) -> Drift | None:
    """Compare episodes by the order of their numbers; None where states are neither finite nor features.

    What an episode cost, but for what behavior happened to decide, is the value of its first state and all its TD
    errors. It is looked at in two parts: what its steps cost, and where it began and they led. Values are those of
    other episodes, so that an episode's parts do not depend on its place in the log if nothing does.
    """
    episodes = Episodes.of(problem)
    known, acting = known_of(episodes), known_of(episodes, acted=False)
    if known is None or acting is None or episodes.n_units < FOLDS:
        return None
    actions, both = frequent_actions(episodes), 2 * episodes.n_values
    part = parts_of(episodes, FOLDS)
    scores = np.zeros((len(episodes), both + len(actions)))
    for fold in range(FOLDS):
        mine = part[episodes.begins] == fold
        others = (part != fold) & (episodes.weights[episodes.episode] > 0)
        if not others.any():
            return None
        scores[mine] = np.hstack([_world(episodes, known, others), _decided(episodes, acting, others, actions)])[mine]
    when = np.linspace(-0.5, 0.5, len(episodes))
    found = _by_order(episodes, part[episodes.begins], scores, np.stack([when, np.sign(when) / 2], axis=1))
    found[:, :, scores.std(axis=0) <= STILL * np.abs(scores).max(axis=0)] = 0.0
    costs, decisions = (measured(columns.reshape(len(found), -1)) for columns in np.split(found, [both], axis=2))
    late, weighed = when > 0, episodes.weights[:, None] * np.append(np.ones((len(episodes), 1)), scores, axis=1)
    means = [sums[1:] / max(sums[0], STILL) for sums in (weighed[late].sum(axis=0), weighed[~late].sum(axis=0))]
    shift = (means[0] - means[1])[:both]
    return Drift(costs if costs.comparisons else None, shift, decisions if decisions.comparisons else None, actions)


def _world(episodes: Episodes, known: Known, rows: BoolArray) -> FloatArray:
    """(e, 2 (1 + m)) discounted errors of costs, then the first state's value and errors of the next states' values."""
    costs, usable = episodes.row_costs, episodes.next_observed | episodes.terminals
    here, following = known.state_mean(rows, returns_to_go(episodes, costs))
    parts = np.hstack([costs, episodes.continuation[:, None] * following])
    mean, told = known.mean(rows & usable, parts)
    sums = episodes.sums(np.where((told & usable)[:, None], episodes.factors[:, None] * (parts - mean), 0.0))
    sums[:, costs.shape[1] :] += here[episodes.begins]
    return sums


def _decided(episodes: Episodes, acting: Known, rows: BoolArray, actions: list[int]) -> FloatArray:
    """(e, a) how much more often actions were chosen than in the rows chosen, in the same states."""
    chosen = (episodes.actions[:, None] == actions).astype(np.float64)
    usual, told = acting.mean(rows, chosen)
    return episodes.sums(np.where(told[:, None], chosen - usual, 0.0))


def _by_order(episodes: Episodes, fold: IntArray, scores: FloatArray, orders: FloatArray) -> FloatArray:
    """(u, o, s) each unit's part in the covariances of orders (e, o) with scores (e, s), within folds."""
    left, right = orders.copy(), scores.copy()
    for one in range(FOLDS):
        mine = fold == one
        weights = episodes.weights[mine]
        if weights.sum() > 0:
            left[mine] -= np.average(orders[mine], axis=0, weights=weights)
            right[mine] -= np.average(scores[mine], axis=0, weights=weights)
    return episodes.by_unit(episodes.weights[:, None, None] * left[:, :, None] * right[:, None, :])
