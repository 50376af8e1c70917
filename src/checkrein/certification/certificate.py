"""Certificate: whether a policy keeps its limits, on what evidence, and what would change the answer."""

import math
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from checkrein.base.errors import StorageError
from checkrein.base.storage import write_atomically
from checkrein.certification.bounds import Guarantee
from checkrein.certification.diagnostics import Check
from checkrein.certification.objective import JudgedObjective
from checkrein.problem.outcomes import Ends, within

Verdict = Literal["pass", "fail", "inconclusive"]
Decision = Literal["deploy", "behavior goes on"]


class JudgedConstraint(BaseModel):
    """One constraint, in the user's own sign: what is believed of it, and how far it may be off."""

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")

    name: str
    words: Literal["at most", "at least"]
    limit: float
    estimate: float | None  # None: it could not be estimated
    standard_error: float | None
    bound: float | None  # on the side of the limit
    other_bound: float | None  # on the other side
    missed: float | None = None  # what the bound allows for rare events that the log may lack; None: not asked
    range: Ends | None = None  # what the logged costs allow; None: an older certificate
    verdict: Verdict
    reason: str
    advice: str  # what would change it

    def shown(self, *, believed: bool) -> "JudgedConstraint":
        """Return what may be shown of it: no bound that is not believed, and no value that its cost cannot have."""
        estimate = within(self.estimate, self.range, self.standard_error)
        ends = (self.bound, self.other_bound) if believed and estimate is not None else (None, None)
        bound, other = (within(end, self.range) for end in ends)
        missed = None if bound is None else self.missed
        return self.model_copy(update={"estimate": estimate, "bound": bound, "other_bound": other, "missed": missed})


class Certificate(BaseModel):
    """The answer for all constraints together, on episodes that did not choose the policy."""

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")

    verdict: Verdict
    reason: str
    advice: list[str]
    guarantee: Guarantee
    method: str
    confidence: float  # that a pass is not wrong, of all looks at these data together
    alpha: float  # what this look spends of it
    look: int  # the how-many-th use of these data
    episodes: int
    clusters: int | None = None  # of the episodes, where they are what is independent and counted
    excluded: int = 0  # episodes of the log that do not count, because the policy was learned from them
    constraints: list[JudgedConstraint]
    objective: JudgedObjective | None = None  # beside behavior's; None where none was given
    decision: Decision | None = None  # what a cross-fitted run makes of it; None: that is left to who reads it
    checks: list[Check]
    seed: int
    dataset: str  # fingerprints
    policy: str

    def __repr__(self) -> str:
        limits = "; ".join(f"{c.reason}" for c in self.constraints)
        return f"Certificate({self.verdict}: {limits}; {self.method}, {self.guarantee}, {self.episodes} episodes)"

    __str__ = __repr__

    @property
    def may_act(self) -> bool:
        """Whether what was judged may be deployed: by the run's own decision; of a held-out part, by its verdict."""
        return self.verdict == "pass" if self.decision is None else self.decision == "deploy"

    @property
    def believed(self) -> bool:
        """Say whether its checks allow a verdict."""
        return all(check.ok for check in self.checks)

    @property
    def as_shown(self) -> "Certificate":
        """What people are shown of it: where a check failed there is no bound, and no value is an impossible one."""
        return self.model_copy(update={"constraints": [c.shown(believed=self.believed) for c in self.constraints]})

    @property
    def bounds(self) -> dict[str, float]:
        """Of each constraint, on the side of its limit."""
        return {c.name: math.nan if c.bound is None else c.bound for c in self.constraints}

    @property
    def estimates(self) -> dict[str, float]:
        """Of each constraint."""
        return {c.name: math.nan if c.estimate is None else c.estimate for c in self.constraints}

    def write(self, path: Path) -> None:
        """Write as JSON, whole or not at all."""
        text = self.model_dump_json(indent=1) + "\n"
        write_atomically(path, lambda file: file.write(text.encode()))

    @classmethod
    def read(cls, path: Path) -> "Certificate":
        """Read what `write` wrote."""
        try:
            return cls.model_validate_json(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise StorageError(f"{path} does not exist") from None
        except (OSError, UnicodeDecodeError, ValidationError) as reason:
            raise StorageError(f"{path} is not a certificate: {str(reason).splitlines()[0]}") from None
