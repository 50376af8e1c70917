"""The players that a problem file asks for: the function class, the best response, the evaluator and the learner."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from checkrein.bellman.iteration import default_iterations
from checkrein.best_response import FQI
from checkrein.evaluation import FQE
from checkrein.functions import Linear, Neural, Polynomial, Tabular, Trees
from checkrein.functions.neural import import_networks
from checkrein.game import Round, Solution, solve
from checkrein.game.loop import Play
from checkrein.game.usual import usual_learner
from checkrein.online import CuttingPlane, ExponentiatedGradient, OnlineGradientDescent
from checkrein.policies import Support
from checkrein.problem import Problem
from checkrein.protocols import FunctionClass, OnlineLearner
from checkrein.runs.sections import Learn

FROZEN = 64  # fits after which trees keep their structure, so that values converge
FEW_TREES, EARLY = 10, 8  # and the same of forests that are fitted many times over
STEPS, BATCH = 50, 256  # of gradient descent in each iteration, and the rows of one
THOROUGH, RIDGE = 3, 1.0  # to value policies: times as many steps, and what the last layer is solved for with
LOOKAHEAD = 30  # iterations of a network in a round: it goes on from the last one
CAREFUL = 0.02  # the share of its bound by which gradient descent answers a usual violation: more makes it swing


@dataclass(frozen=True)
class Players:
    """Who plays the game, and with which seed."""

    best_response: FQI
    evaluator: FQE
    learner: OnlineLearner[Any]
    seed: int

    def play(
        self,
        problem: Problem,
        *,
        tolerance: float,
        max_rounds: int,
        on_round: Callable[[Round], None],
        checkpoint: Path | None = None,
        known: Sequence[Play] = (),
    ) -> Solution:
        """Solve a problem."""
        return solve(
            problem,
            best_response=self.best_response,
            evaluator=self.evaluator,
            learner=self.learner,
            seed=self.seed,
            tolerance=tolerance,
            max_rounds=max_rounds,
            on_round=on_round,
            checkpoint=checkpoint,
            known=known,
        )


def players_for(learn: Learn, functions: FunctionClass, problem: Problem, support: Support) -> Players:
    """Return the players of a problem over a function class and a support rule."""
    network = isinstance(functions, Neural)
    iterations = min(LOOKAHEAD, default_iterations(problem)) if network else None
    best_response = FQI(functions, iterations, support=support, conservatism=learn.conservatism if network else 0.0)
    return Players(best_response, evaluator_of(functions), _learner(learn, problem), learn.seed)


def functions_of(learn: Learn) -> FunctionClass:
    """Return the function class that a problem file asks for."""
    match learn.functions:
        case "tabular":
            return Tabular()
        case "linear" | "features" | "auto":  # of learned features, what values the end of an episode that was cut off
            return Linear(Polynomial(learn.degree), ridge=learn.ridge)
        case "trees":
            return Trees(learn.n_trees, learn.min_leaf, freeze_after=FROZEN)
        case "neural":
            import_networks('functions = "neural"')
            return Neural(tuple(learn.hidden), steps=STEPS, batch=BATCH)


def light_functions(learn: Learn) -> FunctionClass:
    """Return the class of what is fitted many times over: the problem file's own in closed form, else few trees."""
    if learn.closed_form:
        return functions_of(learn)
    return Trees(min(FEW_TREES, learn.n_trees), learn.min_leaf, freeze_after=EARLY)


def evaluator_of(functions: FunctionClass) -> FQE:
    """Return what values policies; the last layer of a network is solved for."""
    if isinstance(functions, Neural):
        return FQE(replace(functions, steps=THOROUGH * STEPS), last_layer=RIDGE)
    return FQE(functions)


def support_of(learn: Learn) -> Support:
    """Return the support rule that a problem file asks for."""
    usual = Support()
    return Support(
        usual.min_count if learn.min_count is None else learn.min_count,
        usual.min_probability if learn.min_probability is None else learn.min_probability,
    )


def _learner(learn: Learn, problem: Problem) -> OnlineLearner[Any]:
    """Return the learner; its bound defaults to far above any price that the costs' variation suggests."""
    spread = problem.spread
    if learn.learner == "cutting-plane":
        return usual_learner(problem) if learn.bound is None else CuttingPlane(learn.bound)
    prices = spread[0] / spread[1:]
    bound = learn.bound or 10.0 * float(prices.max(initial=1e-300))
    rate = learn.rate or 1.0 / float(spread[1:].max(initial=1e-300))
    if learn.learner == "exponentiated-gradient":
        return ExponentiatedGradient(bound, rate)
    return OnlineGradientDescent(bound, learn.rate or CAREFUL * bound / float(np.linalg.norm(spread[1:]) or 1.0))
