"""A study whose claim does not hold."""

from dataclasses import dataclass, field

import numpy as np

from checkrein.reproduction import Claim, Findings, Picture, Table, panels


@dataclass(frozen=True)
class Failing:
    """A study whose claim does not hold."""

    names: tuple[str, ...] = field(default=("a & b",))

    @classmethod
    def quick(cls):
        return cls()

    def run(self, tell):
        tell("failing")
        figure, (axes,) = panels([2.0])
        axes.plot([0, 1])
        return Findings(
            title="<b>Failing</b>",
            summary="It fails.",
            claims=[Claim.at_most("three", 3, 2), Claim.at_least("four", 4, 2)],
            numbers={"nothing": np.array([np.nan, 1.0]), "many": {1: np.int64(3)}},
            tables=[Table("T", ["a"], [[np.float64(1.23456789)]])],
            pictures=[Picture("one", "A line.", figure)],
        )
