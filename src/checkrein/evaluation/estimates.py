"""evaluate: one policy, one log, many estimators, side by side."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import ClassVar

import numpy as np
import polars as pl

from checkrein.base.arrays import FloatArray
from checkrein.base.errors import ArgumentError, DivergenceError, EndlessPolicyError
from checkrein.data.dataset import Dataset
from checkrein.evaluation.doubly_robust import DoublyRobust
from checkrein.evaluation.estimate import Estimate, Estimator
from checkrein.evaluation.fqe import FQE, nuisance
from checkrein.evaluation.importance import ImportanceSampling, Naive
from checkrein.evaluation.learned_model import LearnedModel
from checkrein.evaluation.lstdq import LSTDQ
from checkrein.evaluation.magic import Magic
from checkrein.evaluation.model_based import TabularModel
from checkrein.evaluation.propensities import Method, Propensities, propensities_of, soften
from checkrein.evaluation.refits import fit_influence
from checkrein.functions import Linear, Tabular
from checkrein.problem import AtMost, Episodes, Problem
from checkrein.problem.outcomes import Ends, ends_of, outcomes_of, within
from checkrein.protocols import Cost, Evaluator, FunctionClass, Policy


@dataclass(frozen=True)
class Direct:
    """A method that values a policy by itself: fitted evaluation, least squares, a model."""

    evaluator: Evaluator
    name: str
    weighs: ClassVar[bool] = False

    def __call__(
        self,
        problem: Problem,
        policy: Policy,
        propensities: Propensities | None,  # noqa: ARG002
        *,
        rng: np.random.Generator,
    ) -> Estimate:
        """Estimate all costs at once; how far each episode moves a fit is known where it has a closed form."""
        apart: FloatArray | None = None
        if isinstance(self.evaluator, FQE):
            values, apart = self.evaluator.spread(problem, policy, rng=rng)
        else:
            values = self.evaluator(problem, policy, rng=rng)
        told = "" if apart is None else f"members differ by {', '.join(f'{each:.3g}' for each in apart[1:])}"
        moved = fit_influence(problem, policy, self.evaluator)
        if moved is None:
            return Estimate(values.row, note=told)
        return Estimate.of(Episodes.of(problem), values.row, moved, note=told)


BY_NAME: dict[str, Callable[[FunctionClass, bool], Estimator]] = {  # of a function class, and whether states are finite
    "naive": lambda *_: Naive(),
    "is": lambda *_: ImportanceSampling(),
    "pdis": lambda *_: ImportanceSampling(per_decision=True),
    "wis": lambda *_: ImportanceSampling(normalised=True),
    "cwpdis": lambda *_: ImportanceSampling(per_decision=True, normalised=True),
    "fqe": lambda functions, _: Direct(FQE(functions), "fqe"),
    "lstdq": lambda functions, _: Direct(LSTDQ(functions), "lstdq"),
    "model": lambda _, finite: Direct(TabularModel() if finite else LearnedModel(), "model"),
    "dr": lambda functions, _: DoublyRobust(nuisance(functions)),
    "wdr": lambda functions, _: DoublyRobust(nuisance(functions), normalised=True),
    "magic": lambda functions, _: Magic(nuisance(functions)),
}


@dataclass(frozen=True, eq=False, repr=False)
class Estimates:
    """What each estimator says of each cost, and how sure it is."""

    costs: tuple[str, ...]
    by_name: dict[str, Estimate]  # values and influence of the costs, in their order
    confidence: float
    propensities: Propensities | None  # None: no estimator weighed, or they could not be had
    ranges: tuple[Ends, ...] = ()  # of each cost: the least and the largest value that the logged costs allow

    def __repr__(self) -> str:
        each = [f"{name} ({', '.join(f'{value:.4g}' for value in one.values)})" for name, one in self.by_name.items()]
        return f"Estimates({', '.join(self.costs)}: {'; '.join(each)})"

    def __getitem__(self, estimator: str) -> Estimate:
        if estimator not in self.by_name:
            raise ArgumentError(f"no estimator is called {estimator!r}: there are {', '.join(self.by_name)}")
        return self.by_name[estimator]

    def value(self, estimator: str, cost: str) -> float:
        """Return one number."""
        if cost not in self.costs:
            raise ArgumentError(f"no cost is called {cost!r}: there are {', '.join(self.costs)}")
        return float(self[estimator].values[self.costs.index(cost)])

    def possible(self, estimator: str, cost: str) -> bool:
        """Say whether a value is one that there can be, or within a standard error of one."""
        place, found = self.costs.index(cost), self[estimator]
        ends = self.ranges[place] if self.ranges else None
        error = float(found.standard_errors()[place])
        return within(float(found.values[place]), ends, error if np.isfinite(error) else 0.0) is not None

    def table(self) -> pl.DataFrame:
        """Return a row per estimator and cost; what is not known is null."""
        rows = []
        for name, estimate in self.by_name.items():
            errors, (low, high) = estimate.standard_errors(), estimate.interval(self.confidence)
            rows += [
                (name, cost, estimate.values[i], errors[i], low[i], high[i], *_of_weights(estimate))
                for i, cost in enumerate(self.costs)
            ]
        floats = ["value", "standard_error", "low", "high", "effective_sample_size", "largest_share"]
        words = dict.fromkeys(["estimator", "cost"], pl.String)
        schema = {**words, **dict.fromkeys(floats, pl.Float64), "note": pl.String}
        table = pl.DataFrame(rows, schema=schema, orient="row")
        return table.with_columns(pl.col(floats[1:]).fill_nan(None))

    def disagreement(self) -> pl.DataFrame:
        """Return for each cost the two estimators of the policy furthest apart, in units of their joint standard error.

        Only estimators with a standard error are compared, and not the naive one, which values behavior. Estimates
        from one log tend to err together, so a ratio above 2 is a sign of bias in one of them rather than of chance.
        """
        compared = {n: e for n, e in self.by_name.items() if e.influence is not None and n != "naive"}
        rows = []
        for i, cost in enumerate(self.costs):
            pairs = []
            for (one, a), (other, b) in combinations(compared.items(), 2):
                apart = abs(float(a.values[i] - b.values[i]))
                error = float(np.hypot(a.standard_errors()[i], b.standard_errors()[i]))
                pairs.append((cost, one, other, apart, error, apart / error if error > 0 else np.inf * apart))
            rows += sorted((p for p in pairs if np.isfinite(p[-1])), key=lambda pair: -pair[-1])[:1]
        words = dict.fromkeys(["cost", "estimator", "other"], pl.String)
        numbers = dict.fromkeys(["difference", "standard_error", "ratio"], pl.Float64)
        return pl.DataFrame(rows, schema={**words, **numbers}, orient="row")


def evaluate(
    policy: Policy,
    dataset: Dataset,
    *,
    costs: Sequence[str | Cost | AtMost],
    discount: float,
    estimators: Sequence[str | Estimator | Evaluator] | None = None,
    functions: FunctionClass | None = None,
    seed: int = 0,
    propensities: Method | Propensities | None = None,
    temperature: float | None = None,
    confidence: float = 0.95,
) -> Estimates:
    """Estimate what a policy would cost, from the log of another, by several estimators at once.

    costs: columns of the log, or costs of one's own, which are called by their class; or constraints, whose names count
    estimators: names, or estimators and evaluators of one's own; by default all, and one that cannot be computed
        then says why in its row. Those named are computed or raise.
    functions: of the fitted methods; by default Tabular() in finite states, else Linear(Polynomial()).
    propensities: by default the log's, else estimated (see `propensities_of`).
    temperature: value the softmin of a greedy policy where episodes are weighed, and say so.
    """
    if isinstance(costs, str):
        raise ArgumentError(f"costs is {costs!r}: give a list of names")
    constraints = [cost if isinstance(cost, AtMost) else AtMost(cost, 0.0) for cost in costs]
    names = tuple(c.name for c in constraints)
    if len(set(names)) < len(names) or not names:
        raise ArgumentError(f"costs are {list(names)}: name at least one, and none twice")
    if not 0 < confidence < 1:
        raise ArgumentError(f"confidence is {confidence}: it must lie in (0, 1)")
    constraints = [AtMost(c.cost, 0.0, name=c.name) for c in constraints]  # in their own signs
    problem = Problem(dataset, objective=None, constraints=constraints, discount=discount)
    Episodes.of(problem)
    finite = dataset.n_states is not None
    functions = functions or (Tabular() if finite else Linear())
    usual = [name for name in BY_NAME if finite or name != "model"]  # a learned model takes its time: if asked for
    chosen = _chosen(usual if estimators is None else estimators, functions, finite=finite)
    softened = policy if temperature is None else soften(policy, temperature)
    softness = "" if temperature is None else f"of the policy softened at temperature {temperature:g}"

    def likelihood() -> Propensities:
        if isinstance(propensities, Propensities):
            return propensities
        return problem.once("propensities", lambda: propensities_of(dataset, propensities))

    found: dict[str, Estimate] = {}
    used: Propensities | None = None
    for estimator in chosen:
        try:
            rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=_key(estimator.name)))
            if estimator.weighs:
                used = likelihood()
                estimate = estimator(problem, softened, used, rng=rng)
                estimate = replace(estimate, note="; ".join(filter(None, [softness, estimate.note])))
            else:
                estimate = estimator(problem, policy, None, rng=rng)
        except (ArgumentError, DivergenceError, EndlessPolicyError) as reason:
            if estimators is not None:
                raise
            estimate = Estimate(np.full(1 + len(costs), np.nan), note=str(reason))
        found[estimator.name] = _without_objective(estimate)
    ranges = tuple(ends_of(1.0, outcome.range) for outcome in outcomes_of(problem)[1:])
    return Estimates(names, found, confidence, used, ranges)


def _chosen(
    estimators: Sequence[str | Estimator | Evaluator], functions: FunctionClass, *, finite: bool
) -> list[Estimator]:
    if isinstance(estimators, str):
        raise ArgumentError(f"estimators is {estimators!r}: give a list of them")
    chosen: list[Estimator] = []
    for one in estimators:
        if isinstance(one, str):
            if one not in BY_NAME:
                raise ArgumentError(f"no estimator is called {one!r}: choose from {', '.join(BY_NAME)}")
            chosen.append(BY_NAME[one](functions, finite))
        elif isinstance(one, Estimator):
            chosen.append(one)
        else:
            chosen.append(Direct(one, type(one).__name__.lower()))
    names = [estimator.name for estimator in chosen]
    for name in names:
        if names.count(name) > 1:
            raise ArgumentError(f"two estimators are called {name!r}: tell them apart with name=")
    return chosen


def _key(name: str) -> tuple[int, ...]:
    """Return what makes an estimator's chance its own, whichever others are asked."""
    return tuple(name.encode())


def _without_objective(estimate: Estimate) -> Estimate:
    influence: FloatArray | None = None if estimate.influence is None else estimate.influence[:, 1:]
    return replace(estimate, values=estimate.values[1:], influence=influence)


def _of_weights(estimate: Estimate) -> tuple[float | None, float | None, str]:
    return estimate.effective, estimate.largest, estimate.note
