"""Members of a policy that only ONNX can write out: values by trees or a network, and behavior tilted by features."""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from checkrein.base.arrays import Array, BoolArray, FloatArray
from checkrein.bellman.iteration import BoundedQ
from checkrein.functions.learned_features import LearnedFeatures
from checkrein.functions.neural import NeuralQ
from checkrein.functions.trees import TreesQ
from checkrein.policies import BehaviorMask, EveryAction, GreedyPolicy, LogisticPolicy, SoftminPolicy, TiltedPolicy
from checkrein.protocols import ActionMask, Policy

SINGLE = 1e-5  # of the largest value: networks compute in single precision, and nearer values may change places


@dataclass(frozen=True, eq=False)
class ValuesMember:
    """One member over feature vectors whose values are those of trees, or of a network.

    low, high: what values are held inside; temperature, support: as of a linear member
    """

    q: TreesQ | NeuralQ
    low: float
    high: float
    temperature: float | None
    support: BehaviorMask | None

    @property
    def n_actions(self) -> int:
        """A."""
        if isinstance(self.q, TreesQ):
            return len(self.q.forest.roots)
        return self.q.shape.outputs // self.q.centre.shape[1]

    @property
    def n_features(self) -> int:
        """How many numbers a state is."""
        return self.q.forest.n_features if isinstance(self.q, TreesQ) else self.q.shape.inputs[0]

    @property
    def around(self) -> tuple[FloatArray, FloatArray]:
        """(d,) where the log's states lie, and how far they spread, as far as the values know."""
        if isinstance(self.q, NeuralQ):
            return self.q.scaling.centre, self.q.scaling.scale
        centre, scale = np.zeros(self.n_features), np.ones(self.n_features)
        forest = self.q.forest
        for feature in range(self.n_features):
            cuts = forest.threshold[(forest.feature == feature) & np.isfinite(forest.threshold)]
            if cuts.size:
                centre[feature], scale[feature] = cuts.mean(), max(float(cuts.std()), 1e-3)
        return centre, scale

    def too_close(self, states: Array) -> BoolArray:
        """(n,) where the two best actions differ by less than single precision tells."""
        if isinstance(self.q, TreesQ) or self.temperature is not None:
            return np.zeros(len(states), dtype=bool)
        values = np.clip(self.q(states)[..., 0], self.low, self.high)
        allowed = np.ones(values.shape, bool) if self.support is None else self.support.allowed(states)
        best = np.sort(np.where(allowed, values, np.inf), axis=1)[:, :2]
        return np.asarray(best[:, -1] - best[:, 0] <= SINGLE * np.maximum(np.abs(values).max(axis=1), 1e-300))


@dataclass(frozen=True, eq=False)
class TiltedMember:
    """One member that is behavior over learned features, or a policy near it; tilt: None for behavior itself."""

    features: LearnedFeatures
    behavior: FloatArray  # (q, A)
    tilt: FloatArray | None  # (q, A)
    dense: float
    support: BehaviorMask | None = None

    @property
    def n_actions(self) -> int:
        """A."""
        return self.behavior.shape[1]

    @property
    def n_features(self) -> int:
        """How many numbers a state is."""
        return self.features.centre.size

    @property
    def around(self) -> tuple[FloatArray, FloatArray]:
        """(d,) where the log's states lie, and how far they spread."""
        return self.features.centre, self.features.scale


def model_of(policy: Policy) -> ValuesMember | TiltedMember | None:
    """Return a policy as what ONNX can write; None where it is of no such kind."""
    if isinstance(policy, TiltedPolicy | LogisticPolicy):
        if not isinstance(policy.features, LearnedFeatures):
            return None
        if isinstance(policy, LogisticPolicy):
            return TiltedMember(policy.features, policy.weights, None, 1.0)
        return TiltedMember(policy.features, policy.behavior, policy.tilt, policy.dense)
    if not isinstance(policy, GreedyPolicy | SoftminPolicy):
        return None
    q: Any = policy.q
    low, high = -np.inf, np.inf
    if isinstance(q, BoundedQ):
        q, low, high = q.q, float(q.low[0]), float(q.high[0])
    support: ActionMask | None = policy.support
    vectors = isinstance(q, TreesQ) or (isinstance(q, NeuralQ) and len(q.shape.inputs) == 1 and not q.scaling.n_states)
    if not vectors or not isinstance(support, BehaviorMask | EveryAction | None):
        return None
    temperature = policy.temperature if isinstance(policy, SoftminPolicy) else None
    mask = support if isinstance(support, BehaviorMask) else None
    return ValuesMember(cast("TreesQ | NeuralQ", q), low, high, temperature, mask)
