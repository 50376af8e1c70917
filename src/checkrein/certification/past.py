"""Does the past tell more of what comes next than the state does? Then the state is not enough (not Markov)."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from checkrein.base.arrays import Array, BoolArray, FloatArray
from checkrein.certification.given import Known, Quadratics, Tables, known_of
from checkrein.certification.moments import STILL, Compared, Tested, measured, orthogonal
from checkrein.problem import Episodes, Problem

ACTIONS = 8  # the most frequent ones
FEATURES = 8
CLIPPED = 3.0  # standard deviations of an error that is remembered
LAST_STATE, LAST_ACTION, STEPS = "the last state", "the last action", "the number of steps so far"
LAST, ALL = "what happened a step before", "all that happened before"


class Past(NamedTuple):
    """What was tested, and of each test what is foretold, and by what."""

    tested: Tested
    outcomes: list[str]
    instruments: list[str]


def past_tested(problem: Problem, features: Callable[[Array], FloatArray] | None = None) -> Past | None:
    """Test whether costs and next states depend on the past, given state and action; None where nothing can tell.

    Outcomes are each cost, and the value of the next state in terms of it (their sum, less its mean, is the TD error
    of behavior's Q). Instruments are what was before: the last error and the mean of all, the last state's value, the
    last action, the number of steps, and in finite states what other episodes' mean error was after the same last
    state or action. Any function will do for the values: their errors cost power and nothing else.

    features: what means are linear in where states are numbers; None: quadratic functions
    """
    episodes = Episodes.of(problem)
    known = known_of(episodes, features=features)
    costs = distinct_costs(episodes)
    if known is None or episodes.horizon == 1 or costs.shape[1] == 0:
        return None
    used = (episodes.next_observed | episodes.terminals) & (episodes.weights[episodes.episode] > 0)
    returns = returns_to_go(episodes, costs)
    before = before_of(episodes)

    def build(rows: BoolArray) -> Compared:
        here, following = known.state_mean(rows, returns)
        outcomes = np.hstack([costs, episodes.continuation[:, None] * following])
        outcomes, errors = standardised(known, rows, outcomes, used)
        shared = np.hstack([before, previous(episodes, here), *_features_before(episodes, known)])
        return Compared(outcomes, own_instruments(episodes, known, rows, errors), shared)

    found = measured(orthogonal(episodes, used, known, build))
    if found.comparisons == 0:
        return None
    outcomes = ["what a step costs"] * costs.shape[1] + ["where a step leads"] * costs.shape[1]
    names = [LAST, ALL, *([LAST_STATE, LAST_ACTION] if isinstance(known, Tables) else [])]
    names += [LAST_ACTION] * len(frequent_actions(episodes)) + [STEPS]
    names += [LAST_STATE] * (found.p_values.size // len(outcomes) - len(names))
    return Past(found, outcomes * len(names), [name for name in names for _ in outcomes])


def distinct_costs(episodes: Episodes) -> FloatArray:
    """(n, k) the costs that are not zero, each in units of its largest; one that is both minimised and limited once."""
    columns: list[FloatArray] = []
    for cost in episodes.row_costs.T:
        size = np.abs(cost).max()
        if size > 0 and not any(np.array_equal(np.abs(cost / size), np.abs(one)) for one in columns):
            columns.append(cost / size)
    return np.stack(columns, axis=1) if columns else np.zeros((len(episodes.rows), 0))


def standardised(known: Known, rows: BoolArray, outcomes: FloatArray, used: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return outcomes (n, k) in standard deviations given state and action, and how far off their means they are."""
    mean, told = known.mean(rows, outcomes)
    errors = np.where((told & used)[:, None], outcomes - mean, 0.0)
    errors[np.abs(errors) <= STILL * np.abs(outcomes).max(axis=0)] = 0.0
    spread = known.spread(rows, errors)
    return outcomes / spread, errors / spread


def own_instruments(
    episodes: Episodes, known: Tables | Quadratics, rows: BoolArray, errors: FloatArray
) -> list[FloatArray]:
    """Return what each outcome's own errors (n, k) so far say, as many (n, k)."""
    clipped = np.clip(errors, -CLIPPED, CLIPPED)
    so_far = np.cumsum(clipped, axis=0) - clipped
    so_far -= np.repeat(so_far[episodes.begins], episodes.lengths, axis=0)
    so_far /= np.sqrt(np.maximum(episodes.step, 1))[:, None]
    own = [previous(episodes, clipped, 0.0), np.clip(so_far, -CLIPPED, CLIPPED)]
    if isinstance(known, Tables):
        own += [known.remembered(place, rows, errors) for place in known.with_past]
    return own


def before_of(episodes: Episodes) -> FloatArray:
    """(n, j) the last action's indicators and the number of steps."""
    acted = (episodes.actions[:, None] == frequent_actions(episodes)).astype(np.float64)
    return np.hstack([previous(episodes, acted), np.log1p(episodes.step)[:, None]])


def frequent_actions(episodes: Episodes) -> list[int]:
    """Return the most frequent actions, all but one at the most: that is the rest."""
    counts = np.bincount(episodes.actions, minlength=episodes.n_actions)
    return np.argsort(-counts, kind="stable")[: min(ACTIONS, episodes.n_actions - 1)].tolist()


def _features_before(episodes: Episodes, known: Tables | Quadratics) -> list[FloatArray]:
    return [previous(episodes, known.scaled[:, :FEATURES])] if isinstance(known, Quadratics) else []


def previous(episodes: Episodes, columns: FloatArray, first: float | None = None) -> FloatArray:
    """(n, k) columns (n, k) of the row before; in an episode's first row `first`, or else the mean."""
    moved = np.roll(np.asarray(columns, dtype=np.float64), 1, axis=0)
    moved[episodes.begins] = columns.mean(axis=0) if first is None else first
    return moved


def returns_to_go(episodes: Episodes, costs: FloatArray) -> FloatArray:
    """(n, k) the discounted sum of costs (n, k) from each row to the end of its episode, or to where it was cut off."""
    longest_first = np.argsort(-episodes.lengths, kind="stable")
    begins, lengths = episodes.begins[longest_first], episodes.lengths[longest_first]
    running = np.searchsorted(-lengths, -np.arange(episodes.horizon + 1), side="left")  # episodes longer than each step
    sums = np.array(costs)
    for step in range(episodes.horizon - 2, -1, -1):
        rows = begins[: running[step + 1]] + step
        sums[rows] += episodes.discount * sums[rows + 1]
    return sums
