"""differences_of: where a policy departs from behavior in the logged states, as data."""

import numpy as np

from checkrein.policies import MixturePolicy
from checkrein.problem import Problem
from checkrein.report.model import Differences, StateDifference
from checkrein.report.places import Places
from checkrein.report.review import review_of

SHOWN_STATES = 40  # that matter most
SHEET_ROWS = 30  # of the policy on a page: the places that are visited most


def differences_of(problem: Problem, policy: MixturePolicy, *, sign: float) -> Differences:
    """Compare what is done in the logged states; sign: of the objective, from inside to the user's own."""
    dataset, places = problem.dataset, Places.of(problem.dataset, policy)
    counts = np.bincount(dataset.actions, dataset.weights, dataset.n_actions)
    moved = places.visits * np.abs(places.learned - places.behavior).sum(axis=1)
    sheet = np.argsort(-places.visits, kind="stable")[:SHEET_ROWS]
    finite = dataset.n_states is not None
    return Differences(
        actions=list(dataset.action_labels),
        behavior_share=(counts / counts.sum()).tolist(),
        learned_share=(places.visits @ places.learned / places.visits.sum()).tolist(),
        agreement=places.agreement,
        states=_rows(places, np.argsort(-moved, kind="stable")[:SHOWN_STATES]) if finite else [],
        tree=places.tree,
        tree_fidelity=places.fidelity,
        sheet=_rows(places, sheet),
        sheet_covers=float(places.visits[sheet].sum() / places.visits.sum()),
        review=review_of(problem, places, sign),
    )


def _rows(places: Places, chosen: np.ndarray) -> list[StateDifference]:
    return [
        StateDifference(
            state=places.labels[i],
            visits=float(places.visits[i]),
            behavior=places.behavior[i].tolist(),
            learned=places.learned[i].tolist(),
        )
        for i in chosen.tolist()
    ]
