"""Whether a policy's objective is better than behavior's, on the same episodes: one more thing that is judged."""

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from pydantic import BaseModel, ConfigDict

from checkrein.base.arrays import FloatArray
from checkrein.certification.bounds import Method
from checkrein.certification.intervals import Interval, bootstraps_t
from checkrein.certification.rare import allow_for_missed, visits_of
from checkrein.evaluation.behavior_value import behavior_value, logged_to_the_end
from checkrein.evaluation.draws import draws_of_alike
from checkrein.evaluation.fqe import nuisance
from checkrein.evaluation.shrinkage import Missed, Shrinkage
from checkrein.policies import behavior_policy
from checkrein.problem import Episodes, Problem
from checkrein.problem.outcomes import Ends, ends_of, outcomes_of
from checkrein.protocols import Policy

Improvement = Literal["better", "not shown better", "worse"]
REPLICATES = 1000
STILL = 1e-12  # of an estimate: a difference this small is rounding


@runtime_checkable
class ByEpisode(Protocol):
    """A method that can say what each episode adds to what it estimates."""

    def by_episode(self, problem: Problem, policy: Policy, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Return the values (1 + m,) and the influence (e, 1 + m) of each episode."""
        ...


class JudgedObjective(BaseModel):
    """The objective, which is minimised, beside behavior's; each bound of the difference holds by itself."""

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")

    name: str
    estimate: float
    behavior: float
    difference: float  # below 0: less than behavior's
    standard_error: float
    lower: float
    upper: float
    verdict: Improvement
    range: Ends | None = None  # what the logged costs allow the estimate to be; None: an older certificate
    yes_or_no: bool = False  # whether an episode has it or has it not: these are shares of episodes then


def _verdict(lower: float, upper: float) -> Improvement:
    return "better" if upper < 0 else "worse" if lower > 0 else "not shown better"


def judge_objective(
    problem: Problem, policy: Policy, method: ByEpisode, *, alpha: float, believed: bool, rng: np.random.Generator
) -> JudgedObjective:
    """Judge one policy by what a method makes of each episode; believed: whether its checks allow a verdict."""
    values, influence = method.by_episode(problem, policy, rng)
    behavior, logged = _behavior(problem, method, rng)
    log = Episodes.of(problem)
    gains = log.unit_means((values[0] - behavior + influence[:, 0] - logged)[:, None])
    visits = visits_of(problem, policy)
    missed = None if visits is None else [Shrinkage.of(problem).both(visits, slice(1))]
    (found,) = judge_objectives(problem, gains, values[:1], log.unit_weights, missed, alpha=alpha, rng=rng)
    return found if believed else found.model_copy(update={"verdict": "not shown better"})


def judge_objectives(
    problem: Problem,
    gains: FloatArray,
    estimates: FloatArray,
    weights: FloatArray,
    missed: Sequence[Sequence[Missed]] | None,
    *,
    alpha: float,
    rng: np.random.Generator,
    widen: float = 1.0,
) -> list[JudgedObjective]:
    """Judge K policies at once, at one level for all: whichever of them is chosen, it holds of that one.

    gains: (u, K) what each independent unit of weight (u,) says of the difference to behavior
    estimates: (K,) of the objective itself; missed: what may have been missed of each, in one or more ways
    widen: times as large as units alone say standard errors are, where policies were learned from the units
    """
    gains = np.where(np.abs(gains) <= STILL * np.abs(estimates), 0.0, gains)
    drawn, blocks = draws_of_alike(np.column_stack([gains, weights]), REPLICATES, rng)
    (interval,) = bootstraps_t([gains], weights, blocks, alpha, drawn=drawn)
    interval = interval.widened(widen)
    found, outcome = [], outcomes_of(problem)[0]
    for i, estimate in enumerate(estimates):
        one = Interval(*(column[i : i + 1] for column in interval))
        if missed is not None:
            one = allow_for_missed(one, missed[i], alpha)
        difference, error, lower, upper = (float(column[0]) for column in one)
        found.append(
            JudgedObjective(
                name=problem.value_names[0],
                estimate=float(estimate),
                behavior=float(estimate) - difference,
                difference=difference,
                standard_error=error,
                lower=lower,
                upper=upper,
                verdict=_verdict(lower, upper),
                range=ends_of(1.0, outcome.range),
                yes_or_no=outcome.yes_or_no,
            )
        )
    return found


def _behavior(problem: Problem, method: ByEpisode, rng: np.random.Generator) -> tuple[float, FloatArray]:
    """Return behavior's objective and what each episode (e,) adds to it."""
    scores = _logged(problem, method, rng)
    if scores is None:
        values, influence = method.by_episode(problem, behavior_policy(problem.transitions), rng)
        return float(values[0]), influence[:, 0]
    mean = float(Episodes.of(problem).mean(scores))
    return mean, scores - mean


def _logged(problem: Problem, method: ByEpisode, rng: np.random.Generator) -> FloatArray | None:
    """(e,) logged sums; over features, where episodes were cut off, with what follows, by no support rule.

    None where a method speaks for itself: tables have evidence of all that behavior does, and sums that stop where
    episodes were cut off are compared with such sums.
    """
    log, starts = Episodes.of(problem), problem.dataset.own_starts
    if logged_to_the_end(log) and 0 not in problem.policy_costs:
        return log.sums(log.factors * log.row_costs[:, 0])
    if problem.dataset.n_states is not None or not starts or not isinstance(method, Method):
        return None
    assumed = method.assumptions(problem)
    if assumed.stops_at_cut_off:
        return None
    found = behavior_value(problem, nuisance(assumed.functions), rng=rng).scores
    return None if found is None else found[:, 0]
