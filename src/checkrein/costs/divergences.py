"""Costs of the policy itself: how far it is from a reference, and how random it is.

Each is paid in every state that the policy comes to, whatever action is drawn there, so its sum over an episode is
the expected (discounted) sum of the divergences of its decisions (Section 2.3 and Appendix A of the paper).
"""

from dataclasses import dataclass, field, replace

import numpy as np

from checkrein.base.arrays import Array, BoolArray, FloatArray
from checkrein.base.errors import ProblemError
from checkrein.base.storage import storable
from checkrein.costs.references import BEHAVIOR, CachedReference, reference_of, require_policy, unresolved
from checkrein.data.dataset import Dataset
from checkrein.policies.mixture import probabilities_of
from checkrein.policies.penalties import Penalty, negative_entropy, total_variation
from checkrein.protocols import Policy


class _PerState:
    """A cost that a policy pays in a state, whatever action follows: known for every state and action."""

    def in_states(self, states: Array, probabilities: FloatArray) -> FloatArray:
        """(n,) what probabilities (n, A) cost in states."""
        raise NotImplementedError

    def per_step(self, transitions: Dataset, policy: Policy) -> FloatArray:
        """(n,) of each row's state."""
        if transitions.n_states is not None:
            visited = np.unique(transitions.states)
            found = np.zeros(transitions.n_states)
            found[visited] = self._paid(visited, policy, transitions.n_actions)
            return found[transitions.states]
        return self._paid(transitions.states, policy, transitions.n_actions)

    def per_action(self, states: Array, policy: Policy) -> FloatArray:
        """(n, A) the same for every action."""
        probabilities = policy.probabilities(states)
        return np.repeat(self.in_states(states, probabilities)[:, None], probabilities.shape[1], axis=1)

    def _paid(self, states: Array, policy: Policy, n_actions: int) -> FloatArray:
        return self.in_states(states, probabilities_of(policy, states, n_actions))


class _Referring(_PerState):
    """One that compares with a reference policy."""

    reference: Policy | str

    def __post_init__(self) -> None:
        require_policy(self.reference, "reference")
        cached = None if isinstance(self.reference, str) else CachedReference(self.reference)
        object.__setattr__(self, "_cached", cached)

    def of_reference(self, states: Array) -> FloatArray:
        """(n, A) what the reference does."""
        cached: CachedReference | None = self._cached  # type: ignore[attr-defined]
        if cached is None:
            raise unresolved(self, "reference")
        return cached(states)


@storable
@dataclass(frozen=True, eq=False)
class KLDivergence(_Referring):
    """sum_a p(a | x) log(p(a | x) / reference(a | x)), the divergence of a policy from a reference.

    reference: a policy, or "behavior": who wrote the log, as estimated from it. A problem fixes that reference once:
        judge a policy on other episodes by `problem.constraints`, not by "behavior" of those
    """

    reference: Policy | str = BEHAVIOR
    settled: bool = field(default=False, repr=False)  # whether the reference is fixed and checked

    def resolved(self, dataset: Dataset) -> "KLDivergence":
        """Fix the reference, and require that it does something of what was logged in each state."""
        if self.settled:
            return self
        fixed = replace(self, reference=reference_of(self.reference, dataset), settled=True)
        fixed.require_overlap(dataset)
        return fixed

    def require_overlap(self, dataset: Dataset) -> None:
        """Raise where the reference never takes any action that was logged in a state."""
        n_states = dataset.n_states or 1
        if dataset.n_states is not None:
            taken = self.of_reference(np.arange(n_states))[dataset.states, dataset.actions] > 0
        else:
            taken = self.of_reference(dataset.states)[np.arange(len(dataset)), dataset.actions] > 0
        states = dataset.states if dataset.n_states is not None else np.zeros(len(dataset), dtype=np.int64)
        left = np.bincount(states, minlength=n_states) > 0
        lacking = np.flatnonzero(left & (np.bincount(states, taken, n_states) == 0))
        if lacking.size:
            where = "any state" if dataset.n_states is None else f"state {dataset.state_labels[int(lacking[0])]}"
            raise ProblemError(
                f"the reference gives no probability to any action that was logged in {where}, so the KL divergence of "
                "every policy that the log supports is infinite there: mix the reference with behavior, or use another"
            )

    def in_states(self, states: Array, probabilities: FloatArray) -> FloatArray:
        """(n,)"""  # noqa: D400, D415
        reference = self.of_reference(states)
        acts = probabilities > 0
        missing = acts & ~(reference > 0)
        if missing.any():
            row, action = (int(i) for i in np.argwhere(missing)[0])
            where = f"state {states[row]}" if states.ndim == 1 else f"the state in row {row}"
            raise ProblemError(
                f"the policy takes action {action} with probability {probabilities[row, action]:.3g} in {where}, where "
                "the reference never does: their KL divergence is infinite. Use a reference that gives it some "
                "probability, or TotalVariation"
            )
        return np.asarray(
            (probabilities * np.log(np.where(acts, probabilities / np.where(acts, reference, 1), 1))).sum(1)
        )

    def step_range(self, dataset: Dataset) -> tuple[float, float]:
        """From 0 to the divergence of always taking the action that the reference takes least, in any finite state."""
        reference = self.of_reference(np.arange(dataset.n_states) if dataset.n_states is not None else dataset.states)
        return 0.0, float(-np.log(reference[reference > 0].min()))

    def penalty(self, states: Array) -> Penalty:
        """Return sum_a p log p - p log reference."""
        with np.errstate(divide="ignore"):
            return Penalty(1.0, -np.log(self.of_reference(states)))

    def permitted(self, states: Array) -> BoolArray:
        """(n, A) what the reference may do."""
        return self.of_reference(states) > 0


@storable
@dataclass(frozen=True)
class Entropy(_PerState):
    """-sum_a p(a | x) log p(a | x), how random a policy is: for `AtLeast`, as in maximum entropy learning."""

    def in_states(self, states: Array, probabilities: FloatArray) -> FloatArray:
        """(n,)"""  # noqa: D400, D415
        del states
        return -negative_entropy(probabilities)

    def step_range(self, dataset: Dataset) -> tuple[float, float]:
        """From 0, of one action, to the logarithm of their number."""
        return 0.0, float(np.log(dataset.n_actions))

    def penalty(self, states: Array) -> Penalty:
        """Return -sum_a p log p."""
        del states
        return Penalty(-1.0)

    def permitted(self, states: Array) -> BoolArray:
        """Everything."""
        return np.ones((len(states), 1), dtype=bool)


@storable
@dataclass(frozen=True, eq=False)
class TotalVariation(_Referring):
    """Half of sum_a |p(a | x) - reference(a | x)|: the share of decisions that differ from a reference, at the least.

    reference: as for `KLDivergence`
    """

    reference: Policy | str = BEHAVIOR
    settled: bool = field(default=False, repr=False)  # whether the reference is fixed and checked

    def resolved(self, dataset: Dataset) -> "TotalVariation":
        """Fix the reference."""
        return self if self.settled else replace(self, reference=reference_of(self.reference, dataset), settled=True)

    def in_states(self, states: Array, probabilities: FloatArray) -> FloatArray:
        """(n,)"""  # noqa: D400, D415
        return total_variation(probabilities, self.of_reference(states))

    def step_range(self, dataset: Dataset) -> tuple[float, float]:
        """From 0 to 1."""
        del dataset
        return 0.0, 1.0

    def penalty(self, states: Array) -> Penalty:
        """Return the variation itself."""
        return Penalty(deviations=((1.0, self.of_reference(states)),))

    def permitted(self, states: Array) -> BoolArray:
        """Everything."""
        return np.ones((len(states), 1), dtype=bool)
