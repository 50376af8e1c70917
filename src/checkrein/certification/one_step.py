"""One-step scores as a bound: nuisances of all other parts, corrected by each part of the judging episodes in turn."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from checkrein.base.arrays import FloatArray, require_counts
from checkrein.certification.assumed import Assumptions
from checkrein.certification.intervals import Interval, johnson_t
from checkrein.evaluation.doubly_robust import folds_of
from checkrein.evaluation.estimate import standard_errors
from checkrein.evaluation.feature_choice import choose_features
from checkrein.evaluation.feature_one_step import FeatureNuisances, FeatureRows
from checkrein.evaluation.feature_scores import score
from checkrein.evaluation.known_weights import known_propensities
from checkrein.evaluation.one_step import TabularNuisances
from checkrein.functions import Linear, Tabular
from checkrein.policies import Support
from checkrein.problem import Episodes, Problem
from checkrein.protocols import Policy

if TYPE_CHECKING:
    from checkrein.certification.bounds import Guarantee


@dataclass(frozen=True)
class OneStepBound:
    """The mean of one-step scores, each by nuisances of the other folds.

    Where states are numbers, features, behavior and Q are learned from the other folds. In finite states nuisances are
    tables, and the density ratio is theirs.
    """

    folds: int = 3

    def __post_init__(self) -> None:
        require_counts(folds=self.folds)

    @property
    def name(self) -> str:
        """What the certificate calls it."""
        return "one-step"

    def assumptions(self, problem: Problem) -> Assumptions:
        """Name the importance weights of episodes where states are numbers or propensities known, else tables."""
        finite = problem.dataset.n_states is not None
        weighs = not finite or known_propensities(problem) is not None
        return Assumptions(Tabular() if finite else Linear(), Support(), None, weighs=weighs)

    def guarantee(self, problem: Problem) -> "Guarantee":
        """Tables can hold any Q and any density; features may miss both for ever, unless weights are known."""
        known = problem.dataset.n_states is not None or known_propensities(problem) is not None
        return "asymptotic" if known else "heuristic"

    def __call__(self, problem: Problem, policy: Policy, *, alpha: float, rng: np.random.Generator) -> Interval:
        """Bound all constraints."""
        log = Episodes.of(problem)
        scores = log.unit_means(self.scores(problem, policy, rng)[:, 1:])
        values = log.unit_weights @ scores / log.unit_weights.sum()
        return johnson_t(scores - values, values, log.unit_weights, alpha / problem.n_constraints)

    def estimate(self, problem: Problem, policy: Policy, *, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Average over episodes."""
        values, influence = self.by_episode(problem, policy, rng)
        log = Episodes.of(problem)
        return values, standard_errors(log.unit_means(influence), log.unit_weights)

    def by_episode(self, problem: Problem, policy: Policy, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Return the values (1 + m,) and the influence (e, 1 + m) of each episode."""
        scores = self.scores(problem, policy, rng)
        values = Episodes.of(problem).mean(scores)
        return values, scores - values

    def scores(self, problem: Problem, policy: Policy, rng: np.random.Generator) -> FloatArray:
        """(e, 1 + m) what each episode says of the objective and every constraint."""
        _, found = problem.once((self, id(policy)), lambda: (policy, self._scored(problem, policy, rng)))
        return found

    def _scored(self, problem: Problem, policy: Policy, rng: np.random.Generator) -> FloatArray:
        log = Episodes.of(problem)
        fold, scores = folds_of(log, self.folds, rng), np.empty((len(log), log.n_values))
        for one in range(int(fold.max()) + 1):
            mine, others = log.part(fold != one), log.part(fold == one)
            finite = problem.dataset.n_states is not None
            scores[fold == one] = _tabular(mine, others, policy) if finite else _numeric(mine, others, policy, rng)
        return scores


def _tabular(mine: Problem, others: Problem, policy: Policy) -> FloatArray:
    return TabularNuisances.of(mine, Support()).score(others, policy).scores


def _numeric(mine: Problem, others: Problem, policy: Policy, rng: np.random.Generator) -> FloatArray:
    features = choose_features(mine, rng)
    nuisances, rows = FeatureNuisances(mine, features), FeatureRows.of(others, features)
    return score(nuisances, rows, policy).scores
