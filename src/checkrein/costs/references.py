"""References: the policies that costs compare with, checked, and asked once for the same states."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from checkrein.base.arrays import Array, BoolArray, FloatArray
from checkrein.base.errors import ArgumentError, ProblemError
from checkrein.base.recent import Recent
from checkrein.base.storage import storable
from checkrein.data.dataset import Dataset
from checkrein.data.memory import Memory
from checkrein.policies import behavior_policy
from checkrein.protocols import Policy

BEHAVIOR = "behavior"
CLOSE = 1e-6  # how far the probabilities of a reference may miss one


@storable
@dataclass(frozen=True, eq=False)
class OwnStates:
    """A policy over the log's own states where the past has joined them: it does not look at the past."""

    policy: Policy
    memory: Memory

    def probabilities(self, states: Array) -> FloatArray:
        """(n, A)"""  # noqa: D400, D415
        return self.policy.probabilities(self.memory.own(states))


def require_policy(reference: object, what: str) -> None:
    """Raise unless something is a policy, or the word that stands for the one of the log."""
    if not (reference == BEHAVIOR if isinstance(reference, str) else isinstance(reference, Policy)):
        raise no_policy(reference, what)
    if isinstance(reference, type):
        raise ProblemError(f"the {what} is the class {reference.__name__}: give one of its values")


def no_policy(reference: object, what: str) -> ProblemError:
    """Return the error of something that is no policy."""
    return ProblemError(
        f"the {what} is {reference!r}, which gives no probabilities: pass a policy, an object with "
        "probabilities(states) -> (n, A)" + (f', or "{BEHAVIOR}"' if what == "reference" else "")
    )


def reference_of(reference: Policy | str, dataset: Dataset) -> Policy:
    """Return the reference over a dataset's states: behavior as the log shows it, or the given policy, checked."""
    found = _behavior(dataset) if isinstance(reference, str) else reference
    policy = found if dataset.memory is None else OwnStates(found, dataset.memory)
    require_distributions(lambda states: np.asarray(policy.probabilities(states), np.float64), dataset, "reference")
    return policy


def require_distributions(
    probabilities: Callable[[Array], FloatArray], dataset: Dataset, what: str, *, unknown: str = ""
) -> BoolArray:
    """Raise unless probabilities are given in each state of the log; return where they are.

    unknown: how to say that they are not known in a state, if they need not be
    """
    states = np.arange(dataset.n_states) if dataset.n_states is not None else dataset.states
    try:
        found = probabilities(states)
    except (TypeError, ValueError, IndexError, AttributeError) as reason:
        raise ProblemError(f"the {what} gives no probabilities for the states of this log: {reason}") from None
    if found.shape != (len(states), dataset.n_actions):
        raise ProblemError(
            f"the {what} gives probabilities of shape {found.shape} for {len(states)} states, but the log has "
            f"{dataset.n_actions} actions: it must give (n, {dataset.n_actions})"
        )
    known = ~np.isnan(found).any(axis=1) if unknown else np.ones(len(found), dtype=bool)
    wrong = known & (~(found >= 0).all(axis=1) | ~(np.abs(found.sum(axis=1) - 1) <= CLOSE))
    if wrong.any():
        place = int(np.argmax(wrong))
        which = f"state {dataset.state_labels[place]}" if dataset.n_states is not None else f"row {place}"
        raise ProblemError(
            f"the {what} gives {np.round(found[place], 6)} in {which}: probabilities must not be negative and must sum "
            "to 1" + (f". Where it is not known, {unknown}" if unknown else "")
        )
    return np.asarray(known)


class CachedReference:
    """A reference that remembers what it said of the arrays asked last: an iteration asks for the same ones."""

    def __init__(self, reference: Policy) -> None:
        self.reference, self.known = reference, Recent[FloatArray]()

    def __call__(self, states: Array) -> FloatArray:
        """(n, A)"""  # noqa: D400, D415
        return self.known(states, lambda these: np.asarray(self.reference.probabilities(these), dtype=np.float64))


def unresolved(cost: object, what: str) -> ArgumentError:
    """Return the error of a cost that was asked before it saw a log."""
    return ArgumentError(
        f"{type(cost).__name__} does not know its {what} yet: state a Problem with it, and take its own"
    )


def _behavior(dataset: Dataset) -> Policy:
    """Return who wrote the log, as a function of the log's own states."""
    if dataset.memory is None:
        return behavior_policy(dataset)
    own = dataset.memory.own
    return behavior_policy(
        replace(
            dataset,
            states=own(dataset.states),
            next_states=own(dataset.next_states),
            initial_states=own(dataset.initial_states),
            n_states=dataset.memory.n_states,
            memory=None,
        )
    )
