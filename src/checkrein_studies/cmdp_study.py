"""Random constrained MDPs: what is deployed with a certificate, and without one, against exact optima."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Self

import numpy as np

from checkrein import FQE, FQI, ExponentiatedGradient, Problem, Solution, Tabular, learn_certified, solve
from checkrein.protocols import Policy
from checkrein.reproduction import Findings, Tell, each
from checkrein_studies.cmdp_found import CAREFUL, DICE, OURS, PAPER, PLUG_IN, Run
from checkrein_studies.cmdp_protocol import COST, Case, moves_of, plug_in
from checkrein_studies.cmdp_study_page import findings
from checkrein_studies.optidice import Model, chi_square, conservative


@dataclass(frozen=True)
class RandomCmdps:
    """Random constrained MDPs, few to many episodes: plug-in, the paper's, C-OptiDICE, and certified policies."""

    states: int = 50  # with termination
    actions: int = 4
    discount: float = 0.95
    limit: float = 0.1
    behavior_limit: float = 0.09
    skill: float = 0.9  # how far behavior is on the way from uniform to optimal
    sizes: tuple[int, ...] = (10, 50, 200, 1000, 2000)  # of logs, in episodes
    max_steps: int = 50
    runs: int = 100  # MDPs, each with a log of every size
    bound: float = 30.0  # of the paper's algorithm
    rate: float = 2.0
    tolerance: float = 1e-3
    rounds: int = 300
    weighting: Literal["best", "uniform"] = "best"
    regularisation: float = 1.0  # alpha of C-OptiDICE, over the number of episodes
    radius: float = 0.1  # of its ball, over the number of episodes
    tighter: tuple[float, ...] = (0.0975, 0.095, 0.0925, 0.09, 0.0875, 0.085, 0.0825, 0.08, 0.07)  # limits given to it
    folds: int = 5
    confidence: float = 0.95
    seed: int = 3000
    jobs: int = 2

    @classmethod
    def quick(cls) -> Self:
        """Return few MDPs, two sizes of logs, and fewer folds."""
        return cls(sizes=(10, 200), runs=3, folds=3, jobs=1)

    def run(self, tell: Tell) -> Findings:
        """Learn in every way from logs of every size, and compare with the truth."""
        asked = [(self.seed + number, size) for number in range(self.runs) for size in self.sizes]
        calls = [partial(self._one, *one) for one in asked]
        found = each(calls, jobs=self.jobs, tell=lambda done: tell(f"logs: {done}"))
        tell("drawing")
        return findings(self, found)

    def _one(self, seed: int, size: int) -> Run:
        """Learn from one log in every way."""
        case = Case.draw(
            seed,
            n_states=self.states,
            n_actions=self.actions,
            discount=self.discount,
            limit=self.limit,
            behavior_limit=self.behavior_limit,
            skill=self.skill,
        )
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(size,)))
        problem = case.problem(size, self.max_steps, rng)
        moves = moves_of(problem.dataset, case.mdp.n_states)
        model, behavior = Model.of(case.mdp, moves), case.behavior
        near: dict[str, Any] = {"alpha": self.regularisation / size, "limit": self.limit}
        tightened = [chi_square(model, behavior, **near | {"limit": limit}) for limit in self.tighter]
        asked: Any = {"folds": self.folds, "confidence": self.confidence, "seed": seed}
        found = learn_certified(problem, improvement="not asked", **asked)  # nor is it asked of the baselines
        policies: dict[str, Policy] = {
            PLUG_IN: plug_in(case.mdp, moves, self.limit),
            PAPER: self._papers(problem, seed).policy,
            DICE: chi_square(model, behavior, **near),
            CAREFUL: conservative(model, behavior, **near, radius=self.radius / size),
            OURS: behavior if found.policy is None else found.policy,
        }
        said = found.certificate
        return Run(
            seed=seed,
            size=size,
            judged={way: case.judged(policy) for way, policy in policies.items()},
            tightened=[case.judged(policy) for policy in tightened],
            behavior=case.judged(behavior),
            certified=found.policy is not None,
            candidates=len(found.candidates),
            margin=None if found.passed is None else found.passed.margin,
            estimate=said.estimates[COST] if said else None,
            bound=said.bounds[COST] if said else None,
            reason=found.explanation,
        )

    def _papers(self, problem: Problem, seed: int) -> Solution:
        return solve(
            problem,
            best_response=FQI(Tabular()),
            evaluator=FQE(Tabular()),
            learner=ExponentiatedGradient(self.bound, self.rate),
            tolerance=self.tolerance,
            max_rounds=self.rounds,
            weighting=self.weighting,
            seed=seed,
        )
