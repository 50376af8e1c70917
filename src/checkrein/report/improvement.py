"""Improvement: the judged objective beside behavior's in the user's own sign, and in words."""

import math
from dataclasses import dataclass
from typing import Literal

from checkrein.certification.certificate import Certificate, Verdict
from checkrein.certification.objective import Improvement as Judgement
from checkrein.problem.goals import Direction
from checkrein.problem.outcomes import within
from checkrein.report.words import amount, apart, number, percentage, span_in_words

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
    believed: bool  # False: a check that failed, or an estimate that cannot be, forbids a verdict
    share: bool  # whether these are shares of episodes

    @property
    def like(self) -> Verdict:
        """The verdict on a limit that is as good, for signs and colours."""
        return LIKE[self.verdict]

    @property
    def words(self) -> str:
        """What was found, with its interval."""
        than = f"behavior's {self.amount(self.behavior)}"
        far = apart(abs(self.difference), share=self.share)
        beside = (
            f"the same as {than}" if number(self.difference) == "0" else f"{far} {_way(self.difference)} than {than}"
        )
        found = f"{self.name} is {self.amount(self.estimate)}, {beside}"
        if not self.believed:
            return f"{found}. A check failed, so nothing of this is shown."
        return f"{found} ({self.between})."

    def amount(self, value: float) -> str:
        """Return one of its values with its unit."""
        return amount(value, share=self.share)

    @property
    def by(self) -> str:
        """By how much it is shown to differ: "by 0.01 to 0.06"; empty where no interval could be had."""
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            return ""
        near, far = sorted(map(abs, (self.low, self.high)))
        return f"by {span_in_words(near, far, share=self.share)}"

    @property
    def between(self) -> str:
        """The interval of the difference."""
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            return "no interval could be had"
        if self.low < 0 < self.high:
            less, more = (apart(end, share=self.share) for end in (-self.low, self.high))
            return f"between {less} less and {more} more"
        near, far = sorted(map(abs, (self.low, self.high)))
        return f"between {span_in_words(near, far, share=self.share, joined='and')} {_way(self.low + self.high)}"


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
    estimate, behavior = (
        within(value, judged.range, judged.standard_error) for value in (judged.estimate, judged.behavior)
    )
    believed = certificate.believed and estimate is not None
    return Improvement(
        name=name,
        verdict=judged.verdict if believed else "not shown better",
        wanted="raise" if direction is Direction.MAXIMISE else "lower",
        estimate=math.nan if estimate is None else sign * estimate + 0.0,
        behavior=math.nan if behavior is None else sign * behavior + 0.0,
        difference=sign * judged.difference + 0.0,
        low=low,
        high=high,
        confidence=1 - certificate.alpha,
        believed=believed,
        share=judged.yes_or_no,
    )


def interval_in_words(improvement: Improvement) -> str:
    """Return what the interval holds for."""
    return f"each end of the interval holds by itself, at {percentage(improvement.confidence)} confidence"


def _way(difference: float) -> str:
    return "more" if difference > 0 else "less"
