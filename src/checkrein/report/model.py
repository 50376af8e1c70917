"""What a report says, as data: the page is made from nothing else, and so can be made again from its JSON."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, field_serializer

from checkrein.certification.certificate import Certificate, Verdict
from checkrein.certification.survival import Sensitivity
from checkrein.logs.card import DataCard
from checkrein.problem.goals import Direction

FORMAT = 1
CERTIFIED, KEEP_BEHAVIOR, INFEASIBLE, EXPLORED = "certified", "behavior goes on", "infeasible", "explored"
LEARNED, BEHAVIOR, UNCONSTRAINED, SINGLE_POLICY = "learned", "behavior", "unconstrained", "best single policy"


class Model(BaseModel):
    """Frozen; unknown keys are mistakes."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class Estimate(Model):
    """One cost of one policy: estimated on the part it was learned from, and on the part it was not."""

    learning: float | None
    held_out: float | None
    standard_error: float | None = None  # of the held-out value, where it is a plain mean


class Change(Model):
    """How far a value is from behavior's, with the ends of its interval where there is one."""

    difference: float
    low: float | None = None
    high: float | None = None


class CostRow(Model):
    """The objective, or a constraint against its limit, for every policy compared."""

    name: str
    role: Literal["objective", "constraint"]
    direction: Direction
    goal: str  # in words: "minimise", "maximise", "at most 1.5", "at least 0.2": as the user put it
    limit: float | None
    limit_source: str | None  # how the limit was given, where it was not a plain number: "75% of behavior"
    unit: str  # of every number in the row, in words
    share: bool = False  # whether the values are shares of episodes: each has it or has it not
    events: int | None = None  # episodes that have any of it, of those that value behavior; None: not counted
    of_episodes: int | None = None  # how many these are
    change: Change | None = None  # from behavior to the learned policy; None: one of the two is not known
    price: float | None  # of a constraint: what one unit more of its limit would save of the objective
    price_range: tuple[float, float] | None = None  # where it is not one number
    price_note: str = ""  # and why
    values: dict[str, Estimate]  # by policy: "learned", "behavior", "unconstrained", "best single policy"


class Trace(Model):
    """The game, round by round."""

    round: list[int]
    gap: list[float]
    lower: list[float]
    upper: list[float]
    objective: list[float]  # of the mixture, in the user's units
    constraints: dict[str, list[float]]  # of the mixture
    multipliers: dict[str, list[float]]


class Member(Model):
    """One policy of the mixture."""

    weight: float
    values: dict[str, float]  # by cost, estimated on the learning part


class Single(Model):
    """One policy in place of the mixture."""

    kind: str  # how it was found: "best member", "deterministic", "averaged weights"
    chosen: bool  # whether it is the run's best single policy
    values: dict[str, Estimate]  # by cost
    price: float  # how much worse its objective is than the mixture's, by the learning estimates
    explanation: str


class Singles(Model):
    """All kinds of single policies."""

    found: list[Single]
    left_out: dict[str, str]  # the kinds that do not apply, and why


class StateDifference(Model):
    """One finite state, what behavior did there and what the learned policy does."""

    state: str
    visits: float
    behavior: list[float]  # probability of each action
    learned: list[float]


class Review(Model):
    """A decision that an expert would question."""

    place: str  # a state, or what leads to a leaf of the tree
    visits: float
    learned: str  # what the policy mostly does there
    learned_share: float
    behavior: str  # what behavior mostly did
    behavior_share: float
    done_before: float  # share of visits on which behavior did what the policy mostly does
    followed: float | None  # mean sum of the objective from there on, as logged
    why: list[str]


class Group(Model):
    """Episodes that begin alike, and what changes for them."""

    column: str
    level: str
    episodes: int
    changes: dict[str, Change]  # by cost


class Differences(Model):
    """Where the policy differs from behavior, and what it does there."""

    actions: list[str]
    behavior_share: list[float]  # of each action over all logged decisions
    learned_share: list[float]  # in the same states
    agreement: float  # expected share of decisions on which both agree
    states: list[StateDifference]  # finite states, those that matter most first; empty for features
    tree: str | None  # a small surrogate tree of the learned policy, as text; None for finite states
    tree_fidelity: float | None  # share of decisions that the tree reproduces
    sheet: list[StateDifference] = []  # the states, or leaves of the tree, that are visited most, in that order
    sheet_covers: float | None = None  # their share of all visits
    review: list[Review] = []


class Aimed(Model):
    """What was aimed at inside the learning part, so that the policy had a chance to pass."""

    support: str  # the rule, in words
    limits: dict[str, float]  # by constraint
    predicted: dict[str, float]  # the bounds that were expected
    predicted_to_pass: bool  # whether these keep the limits


class Candidate(Model):
    """One of the policies that a cross-fitted run tried, in the user's signs."""

    rule: int  # times that the support rule was loosened before
    distance: float  # from behavior, as a share of how far the best policy at the limits goes
    margin: float  # under the limits, in standard errors
    values: dict[str, float]  # by cost
    bounds: dict[str, float | None]  # by constraint, on the side of its limit; empty where nothing was judged
    verdict: Verdict | None  # on the limits; None: nothing was judged
    improvement: str | None  # on the objective
    deployed: bool


class CandidateSequence(Model):
    """The candidates of a cross-fitted run, from near behavior to bold; only the last may not have passed."""

    candidates: list[Candidate]
    folds: int


class Reused(Model):
    """Which run the policies came from, where they were not all found anew."""

    run: str
    policies: int  # that it brought along
    log_read: bool  # False: they answered the question, and nothing was judged on held-out episodes


class TradeOffRow(Model):
    """The best objective as one limit varies, by the rounds that were played; in the user's signs."""

    name: str  # of the constraint
    limits: list[float]
    reached: list[float | None]  # by the best mixture of the policies found; None: none keeps the limits
    proven: list[float]  # no policy does better, by the same estimates
    aimed: float  # the limit that was learned for


class Repeat(Model):
    """How to run it again and how to cite it."""

    command: str
    problem_file: str  # its text
    version: str
    seed: int
    dataset: str  # fingerprint
    packages: dict[str, str]
    citation: str


class Summary(Model):
    """A whole report."""

    format: int = FORMAT
    title: str
    status: str  # of the run
    verdict: str  # one sentence, plain words
    level: Literal["good", "caution", "bad"]
    explanation: str  # how the run ended and what to do next
    caveat: str  # what the numbers do and do not prove
    costs: list[CostRow]  # the objective first
    policies: list[str]  # in the order to show them
    gap: float | None  # None, like the trace: no game was played
    lower_bound: float | None
    trace: Trace | None
    members: list[Member]
    weighting: str
    differences: Differences | None  # None: the log was not read
    card: DataCard
    learning_episodes: int
    held_out_episodes: int
    repeat: Repeat
    groups: list[Group] = []
    doubts: list[str] = []  # what to know before the verdict is trusted
    trade_offs: list[TradeOffRow] = []  # one for each constraint
    aimed: Aimed | None = None  # None: at the limits themselves
    reused: Reused | None = None  # None: every policy was found in this run
    certificate: Certificate | None = None  # None: nothing was held out, or there is nothing to keep
    singles: Singles | None = None  # None: an older run
    sensitivity: Sensitivity | None = None  # None: not computed
    sequence: CandidateSequence | None = None  # None: a game was played, and episodes were held out

    @field_serializer("certificate")
    def _with_infinities(self, certificate: Certificate | None) -> dict[str, Any] | None:
        """Write what a diagnostic could not measure as this model does, not as nothing, which could not be read."""
        return None if certificate is None else certificate.model_dump()
