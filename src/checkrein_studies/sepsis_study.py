"""Sepsis in intensive care: learned from the clinicians' decisions, with less of both drugs than they give."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np

from checkrein import (
    FQE,
    FQI,
    Candidate,
    CuttingPlane,
    Dataset,
    Problem,
    Round,
    Solution,
    Support,
    Tabular,
    learn_certified,
    solve,
)
from checkrein.base.arrays import require_counts
from checkrein.reproduction import Findings, Tell, each
from checkrein_studies import sepsis
from checkrein_studies.sepsis import DEATH, DISCOUNT, Departures, Logged
from checkrein_studies.sepsis_found import Found, Judged, Optimal, Plugged, Step
from checkrein_studies.sepsis_study_page import findings

FIRST_LOG = 5000  # added to the seed: settings were tried on logs before these
SHARES = None, 1.25, 1.0, 0.9, 0.75, 0.6, 0.5, 0.4, 0.35
UNLIMITED = 10.0  # a share that no policy comes near


@dataclass(frozen=True)
class IcuSepsis:
    """Sepsis in intensive care: fewer deaths than under the clinicians, with less of their drugs, certified."""

    share: float = 0.75  # of the clinicians' fluids and vasopressors that is allowed
    exact: tuple[float | None, ...] = SHARES  # solved for exactly; None: without limits
    frontier: tuple[float | None, ...] = SHARES  # learned for
    episodes: int = 20_000  # of each of many logs
    logs: int = 50
    survival: float = 0.81  # claimed of what is deployed, on average over them
    large_episodes: int = 100_000  # of each of a few logs, and of the one that the frontier is learned from
    large_logs: int = 3
    large_survival: float = 0.845
    departures: tuple[float, ...] = (10.0,)  # that the support rule may ask for, strictest first
    counts: tuple[float, ...] = (1.0, 20.0, 50.0)  # occurrences that solutions at the limit itself ask for
    folds: int = 4
    confidence: float = 0.95
    seed: int = 0
    jobs: int = 2

    def __post_init__(self) -> None:
        require_counts(logs=self.logs)

    @classmethod
    def quick(cls) -> Self:
        """Return one log with a looser limit, and no linear program."""
        return cls(
            share=0.9,
            exact=(),
            frontier=(None, 1.0, 0.75),
            logs=1,
            survival=0.8,
            large_episodes=20_000,
            large_logs=0,
            counts=(1.0,),
            jobs=1,
        )

    def run(self, tell: Tell) -> Findings:
        """Solve exactly, learn a frontier from one log, learn and certify from many."""
        ward = sepsis.load()
        shares = [partial(_exact, share) for share in self.exact]
        exact = each(shares, jobs=self.jobs, tell=lambda done: tell(f"linear programs: {done}"))
        tell("the learned frontier")
        learned = self._learned_frontier()
        logs = [(self.large_episodes, number) for number in range(self.large_logs)]
        logs += [(self.episodes, number) for number in range(self.logs)]
        calls = [partial(self._judged, *one) for one in logs]
        judged = each(calls, jobs=self.jobs, tell=lambda done: tell(f"logs: {done}"))
        tell("drawing")
        return findings(Found(self, ward, exact, learned, judged))

    def _log(self, episodes: int, number: int) -> Dataset:
        return sepsis.log(sepsis.load(), episodes=episodes, seed=self.seed + FIRST_LOG + number)

    def _problem(self, log: Dataset, share: float) -> Problem:
        limits = sepsis.limits(sepsis.load(), share)
        return Problem(log, objective=DEATH, constraints=limits, discount=DISCOUNT)

    def _rules(self) -> list[Departures]:
        admissible = np.asarray(sepsis.load().mdp.available)
        return [Departures(count, admissible=admissible) for count in self.departures]

    def _learned_frontier(self) -> list[Optimal]:
        """Solve from one log at every share; what is found for one serves the next."""
        mdp, log = sepsis.load().mdp, self._log(self.large_episodes, 0)
        found: list[Optimal] = []
        known: tuple[Round, ...] = ()
        for share in self.frontier:
            solution = _learned(self._problem(log, share or UNLIMITED), self._rules()[-1], known)
            known = solution.rounds
            found.append(Optimal(share, solution.values, mdp.values(solution.policy), solution.multipliers))
        return found

    def _judged(self, episodes: int, number: int) -> Judged:
        """Learn and certify from one log; what is not certified is not deployed, the clinicians go on instead."""
        began, ward = time.perf_counter(), sepsis.load()
        problem = self._problem(self._log(episodes, number), self.share)
        rules, seed = self._rules(), self.seed + number
        found = learn_certified(problem, supports=rules, folds=self.folds, confidence=self.confidence, seed=seed)
        took = time.perf_counter() - began
        certificate = found.certificate
        return Judged(
            episodes,
            number,
            found.policy is not None,
            ward.mdp.values(found.policy or ward.clinicians),
            {} if certificate is None else certificate.estimates,
            {} if certificate is None else certificate.bounds,
            found.explanation,
            tuple(_step(candidate) for candidate in found.candidates) if number == 0 else (),
            self._plugged(problem),
            took,
        )

    def _plugged(self, problem: Problem) -> dict[str, Plugged]:
        """Solve from the whole log at the limits themselves, by rule."""
        rules: list[Support] = [*map(Logged, self.counts), self._rules()[-1]]
        mdp = sepsis.load().mdp
        solutions = {_in_words(rule): _learned(problem, rule) for rule in rules}
        return {rule: Plugged(one.values, mdp.values(one.policy)) for rule, one in solutions.items()}


def _exact(share: float | None) -> Optimal:
    ward = sepsis.load()
    optimum = ward.mdp.optimum(objective=DEATH, constraints=() if share is None else sepsis.limits(ward, share))
    return Optimal(share, optimum.values, optimum.values, optimum.multipliers)


def _step(candidate: Candidate) -> Step:
    found = candidate.certificate
    true = sepsis.load().mdp.values(candidate.policy)
    return Step(candidate.margin, found.verdict == "pass", found.estimates, found.bounds, true)


def _in_words(rule: Support) -> str:
    if isinstance(rule, Departures):
        return f"admissible, led away {rule.min_count:g} times"
    return "logged at all" if rule.min_count <= 1 else f"logged {rule.min_count:g} times"


def _learned(problem: Problem, rule: Support, known: Sequence[Round] = ()) -> Solution:
    return solve(
        problem,
        best_response=FQI(Tabular(), support=rule),
        evaluator=FQE(Tabular()),
        learner=CuttingPlane(100.0),
        tolerance=1e-4,
        max_rounds=50,
        known=known,
    )
