"""What the study of sepsis finds, before it is judged and drawn."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from checkrein_studies.sepsis import DEATH, DRUGS, Sepsis

if TYPE_CHECKING:
    from checkrein_studies.sepsis_study import IcuSepsis


@dataclass(frozen=True)
class Optimal:
    """The fewest deaths within a share of the clinicians' drugs (None: without limits), and the limits' prices."""

    share: float | None
    claimed: dict[str, float]  # by whoever solved it
    true: dict[str, float]
    prices: dict[str, float]


@dataclass(frozen=True)
class Plugged:
    """A solution from a whole log at the limits themselves."""

    claimed: dict[str, float]
    true: dict[str, float]


@dataclass(frozen=True)
class Step:
    """One candidate of `learn_certified`."""

    margin: float
    passed: bool
    estimates: dict[str, float]
    bounds: dict[str, float]
    true: dict[str, float]


@dataclass(frozen=True)
class Judged:
    """What came of one log."""

    episodes: int
    number: int
    certified: bool
    true: dict[str, float]  # of what is deployed: the certified policy, or the clinicians'
    estimates: dict[str, float]  # of the policy that was judged
    bounds: dict[str, float]
    reason: str
    candidates: tuple[Step, ...]  # of the first log of a size
    plugged: dict[str, Plugged]  # by rule
    seconds: float = field(compare=False)

    @property
    def survival(self) -> float:
        """Of what is deployed, in truth."""
        return survival(self.true)


@dataclass(frozen=True, eq=False)
class Found:
    """What came out, before it is judged and drawn."""

    study: "IcuSepsis"
    ward: Sepsis
    exact: list[Optimal]
    learned: list[Optimal]
    judged: list[Judged]

    @cached_property
    def clinicians(self) -> dict[str, float]:
        """What they achieve and give."""
        return self.ward.mdp.values(self.ward.clinicians)

    @cached_property
    def limits(self) -> dict[str, float]:
        """By drug."""
        return {drug: self.study.share * self.clinicians[drug] for drug in DRUGS}

    @cached_property
    def by_size(self) -> dict[int, list[Judged]]:
        """The logs of each size, the smallest first."""
        sizes = sorted({one.episodes for one in self.judged})
        return {size: [one for one in self.judged if one.episodes == size] for size in sizes}

    def breaks(self, true: dict[str, float]) -> bool:
        """Say whether a policy gives more of a drug than is allowed."""
        return any(true[drug] > limit for drug, limit in self.limits.items())

    @cached_property
    def false(self) -> list[Judged]:
        """Logs whose certificate is wrong."""
        return [one for one in self.judged if one.certified and self.breaks(one.true)]


def survival(values: dict[str, float]) -> float:
    """Every episode ends, so whoever does not die survives."""
    return 1 - values[DEATH]
