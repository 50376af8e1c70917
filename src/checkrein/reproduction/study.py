"""What a study is, and what it finds: claims, numbers, tables and pictures."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    packages: distributions that the numbers depend on besides checkrein, its dependencies and the study's own
    """

    title: str
    summary: str
    claims: Sequence[Claim]
    numbers: Mapping[str, Any]
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    differences: Sequence[str] = ()
    packages: Sequence[str] = ()

    @property
    def holds(self) -> bool:
        """Say whether every claim does."""
        return all(claim.holds for claim in self.claims)


@runtime_checkable
class Study(Protocol):
    """A frozen dataclass whose fields are the settings; the first line of its docstring says what it is about.

    A package offers one as an entry point of the group `checkrein.studies`. Its module is imported to list it: what is
    slow to import, or comes with an extra, is imported in `run`.
    """

    @classmethod
    def quick(cls) -> Self:
        """Return settings that show the same in a few seconds."""
        ...

    def run(self, tell: Tell) -> Findings:
        """Find out, from nothing."""
        ...


@runtime_checkable
class TimeLimited(Protocol):
    """A study that claims that all of it takes no longer than its setting `most_seconds`."""

    @property
    def most_seconds(self) -> float:
        """Return the limit, in seconds on two cores."""
        ...
