"""The paper's FrozenLake: deterministic 8x8, a log of near-random walks, and a limit on falling into holes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, Self

import numpy as np

from checkrein import FQE, FQI, Dataset, ExponentiatedGradient, Neural, Round, Tabular, TabularMDP, TabularPolicy
from checkrein.reproduction import Findings, Tell, each
from checkrein_studies import frozen_lake
from checkrein_studies.dqn import DQN
from checkrein_studies.lake_panels import (
    GOAL,
    gathered,
    growing_logs,
    lake_problem,
    papers_gaps,
    play,
)
from checkrein_studies.paper_lake_page import Found, findings

LEFT, DOWN, RIGHT = 0, 1, 2


@dataclass(frozen=True)
class FrozenLakeOfThePaper:
    """The paper's FrozenLake: gap, values by round and off-policy estimates, tabular and with a small network."""

    behavior: Literal["dqn", "shortest-path"] = "dqn"  # whose action is taken where it is not a random one
    discount: float = 0.9
    limit: float = 0.1
    episodes: int = 5000
    max_steps: int = 100  # then an episode is cut off, which is no end
    chance: float = 0.95  # of a uniform action
    bound: float = 30.0
    rate: float = 50.0
    rounds: int = 150
    hidden: int = 64
    iterations: int = 30  # of FQI with the network
    gradient_steps: int = 40  # of each
    last_layer: float = 1e-4  # the ridge of FQE's last layer
    network_rounds: int = 5
    shares: tuple[float, ...] = (0.1, 0.2, 0.4, 1.0)
    trials: int = 30
    dqn: DQN = field(default_factory=DQN)
    seed: int = 0
    jobs: int = 2
    most_seconds: float = 120.0

    @classmethod
    def quick(cls) -> Self:
        """Return a smaller log, without the DQN, with few rounds and trials."""
        small: dict[str, Any] = {"rounds": 30, "network_rounds": 1, "trials": 2, "shares": (0.1, 1.0), "jobs": 1}
        return cls(**small, behavior="shortest-path", episodes=2000, gradient_steps=20, iterations=20)

    def run(self, tell: Tell) -> Findings:
        """Train the online policy, log, learn with both classes, and value a fixed policy on growing logs."""
        mdp = frozen_lake.lake(slippery=False, discount=self.discount)
        online, checkpoints = self._online(mdp, tell)
        behavior = TabularPolicy((1 - self.chance) * online.table + self.chance / mdp.n_actions)
        tell("logging and learning with tables")
        log = frozen_lake.log(mdp, behavior, episodes=self.episodes, seed=self.seed, max_steps=self.max_steps)
        problem = lake_problem(log, self.limit, self.discount)
        tables = play(problem, FQI(Tabular()), FQE(Tabular()), self._learner(), self.rounds, **self._options())
        papers = papers_gaps(problem, tables, FQI(Tabular()), FQE(Tabular()))
        fixed = hole_policy(mdp)
        logs = growing_logs(
            mdp,
            behavior,
            fixed,
            episodes=self.episodes,
            max_steps=self.max_steps,
            shares=self.shares,
            seeds=range(self.seed + 1000, self.seed + 1000 + self.trials),
        )
        calls: list[Callable[[], Any]] = [partial(self._with_network, log), *logs]
        words = "learning with the network, and estimators on growing logs"
        network, *found = each(calls, jobs=self.jobs, tell=lambda done: tell(f"{words}: {done}"))
        estimates = gathered(found)
        tell("drawing")
        others = {"behavior": mdp.values(behavior), "online": mdp.values(online)}
        return findings(Found(mdp, fixed, estimates, self, log, tables, papers, network, others, checkpoints))

    def _online(self, mdp: TabularMDP, tell: Tell) -> tuple[TabularPolicy, list[float]]:
        """Return the DQN's policy and its checkpoints; or the shortest path's, which has none."""
        if self.behavior == "dqn":
            return self.dqn.train(mdp, GOAL, tell)
        anywhere = np.full(mdp.n_states, 1 / mdp.n_states)  # from any state, not from the start alone
        return TabularMDP(mdp.transitions, mdp.costs, anywhere, mdp.discount).optimum(objective=GOAL).policy, []

    def _learner(self) -> ExponentiatedGradient:
        return ExponentiatedGradient(self.bound, self.rate)

    def _options(self) -> dict[str, Any]:
        return {"weighting": "uniform", "seed": self.seed}

    def _with_network(self, log: Dataset) -> list[Round]:
        functions = Neural((self.hidden,), steps=self.gradient_steps, rate=3e-3, batch=None)
        best_response = FQI(functions, self.iterations)
        evaluator = FQE(functions, 4, last_layer=self.last_layer)
        problem = lake_problem(log, self.limit, self.discount)
        return play(problem, best_response, evaluator, self._learner(), self.network_rounds, **self._options())


def hole_policy(mdp: TabularMDP) -> TabularPolicy:
    """Return a policy that falls into a hole at its ninth step: right four times, down four times, then left."""
    side = round(np.sqrt(mdp.n_states))
    actions = np.full(mdp.n_states, DOWN)
    actions[:4], actions[4 * side + 4] = RIGHT, LEFT
    return TabularPolicy(np.eye(mdp.n_actions)[actions])
