"""Learned dynamics: one network for the next state, the costs and the end, and what a policy costs rolled out in it."""

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from checkrein.base.arrays import Array, FloatArray, IntArray, require_counts, require_positive
from checkrein.base.errors import ArgumentError
from checkrein.bellman.iteration import default_iterations
from checkrein.functions.architecture import Schedule
from checkrein.functions.neural import import_networks
from checkrein.policies import Support, Supported, members_of, probabilities_of
from checkrein.problem import Problem, Values
from checkrein.protocols import ActionMask, Policy, QFunction

if TYPE_CHECKING:
    pass

if TYPE_CHECKING:
    from checkrein.evaluation.transition_model import TransitionModel

CHUNK = 1 << 14  # rollouts at once
NUMBERS = 1 << 23  # that the outputs of a chunk may hold
FAINT = 1e-3  # of a rollout that has not ended, discounted: what is left counts for nothing
LONGEST = 10_000  # steps by default, at the most
ENOUGH = 4096  # rollouts by default, at the least


@dataclass(frozen=True)
class LearnedModel:
    """Learn where each action leads from feature vectors, at what cost and whether it ends there; follow the policy.

    hidden, epochs, batch, rate, patience: of the network, as in `Neural`; before it stops it slows down once
    seed: of the fit, which is made once for a problem and serves every policy
    horizon: steps of a rollout; None: until the discount leaves 1 %, at discount 1 the longest logged episode
    rollouts: from the initial states; None: from all of them, again and again if they are few
    futures: rollouts from each pair that the Q-function is asked for
    noise: draw next states about their mean, as far as the log's lie (by action and feature); False follows the mean
    threads: that torch may use meanwhile; None leaves it as it is
    support: an action outside it is valued at the worst the costs allow, and nothing follows, as in FQE. Inside
        DoublyRobust and Magic, which correct what is wrong, Support(0, 0) is better.
    """

    hidden: tuple[int, ...] = (256, 256)
    epochs: int = 100
    batch: int = 256
    rate: float = 1e-3
    patience: int = 4
    seed: int = 0
    horizon: int | None = None
    rollouts: int | None = None
    futures: int = 8
    noise: bool = True
    threads: int | None = 1
    support: Support = field(default_factory=Support)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(self.hidden))
        require_positive(rate=self.rate)
        counts = {"epochs": self.epochs, "batch": self.batch, "patience": self.patience, "futures": self.futures}
        optional = {"horizon": self.horizon, "rollouts": self.rollouts, "threads": self.threads}
        require_counts(**counts, **{name: value for name, value in optional.items() if value is not None})
        require_counts(**{f"hidden[{i}]": width for i, width in enumerate(self.hidden)})

    def __call__(self, problem: Problem, policy: Policy, *, rng: np.random.Generator) -> Values:
        """Estimate what the policy would incur from the logged initial states."""
        self._fitted_model(problem)  # says which states it is not for
        starts = self._starts(problem, rng)
        seed = int(rng.integers(2**63 - 1))  # the same chance for all members
        mean = np.zeros(1 + problem.n_constraints)
        for member, share in members_of(policy):
            rollouts, chance = self._rollouts(problem, member), np.random.default_rng(seed)
            sums = np.zeros_like(mean)
            for begin in range(0, len(starts), rollouts.chunk):
                part = starts[begin : begin + rollouts.chunk]
                sums += rollouts(part, None, np.arange(len(part)), chance).sum(axis=0)
            mean += share * sums / len(starts)
        return Values(float(mean[0]), mean[1:])

    def q(self, problem: Problem, policy: Policy, *, rng: np.random.Generator) -> QFunction:
        """Return the Q-function of one policy (not of a mixture: that has one per member), all costs at once."""
        return RolloutQ(self._rollouts(problem, policy), self.futures, int(rng.integers(2**63 - 1)))

    def _rollouts(self, problem: Problem, policy: Policy) -> "Rollouts":
        model = self._fitted_model(problem)
        horizon = self.horizon or default_iterations(problem, LONGEST)
        evidence = self.support.of(problem)
        return Rollouts(model, policy, evidence, problem, horizon, self.noise, self.threads)

    def _fitted_model(self, problem: Problem) -> "TransitionModel":
        """Return the dynamics of a problem, fitted once."""
        rows = problem.transitions
        if problem.policy_costs:
            names = ", ".join(problem.value_names[i] for i in problem.policy_costs)
            raise ArgumentError(f"a learned model learns costs of rows, but {names} depends on the policy: use FQE")
        if rows.n_states is not None:
            raise ArgumentError(
                f"a learned model needs feature vectors, but states are finite ({rows.n_states}): use TabularModel()"
            )
        if rows.states.ndim != 2:
            raise ArgumentError(
                f"model-based evaluation needs feature vectors (n, d), but states have shape {rows.states.shape[1:]}: "
                "use FQE(Neural(...)), or features of them"
            )
        schedule = Schedule(self.hidden, self.epochs, self.batch, self.rate, self.patience, self.seed, self.threads)
        model = import_networks("a learned model", "checkrein.evaluation.transition_model")
        return problem.once(("learned model", schedule), lambda: model.fit(problem, schedule))

    def _starts(self, problem: Problem, rng: np.random.Generator) -> Array:
        """(r, d) the initial states, each as often as it weighs, rounded up or down by chance."""
        states, weights = problem.transitions.initial_states, problem.transitions.initial_weights
        count = self.rollouts or len(states) * math.ceil(ENOUGH / len(states))
        ticks = np.cumsum(weights) / weights.sum() * count
        return np.asarray(states[np.searchsorted(ticks[:-1], np.arange(count) + rng.random(), side="right")])


@dataclass(frozen=True, eq=False)
class Rollouts:
    """Follows a policy through a model; the probability of having ended is carried as a weight, not drawn."""

    model: "TransitionModel"
    policy: Policy
    evidence: ActionMask
    problem: Problem
    horizon: int
    noise: bool
    threads: int | None

    @property
    def chunk(self) -> int:
        """How many may go on at once."""
        return max(1, min(CHUNK, NUMBERS // self.model.centre.size))

    def __call__(
        self, states: Array, actions: IntArray | None, streams: IntArray, rng: np.random.Generator
    ) -> FloatArray:
        """(n, k) discounted sums from states (n, d), first actions (n,) given or not; equal streams share their chance.

        Each step pays its mean over the policy's actions, one of which is then followed.
        """
        n_actions, d = self.model.deviation.shape
        k = 1 + self.problem.n_constraints
        sums, weights, going = np.zeros((len(states), k)), np.ones(len(states)), np.arange(len(states))
        states = np.asarray(states, dtype=np.float64)
        with import_networks("a learned model").threads(self.threads):
            for step in range(self.horizon):
                moves, costs, ends = self.model(states)
                if step == 0 and actions is not None:
                    probabilities = np.eye(n_actions)[actions]
                else:
                    probabilities = probabilities_of(self.policy, states, n_actions)
                followed = Supported.split(probabilities, self.evidence.allowed(states))
                supported, known = followed.probabilities, followed.probabilities.sum(axis=1)
                paid = np.einsum("na,nak->nk", supported, costs) + followed.at_worst(self.problem, self.policy, states)
                sums[going] += weights[:, None] * paid
                chance, normal = _draw(int(streams.max()) + 1, d, rng)
                taken = _choose(supported, chance[streams[going]])
                weights = self.problem.discount * weights * known * (1 - ends[np.arange(going.size), taken])
                left = weights >= FAINT
                going, weights, taken = going[left], weights[left], taken[left]
                if not going.size:
                    break
                states = states[left] + moves[left, taken]
                if self.noise:
                    states += self.model.deviation[taken] * normal[streams[going]]
                states = self.model.within(states)
        return sums


@dataclass(frozen=True, eq=False)
class RolloutQ:
    """The mean of several rollouts from each pair; all pairs meet the same chance, so that it cancels between them."""

    rollouts: Rollouts
    futures: int
    seed: int

    def __call__(self, states: Array) -> FloatArray:
        """(n, A, k)"""  # noqa: D400, D415
        n_actions, k = len(self.rollouts.model.centre), 1 + self.rollouts.problem.n_constraints
        each = n_actions * self.futures
        step = max(1, self.rollouts.chunk // each)
        values = np.empty((len(states), n_actions, k))
        for begin in range(0, len(states), step):
            part = states[begin : begin + step]
            actions = np.tile(np.repeat(np.arange(n_actions), self.futures), len(part))
            streams = np.tile(np.arange(self.futures), len(part) * n_actions)
            sums = self.rollouts(np.repeat(part, each, axis=0), actions, streams, np.random.default_rng(self.seed))
            values[begin : begin + step] = sums.reshape(len(part), n_actions, self.futures, k).mean(axis=2)
        return values


def _draw(streams: int, d: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Return uniform (s,) and normal (s, d) numbers; the second half mirrors the first, so that much cancels."""
    half = (streams + 1) // 2
    uniform, normal = rng.random(half), rng.standard_normal((half, d))
    return np.concatenate([uniform, 1 - uniform])[:streams], np.concatenate([normal, -normal])[:streams]


def _choose(probabilities: FloatArray, uniform: FloatArray) -> IntArray:
    """(n,) an action each, in proportion to its probability (n, A)."""
    up_to = np.cumsum(probabilities, axis=1)
    below = up_to <= (uniform * up_to[:, -1])[:, None]
    return np.minimum(below.sum(axis=1), probabilities.shape[1] - 1)
