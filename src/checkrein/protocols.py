"""What the rooms ask of each other. Anything of these shapes can be plugged in.

A protocol that extends another is a capability: what a class may offer beyond what is asked of it. It is asked for by
`isinstance` on that protocol, never guessed.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

import numpy as np

from checkrein.base.arrays import Array, BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from checkrein.data.dataset import Dataset
    from checkrein.data.memory import Remembered
    from checkrein.policies.penalties import Penalty
    from checkrein.problem import Problem, Values

S = TypeVar("S")


@runtime_checkable
class Policy(Protocol):
    """How likely each action is."""

    def probabilities(self, states: Array) -> FloatArray:
        """(n, A), rows sum to one."""
        ...


@runtime_checkable
class ActionMask(Protocol):
    """Which actions have evidence."""

    def allowed(self, states: Array) -> BoolArray:
        """(n, A)."""
        ...


@runtime_checkable
class Cost(Protocol):
    """What is summed over an episode."""

    def per_step(self, transitions: "Dataset", policy: Policy) -> FloatArray:
        """(n,) of each row, whose equals may have been merged: logged costs ignore the policy, KL does not."""
        ...


@runtime_checkable
class RowCost(Cost, Protocol):
    """A cost that does not depend on the policy, so that best responses can minimise it."""

    def per_row(self, transitions: "Dataset") -> FloatArray:
        """(n,) of each row."""
        ...


@runtime_checkable
class NamedCost(Cost, Protocol):
    """A cost that has a name of its own."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...


@runtime_checkable
class BoundedCost(Cost, Protocol):
    """A cost that says how far it can go: what has no evidence counts at its worst."""

    def step_range(self, dataset: "Dataset") -> tuple[float, float]:
        """Return the least and the largest that a step can cost."""
        ...


@runtime_checkable
class SumBoundedCost(Cost, Protocol):
    """A cost that says how far its sum over an episode can go, which may be less than its steps allow."""

    def sum_range(self) -> tuple[float, float]:
        """Return the least and the largest that an episode can cost."""
        ...


@runtime_checkable
class KnownCost(Cost, Protocol):
    """A cost that is known for every state and action, logged or not: lack of evidence leaves no doubt about a step."""

    def per_action(self, states: Array, policy: Policy) -> FloatArray:
        """(n, A) of every action."""
        ...


@runtime_checkable
class Permits(Protocol):
    """What rules actions out, whatever the log shows of them."""

    def permitted(self, states: Array) -> BoolArray:
        """(n, A) the actions that are left."""
        ...


@runtime_checkable
class PenaltyCost(Cost, Protocol):
    """A cost of the policy itself that best responses can minimise: it depends on what is done in a state alone."""

    def penalty(self, states: Array) -> "Penalty":
        """Return what it adds to the choice of action probabilities in each state."""
        ...

    def permitted(self, states: Array) -> BoolArray:
        """(n, A) the actions that keep it finite."""
        ...


@runtime_checkable
class DeferredCost(Cost, Protocol):
    """A cost that must know the log before it can be computed: what behavior is, how many actions there are."""

    def resolved(self, dataset: "Dataset") -> Cost:
        """Return the same cost for this log, and for parts of it; what is resolved already stays as it is."""
        ...


@runtime_checkable
class MemoryCost(Cost, Protocol):
    """A cost of what happened before: it joins the state, so that costs and policies may depend on it."""

    def remembered(self, dataset: "Dataset") -> "Remembered":
        """Return what of a log's past must join its states."""
        ...


class QFunction(Protocol):
    """The value of every action for k costs at once."""

    def __call__(self, states: Array) -> FloatArray:
        """(n, A, k)."""
        ...


@runtime_checkable
class EnsembleQFunction(QFunction, Protocol):
    """Several Q-functions as one."""

    def members(self, states: Array) -> FloatArray:
        """(M, n, A, k) what each says."""
        ...


@runtime_checkable
class BatchedQ(EnsembleQFunction, Protocol):
    """Several Q-functions as one, their mean, each of which can be had."""

    def member(self, number: int) -> QFunction:
        """Return one of them."""
        ...


@runtime_checkable
class EncodingQ(QFunction, Protocol):
    """A Q-function that is linear in features of its own."""

    def encoder(self) -> Callable[[Array], FloatArray]:
        """Return its features (n, d) of states."""
        ...


class Design(Protocol):
    """All of a regression that does not depend on its targets."""

    def fit(self, targets: FloatArray, *, rng: np.random.Generator, start: QFunction | None = None) -> QFunction:
        """Regress targets (n, k) on the states and actions of the design."""
        ...


class Dynamics(Protocol):
    """A design bound to where its rows lead, which solves for the fixed point of the fitted iteration."""

    def evaluate(
        self, costs: FloatArray, probabilities: Callable[[Array], FloatArray], *, require_contraction: bool
    ) -> QFunction:
        """Return the Q with Q = fit(costs + continuation * sum_a probabilities(a | next state) Q(next state, a)).

        costs: (n, k); probabilities may sum to less than one: the rest ends there.
        require_contraction: raise where the iteration that has this fixed point would not reach it.
        """
        ...


@runtime_checkable
class ExactDesign(Design, Protocol):
    """A design whose regression is linear in its targets, so that fixed points have a closed form."""

    def dynamics(self, next_states: Array, continuation: FloatArray) -> Dynamics:
        """Bind where each row leads, and how much of the value there counts: (n,), 0 at terminals."""
        ...


@runtime_checkable
class BatchedDesign(Design, Protocol):
    """A design that fits several models at once."""

    def fit_many(
        self, targets: FloatArray, *, models: int, rng: np.random.Generator, start: QFunction | None = None
    ) -> BatchedQ:
        """Regress targets (M, n, k), or the same ones (1, n, k) by models that differ by chance."""
        ...


@runtime_checkable
class WarmDesign(Design, Protocol):
    """A design whose fits may go on from a Q-function that was fitted to other targets."""

    @property
    def warm(self) -> bool:
        """Whether they do."""
        ...


@runtime_checkable
class ConservativeDesign(Design, Protocol):
    """A design that can make low values of actions dear where others were logged."""

    def conservative(self, penalty: float) -> Design:
        """Return the same with that penalty."""
        ...


class FunctionClass(Protocol):
    """The paper's F."""

    def design(self, states: Array, actions: IntArray, weights: FloatArray, *, n_actions: int) -> Design:
        """Index or factorise once what every fit on these rows shares."""
        ...


class Backup(Protocol):
    """How a best response looks one step ahead."""

    @property
    def support(self) -> ActionMask:
        """The actions that it chooses among."""
        ...

    def value(self, q: QFunction, states: Array) -> FloatArray:
        """(n,) what states are worth if the best is done there: a minimum over supported actions, or a softmin."""
        ...

    def policy(self, q: QFunction) -> Policy:
        """Return who does that."""
        ...

    def besides(self, policy: Policy, states: Array) -> FloatArray:
        """(n,) what a policy pays in states beside the Q of its actions: penalties, and the worst without evidence."""
        ...


class BestResponse(Protocol):
    """The policy player: a policy that does well against these multipliers."""

    def __call__(
        self, problem: "Problem", multipliers: FloatArray, *, rng: np.random.Generator, start: Policy | None = None
    ) -> Policy:
        """Minimise objective + multipliers . constraints; `start` is the previous answer."""
        ...


@runtime_checkable
class ManyResponses(BestResponse, Protocol):
    """A best response that answers many multipliers together faster than each alone."""

    def responses(self, problem: "Problem", multipliers: FloatArray, *, rng: np.random.Generator) -> tuple[Policy, ...]:
        """Answer each of (M, m)."""
        ...


class Evaluator(Protocol):
    """Off-policy evaluation: the objective and every constraint, from one fit."""

    def __call__(self, problem: "Problem", policy: Policy, *, rng: np.random.Generator) -> "Values":
        """Estimate the expected sums that the policy would incur."""
        ...


@runtime_checkable
class DirectMethod(Protocol):
    """Fits the vector-valued Q of one policy."""

    def q(self, problem: "Problem", policy: Policy, *, rng: np.random.Generator) -> QFunction:
        """Fit on all that the problem holds."""
        ...


class Played(Protocol):
    """What an online learner sees of a round."""

    @property
    def multipliers(self) -> FloatArray:
        """(m,) what the learner played."""
        ...

    @property
    def objective(self) -> float:
        """Of the policy that answered."""
        ...

    @property
    def violation(self) -> FloatArray:
        """(m,) of the policy that answered: constraint minus limit."""
        ...

    @property
    def lower(self) -> float:
        """The best lower bound on the game's value so far."""
        ...


class OnlineLearner(Protocol[S]):
    """The multiplier player: a frozen configuration; its state is a value."""

    def init(self, n_constraints: int) -> S:
        """Return the state before the first round."""
        ...

    def multipliers(self, state: S) -> FloatArray:
        """(m,) what to play next."""
        ...

    def update(self, state: S, played: Played) -> S:
        """Return the state after a round."""
        ...

    def worst_multipliers(self, violation: FloatArray) -> FloatArray:
        """(m,) argmax of multipliers . violation over the learner's own ball."""
        ...
