"""What the study of random constrained MDPs found: every run, and sums over them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein_studies.cmdp_protocol import COST

if TYPE_CHECKING:
    from checkrein_studies.cmdp_study import RandomCmdps

PLUG_IN, PAPER, DICE, CAREFUL, OURS = "plug-in LP", "the paper's", "C-OptiDICE", "conservative", "checkrein"
EXACT = 1e-9  # a limit exceeded by less is kept
ALLOWED = 0.05  # share of certified policies that may break the limit


@dataclass(frozen=True)
class Run:
    """One log, what was learned from it in every way, and what is true of that."""

    seed: int
    size: int
    judged: dict[str, dict[str, float]]  # by way: return and cost
    tightened: list[dict[str, float]]  # the same of C-OptiDICE, given lower and lower limits
    behavior: dict[str, float]
    certified: bool
    candidates: int  # that were judged
    margin: float | None  # standard errors under the limit, of what is deployed
    estimate: float | None
    bound: float | None
    reason: str


class Mean(NamedTuple):
    """A mean over runs, and its standard error."""

    value: float
    error: float

    @classmethod
    def of(cls, values: FloatArray) -> "Mean":
        """Return it; of a single run the error is infinite."""
        error = values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else np.inf
        return cls(float(values.mean()), float(error))

    @property
    def words(self) -> str:
        """Both, as text."""
        return f"{self.value:.3f} ± {self.error:.3f}"


@dataclass(frozen=True, eq=False)
class Found:
    """All runs, by size and way."""

    study: "RandomCmdps"
    runs: Sequence[Run]

    def of(self, size: int) -> list[Run]:
        """Return the runs of a size."""
        return [run for run in self.runs if run.size == size]

    def each(self, size: int, way: str, what: str) -> FloatArray:
        """Return the true returns or costs (runs,)."""
        return np.array([run.judged[way][what] for run in self.of(size)])

    def returned(self, size: int, way: str) -> Mean:
        """Return the mean return."""
        return Mean.of(self.each(size, way, "return"))

    def cost(self, size: int, way: str) -> Mean:
        """Return the mean true cost."""
        return Mean.of(self.each(size, way, COST))

    def violations(self, size: int, way: str) -> float:
        """Return the share of runs that break the limit."""
        return float((self.each(size, way, COST) > self.study.limit + EXACT).mean())

    def ahead(self, size: int, way: str) -> Mean:
        """Return how much more return what is deployed has, run by run."""
        return Mean.of(self.each(size, OURS, "return") - self.each(size, way, "return"))

    def as_safe(self, size: int) -> tuple[float, list[dict[str, float]]]:
        """Return C-OptiDICE with the highest limit that, in hindsight, makes it keep the true one often enough."""
        limits = [self.study.limit, *self.study.tighter]
        tried = zip(*([run.judged[DICE], *run.tightened] for run in self.of(size)), strict=True)
        found = [(limit, list(runs)) for limit, runs in zip(limits, tried, strict=True)]
        safe = (one for one in found if np.mean([run[COST] > self.study.limit + EXACT for run in one[1]]) <= ALLOWED)
        return next(safe, found[-1])

    def ahead_of_as_safe(self, size: int) -> Mean:
        """Return how much more return what is deployed has than that, run by run."""
        returns = np.array([run["return"] for run in self.as_safe(size)[1]])
        return Mean.of(self.each(size, OURS, "return") - returns)

    def certified(self, size: int) -> tuple[int, int]:
        """Return how many policies were certified, and how many of these break the limit."""
        passed = [run.judged[OURS][COST] > self.study.limit + EXACT for run in self.of(size) if run.certified]
        return len(passed), sum(passed)
