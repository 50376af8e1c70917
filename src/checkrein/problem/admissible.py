"""AdmissibleActions: which actions a policy may ever choose, whatever the log shows."""

from dataclasses import dataclass, replace

import numpy as np

from checkrein.base.arrays import Array, BoolArray, frozen
from checkrein.base.errors import ProblemError
from checkrein.base.storage import storable
from checkrein.data.dataset import Dataset
from checkrein.data.memory import Memory
from checkrein.protocols import ActionMask


@storable
@dataclass(frozen=True, eq=False)
class AdmissibleActions:
    """The actions that may be chosen in each state: by learning, by candidates and by who acts.

    own: a table (S, A) of true and false for finite states, or a mask; memory: what of the past has joined the states,
        which it does not look at
    """

    own: ActionMask | BoolArray
    memory: Memory | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.own, ActionMask):
            object.__setattr__(self, "own", frozen(np.asarray(self.own)))

    def resolved(self, dataset: Dataset) -> "AdmissibleActions":
        """Learn what has joined the states, and require an action in each."""
        found = replace(self, memory=dataset.memory)
        if isinstance(self.own, np.ndarray):
            self._require_table(self.own, dataset)
        states = dataset.states if dataset.n_states is None else np.arange(dataset.n_states)
        allowed = np.asarray(found.allowed(states))
        if allowed.shape != (len(states), dataset.n_actions) or allowed.dtype != bool:
            raise ProblemError(
                f"admissible gives {allowed.dtype} of shape {allowed.shape} for {len(states)} states and "
                f"{dataset.n_actions} actions: it must say true or false of each"
            )
        none = ~allowed.any(axis=1)
        if none.any():
            place = int(np.argmax(none))
            where = f"row {place}" if dataset.n_states is None else f"state {dataset.state_labels[place]}"
            raise ProblemError(f"in {where} no action is admissible: allow one")
        return found

    @staticmethod
    def _require_table(table: BoolArray, dataset: Dataset) -> None:
        known = dataset.n_states if dataset.memory is None else dataset.memory.n_states
        if known is None:
            raise ProblemError("a table of admissible actions needs finite states: give a mask, with allowed(states)")
        if table.dtype != bool or table.shape != (known, dataset.n_actions):
            raise ProblemError(
                f"the table of admissible actions is {table.dtype} of shape {table.shape}, but the log has {known} "
                f"states and {dataset.n_actions} actions: it must say true or false of each"
            )

    def allowed(self, states: Array) -> BoolArray:
        """(n, A)"""  # noqa: D400, D415
        own = states if self.memory is None else self.memory.own(states)
        return np.asarray(self.own[own]) if isinstance(self.own, np.ndarray) else self.own.allowed(own)

    def permitted(self, states: Array) -> BoolArray:
        """(n, A) the same, as costs of a policy call it."""
        return self.allowed(states)
