"""Importance sampling: logged costs, weighed by how much likelier the policy makes what was logged (Precup 2000).

These sums stop where the log does: after a cut-off nothing is added. A mixture draws one member per episode, so the
weight of a history is the members' weighted mean of prod_t policy(a_t | x_t) / propensity_t.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from checkrein.base.arrays import FloatArray, IntArray
from checkrein.evaluation.estimate import Estimate
from checkrein.evaluation.propensities import Propensities
from checkrein.policies import behavior_policy, members_of, probabilities_of
from checkrein.problem import Episodes, Problem
from checkrein.protocols import Policy


def member_importance_weights(problem: Problem, policy: Policy, propensities: Propensities | None) -> FloatArray:
    """(n,) the cumulative weight of every logged history under a policy that is not a mixture."""
    episodes = Episodes.of(problem)
    stated = known(propensities).values[episodes.rows]
    return episodes.products(likelihood(episodes, policy) / stated)


def likelihood(episodes: Episodes, policy: Policy) -> FloatArray:
    """(n,) the probability with which a policy takes each logged action."""
    states, actions = episodes.states, episodes.actions
    if states.ndim == 1 and (n_states := int(states.max()) + 1) < states.size:
        return probabilities_of(policy, np.arange(n_states), episodes.n_actions)[states, actions]
    return probabilities_of(policy, states, episodes.n_actions)[np.arange(actions.size), actions]


def importance_weights(problem: Problem, policy: Policy, propensities: Propensities | None) -> FloatArray:
    """(n,) the cumulative weight of every logged history, in the order of `Episodes`."""

    def weigh() -> FloatArray:
        parts = [
            weight * member_importance_weights(problem, member, propensities) for member, weight in members_of(policy)
        ]
        return np.asarray(sum(parts))

    return problem.once(("importance weights", policy, propensities), weigh)


def expected_costs(problem: Problem, policy: Policy, propensities: Propensities | None) -> FloatArray:
    """(n, k) what each row costs under a policy; of a mixture, as likely as each member is after what was logged.

    Only costs that depend on the policy differ between members.
    """
    episodes, members = Episodes.of(problem), members_of(policy)
    if not problem.policy_costs or len(members) == 1:
        return episodes.costs(members[0][0])
    total = importance_weights(problem, policy, propensities)
    table = episodes.row_costs.copy()
    for member, weight in members:
        given = weight * member_importance_weights(problem, member, propensities)
        share = np.divide(given, total, out=np.full(total.shape, weight), where=total > 0)
        table += share[:, None] * (episodes.costs(member) - episodes.row_costs)
    return np.asarray(table)


def known(propensities: Propensities | None) -> Propensities:
    """Return propensities that an estimator which weighs must have been given."""
    if propensities is None:
        raise TypeError("this estimator weighs episodes: give it propensities")
    return propensities


def plain(episodes: Episodes, each: FloatArray, weighed: FloatArray | None = None, note: str = "") -> Estimate:
    """Return the mean of what each episode (e, k) says."""
    values = episodes.mean(each)
    return Estimate.of(episodes, values, each - values, weighed, note)


@dataclass(frozen=True, eq=False)
class StepSums:
    """Sums over steps, each step's mean taken by the weights of the episodes that had not been cut off by then.

    An ended episode stays, at amount 0, with its last weight; one that was cut off leaves.
    """

    values: FloatArray  # (j, k) up to and with each asked step
    influence: FloatArray  # (e, j, k)
    unknown: int | None  # the first step that no weight is left for: 0 is added from there on

    @classmethod
    def of(cls, episodes: Episodes, weights: FloatArray, amounts: FloatArray, until: IntArray) -> "StepSums":
        """Sum amounts (n, k) weighed by (n,), up to each of the ascending steps `until` (j,)."""
        steps, total = episodes.horizon, episodes.weights.sum()
        last = weights[episodes.last] * episodes.ended
        counted = weights * episodes.weights[episodes.episode]
        stayed = np.bincount(episodes.lengths, episodes.weights * last, steps + 1)[:steps].cumsum()
        left = np.bincount(episodes.step, counted, steps) + stayed
        inverse = np.divide(1.0, left, out=np.zeros(steps), where=left > 0)
        sums = np.stack([np.bincount(episodes.step, counted * column, steps) for column in amounts.T], axis=1)
        means = sums * inverse[:, None]  # (steps, k)
        factors = episodes.discount ** np.arange(steps)
        values = np.cumsum(factors[:, None] * means, axis=0)[until]
        scale = total * inverse * factors
        each = (scale[episodes.step] * weights)[:, None] * (amounts - means[episodes.step])
        influence = _by_step(episodes, each, until)
        after = np.vstack([np.zeros((1, means.shape[1])), np.cumsum(scale[:, None] * means, axis=0)])
        begin = np.minimum(episodes.lengths[:, None], until + 1)  # of what an ended episode stays for
        influence -= last[:, None, None] * (after[until + 1] - after[begin])
        return cls(values, influence, int(np.argmin(left > 0)) if not (left > 0).all() else None)


def _by_step(episodes: Episodes, each: FloatArray, until: IntArray) -> FloatArray:
    """(e, j, k) the sums of rows (n, k) of each episode up to each asked step."""
    if until.size == 1 and until[0] >= episodes.horizon - 1:
        return episodes.sums(each)[:, None]
    place = np.searchsorted(until, episodes.step)
    kept = place < until.size
    cells = (episodes.episode * until.size + place)[kept]
    size = len(episodes) * until.size
    parts = [np.bincount(cells, column[kept], size).reshape(len(episodes), -1) for column in each.T]
    return np.cumsum(np.stack(parts, axis=2), axis=1)


def _cut_off(episodes: Episodes) -> str:
    cut = int((~episodes.ended).sum())
    return f"{cut} of {len(episodes)} episodes were cut off: what came after is left out" if cut else ""


def _joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))


@dataclass(frozen=True)
class Naive:
    """The mean of the logged sums: what behavior cost, not the policy."""

    name: str = "naive"
    weighs: ClassVar[bool] = False

    def __call__(
        self,
        problem: Problem,
        policy: Policy,  # noqa: ARG002
        propensities: Propensities | None,  # noqa: ARG002
        *,
        rng: np.random.Generator,  # noqa: ARG002
    ) -> Estimate:
        """Estimate all costs at once."""
        episodes = Episodes.of(problem)
        costs = episodes.costs(behavior_policy(problem.dataset)) if problem.policy_costs else episodes.row_costs
        returns = episodes.sums(episodes.factors[:, None] * costs)
        return plain(episodes, returns, note=_joined("of the logged behavior", _cut_off(episodes)))


@dataclass(frozen=True)
class ImportanceSampling:
    """Logged sums times the weight of the whole episode, or (per decision) each cost times the weight up to it.

    normalised: divide by the sum of weights instead of their number. Per decision this is done step by step: an
        episode that ended stays in the later steps' sums at cost 0, one that was cut off leaves them (CWPDIS).
    """

    per_decision: bool = False
    normalised: bool = False
    name: str = ""
    weighs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        standard = {(False, False): "is", (True, False): "pdis", (False, True): "wis", (True, True): "cwpdis"}
        object.__setattr__(self, "name", self.name or standard[self.per_decision, self.normalised])

    def __call__(
        self,
        problem: Problem,
        policy: Policy,
        propensities: Propensities | None,
        *,
        rng: np.random.Generator,  # noqa: ARG002
    ) -> Estimate:
        """Estimate all costs at once."""
        episodes = Episodes.of(problem)
        weights = importance_weights(problem, policy, propensities)
        whole, costs = weights[episodes.last], expected_costs(problem, policy, propensities)
        none = "" if episodes.weights @ whole > 0 else "no logged episode does only what the policy might do"
        note = _joined(none, _cut_off(episodes))
        if self.per_decision and self.normalised:
            sums = StepSums.of(episodes, weights, costs, np.array([episodes.horizon - 1]))
            lost = "" if sums.unknown is None else f"no weight is left from step {sums.unknown} on: costs count as 0"
            note = _joined(lost, _cut_off(episodes))
            return Estimate.of(episodes, sums.values[0], sums.influence[:, 0], whole, note)
        if self.per_decision:
            each = episodes.sums((episodes.factors * weights)[:, None] * costs)
            return plain(episodes, each, whole, note)
        returns = episodes.sums(episodes.factors[:, None] * costs)
        if not self.normalised:
            return plain(episodes, whole[:, None] * returns, whole, note)
        mean = float(episodes.mean(whole))
        if mean == 0:
            return Estimate(np.full(returns.shape[1], np.nan), None, episodes.unit_weights, 0.0, 0.0, note)
        values = episodes.mean(whole[:, None] * returns) / mean
        return Estimate.of(episodes, values, (whole / mean)[:, None] * (returns - values), whole, note)
