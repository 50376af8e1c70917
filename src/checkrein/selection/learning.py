"""Learning inside a fold: the best policy so far under the limits, and so near to behavior, by what was not missed.

Costs are learned from with what their rows may have missed (`Shrinkage`): a pair without any logged harm is not taken
for harmless. How near to behavior a policy stays is one more constraint, on its KL divergence: what comes first has
overlap with the log, and rests on many episodes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, cast

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.base.errors import DivergenceError, EndlessPolicyError
from checkrein.best_response import FQI
from checkrein.costs import KLDivergence
from checkrein.evaluation import FQE
from checkrein.evaluation.estimate import standard_errors
from checkrein.evaluation.one_step import ScoresFrom, TabularNuisances
from checkrein.evaluation.scores import JudgedScores, PairVisits
from checkrein.evaluation.shrinkage import Shrinkage
from checkrein.functions import Tabular
from checkrein.game import Round, Solution, Status, solve
from checkrein.game.usual import GENEROUS, usual_learner
from checkrein.policies import RestrictedPolicy, Support
from checkrein.problem import AtMost, Episodes, Problem
from checkrein.protocols import Policy

DIVERGENCE = "divergence from behavior"
ANY = 1e6  # a divergence that no policy has
FAR = 1.0  # the distance of what may go as far as it likes
USUAL = 4.0  # standard errors under the limits that a support rule should allow


class Learn(Protocol):
    """Solves a problem under a support rule."""

    def __call__(self, problem: Problem, support: Support, known: Sequence[Round]) -> Solution:
        """Solve; known: the rounds of a solution from the same data under the same rule, with other limits."""
        ...


@dataclass(frozen=True)
class TabularLearning:
    """FQI and FQE with tables, prices by cutting planes.

    tolerance: of the objective, in units of how much episodes vary
    generous: times the price at which a constraint's usual variation outweighs the objective's: the most to ask for
    """

    tolerance: float = 1e-2
    max_rounds: int = 40
    generous: float = GENEROUS

    def __call__(self, problem: Problem, support: Support, known: Sequence[Round]) -> Solution:
        """Solve."""
        return solve(
            problem,
            best_response=FQI(Tabular(), support=support),
            evaluator=FQE(Tabular()),
            learner=usual_learner(problem, self.generous),
            tolerance=self.tolerance * float(problem.spread[0]),
            max_rounds=self.max_rounds,
            known=known,
            ranges=False,
            closest=False,
        )


class Aim(NamedTuple):
    """What a candidate is learned for.

    distance: from behavior, the most, as a share of how far the best policy at the limits goes; 1: as far as it likes
    margin: how far under the limits, in standard errors
    """

    distance: float
    margin: float


class Fold:
    """A part of the episodes, and policies learned from all others."""

    remembered: FloatArray | None = None  # tables are held against the past by tests of their own

    def __init__(self, mine: Problem, others: Problem, learn: Learn, rules: Sequence[Support]) -> None:
        self.mine, self.others, self.learn = mine, others, learn
        learning, judging = len(Episodes.of(mine)), len(Episodes.of(others))
        self.share = learning / (learning + judging)
        self.rules = list(rules)
        self.problem = with_divergence(shrunk(mine))
        self.trouble = ""  # why nothing could be learned

    def begun(self) -> "Fold":
        """Return it under the strictest rule that leaves the usual margin, else the loosest that meets the limits."""
        meets = None
        while self.rules:
            rule = self.rules[0]
            if self.loosen():
                meets = rule
                if self.learned(Aim(FAR, USUAL)) is not None:
                    return self
        if meets is not None:
            self.rules = [meets]
            self.loosen()
        return self

    @property
    def ready(self) -> bool:
        """Whether it has a rule that can meet the limits."""
        return hasattr(self, "tables")

    def loosen(self) -> bool:
        """Go on to the next rule; False where there is none, or it cannot meet the limits."""
        if not self.rules:
            return False
        self.support = self.rules.pop(0)
        self.rounds: Sequence[Round] = ()
        solution = self._solve(np.zeros(self.mine.n_constraints), ANY)
        if solution is None:
            return False
        self.reach = solution.values[DIVERGENCE]
        self.tables = TabularNuisances.of(self.mine, self.support)
        self.behavior_scores = self.tables.behavior_scores(self.others)  # (e, 1 + m) of the fold's own episodes
        self.usual = self._errors(solution.policy)
        self.far: dict[float, Policy | None] = {}  # as far as they like, by margin
        self.near: dict[float, FloatArray | None] = {}  # errors by distance; None: no policy so near meets the limits
        return True

    def learned(self, aim: Aim) -> Policy | None:
        """Learn a policy; None where the aim cannot be met.

        What keeps near behavior varies less, but looks as much too good where it was learned as what goes far: it aims
        no less under the limits. So what cannot be met from afar cannot be met near behavior either.
        """
        if aim.margin not in self.far:
            solution = self._solve(aim.margin * self.usual, ANY)
            self.far[aim.margin] = None if solution is None else solution.policy
        if aim.distance >= FAR or self.far[aim.margin] is None:
            return self.far[aim.margin]
        most = aim.distance * self.reach
        if aim.distance not in self.near:
            nearest = self._solve(np.zeros(self.mine.n_constraints), most)
            self.near[aim.distance] = None if nearest is None else self._errors(nearest.policy)
        errors = self.near[aim.distance]
        solution = None if errors is None else self._solve(aim.margin * np.maximum(errors, self.usual), most)
        return None if solution is None else solution.policy

    def score(self, policy: Policy) -> JudgedScores:
        """Let the fold's own episodes judge."""
        found = self.tables.score(self.others, policy)
        return JudgedScores(
            found.scores,
            PairVisits(found.visits),
            found.unsupported,
            found.max_density_ratio,
            found.known_weights,
        )

    def score_from(self, policy: Policy) -> ScoresFrom:
        """Let them judge it from some states on."""
        return self.tables.scores_from(self.others, policy)

    def _solve(self, margins: FloatArray, divergence: float) -> Solution | None:
        """Learn with margins (m,) under the limits; None where these cannot be met."""
        signs = np.array([c.sign for c in self.mine.constraints])
        limits = [c.limit for c in self.mine.constraints] - signs * margins
        aimed = self.problem.with_limits([*limits.tolist(), divergence])
        try:
            solution = self.learn(aimed, self.support, self.rounds)
        except (DivergenceError, EndlessPolicyError) as reason:
            self.trouble = f"without one of its folds, {reason}"
            return None
        self.rounds = solution.rounds
        return None if solution.status is Status.INFEASIBLE else solution

    def _errors(self, policy: Policy) -> FloatArray:
        """(m,) standard errors to be expected of all folds together."""
        found, scored = Shrinkage.of(self.mine), self.tables.score(self.mine, policy)
        log = Episodes.of(self.mine)
        errors = standard_errors(log.unit_means(scored.scores - log.mean(scored.scores)), log.unit_weights)
        variances = self.share * errors**2 + found.missed(scored.visits).variance
        return np.asarray(np.sqrt(variances[1:]))


def shrunk(problem: Problem) -> Problem:
    """Return a problem whose rows also cost what their pairs may be worse, or better, than they show."""
    log = problem.dataset
    shift = Shrinkage.of(problem).shift[log.states * log.n_actions + log.actions]
    costs = problem.signed_costs(log) + shift
    signs = [1.0, *(c.sign for c in problem.constraints)]
    names = [f"value {i}" for i in range(len(signs))]
    dataset = log.with_costs({name: sign * column for name, sign, column in zip(names, signs, costs.T, strict=True)})
    own = problem.policy_costs
    constraints = tuple(
        c if i in own else replace(c, cost=names[i], name=c.name) for i, c in enumerate(problem.constraints, start=1)
    )
    objective = problem.objective if problem.objective is None or 0 in own else names[0]
    return replace(problem, dataset=dataset, objective=objective, constraints=constraints)


def with_divergence(problem: Problem) -> Problem:
    """Return a problem with one more constraint, on the divergence from behavior."""
    divergence = KLDivergence()
    if problem.admissible is not None:  # from what behavior does of what is admissible
        divergence = divergence.resolved(problem.dataset)
        reference = RestrictedPolicy(cast(Policy, divergence.reference), problem.admissible)
        divergence = replace(divergence, reference=reference)
    return replace(problem, constraints=(*problem.constraints, AtMost(divergence, ANY, name=DIVERGENCE)))
