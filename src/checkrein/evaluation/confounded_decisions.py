"""The worst that a hidden factor can have made of logs of single decisions, whose states are features.

No state comes up twice, so the mean weight is held at 1 for each action, not for each state and action: the stabilised
bounds of Zhao, Small & Bhattacharya (2019), for what a regression of the outcomes leaves. They contain the sharp ones.
"""

import numpy as np

from checkrein.base.arrays import FloatArray, IntArray
from checkrein.base.errors import ArgumentError
from checkrein.evaluation.confounding import Worst
from checkrein.evaluation.doubly_robust import corrected
from checkrein.evaluation.fqe import nuisance
from checkrein.evaluation.propensities import propensities_of
from checkrein.evaluation.starts import Starts
from checkrein.functions import Linear
from checkrein.policies import members_of, probabilities_of
from checkrein.problem import Episodes, Problem
from checkrein.protocols import Policy


class ConfoundedDecisions:
    """A policy over features, in a log whose every episode is one decision; each member is taken at its own worst."""

    def __init__(self, problem: Problem, policy: Policy) -> None:
        self.log = log = Episodes.of(problem)
        if log.horizon > 1 or not log.ended.all():
            raise ArgumentError(
                f"a hidden factor is followed through finite states, or in logs of single decisions; here states are "
                f"features, and an episode has up to {log.horizon} steps: group the features into finite states"
            )
        if not Starts(problem, log).own:
            raise ArgumentError("the initial states were given: of single decisions, only the logged ones are judged")
        propensities = propensities_of(problem.dataset)
        self.problem, self.propensities = problem, propensities.values[log.rows]
        members = [(member, share) for member, share in members_of(policy) if share > 0]
        rng = np.random.default_rng(0)
        parts = corrected(problem, policy, propensities, nuisance(Linear()), rng=rng)
        self.parts = [(member, part) for (member, _), part in zip(members, parts, strict=True)]

    def worst(self, column: int, odds: float) -> Worst:
        """Tilt what the regression leaves of each action's outcomes; a cost known beforehand has no hidden part."""
        odds = 1.0 if column in self.problem.known_costs else odds
        least, most = (self.propensities + (1 - self.propensities) * by for by in (1 / odds, odds))
        log, shares = self.log, self.log.weights / self.log.weights.sum()
        value, influence = 0.0, np.zeros(len(log))
        for member, part in self.parts:
            residuals, ratios = part.residuals[:, column], part.importance_weights
            chosen = probabilities_of(member, log.states, log.n_actions)
            mean = float(shares @ part.start[:, column])
            value += part.share * mean
            influence += part.share * (part.start[:, column] - mean)
            for action in range(log.n_actions):
                rows = np.flatnonzero((log.actions == action) & (ratios > 0) & (shares > 0))
                taken = float(shares @ chosen[:, action])
                if rows.size == 0:
                    value += part.share * taken * self._without_evidence(member, column)
                    continue
                amounts = shares[rows] * ratios[rows]
                found, weights = worst_ratio(residuals[rows], amounts * least[rows], amounts * most[rows])
                value += part.share * taken * found
                influence += part.share * (chosen[:, action] - taken) * found
                each = weights * (residuals[rows] - found) / weights.sum()
                influence[rows] += part.share * taken * each / shares[rows]
        return Worst(value, influence, None)

    def _without_evidence(self, member: Policy, column: int) -> float:
        """Return the most that an action which was never logged may cost beyond what is expected of it."""
        lowest = float(self.log.costs(member)[:, column].min())
        return float(self.problem.worst_after(member)[column]) - lowest


def worst_ratio(outcomes: FloatArray, least: FloatArray, most: FloatArray) -> tuple[float, FloatArray]:
    """Return the largest weighted mean of outcomes (n,) with weights between the two ends, and these weights."""
    order: IntArray = np.argsort(-outcomes, kind="stable")
    low, high, y = least[order], most[order], outcomes[order]
    total = np.cumsum(high) + low.sum() - np.cumsum(low)
    sums = np.cumsum(high * y) + low @ y - np.cumsum(low * y)
    top = int(np.argmax(sums / total))
    weights = np.empty_like(least)
    weights[order] = np.where(np.arange(y.size) <= top, high, low)
    return float(weights @ outcomes / weights.sum()), weights
