"""sensitivity: how strong a factor outside the log would have to be before a certificate could be wrong."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.base.errors import ArgumentError
from checkrein.certification.bounds import Method
from checkrein.certification.certificate import Certificate
from checkrein.certification.certify import certify, fingerprint
from checkrein.certification.diagnostics import ROUNDED
from checkrein.certification.intervals import johnson_t
from checkrein.certification.rare import allow_for_missed
from checkrein.certification.survival import LARGEST, Sensitivity, Survival
from checkrein.data.dataset import Dataset
from checkrein.evaluation.behavior_value import logged_to_the_end
from checkrein.evaluation.confounded_decisions import ConfoundedDecisions
from checkrein.evaluation.confounding import Confounded, ConfoundedTables, Worst
from checkrein.evaluation.refits import Refits
from checkrein.evaluation.shrinkage import Shrinkage
from checkrein.functions import Tabular
from checkrein.policies import behavior_policy, members_of
from checkrein.problem import AtMost, Episodes, Problem
from checkrein.protocols import Cost, Policy

FIRST = 0.01  # the weakest factor that is tried changes the odds by this much
NEAR = 1.002  # apart, two odds ratios are one
SECONDS = 1e9  # unknowns cubed, summed over members and values: what two or three seconds are enough for
CROSS_FITTED = "one-step"  # the method of certificates whose episodes also helped to choose the policy


def sensitivity(
    policy: Policy,
    dataset: Dataset,
    *,
    constraints: Sequence[AtMost],
    discount: float,
    objective: str | Cost | None = None,
    confidence: float = 0.95,
    method: str | Method | None = None,
    seed: int = 0,
    certificate: Certificate | None = None,
) -> Sensitivity:
    """Find the largest odds ratio of a hidden factor at which each limit, and the improvement on behavior, still pass.

    States must be finite, or every episode a single decision. It costs no look: a pass at a larger odds ratio is a pass
    at 1, and the largest one is found by inverting the same bound.

    certificate: of this policy on this dataset, where there is one, with its own confidence; else `certify` is asked
    """
    problem = Problem(dataset.counted_once, objective=objective, constraints=constraints, discount=discount)
    if certificate is None:
        certificate = certify(
            policy,
            dataset,
            constraints=constraints,
            discount=discount,
            objective=objective,
            confidence=confidence,
            method=method,
            seed=seed,
        )
    require_same(certificate, policy, problem)
    tables = dataset.n_states is not None
    confounded: Confounded = (ConfoundedTables if tables else ConfoundedDecisions)(problem, policy)
    bounds = _Bounds(problem, confounded, certificate)
    return Sensitivity(
        constraints=[bounds.limit(place) for place in range(problem.n_constraints)],
        objective=bounds.improvement(),
        passed=certificate.verdict == "pass",
        confidence=certificate.confidence,
        episodes=certificate.episodes,
        logged_propensities=dataset.propensities is not None,
        dataset=certificate.dataset,
        policy=certificate.policy,
    )


def quick(problem: Problem, policy: Policy) -> bool:
    """Say whether it takes seconds: in finite states, by how large the systems to be solved are, and how many."""
    states, values = problem.dataset.n_states, 1 + problem.n_constraints
    return states is not None and values * len(members_of(policy)) * states**3 <= SECONDS


def require_same(certificate: Certificate, policy: Policy, problem: Problem) -> None:
    """Raise unless a certificate is of this policy, these episodes and these limits."""
    if certificate.method == CROSS_FITTED:
        raise ArgumentError(
            "the episodes of this certificate also helped to choose the policy (by cross-fitting), and would make a "
            "hidden factor look weak: certify the policy on other episodes"
        )
    wrong = {
        "other episodes": certificate.dataset != problem.dataset.fingerprint,
        "another policy": certificate.policy != fingerprint(policy, problem.dataset),
        "other limits": [(c.name, c.words, c.limit) for c in certificate.constraints]
        != [(c.name, c.words, c.limit) for c in problem.constraints],
    }
    for what, differs in wrong.items():
        if differs:
            raise ArgumentError(f"the certificate is of {what}: certify this policy on these episodes first")


class _Bounds:
    """The certificate's bounds, moved as those of the robust values move with the odds ratio."""

    def __init__(self, problem: Problem, confounded: Confounded, certificate: Certificate) -> None:
        self.problem, self.confounded, self.certificate = problem, confounded, certificate
        self.log = Episodes.of(problem)
        self.finite = problem.dataset.n_states is not None

    def limit(self, place: int) -> Survival:
        """Find what one constraint survives."""
        judged, sign = self.certificate.constraints[place], self.problem.constraints[place].sign
        claim = Survival(name=judged.name, words=judged.words, limit=judged.limit)
        if judged.verdict != "pass" or judged.bound is None or judged.estimate is None:
            return claim
        limit = sign * judged.limit
        room = limit - sign * judged.bound + ROUNDED * (abs(limit) + abs(judged.estimate))
        return self._survives(claim, 1 + place, room, self.certificate.alpha / self.problem.n_constraints)

    def improvement(self) -> Survival | None:
        """Find what the improvement on behavior survives; None where none was judged."""
        judged = self.certificate.objective
        if judged is None:
            return None
        claim = Survival(name=judged.name, words="better than behavior")
        if judged.verdict != "better":
            return claim
        return self._survives(claim, 0, -judged.upper, self.certificate.alpha, beside=self._behavior())

    def _survives(
        self, claim: Survival, column: int, room: float, alpha: float, beside: FloatArray | float = 0.0
    ) -> Survival:
        """Find the largest odds ratio at which a bound rises by no more than the room it has.

        beside: (e,) what episodes add to what the value is compared with, which was observed
        """
        plain, error = self._bound(self.confounded.worst(column, 1.0), column, beside, alpha)
        if error <= ROUNDED * abs(plain) and column not in self.problem.known_costs:
            return claim.model_copy(update={"odds_ratio": 1.0, "varies": False})
        odds = largest(
            lambda odds: self._bound(self.confounded.worst(column, odds), column, beside, alpha)[0] - plain <= room
        )
        return claim.model_copy(update={"odds_ratio": odds})

    def _bound(self, worst: Worst, column: int, beside: FloatArray | float, alpha: float) -> tuple[float, float]:
        """Bound a robust value from above, with rare events that were missed; return its standard error, too."""
        log = self.log
        weights, pull = log.by_unit(log.weights), log.by_unit(log.weights * (worst.influence - beside))
        counted = weights > 0
        influence = (pull[counted] / weights[counted])[:, None]
        interval = johnson_t(influence, np.array([worst.value]), weights[counted], alpha)
        error = float(interval.standard_errors[0])
        if worst.exposure is not None:
            shrinkage, values = Shrinkage.of(self.problem), slice(column, column + 1)
            interval = allow_for_missed(interval, shrinkage.both(worst.exposure, values), alpha)
        return float(interval.upper[0]), error

    def _behavior(self) -> FloatArray:
        """(e,) what each episode adds to behavior's objective: what was done was seen, hidden factor or not."""
        log, problem = self.log, self.problem
        if logged_to_the_end(log) and 0 not in problem.policy_costs:
            sums = log.sums(log.factors * log.row_costs[:, 0])
            return np.asarray(sums - log.mean(sums))
        return Refits.of(problem, behavior_policy(problem.transitions), Tabular()).point()[1][:, 0]


def largest(passes: Callable[[float], bool]) -> float:
    """Return the largest odds ratio, rounded down, up to which all that are tried pass; 1 is known to."""
    low, step = 1.0, FIRST
    while passes(high := min(1 + step, LARGEST)):
        low, step = high, 2 * step
        if low == LARGEST:
            return LARGEST
    while high / low > NEAR:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if passes(middle) else (low, middle)
    return math.floor(100 * low + 1e-9) / 100
