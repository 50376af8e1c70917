"""Several runs side by side, as the data that the table and the page are made of."""

from typing import Literal

from checkrein.certification.certificate import Verdict
from checkrein.report.model import Model


class ComparedCost(Model):
    """The objective or a limit of one run, in the user's own signs."""

    role: Literal["objective", "constraint"]
    goal: str  # in words
    learned: float | None
    behavior: float | None
    bound: float | None  # certified, on the side of the limit; None: not bounded, or a check failed
    verdict: str | None  # on the limit, or on the improvement
    unit: str  # of every number, in words
    share: bool = False  # whether the numbers are shares of episodes: each has it or has it not


class ComparedRun(Model):
    """What one run came to."""

    name: str
    title: str
    headline: str
    level: Literal["good", "caution", "bad"]
    finished: str  # date and time
    dataset: str  # fingerprint of the log
    method: str | None  # None: nothing was judged
    guarantee: str | None
    verdict: Verdict | None
    episodes: int
    look: int | None
    deploys: bool  # whether its policy may act
    costs: dict[str, ComparedCost]  # by name


class Setting(Model):
    """A key of the problem files whose value differs."""

    key: str
    values: list[str]  # by run; a dash where it is not set


class StateDecisions(Model):
    """A logged state in which the runs decide differently."""

    state: str
    share: float  # of the logged decisions
    usual: list[str]  # by run: its likeliest action, with its probability


class Decisions(Model):
    """How alike policies decide, over the rows of one log."""

    source: str
    rows: int
    alike: list[list[float]]  # by run and run: the share of first decisions that can be the same
    states: list[StateDecisions]  # where they differ most, weighed by how often it was logged; none of numbers


class SideBySide(Model):
    """Runs, what they came to, and what differs."""

    runs: list[ComparedRun]
    costs: list[str]  # names in the order to show them
    settings: list[Setting]
    same_log: bool
    decisions: Decisions | None
    undecided: str  # why decisions are not compared; empty where they are

    @property
    def units_differ(self) -> str:
        """What the numbers of each run are of, where that is not the same; else empty."""
        units = {one.name: next(iter(one.costs.values())).unit for one in self.runs}
        if len(set(units.values())) == 1:
            return ""
        told = "; ".join(f"{name}: {unit}" for name, unit in units.items())
        return f"The numbers are not of the same unit ({told}), so they cannot be compared across runs."
