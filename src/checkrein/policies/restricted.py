"""Only admissible actions: policies and evidence without all others."""

from dataclasses import dataclass

import numpy as np

from checkrein.base.arrays import Array, BoolArray, FloatArray
from checkrein.base.brief import brief
from checkrein.base.storage import storable
from checkrein.policies.behavior import BehaviorMask, RegressedMask, reaching
from checkrein.protocols import ActionMask, Policy


@storable
@dataclass(frozen=True, eq=False, repr=False)
class RestrictedPolicy:
    """A policy given that its action is admissible; where it takes none that is, all admissible ones alike."""

    policy: Policy
    admissible: ActionMask

    def __repr__(self) -> str:
        return brief(self)

    def probabilities(self, states: Array) -> FloatArray:
        """(n, A)"""  # noqa: D400, D415
        return restricted(self.policy.probabilities(states), self.admissible.allowed(states))


@storable
@dataclass(frozen=True, eq=False)
class AdmissibleMask:
    """The admissible actions with evidence; where none comes up to the threshold, those that come closest."""

    evidence: ActionMask
    admissible: ActionMask

    def allowed(self, states: Array) -> BoolArray:
        """(n, A)"""  # noqa: D400, D415
        may = self.admissible.allowed(states)
        if not isinstance(self.evidence, BehaviorMask | RegressedMask):
            return self.evidence.allowed(states) & may
        chances = self.evidence.probabilities(states) * may
        return reaching(chances, self.evidence.threshold) & (chances > 0)


def restricted(probabilities: FloatArray, allowed: BoolArray) -> FloatArray:
    """(n, A) probabilities given that what is done is allowed."""
    kept = probabilities * allowed
    kept = np.where(kept.any(axis=1, keepdims=True), kept, allowed)
    return np.asarray(kept / kept.sum(axis=1, keepdims=True))
