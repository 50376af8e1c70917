"""Improvement: the judged objective beside behavior's in the user's own sign, and in words."""

import math
from dataclasses import dataclass
from typing import Literal

from checkrein.certification.certificate import Certificate, Verdict
from checkrein.certification.objective import Improvement as Judgement
from checkrein.problem.goals import Direction
from checkrein.report.words import number, percentage

LIKE: dict[Judgement, Verdict] = {"better": "pass", "not shown better": "inconclusive", "worse": "fail"}


@dataclass(frozen=True)
class Improvement:
    """What a certificate says of the objective; differences are to behavior's, above 0 where there is more of it."""

    name: str
    verdict: Judgement
    wanted: Literal["lower", "raise"]
    estimate: float
    behavior: float
    difference: float
    low: float
    high: float
    confidence: float  # of each end of the interval by itself
    believed: bool  # False: a check that failed forbids a verdict

    @property
    def like(self) -> Verdict:
        """The verdict on a limit that is as good, for signs and colours."""
        return LIKE[self.verdict]

    @property
    def words(self) -> str:
        """What was found, with its interval."""
        than = f"behavior's {number(self.behavior)}"
        apart = number(abs(self.difference))
        beside = f"the same as {than}" if apart == "0" else f"{apart} {_way(self.difference)} than {than}"
        doubt = "" if self.believed else " A check failed, so nothing of this is shown."
        return f"{self.name} is {number(self.estimate)}, {beside} ({self._between}).{doubt}"

    @property
    def _between(self) -> str:
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            return "no interval could be had"
        if self.low < 0 < self.high:
            return f"between {number(-self.low)} less and {number(self.high)} more"
        near, far = sorted(map(abs, (self.low, self.high)))
        return f"between {number(near)} and {number(far)} {_way(self.low + self.high)}"


def improvement_of(certificate: Certificate | None, name: str, direction: Direction) -> Improvement | None:
    """Return what was judged of an objective that the user calls so; None where it was not judged.

    direction: minimise or maximise; inside, and so in the certificate, what is maximised is minimised with its sign
        turned around
    """
    judged = None if certificate is None else certificate.objective
    if certificate is None or judged is None:
        return None
    sign = direction.sign
    low, high = sorted((sign * judged.lower, sign * judged.upper))
    return Improvement(
        name=name,
        verdict=judged.verdict,
        wanted="raise" if direction is Direction.MAXIMISE else "lower",
        estimate=sign * judged.estimate + 0.0,
        behavior=sign * judged.behavior + 0.0,
        difference=sign * judged.difference + 0.0,
        low=low,
        high=high,
        confidence=1 - certificate.alpha,
        believed=all(check.ok for check in certificate.checks),
    )


def interval_in_words(improvement: Improvement) -> str:
    """Return what the interval holds for."""
    return f"each end of the interval holds by itself, at {percentage(improvement.confidence)} confidence"


def _way(difference: float) -> str:
    return "more" if difference > 0 else "less"
