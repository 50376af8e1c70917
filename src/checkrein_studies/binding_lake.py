"""Slippery FrozenLake with a limit that binds: the optimum is a mixture, and the price of the limit is not zero."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from checkrein import (
    FQE,
    FQI,
    AtMost,
    CuttingPlane,
    ExponentiatedGradient,
    OnlineGradientDescent,
    Problem,
    Round,
    Solution,
    Support,
    Tabular,
    TabularMDP,
    certify,
    solve,
)
from checkrein.base.arrays import FloatArray
from checkrein.certification.certify import alpha_spent
from checkrein.reproduction import Findings, Tell, each, halves
from checkrein.selection.margins import choose_margins
from checkrein_studies import frozen_lake
from checkrein_studies.binding_lake_page import PLANES, Found, findings
from checkrein_studies.lake_panels import (
    GOAL,
    HOLE,
    gathered,
    growing_logs,
    lake_problem,
    papers_gaps,
    play,
)


@dataclass(frozen=True)
class FrozenLakeBinding:
    """Slippery FrozenLake, a limit that binds: three learners side by side, the exact optimum, certificates."""

    discount: float = frozen_lake.DISCOUNT
    limit: float = frozen_lake.HOLE_LIMIT
    skill: float = 0.5  # the share of the behavior policy's actions that are the unconstrained optimum's
    episodes: int = 20_000  # logged, for the race of the learners
    max_steps: int = frozen_lake.MAX_STEPS
    bound: float = 30.0
    rates: tuple[float, ...] = (5.0, 20.0, 50.0)  # of exponentiated gradient
    steps: tuple[float, ...] = (1.0, 5.0, 20.0)  # of gradient descent
    rounds: int = 1000
    planes: int = 10  # rounds of the cutting planes
    certified: int = 12  # logs that certificates are asked for
    certified_episodes: int = 4000
    counts: tuple[float, ...] = (1.0, 3.0, 10.0, 30.0, 100.0)  # occurrences that the support rule may ask for
    confidence: float = 0.95
    evaluated_episodes: int = 4000
    shares: tuple[float, ...] = (0.1, 0.25, 0.5, 1.0)
    trials: int = 30
    seed: int = 0
    jobs: int = 2

    @classmethod
    def quick(cls) -> Self:
        """Return fewer rounds, logs and trials."""
        small: dict[str, Any] = {"rounds": 100, "certified": 1, "trials": 3, "shares": (0.1, 1.0), "jobs": 1}
        logs: dict[str, Any] = {"episodes": 4000, "evaluated_episodes": 1000, "certified_episodes": 6000}
        return cls(**small, **logs, rates=(20.0, 50.0), steps=(5.0,), counts=(30.0,))

    def run(self, tell: Tell) -> Findings:
        """Race the learners, value a fixed policy, learn and certify on many logs."""
        mdp = frozen_lake.lake(discount=self.discount)
        behavior = frozen_lake.behavior(mdp, self.skill)
        log = frozen_lake.log(mdp, behavior, episodes=self.episodes, seed=self.seed, max_steps=self.max_steps)
        problem = lake_problem(log, self.limit, self.discount)
        races, papers = self._race(problem, tell)
        exact = self._play(lake_problem(mdp.exact_log(), self.limit, self.discount), CuttingPlane(self.bound), "best")
        fixed = mdp.optimum(objective=GOAL).policy
        logs = growing_logs(
            mdp,
            behavior,
            fixed,
            episodes=self.evaluated_episodes,
            max_steps=self.max_steps,
            shares=self.shares,
            seeds=range(self.seed + 1000, self.seed + 1000 + self.trials),
        )
        estimates = gathered(each(logs, jobs=self.jobs, tell=lambda done: tell(f"estimators on growing logs: {done}")))
        seeds = range(self.seed + 2000, self.seed + 2000 + self.certified)
        asked = [partial(self._certified, mdp, seed) for seed in seeds]
        certificates = each(asked, jobs=self.jobs, tell=lambda done: tell(f"certificates: {done}"))
        tell("drawing")
        return findings(Found(mdp, fixed, estimates, self, races, papers, exact, certificates))

    def _play(self, problem: Problem, learner: Any, weighting: str, rounds: int | None = None) -> list[Round]:
        players = FQI(Tabular()), FQE(Tabular())
        return play(problem, *players, learner, rounds or self.planes, weighting=weighting, seed=self.seed)

    def _race(self, problem: Problem, tell: Tell) -> tuple[dict[str, list[Round]], FloatArray]:
        """Play each learner, gradient methods with the paper's uniform weights; of several rates all are kept."""
        races = {PLANES: self._play(problem, CuttingPlane(self.bound), "best")}
        for rate in self.rates:
            tell(f"exponentiated gradient, rate {rate:g}")
            races[f"EG {rate:g}"] = self._play(problem, ExponentiatedGradient(self.bound, rate), "uniform", self.rounds)
        for step in self.steps:
            tell(f"online gradient descent, rate {step:g}")
            races[f"OGD {step:g}"] = self._play(
                problem, OnlineGradientDescent(self.bound, step), "uniform", self.rounds
            )
        tell("exponentiated gradient, best mixture")
        weighed = f"EG {self.rates[-1]:g}, LP weights"
        races[weighed] = self._play(problem, ExponentiatedGradient(self.bound, self.rates[-1]), "best", self.rounds)
        tell("the paper's gap")
        return races, papers_gaps(problem, races[f"EG {self.rates[-1]:g}"], FQI(Tabular()), FQE(Tabular()))

    def _certified(self, mdp: TabularMDP, seed: int) -> dict[str, Any]:
        """Learn from all of a log at the limit; and from half of it with room under the limit, judged on the other."""
        behavior = frozen_lake.behavior(mdp, self.skill)
        log = frozen_lake.log(mdp, behavior, episodes=self.certified_episodes, seed=seed, max_steps=self.max_steps)
        limit = AtMost(HOLE, self.limit, range=(0, 1))
        whole = Problem(log, objective=GOAL, constraints=[limit], discount=self.discount)
        plain = _learned(whole, Support(), 1e-4)
        mine, held_out = halves(log, seed)
        problem = Problem(mine, objective=GOAL, constraints=[limit], discount=self.discount)
        target = choose_margins(
            problem,
            lambda part, support: _learned(part, support, 1e-3).policy,
            held_out=held_out.first_rows().size,
            confidence=1 - alpha_spent(1 - self.confidence, 1),
            supports=[Support(min_count=count) for count in self.counts],
            seed=seed,
        )
        tightened = Problem(mine, objective=GOAL, constraints=target.constraints, discount=self.discount)
        careful = _learned(tightened, target.support, 1e-4)
        options: dict[str, Any] = {"discount": self.discount, "confidence": self.confidence, "seed": seed, "look": 1}
        found = certify(careful.policy, held_out, constraints=[limit], **options)
        return {
            "seed": seed,
            "plain": {"claimed": plain.values, "true": mdp.values(plain.policy)},
            "careful": {"claimed": careful.values, "true": mdp.values(careful.policy)},
            "aimed at": target.constraints[0].limit,
            "support": target.support.min_count,
            "verdict": found.verdict,
            "bound": found.bounds[HOLE],
            "estimate": found.estimates[HOLE],
        }


def _learned(problem: Problem, support: Support, tolerance: float) -> Solution:
    players: dict[str, Any] = {"best_response": FQI(Tabular(), support=support), "evaluator": FQE(Tabular())}
    return solve(problem, **players, learner=CuttingPlane(100.0), tolerance=tolerance, max_rounds=50)
