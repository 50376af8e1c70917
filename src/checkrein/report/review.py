"""review_of: the decisions of a policy that an expert would question, to be looked at before it is used."""

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.problem import Episodes, Problem
from checkrein.report.model import Review
from checkrein.report.places import Places

SEVERE = 0.2  # of decisions: those after which most of the objective followed
MOSTLY = 0.5  # how likely an action must be to be what a policy mostly does
SELDOM = 0.05  # of visits: what behavior did less often is far from it
MOST = 12  # places to list


def review_of(problem: Problem, places: Places, sign: float) -> list[Review]:
    """List severe places where least is done, and places where the policy mostly does what behavior seldom did.

    sign: of the objective, from inside to the user's own
    """
    followed = _followed(problem, places)
    least = _least(problem)
    severe = _severe(places.visits, followed)
    actions = problem.dataset.action_labels
    found = []
    for place in np.argsort(-places.visits, kind="stable").tolist():
        action = int(places.learned[place].argmax())
        seldom = float(places.behavior[place, action])
        if places.learned[place, action] < MOSTLY:
            continue
        rules = [
            ("least in a severe place", action == least and bool(severe[place])),
            ("seldom done before", seldom < SELDOM),
        ]
        why = [name for name, holds in rules if holds]
        if why:
            found.append(
                Review(
                    place=places.labels[place],
                    visits=float(places.visits[place]),
                    learned=actions[action],
                    learned_share=float(places.learned[place, action]),
                    behavior=actions[int(places.behavior[place].argmax())],
                    behavior_share=float(places.behavior[place].max()),
                    done_before=seldom,
                    followed=None if np.isnan(followed[place]) else sign * float(followed[place]) + 0.0,
                    why=why,
                )
            )
    found.sort(key=lambda one: (-len(one.why), one.why[0] != "least in a severe place"))
    return found[:MOST]


def _followed(problem: Problem, places: Places) -> FloatArray:
    """(p,) the mean sum of the objective that followed a visit, from its own step to where its episode stops."""
    if problem.dataset.episodes is None or 0 in problem.policy_costs:
        return np.full(len(places.labels), np.nan)
    log = Episodes.of(problem)
    steps = log.row_costs[:, 0]
    before = np.cumsum(steps) - steps
    total = np.add.reduceat(steps, log.begins)
    to_go = np.empty(len(problem.dataset))
    to_go[log.rows] = np.repeat(before[log.begins] + total, log.lengths) - before
    n = places.rows.size
    weights = problem.dataset.weights[:n]
    sums = np.bincount(places.rows, weights * to_go[:n], len(places.labels))
    return np.asarray(sums / np.where(places.visits > 0, places.visits, 1.0))


def _severe(visits: FloatArray, followed: FloatArray) -> np.ndarray:
    """(p,) places with the largest objective that followed, up to a share of all visits; none if it is all alike."""
    severe = np.zeros(visits.size, bool)
    if np.isnan(followed).any() or np.ptp(followed) == 0:
        return severe
    worst_first = np.argsort(-followed, kind="stable")
    covered = np.cumsum(visits[worst_first]) / visits.sum()
    severe[worst_first[: 1 + int((covered < SEVERE).sum())]] = True
    return severe


def _least(problem: Problem) -> int | None:
    """Return the action that has least of every cost with an upper limit; None where no action has, or none is."""
    limited = [
        place
        for place, constraint in enumerate(problem.constraints, start=1)
        if constraint.sign > 0 and place not in problem.policy_costs
    ]
    if not limited or problem.dataset.episodes is None:
        return None
    log = Episodes.of(problem)
    size = problem.dataset.n_actions
    counts = np.bincount(log.actions, minlength=size)
    costs = np.column_stack([np.bincount(log.actions, log.row_costs[:, place], size) for place in limited])
    means = np.where(counts[:, None] > 0, costs / np.maximum(counts, 1)[:, None], np.inf)
    lowest = (means <= means.min(axis=0) + 1e-12).all(axis=1)
    varies = (means[counts > 0].max(axis=0) > means.min(axis=0)).any()
    return int(lowest.argmax()) if lowest.any() and varies else None
