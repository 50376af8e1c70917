"""How likely the logged actions were when they were taken: as the log says, or as estimated from it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from checkrein.base.arrays import FloatArray, frozen
from checkrein.base.errors import ArgumentError, DataError
from checkrein.data.columns import Rows
from checkrein.data.dataset import Dataset
from checkrein.policies import BehaviorMask, GreedyPolicy, MixturePolicy, SoftminPolicy, behavior_policy
from checkrein.protocols import Policy

Method = Literal["logged", "counts", "logistic", "trees"]
METHODS: tuple[Method, ...] = ("logged", "counts", "logistic", "trees")
FOLDS = 5  # of the trees, which would remember the very rows they are asked about
BINS = 10


@dataclass(frozen=True, eq=False)
class Propensities:
    """The probability of each logged action, and where it is from."""

    values: FloatArray  # (n,) in the dataset's own order of rows
    source: str  # a sentence
    dataset: Dataset
    estimated: bool
    probabilities: Callable[[], FloatArray]  # (n, A) every action's probability, as estimated from the log

    def calibration(self) -> pl.DataFrame:
        """Compare probabilities with what was logged, a row per bin of probability that holds any.

        Of an estimate, every action of every row counts: `observed` is how often it was the one taken. A log tells
        only the probability of what was taken: `observed` is then the mean of an estimate of the same from the log.
        """
        table = self.probabilities()
        weights = self.dataset.weights
        if self.estimated:
            stated = table.ravel()
            observed = (self.dataset.actions[:, None] == np.arange(self.dataset.n_actions)).ravel().astype(np.float64)
            weights = np.repeat(weights, self.dataset.n_actions)
        else:
            stated, observed = self.values, table[np.arange(len(self.dataset)), self.dataset.actions]
        bins = np.minimum((stated * BINS).astype(np.int64), BINS - 1)
        rows = np.bincount(bins, weights, BINS)
        held = np.flatnonzero(rows > 0)
        return pl.DataFrame(
            {
                "low": held / BINS,
                "high": (held + 1) / BINS,
                "probability": np.bincount(bins, weights * stated, BINS)[held] / rows[held],
                "observed": np.bincount(bins, weights * observed, BINS)[held] / rows[held],
                "rows": rows[held],
            }
        )

    @property
    def mean_inverse(self) -> float:
        """The mean of 1 / probability: in expectation, the number of actions that behavior could take."""
        return float(np.average(1 / self.values, weights=self.dataset.weights))


def propensities_of(dataset: Dataset, method: Method | None = None) -> Propensities:
    """Return the log's own propensities, or an estimate.

    method: "logged"; "counts" (shares in each finite state); "logistic" (multinomial, on standardised states);
        "trees" (few and small boosted ones, cross-fitted over episodes: no row is judged by a model that saw it).
        By default the log's if it has any, else counts in finite states, else logistic.
    """
    if method is None:
        finite: Method = "logistic" if dataset.n_states is None else "counts"
        method = finite if dataset.propensities is None else "logged"
    if method not in METHODS:
        raise ArgumentError(f"no propensities are called {method!r}: choose one of {', '.join(METHODS)}")
    if method == "logged":
        if dataset.propensities is None:
            raise ArgumentError("the log has no propensities: pass propensities= to the dataset, or estimate them")
        probabilities = lambda: behavior_policy(dataset).probabilities(dataset.states)  # noqa: E731
        return _checked(dataset, dataset.propensities, "as logged", estimated=False, probabilities=probabilities)
    table = _ESTIMATES[method](dataset)
    taken = table[np.arange(len(dataset)), dataset.actions]
    return _checked(dataset, taken, _WORDS[method], estimated=True, probabilities=lambda: table)


def soften(policy: Policy, temperature: float) -> Policy:
    """Return the softmin policy of a greedy one's values, which every logged action may be weighed under."""
    if isinstance(policy, GreedyPolicy):
        return SoftminPolicy(policy.q, temperature, policy.support)
    if isinstance(policy, MixturePolicy):
        return MixturePolicy(tuple(soften(member, temperature) for member in policy.members), policy.weights)
    raise ArgumentError(
        f"a {type(policy).__name__} has no values to soften: temperature= is for greedy policies and mixtures of them"
    )


def _checked(
    dataset: Dataset, values: FloatArray, source: str, *, estimated: bool, probabilities: Callable[[], FloatArray]
) -> Propensities:
    impossible = ~(values > 0)
    if impossible.any():
        row = int(np.argmax(impossible))
        raise DataError(
            f"the propensity of action {dataset.actions[row]} in {Rows(dataset.episodes)[row]} is {values[row]:g} "
            f"({source}), but it was taken: choose another way to estimate propensities"
        )
    return Propensities(frozen(values), source, dataset, estimated, probabilities)


def _counts(dataset: Dataset) -> FloatArray:
    if dataset.n_states is None:
        raise ArgumentError("counts need finite states (one column of integers): use logistic or trees")
    return behavior_policy(dataset).probabilities(dataset.states)


def _logistic(dataset: Dataset) -> FloatArray:
    return BehaviorMask.estimate(dataset, 0.0).probabilities(dataset.states)


def _trees(dataset: Dataset) -> FloatArray:
    """(n, A) predicted by models of other episodes, and one row's worth of the overall shares, so that none is 0."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415  # slow to import

    if dataset.states.ndim > 2:
        raise ArgumentError(f"trees need feature vectors, but states have shape {dataset.states.shape[1:]}")
    if dataset.episodes is None:
        raise DataError("trees are cross-fitted over episodes: pass episodes= with the log's rows")
    states = dataset.states.reshape(len(dataset), -1).astype(np.float64, copy=False)
    labels, unit = np.unique(dataset.units, return_inverse=True)
    if labels.size < 2:
        over = "episodes" if dataset.clusters is None else "clusters"
        raise DataError(f"trees are cross-fitted over {over}, and there is only one: log more, or use logistic")
    fold = (np.random.default_rng(0).permutation(labels.size) % FOLDS)[unit]
    table = np.zeros((len(dataset), dataset.n_actions))
    for held in np.unique(fold):
        seen, asked = np.flatnonzero(fold != held), np.flatnonzero(fold == held)
        shares = np.bincount(dataset.actions[seen], dataset.weights[seen], dataset.n_actions) + 1 / dataset.n_actions
        present = np.unique(dataset.actions[seen])
        table[asked] = shares / shares.sum()
        if present.size > 1:
            model = HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=8, random_state=0)
            with threadpool_limits(1):  # on a busy machine its threads wait for each other
                model.fit(states[seen], dataset.actions[seen], sample_weight=dataset.weights[seen])
                table[np.ix_(asked, present)] += seen.size * model.predict_proba(states[asked])
            table[asked] /= table[asked].sum(axis=1, keepdims=True)
    return table


_ESTIMATES: dict[Method, Callable[[Dataset], FloatArray]] = {
    "counts": _counts,
    "logistic": _logistic,
    "trees": _trees,
}
_WORDS: dict[Method, str] = {
    "counts": "estimated by counts in each state",
    "logistic": "estimated by logistic regression",
    "trees": "estimated by boosted trees, cross-fitted over episodes",
}
