"""Ways to bound a policy's constraints from above on data that did not choose it; each names its guarantee.

`BootstrapFQE` refits FQE on episodes drawn anew; `EpisodeScoreBound` bounds the mean of the episodes' scores, weighed
(PDIS) or doubly robust (DR). alpha is that of all constraints together. Where the log has clusters of episodes, these
are drawn and counted in place of episodes.
"""

import math
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
import scipy  # its parts are loaded when first used

from checkrein.base.arrays import FloatArray, require_counts, require_positive
from checkrein.base.errors import ArgumentError
from checkrein.certification.assumed import Assumptions
from checkrein.certification.intervals import (
    Interval,
    bernstein,
    betting,
    bootstraps_t,
    require_inside,
    student,
    studentised,
)
from checkrein.certification.one_step import OneStepBound
from checkrein.evaluation.doubly_robust import contributions
from checkrein.evaluation.draws import draws_in_blocks
from checkrein.evaluation.estimate import standard_errors
from checkrein.evaluation.fqe import nuisance
from checkrein.evaluation.importance import expected_costs, importance_weights
from checkrein.evaluation.known_weights import known_propensities
from checkrein.evaluation.propensities import Propensities, propensities_of
from checkrein.evaluation.refits import Refits
from checkrein.functions import Linear, Tabular, default_functions
from checkrein.policies import Support
from checkrein.problem import Episodes, Problem
from checkrein.protocols import FunctionClass, Policy

Guarantee = Literal["finite-sample", "asymptotic", "heuristic"]
Kind = Literal["studentised", "pivotal", "bias-corrected", "t"]
BoundKind = Literal["studentised", "t", "bernstein", "betting"]
DECLARED = (
    "AtMost(..., range=(0, largest)) or, in a problem file, range = [0, largest]. A cost of both signs can be shifted "
    'by a constant, as its limit: cost = "x + 1"'
)
LOGGED: Literal["logged"] = "logged"  # of a largest weight: as the log's own propensities say
REPLICATES = 1000
TAIL = 40  # replicates that should lie beyond a bound
MOST = 10_000  # replicates; a late look may err so little that no number would do
BLOCK = 1000  # replicates that are drawn at once


@runtime_checkable
class Method(Protocol):
    """Bounds every constraint of a problem for one policy."""

    @property
    def name(self) -> str:
        """What the certificate calls it."""
        ...

    def assumptions(self, problem: Problem) -> Assumptions:
        """Say what it rests on."""
        ...

    def guarantee(self, problem: Problem) -> Guarantee:
        """Say what is known of its error rate."""
        ...

    def estimate(self, problem: Problem, policy: Policy, *, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Return the values (1 + m,) of objective and constraints that bounds are built around, and their errors."""
        ...

    def __call__(self, problem: Problem, policy: Policy, *, alpha: float, rng: np.random.Generator) -> Interval:
        """Bound all constraints (m,) so that none is wrong with probability 1 - `error`, from either side."""
        ...


@dataclass(frozen=True)
class BootstrapFQE:
    """FQE, refitted on episodes drawn anew.

    kind: "studentised" measures replicates in their own standard errors; "pivotal" reflects their distribution;
        "bias-corrected" shifts and accelerates it (BCa); "t" trusts the normal limit and needs no replicates
    most: replicates, however little a bound may err; what lies beyond them is read off a normal tail
    """

    kind: Kind = "studentised"
    functions: FunctionClass = field(default_factory=Tabular)
    support: Support = field(default_factory=Support)
    replicates: int = REPLICATES
    most: int = MOST

    def __post_init__(self) -> None:
        require_counts(replicates=self.replicates, most=self.most)

    def assumptions(self, problem: Problem) -> Assumptions:
        """Name refits of its class."""
        del problem
        return Assumptions(self.functions, self.support, None, weighs=False)

    @property
    def name(self) -> str:
        """What the certificate calls it."""
        return f"fqe-{self.kind}"

    def guarantee(self, problem: Problem) -> Guarantee:
        """Tables can hold any Q, so the error vanishes with more data; a smaller class may miss it for ever."""
        del problem
        return "asymptotic" if isinstance(self.functions, Tabular) else "heuristic"

    def __call__(self, problem: Problem, policy: Policy, *, alpha: float, rng: np.random.Generator) -> Interval:
        """Bound all constraints."""
        return self.bound(self.replicate(problem, policy, alpha=alpha, rng=rng), alpha)

    def estimate(self, problem: Problem, policy: Policy, *, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Fit once; the standard errors are those of the influence of each episode, or cluster of them."""
        values, influence = self.by_episode(problem, policy, rng)
        episodes = Episodes.of(problem)
        return values, standard_errors(episodes.unit_means(influence), episodes.unit_weights)

    def by_episode(self, problem: Problem, policy: Policy, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Return the values (1 + m,) and the influence (e, 1 + m) of each episode."""
        del rng  # closed forms leave nothing to chance
        return Refits.of(problem, policy, self.functions, self.support).point()

    def replicate(self, problem: Problem, policy: Policy, *, alpha: float, rng: np.random.Generator) -> "Replicates":
        """Refit on as many samples of the episodes as bounds at `error` need."""
        refits = Refits.of(problem, policy, self.functions, self.support)
        values, influence = (column[..., 1:] for column in refits.point())
        influence, weights = refits.episodes.unit_means(influence), refits.episodes.unit_weights
        errors = standard_errors(influence, weights)
        count = 0 if self.kind == "t" else _enough(self.replicates, alpha / problem.n_constraints, self.most)
        sizes = [min(BLOCK, count - begin) for begin in range(0, count, BLOCK)]
        blocks = [refits(drawn) for size in sizes for drawn in draws_in_blocks(len(influence), size, rng)]
        blocks = blocks or [refits(np.empty((0, len(influence))))]
        found, replicate_errors = (np.concatenate(columns)[:, 1:] for columns in zip(*blocks, strict=True))
        return Replicates(values, errors, influence, weights, found, replicate_errors)

    def bound(self, fits: "Replicates", alpha: float) -> Interval:
        """Bound all constraints by replicates that may serve other kinds as well."""
        values, errors, level = fits.values, fits.errors, alpha / fits.values.size
        if self.kind == "t":
            return student(values, errors, fits.weights, level)
        if self.kind == "studentised":
            return studentised(values, errors, fits.replicates, fits.replicate_errors, alpha)
        if self.kind == "pivotal":
            low, high = (2 * values - np.quantile(fits.replicates, at, axis=0) for at in (1 - level, level))
        else:
            pulls = fits.weights[:, None] * fits.influence
            low, high = (_accelerated(values, pulls, fits.replicates, at) for at in (level, 1 - level))
        return Interval(values, errors, low, high)


class Replicates(NamedTuple):
    """A fit and its refits."""

    values: FloatArray  # (m,)
    errors: FloatArray  # (m,)
    influence: FloatArray  # (u, m)
    weights: FloatArray  # (u,)
    replicates: FloatArray  # (B, m)
    replicate_errors: FloatArray  # (B, m)


@dataclass(frozen=True)
class EpisodeScoreBound:
    """The mean of what each episode says of the policy.

    estimator: "pdis", or "dr": cross-fitted with FQE of `functions`, its standard error by the influence function
    bound: "t" and "studentised" are asymptotic, the latter the wider of two: as they are, and with the known mean of
        the weights as a control variate, for a log may lack the few episodes that would weigh most. "bernstein" and
        "betting" hold at any size, for costs of one sign whose constraints declare a `range`, and weights that never
        exceed the declared `largest_weight`; clusters of episodes must then be of one size
    largest_weight: "logged" takes 1 / the smallest propensity of a log of single decisions. The log need not show the
        smallest there is, so the guarantee is then asymptotic
    """

    estimator: Literal["pdis", "dr"] = "dr"
    bound: BoundKind = "studentised"
    functions: FunctionClass | None = None
    propensities: Propensities | None = None
    largest_weight: float | Literal["logged"] | None = None
    replicates: int = REPLICATES
    folds: int = 5

    def __post_init__(self) -> None:
        require_counts(replicates=self.replicates, folds=self.folds)
        if isinstance(self.largest_weight, int | float):
            require_positive(largest_weight=self.largest_weight)

    def assumptions(self, problem: Problem) -> Assumptions:
        """Name the importance weights of episodes."""
        functions = self.functions or default_functions(problem.dataset)
        cut = self.estimator == "pdis"
        return Assumptions(functions, Support(), self.propensities, weighs=True, stops_at_cut_off=cut)

    @property
    def name(self) -> str:
        """What the certificate calls it."""
        return f"{self.estimator}-{self.bound}"

    def guarantee(self, problem: Problem) -> Guarantee:
        """Judge by the propensities: logged ones are known, counts in finite states are right in the end.

        Doubly robust sums are not independent, as each is corrected by a Q that others were fitted for.
        """
        known = problem.dataset.propensities is not None and self.propensities is None
        if not known and problem.dataset.n_states is None:
            return "heuristic"
        known &= self.largest_weight != LOGGED
        exact = known and self.estimator == "pdis" and self.bound in ("bernstein", "betting")
        return "finite-sample" if exact else "asymptotic"

    def __call__(self, problem: Problem, policy: Policy, *, alpha: float, rng: np.random.Generator) -> Interval:
        """Bound all constraints."""
        episodes, m = Episodes.of(problem), problem.n_constraints
        each = self.scores(problem, policy, rng)[:, 1:]
        scores, weights = episodes.unit_means(each), episodes.unit_weights
        if self.bound in ("bernstein", "betting"):
            low, high = self._range(problem)
            self._require_weights(importance_weights(problem, policy, self._propensities(problem)), problem)
            names = [c.name for c in problem.constraints]
            require_inside(each, low, high, names)
            if not (weights == weights[0]).all():
                raise ArgumentError(
                    f"{self.name} needs {episodes.unit_name}s that all count the same, but they count from "
                    f"{weights.min():g} to {weights.max():g}: use {self.estimator}-studentised or {self.estimator}-t"
                )
            return (bernstein if self.bound == "bernstein" else betting)(scores, low, high, alpha / m)
        if self.bound == "t":
            values = weights @ scores / weights.sum()
            return student(values, standard_errors(scores - values, weights), weights, alpha / m)
        drawn = draws_in_blocks(len(scores), _enough(self.replicates, alpha / m), rng)
        whole = importance_weights(problem, policy, self._propensities(problem))[episodes.last]
        calibrated = _calibrated(scores, episodes.unit_means(whole), weights)
        plain, known = bootstraps_t([scores, calibrated], weights, drawn, alpha)
        return plain._replace(lower=np.minimum(plain.lower, known.lower), upper=np.maximum(plain.upper, known.upper))

    def estimate(self, problem: Problem, policy: Policy, *, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Average over episodes."""
        values, influence = self.by_episode(problem, policy, rng)
        episodes = Episodes.of(problem)
        return values, standard_errors(episodes.unit_means(influence), episodes.unit_weights)

    def by_episode(self, problem: Problem, policy: Policy, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Return the values (1 + m,) and the influence (e, 1 + m) of each episode."""
        scores = self.scores(problem, policy, rng)
        values = Episodes.of(problem).mean(scores)
        return values, scores - values

    def scores(self, problem: Problem, policy: Policy, rng: np.random.Generator) -> FloatArray:
        """(e, 1 + m) what every episode says of the objective and every constraint."""
        propensities = self._propensities(problem)
        if self.estimator == "pdis":
            episodes = Episodes.of(problem)
            weights = episodes.factors * importance_weights(problem, policy, propensities)
            return episodes.sums(weights[:, None] * expected_costs(problem, policy, propensities))
        direct = nuisance(self.functions or default_functions(problem.dataset))
        return contributions(problem, policy, propensities, direct, folds=self.folds, rng=rng)

    def _propensities(self, problem: Problem) -> Propensities:
        return self.propensities or problem.once("propensities", lambda: propensities_of(problem.dataset))

    def _require_weights(self, weights: FloatArray, problem: Problem) -> None:
        """Raise where an episode weighs more than was declared possible."""
        largest = self._largest(problem)
        if largest is not None and weights.max() > largest * (1 + 1e-9):
            raise ArgumentError(
                f"an episode weighs {weights.max():.6g}, more than largest_weight={largest:g}: "
                "declare a weight that none can exceed"
            )

    def require_declared(self, problem: Problem) -> None:
        """Raise unless all is declared that the bound needs, before anything is learned."""
        if self.bound in ("bernstein", "betting"):
            self._range(problem)

    def _largest(self, problem: Problem) -> float | None:
        """Return the largest weight that is declared, or that the log of single decisions shows."""
        if not isinstance(self.largest_weight, str):
            return self.largest_weight
        logged = known_propensities(problem)
        if logged is None or self.propensities is not None:
            raise ArgumentError(
                f"largest_weight={LOGGED!r} is for single decisions with logged propensities: declare it"
            )
        return float(1 / logged.min())

    def _range(self, problem: Problem) -> tuple[FloatArray, FloatArray]:
        """Return what an episode's weighed sum can be, by declaration."""
        largest_weight = self._largest(problem)
        if largest_weight is None:
            raise ArgumentError(
                f"{self.name} needs largest_weight=, the largest product of policy / propensity that an episode can "
                "have: at most (1 / smallest propensity) ** steps. It must not be read off the data"
            )
        ends = np.empty((problem.n_constraints, 2))
        for i, c in enumerate(problem.constraints):
            if c.range is None or c.range[0] < 0 < c.range[1]:
                raise ArgumentError(f"{self.name} needs the range of {c.name!r}, and costs of one sign: {DECLARED}")
            ends[i] = sorted(c.sign * end for end in (min(c.range[0], 0.0), max(c.range[1], 0.0)))
        low, high = largest_weight * ends.T
        if self.estimator == "pdis":
            return low, high
        if problem.discount == 1:
            raise ArgumentError(f"{self.name} has no range at discount 1: use a discount below 1, or pdis")
        size = largest_weight * np.abs(ends).max(axis=1) / (1 - problem.discount)
        return low - 2 * size, high + 2 * size


_KINDS: tuple[Kind, ...] = ("studentised", "pivotal", "bias-corrected", "t")
_BOUNDS: tuple[BoundKind, ...] = ("studentised", "t", "bernstein", "betting")
_ALL: list[Method] = [BootstrapFQE(kind) for kind in _KINDS]
_ALL += [EpisodeScoreBound("dr", bound) for bound in _BOUNDS] + [EpisodeScoreBound("pdis", bound) for bound in _BOUNDS]
_ALL += [OneStepBound()]
METHODS: dict[str, Method] = {method.name: method for method in _ALL}


def method_of(method: str | Method | None, problem: Problem) -> Method:
    """Return a method by its name; by default what covered best: refits in finite states, else doubly robust."""
    if method is None:
        return METHODS["dr-studentised" if problem.dataset.n_states is None else "fqe-studentised"]
    if not isinstance(method, str):
        return method
    if method not in METHODS:
        raise ArgumentError(f"no method is called {method!r}: choose from {', '.join(METHODS)}")
    found = METHODS[method]
    if isinstance(found, BootstrapFQE) and problem.dataset.n_states is None:
        return BootstrapFQE(found.kind, Linear())
    return found


def _calibrated(scores: FloatArray, whole: FloatArray, weights: FloatArray) -> FloatArray:
    """(u, k) less what the weights (u,) of whole episodes explain of it: their mean is known to be 1."""
    shares = weights / weights.sum()
    spread = whole - shares @ whole
    variance = shares @ spread**2
    if variance == 0:
        return scores
    return scores - np.outer(whole - 1, shares * spread @ scores / variance)


def _enough(replicates: int, level: float, most: int = MOST) -> int:
    return max(replicates, min(math.ceil(TAIL / level), most))


def _accelerated(values: FloatArray, pulls: FloatArray, replicates: FloatArray, level: float) -> FloatArray:
    """(k,) the bias-corrected and accelerated quantile of replicates (B, k), of units that pull (u, k) (Efron 1987)."""
    count = len(replicates)
    below = np.clip((replicates < values).mean(axis=0), 0.5 / count, 1 - 0.5 / count)
    shift, wanted = scipy.stats.norm.ppf(below), scipy.stats.norm.ppf(level)
    squares = (pulls**2).sum(axis=0) ** 1.5
    speed = np.divide((pulls**3).sum(axis=0), 6 * squares, out=np.zeros_like(squares), where=squares > 0)
    levels = scipy.stats.norm.cdf(shift + (shift + wanted) / np.maximum(1 - speed * (shift + wanted), 1e-3))
    return np.array([np.quantile(column, at) for column, at in zip(replicates.T, levels, strict=True)])
