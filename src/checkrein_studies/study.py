"""What a study is, and what it finds: claims, numbers, tables and pictures."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, cast

from joblib import Parallel, delayed  # type: ignore[import-untyped]

from checkrein import Dataset
from checkrein.data.split import split_episodes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

T = TypeVar("T")
Tell = Callable[[str], None]  # told what is under way


@dataclass(frozen=True)
class Claim:
    """Something that a study must show."""

    what: str
    wanted: str
    measured: str
    holds: bool

    @classmethod
    def at_most(cls, what: str, measured: float, limit: float, *, unit: str = "") -> "Claim":
        """Claim that a number does not exceed another."""
        return cls(what, f"at most {limit:.4g}{unit}", f"{measured:.4g}{unit}", bool(measured <= limit))

    @classmethod
    def at_least(cls, what: str, measured: float, limit: float, *, unit: str = "") -> "Claim":
        """Claim that a number reaches another."""
        return cls(what, f"at least {limit:.4g}{unit}", f"{measured:.4g}{unit}", bool(measured >= limit))


@dataclass(frozen=True)
class Table:
    """Rows of text or numbers, for the page."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | float]]
    note: str = ""


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure, and what it shows."""

    name: str  # of its files
    caption: str
    figure: "Figure"


@dataclass(frozen=True, eq=False)
class Findings:
    """All that a study found out.

    numbers: everything behind the pictures; arrays and nested mappings of them
    differences: from what it reproduces, each with its reason
    """

    title: str
    summary: str
    claims: Sequence[Claim]
    numbers: Mapping[str, Any]
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    differences: Sequence[str] = field(default=())

    @property
    def holds(self) -> bool:
        """Say whether every claim does."""
        return all(claim.holds for claim in self.claims)


class Study(Protocol):
    """A frozen dataclass whose fields are the settings; the first line of its docstring says what it is about.

    One with a setting `most_seconds` claims that all of it takes no longer.
    """

    @classmethod
    def quick(cls) -> Self:
        """Return settings that show the same in a few seconds."""
        ...

    def run(self, tell: Tell) -> Findings:
        """Find out, from nothing."""
        ...


def each(calls: Iterable[Callable[[], T]], *, jobs: int, tell: Tell) -> list[T]:
    """Make independent calls, several at a time; the results keep their order."""
    asked = list(calls)
    found = Parallel(n_jobs=jobs, return_as="generator")(delayed(call)() for call in asked)
    results = []
    for number, result in enumerate(found, start=1):
        tell(f"{number} of {len(asked)}")
        results.append(result)
    return results


def halves(log: Dataset, seed: int) -> tuple[Dataset, Dataset]:
    """Return half of the episodes to learn from, and the other half to judge by."""
    mine, held_out = split_episodes(log, holdout=0.5, seed=seed)
    return mine, cast(Dataset, held_out)
