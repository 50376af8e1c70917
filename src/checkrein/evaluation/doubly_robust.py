"""Doubly robust estimation (Jiang & Li 2016): a Q-function, corrected by the weighed errors it makes on the log.

Any Q will do: a better one leaves less to correct. It is fitted without the episodes it is then corrected on.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from checkrein.base.arrays import Array, BoolArray, FloatArray, IntArray, require_counts
from checkrein.base.errors import ArgumentError, DataError
from checkrein.evaluation.estimate import Estimate
from checkrein.evaluation.importance import (
    StepSums,
    importance_weights,
    member_importance_weights,
    plain,
)
from checkrein.evaluation.propensities import Propensities
from checkrein.policies import members_of, probabilities_of
from checkrein.problem import Episodes, Problem
from checkrein.protocols import DirectMethod, Policy, QFunction

FOLDS = 5


@dataclass(frozen=True, eq=False)
class Corrected:
    """One member of a policy: its share, and the value of each episode's start with what each row corrects."""

    share: float
    importance_weights: (
        FloatArray  # (n,) cumulative; 0 where the next state or all propensities are unknown: nothing is corrected
    )
    start: FloatArray  # (e, k) V(x_0)
    residuals: FloatArray  # (n, k) c + discount * V(x') - Q(x, a)


def corrected(
    problem: Problem,
    policy: Policy,
    propensities: Propensities | None,
    direct: DirectMethod | QFunction,
    *,
    folds: int | None = FOLDS,
    rng: np.random.Generator,
) -> Iterator[Corrected]:
    """Yield each member with its own Q; one that is fitted is fitted in turn without each fold of episodes."""
    episodes = Episodes.of(problem)
    asked: list[tuple[BoolArray, Problem]] = [(np.ones(len(episodes), dtype=bool), problem)]
    if isinstance(direct, DirectMethod) and folds is not None:
        fold = folds_of(episodes, folds, rng)
        asked = [(fold == one, episodes.part(fold != one)) for one in range(fold.max() + 1)]
    known = episodes.next_observed | episodes.terminals
    for member, share in members_of(policy):
        costs = episodes.costs(member)
        start, residuals = np.empty((len(episodes), episodes.n_values)), np.empty(costs.shape)
        for these, others in asked:
            q = direct.q(others, member, rng=rng) if isinstance(direct, DirectMethod) else direct
            rows = these[episodes.episode]
            start[these] = expected(q, member, episodes.states[episodes.begins[these]], episodes)
            ahead = expected(q, member, episodes.next_states[rows], episodes)
            residuals[rows] = costs[rows] + episodes.continuation[rows, None] * ahead
            residuals[rows] -= _taken(q, episodes.states[rows], episodes.actions[rows])
        residuals[~known] = 0.0
        weights = (
            np.zeros(known.size)
            if propensities is None
            else member_importance_weights(problem, member, propensities) * known
        )
        yield Corrected(share, weights, start, residuals)


def contributions(
    problem: Problem,
    policy: Policy,
    propensities: Propensities | None,
    direct: DirectMethod | QFunction,
    *,
    folds: int | None = FOLDS,
    rng: np.random.Generator,
) -> FloatArray:
    """(e, 1 + m) what each episode says the policy costs, in the order of episode numbers; DR is their mean.

    V(x_0) + sum_t discount^t ratio_t (c_t + discount V(x_{t+1}) - Q(x_t, a_t)): nothing follows a terminal, and where
    an episode was cut off V stands for the rest.
    """
    parts = corrected(problem, policy, propensities, direct, folds=folds, rng=rng)
    return contributions_of(Episodes.of(problem), parts)


def contributions_of(episodes: Episodes, parts: Iterable[Corrected]) -> FloatArray:
    """(e, 1 + m) the contributions of members, by their shares."""
    each = np.zeros((len(episodes), episodes.n_values))
    for part in parts:
        corrections = episodes.sums((episodes.factors * part.importance_weights)[:, None] * part.residuals)
        each += part.share * (part.start + corrections)
    return each


@dataclass(frozen=True)
class DoublyRobust:
    """The mean of the contributions; normalised (WDR, Thomas & Brunskill 2016), step by step by the sum of weights.

    direct: what fits Q (`FQE(...)`, `LSTDQ(...)`), or a Q-function.
    folds: how many parts the episodes are cross-fitted in; None fits on all of them.
    """

    direct: DirectMethod | QFunction
    normalised: bool = False
    folds: int | None = FOLDS
    name: str = ""
    weighs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_folds(self.folds)
        object.__setattr__(self, "name", self.name or ("wdr" if self.normalised else "dr"))

    def __call__(
        self, problem: Problem, policy: Policy, propensities: Propensities | None, *, rng: np.random.Generator
    ) -> Estimate:
        """Estimate all costs at once."""
        episodes = Episodes.of(problem)
        whole = importance_weights(problem, policy, propensities)[episodes.last]
        if not self.normalised:
            each = contributions(problem, policy, propensities, self.direct, folds=self.folds, rng=rng)
            return plain(episodes, each, whole)
        k = episodes.n_values
        start, values, influence = np.zeros((len(episodes), k)), np.zeros(k), np.zeros((len(episodes), k))
        until = np.array([episodes.horizon - 1])
        unknown: list[int] = []
        for part in corrected(problem, policy, propensities, self.direct, folds=self.folds, rng=rng):
            sums = StepSums.of(episodes, part.importance_weights, part.residuals, until)
            start += part.share * part.start
            values += part.share * sums.values[0]
            influence += part.share * sums.influence[:, 0]
            unknown += [] if sums.unknown is None else [sums.unknown]
        mean = episodes.mean(start)
        note = f"no weight is left from step {min(unknown)} on: the model stands alone there" if unknown else ""
        return Estimate.of(episodes, values + mean, influence + start - mean, whole, note)


def require_folds(folds: int | None) -> None:
    """Raise unless folds is None or at least 2."""
    if folds is not None:
        require_counts(folds=folds)
        if folds < 2:
            raise ArgumentError("folds is 1: nothing would be left to fit on, pass at least 2, or None to fit on all")


def expected(q: QFunction, policy: Policy, states: Array, episodes: Episodes) -> FloatArray:
    """(n, k) the value of states: Q averaged over the policy's actions."""
    if states.ndim == 1 and states.size and (n_states := int(states.max()) + 1) < states.size:
        return expected(q, policy, np.arange(n_states), episodes)[states]
    values, k = q(states), episodes.n_values
    if values.shape != (len(states), episodes.n_actions, k):
        raise ArgumentError(
            f"the Q-function has shape {values.shape} for {len(states)} states: it must have "
            f"{episodes.n_actions} actions and {k} costs (the objective and every constraint)"
        )
    return np.asarray(np.einsum("na,nak->nk", probabilities_of(policy, states, episodes.n_actions), values))


def _taken(q: QFunction, states: Array, actions: IntArray) -> FloatArray:
    """(n, k) Q of the logged pairs."""
    if states.ndim == 1 and (n_states := int(states.max()) + 1) < states.size:
        return q(np.arange(n_states))[states, actions]
    return q(states)[np.arange(actions.size), actions]


def folds_of(episodes: Episodes, folds: int, rng: np.random.Generator) -> IntArray:
    """(e,) the fold of each episode, of whole clusters where there are any; their sizes differ by one at most."""
    units = episodes.n_units
    count = min(folds, units)
    if count < 2:
        what = f"{units} {episodes.unit_name}"
        raise DataError(f"{what} cannot be cross-fitted in {folds} folds: log more, or folds=None")
    return np.asarray(rng.permutation(np.arange(units) % count)[episodes.unit])
