"""Are propensities right? Held against what was decided: estimates must miss nothing, logged ones must add up."""

from typing import NamedTuple

import numpy as np

from checkrein.base.arrays import BoolArray, FloatArray, IntArray
from checkrein.certification.given import Quadratics, Tables, known_of
from checkrein.certification.moments import CLEAR, STILL, Compared, Tested, measured, orthogonal, parts_of
from checkrein.certification.past import before_of, frequent_actions, own_instruments, standardised
from checkrein.evaluation.propensities import Propensities
from checkrein.problem import Episodes

FOLDS = 2
AT_ONCE = 1 << 22  # numbers of rows and actions
PRIOR = 10.0  # rows without a difference that join those of a state
GAP = 0.05  # between a probability and how often it came true: from here on, weights are wrong


class Calibration(NamedTuple):
    """What was tested, what would be wrong with the propensities, and whether weights are then worthless."""

    tested: Tested
    wrong: str
    material: bool


def calibration_of(episodes: Episodes, propensities: Propensities) -> Calibration | None:
    """Test propensities; None where nothing can tell, as of logged ones over features."""
    known = known_of(episodes, acted=False)
    if episodes.n_actions == 1:
        return None
    if isinstance(known, Tables):
        found = _past_of(episodes, known) if propensities.estimated else _logged(episodes, known, propensities)
        wrong = (
            "decisions depend on the past, which the propensities, estimated from the state alone, leave out"
            if propensities.estimated
            else "the logged propensities do not agree with how often actions were taken"
        )
        return Calibration(found, wrong, material=True) if found.comparisons else None
    if isinstance(known, Quadratics) and propensities.estimated:
        return _of_model(episodes, known, propensities.probabilities()[episodes.rows])
    return None


def _past_of(episodes: Episodes, known: Tables) -> Tested:
    """Test whether decisions depend on the past, given the state: shares of actions in a state are right if not."""
    chosen = (episodes.actions[:, None] == frequent_actions(episodes)).astype(np.float64)
    used = episodes.weights[episodes.episode] > 0
    before = before_of(episodes)

    def build(rows: BoolArray) -> Compared:
        outcomes, errors = standardised(known, rows, chosen, used)
        return Compared(outcomes, own_instruments(episodes, known, rows, errors), before)

    return measured(orthogonal(episodes, used, known, build))


def _logged(episodes: Episodes, known: Tables, propensities: Propensities) -> Tested:
    """Test that 1 / propensity of an action sums to the number of visits, state by state.

    What each row says of an action is p (taken / propensity - 1), where p is its harmonic mean elsewhere: bounded, and
    zero on average if the propensities are right. It is summed for each action, and over all of them in the direction
    in which other episodes differ, which finds whatever they have in common.
    """
    stated, weights = propensities.values[episodes.rows], episodes.weights[episodes.episode]
    part, counted = parts_of(episodes, FOLDS), weights > 0
    frequent = frequent_actions(episodes)
    kinds, kind = _kinds(known.place, episodes.actions, stated)
    rows, variances = np.zeros((2, len(stated), len(frequent) + 1))
    for fold in range(FOLDS):
        others, mine = counted & (part != fold), part == fold
        if not others.any():
            break
        shares, visits = known.by_action(others, np.ones_like(stated))
        sums, _ = known.by_action(others, 1 / stated)
        found, spread = _differences(kinds, shares, sums, visits, frequent)
        rows[mine], variances[mine] = found[kind[mine]], spread[kind[mine]]
    # (where a rare action was not taken at all, what was observed does not vary)
    return measured(episodes.by_unit(episodes.sums(weights[:, None] * rows)), weights**2 @ variances)


class _Kinds(NamedTuple):
    """Rows that differ in their place, their action or its propensity: all others are like one of them."""

    place: IntArray  # (d,)
    actions: IntArray  # (d,)
    stated: FloatArray  # (d,)


def _kinds(place: IntArray, actions: IntArray, stated: FloatArray) -> tuple[_Kinds, IntArray]:
    """Return what rows (n,) differ in, and the kind (n,) of each."""
    values, value = np.unique(stated, return_inverse=True)
    cell = (place * (int(actions.max()) + 1) + actions) * values.size + value
    _, first, kind = np.unique(cell, return_index=True, return_inverse=True)
    return _Kinds(place[first], actions[first], stated[first]), kind


def _differences(
    kinds: _Kinds, shares: FloatArray, sums: FloatArray, visits: FloatArray, frequent: list[int]
) -> tuple[FloatArray, FloatArray]:
    """Return what rows of each kind say (d, f + 1) of frequent actions and of all, and its variances (d, f + 1)."""
    n_actions = shares.shape[1]
    found, spread = np.zeros((2, kinds.place.size, len(frequent) + 1))
    some = max(1, AT_ONCE // n_actions)
    for begin in range(0, kinds.place.size, some):
        here = slice(begin, begin + some)
        place, visited = kinds.place[here], visits[kinds.place[here]]
        inverse = (kinds.actions[here, None] == np.arange(n_actions)) / kinds.stated[here, None]
        share, total, told = shares[place], sums[place], visited > 0
        expected = np.divide(share, total, out=np.zeros_like(share), where=total > 0)
        difference = np.where(told[:, None], expected * (inverse - 1), 0.0)
        direction = (share - expected) * (visited / (visited + PRIOR))[:, None]
        found[here] = np.column_stack([difference[:, frequent], (difference * direction).sum(axis=1)])
        whole = (expected * direction**2).sum(axis=1) - (expected * direction).sum(axis=1) ** 2
        spread[here] = np.column_stack([(expected * (1 - expected))[:, frequent], whole]) * told[:, None]
    return found, spread


def _of_model(episodes: Episodes, known: Quadratics, probabilities: FloatArray) -> Calibration | None:
    """Test a model of decisions by what it may have left out: curvature, in features and in the odds, and the past."""
    actions = frequent_actions(episodes)
    stated, weights = probabilities[:, actions], episodes.weights[episodes.episode]
    errors = (episodes.actions[:, None] == actions) - stated
    shared = np.hstack([known.scaled**2, before_of(episodes)])
    own = np.stack([stated, stated**2], axis=2)  # of bins, the extreme ones may hold no event, which looks too sure
    instruments = np.concatenate([own, np.repeat(shared[:, None, :], len(actions), axis=1)], axis=2)
    instruments -= np.average(instruments, axis=0, weights=weights)
    sums = episodes.sums(weights[:, None, None] * errors[:, :, None] * instruments)
    found = measured(episodes.by_unit(sums.reshape(len(episodes), -1)))
    if found.comparisons == 0:
        return None
    sizes = np.tensordot(weights, np.abs(instruments), axes=1)
    gaps = np.abs(sums.sum(axis=0)) / np.maximum(sizes, STILL)  # mean errors where an instrument is large
    material = bool((gaps.ravel()[found.adjusted < CLEAR] > GAP).any())
    return Calibration(found, "the model of the propensities misses what decisions depend on", material)
