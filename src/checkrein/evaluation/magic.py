"""MAGIC (Thomas & Brunskill 2016): the blend of j-step returns that promises the least mean squared error.

The j-step return g^(j) corrects the direct method by the weighted doubly robust terms of steps 0 to j; g^(-1) is the
direct method alone and the last one is WDR.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy  # its parts are loaded when first used
from scipy import sparse

from checkrein.base.arrays import FloatArray, require_counts
from checkrein.evaluation.doubly_robust import FOLDS, Corrected, corrected, require_folds
from checkrein.evaluation.estimate import Estimate
from checkrein.evaluation.importance import StepSums, importance_weights
from checkrein.evaluation.propensities import Propensities
from checkrein.evaluation.refits import fit_influence
from checkrein.problem import Episodes, Problem
from checkrein.protocols import DirectMethod, Policy, QFunction

INTERVAL = (0.05, 0.95)  # percentiles of WDR's bootstrap, as in Thomas & Brunskill's Algorithm 1


@dataclass(frozen=True)
class Magic:
    """Blend j-step returns by x that minimises x' (covariance + bias bias') x over the simplex, for each cost.

    returns: how many j-step returns at most; where episodes are longer, steps are thinned out evenly.
    replicates: of the bootstrap whose interval for WDR each return's bias is measured from.
    The covariance is that of the linearised contributions of episodes, or of clusters of them.
    """

    direct: DirectMethod | QFunction
    returns: int = 25
    replicates: int = 200
    folds: int | None = FOLDS
    name: str = "magic"
    weighs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_counts(returns=self.returns, replicates=self.replicates)
        require_folds(self.folds)

    def __call__(
        self, problem: Problem, policy: Policy, propensities: Propensities | None, *, rng: np.random.Generator
    ) -> Estimate:
        """Estimate all costs at once."""
        episodes = Episodes.of(problem)
        until = np.unique(np.linspace(0, episodes.horizon - 1, self.returns).round().astype(np.int64))
        counts = _draws(episodes, self.replicates, rng)
        k = episodes.n_values
        values = np.zeros((until.size + 1, k))
        influence = np.zeros((len(episodes), until.size + 1, k))
        replicated = np.zeros((self.replicates, k))
        for part in corrected(problem, policy, propensities, self.direct, folds=self.folds, rng=rng):
            sums = StepSums.of(episodes, part.importance_weights, part.residuals, until)
            mean = episodes.mean(part.start)
            values += part.share * (mean + np.vstack([np.zeros((1, k)), sums.values]))
            influence += part.share * (part.start - mean)[:, None]
            influence[:, 1:] += part.share * sums.influence
            replicated += part.share * _replicates(episodes, part, counts)
        low, high = np.quantile(replicated, INTERVAL, axis=0)
        bias = values - np.clip(values, np.minimum(low, values[-1]), np.maximum(high, values[-1]))
        shares = episodes.weights / episodes.weights.sum()
        pulls = [episodes.by_unit(influence[..., c] * shares[:, None]) for c in range(k)]
        blend = np.stack([_blend(pulls[c], bias[:, c]) for c in range(k)], axis=1)
        whole = importance_weights(problem, policy, propensities)[episodes.last]
        told = f"trusts the direct method by {_percent(blend[0, 1:])}"
        moved = fit_influence(problem, policy, self.direct)
        if moved is None:
            told += ", whose own error the standard error leaves out"
        else:
            influence[:, 0] = moved
        each = np.einsum("ejk,jk->ek", influence, blend)
        return Estimate.of(episodes, (blend * values).sum(axis=0), each, whole, told)


def _draws(episodes: Episodes, replicates: int, rng: np.random.Generator) -> FloatArray:
    """(b, e) how often each episode occurs in samples of whole units, each drawn by its weight and counted once."""
    total = episodes.unit_weights
    drawn = rng.multinomial(episodes.n_units, total / total.sum(), replicates).astype(np.float64)
    whole = episodes.of_units(total)
    share = np.divide(episodes.weights, whole, out=np.zeros(len(episodes)), where=whole > 0)
    return np.asarray(episodes.of_units(drawn) * share)


def _percent(shares: FloatArray) -> str:
    return ", ".join(f"{share:.0%}" for share in shares)


def _replicates(episodes: Episodes, part: Corrected, counts: FloatArray) -> FloatArray:
    """(b, k) one member's WDR of resampled episodes, (b, e) times each."""
    steps = episodes.horizon
    at = episodes.episode, episodes.step
    shape = len(episodes), steps + 1
    factors = episodes.discount ** np.arange(steps)
    last = part.importance_weights[episodes.last] * episodes.ended
    stayed = counts @ sparse.csr_array((last, (np.arange(len(episodes)), episodes.lengths)), shape=shape)
    left = (counts @ sparse.csr_array((part.importance_weights, at), shape=shape) + np.cumsum(stayed, axis=1))[
        :, :steps
    ]
    inverse = np.divide(factors, left, out=np.zeros(left.shape), where=left > 0)
    replicated = counts @ part.start / counts.sum(axis=1, keepdims=True)
    for column, residuals in enumerate(part.residuals.T):
        sums = (counts @ sparse.csr_array((part.importance_weights * residuals, at), shape=shape))[:, :steps]
        replicated[:, column] += (sums * inverse).sum(axis=1)
    return np.asarray(replicated)


def _blend(deviations: FloatArray, bias: FloatArray) -> FloatArray:
    """(j,) the point x of the simplex with the least x' (D' D u / (u - 1) + b b') x, of deviations D (u, j).

    The square is homogeneous, so the least of |A x|^2 + (s - s sum x)^2 over x >= 0 points the same way for every s.
    """
    correction = len(deviations) / max(len(deviations) - 1, 1)
    matrix = deviations.T @ deviations * correction + np.outer(bias, bias)
    sizes, directions = np.linalg.eigh(matrix)
    root = np.sqrt(np.maximum(sizes, 0.0))[:, None] * directions.T
    size = max(float(np.sqrt(sizes[-1])), np.finfo(float).tiny) if sizes[-1] > 0 else 1.0
    found, _ = scipy.optimize.nnls(
        np.vstack([root / size, np.ones((1, bias.size))]), np.append(np.zeros(bias.size), 1.0)
    )
    return np.asarray(found / found.sum())
