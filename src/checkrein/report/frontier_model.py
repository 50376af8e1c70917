"""What a frontier's page says, as data: the page is made from nothing else."""

from checkrein.certification.certificate import Verdict
from checkrein.problem.goals import Direction
from checkrein.report.model import Estimate, Model, Repeat


class SweptCost(Model):
    """The objective, or a constraint; all values are in the user's own signs and units."""

    name: str
    direction: Direction
    unit: str  # in words
    limit: float | None  # of the problem file


class ShownPrice(Model):
    """What one unit more room under a limit would save, or gain, of the objective."""

    value: float
    low: float
    high: float
    note: str  # why the range is wide; empty where it is not
    bounded: bool  # whether the largest is what the learner's bound allows


class ShownPoint(Model):
    """The best mixture at one choice of limits."""

    limits: dict[str, float]  # of the constraints that were swept
    status: str
    values: dict[str, Estimate]  # by cost; empty where no policy keeps the limits
    prices: dict[str, ShownPrice]  # by constraint
    bounds: dict[str, float | None]  # by constraint, on the held-out part
    verdict: Verdict | None  # None: not asked for
    not_shown: list[str]  # the constraints, or the checks, that keep the verdict from being a pass
    gap: float
    new_rounds: int
    members: int


class ShownPolicy(Model):
    """One policy that was found."""

    values: dict[str, float]  # by cost, estimated on the learning part
    non_dominated: bool
    coverage: bool  # the best for some weights of the costs


class FrontierSummary(Model):
    """A whole frontier."""

    title: str
    sentences: list[str]  # what to take away
    caveat: str
    costs: list[SweptCost]  # the objective first
    swept: list[str]  # one or two constraints
    points: list[ShownPoint]  # the last swept limit varies fastest
    policies: list[ShownPolicy]
    references: dict[str, dict[str, Estimate]]  # behavior and the unconstrained policy, by cost
    margins: dict[str, float]  # how far inside its limit each constraint was aimed at
    best_responses: int
    confidence: float | None  # of all certified points together; None: none was asked for
    look: int | None
    learning_episodes: int
    held_out_episodes: int
    warnings: list[str]
    repeat: Repeat
