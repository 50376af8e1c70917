"""The sections of a problem file, each checked key by key."""

import re
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from checkrein.certification import METHODS
from checkrein.certification.bounds import EpisodeScoreBound
from checkrein.logs.formats import located
from checkrein.logs.table import require_one_step
from checkrein.problem.goals import Direction, Goal, Unit
from checkrein.selection.folds import FOLDS

SHARE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*%\s*of\s+behaviou?r\s*$")
CLOSED_FORMS = ("auto", "tabular", "features", "linear")  # whose fits are quick and can be refitted many times over
BY_FOLDS = ("auto", "tabular", "features")  # classes that can be certified by the episodes that they learn from
HOLDOUT_KEYS = (
    "learner",
    "bound",
    "rate",
    "min_count",
    "min_probability",
    "margin",
    "tolerance",
    "max_rounds",
    "holdout",
)  # of [learn]: they make sense only where a game is played and episodes are held out
WIDE = 40  # features, from which on their products would be too many
LARGEST_WEIGHT_OF = (
    'largest_weight is for method = "pdis-betting", "pdis-bernstein", "dr-betting" or "dr-bernstein": name one of '
    "them, or leave it out"
)
OPTIONS = {"linear": ("degree", "ridge"), "trees": ("n_trees", "min_leaf"), "neural": ("hidden", "conservatism")}
CertificateKind = Literal["cross-fitted", "holdout"]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


class Section(BaseModel):
    """Frozen; unknown keys are mistakes; a true number is not a truth value."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Data(Section):
    """Where the log lies and what its columns mean."""

    path: str | list[str]
    episode: str | None = None
    state: str | list[str] | None = None
    action: str | None = None
    step: str | None = None
    terminal: str | None = None
    propensity: str | None = None
    cluster: str | None = None  # whose episode it is: episodes of one are not independent
    n_actions: Annotated[int, Field(gt=0)] | None = None
    missing: list[str] = []

    @property
    def is_table(self) -> bool:
        """Say whether the log is a table with columns to name, not of a format that knows its own."""
        first = self.path if isinstance(self.path, str) else (self.path or [""])[0]
        return located(first) is None

    @property
    def one_step(self) -> bool:
        """Whether each row is an episode of one decision, which really ends."""
        return self.is_table and self.episode is None

    @model_validator(mode="after")
    def _columns(self) -> "Data":
        lacking = [name for name in ("state", "action") if getattr(self, name) is None]
        if self.is_table and lacking:
            raise ValueError(f"{', '.join(lacking)} must name columns of the log")
        if self.one_step:
            require_one_step(step=self.step, terminal=self.terminal)
        if self.cluster is not None and not self.is_table:
            raise ValueError("cluster names a column of a table, but this log is none: write it as a table first")
        return self


class Objective(Section):
    """What to minimise, or to maximise: a column or a SQL expression."""

    minimize: str | None = None
    maximize: str | None = None
    name: str | None = None

    @model_validator(mode="after")
    def _one(self) -> "Objective":
        if (self.minimize is None) == (self.maximize is None):
            raise ValueError("give either minimize or maximize")
        return self

    @property
    def expression(self) -> str:
        """The column or SQL expression."""
        return self.minimize or self.maximize or ""

    @property
    def label(self) -> str:
        """What to call it."""
        return self.name or self.expression

    @property
    def goal(self) -> Goal:
        """What is wanted of it."""
        return Goal(self.label, Direction.MINIMISE if self.maximize is None else Direction.MAXIMISE)


class Kind(StrEnum):
    """What a constraint is on."""

    COST = "cost"  # the sum of a column or an expression
    EVER = "ever"  # the probability that a condition ever holds in an episode
    KL = "kl divergence"  # of the policy from behavior, summed over its decisions
    VARIATION = "total variation"  # the same, as the share of decisions that differ
    ENTROPY = "entropy"  # of the policy, summed over its decisions
    SWITCHING = "switching"  # how often the action differs from the one before

    @property
    def logged(self) -> bool:
        """Whether it is computed from the log's columns."""
        return self in (Kind.COST, Kind.EVER)


class Limit(Section):
    """A constraint: a cost and its limit, in the user's own units."""

    name: str
    kind: Kind = Field(default=Kind.COST, strict=False)
    cost: str | None = None  # default: the column of that name
    at_most: float | int | str | None = None
    at_least: float | int | str | None = None
    unit: Literal["sum", "per step"] = "sum"
    range: Annotated[list[Finite], Field(min_length=2, max_length=2)] | None = None  # of an episode's sum, if known

    @model_validator(mode="after")
    def _one(self) -> "Limit":
        if not self.kind.logged and self.cost is not None:
            raise ValueError(f'kind = "{self.kind}" is a cost of the policy itself: leave cost out')
        if self.kind is not Kind.COST and (self.per_step or self.range is not None):
            raise ValueError(f'unit and range are for kind = "cost", but kind is "{self.kind}": leave them out')
        if self.range is not None and not self.range[0] < self.range[1]:
            raise ValueError(f"the range is {self.range}: give the least and the largest sum of an episode")
        if (self.at_most is None) == (self.at_least is None):
            raise ValueError("give either at_most or at_least")
        if isinstance(self.given, str) and self.kind in (Kind.KL, Kind.VARIATION):
            raise ValueError(
                f'behavior\'s own {self.kind} from behavior is 0: give the limit of "{self.name}" as a number'
            )
        if isinstance(self.given, str):
            if not SHARE.match(self.given):
                raise ValueError(f'the limit {self.given!r} is neither a number nor like "75% of behavior"')
        elif isinstance(self.given, bool) or not abs(float(self.given)) < float("inf"):
            raise ValueError(f"the limit is {self.given}: it must be a finite number")
        return self

    @property
    def ends(self) -> tuple[float, float] | None:
        """The declared range."""
        return None if self.range is None else (self.range[0], self.range[1])

    @property
    def per_step(self) -> bool:
        """Whether the limit is on the average over the steps."""
        return Unit(self.unit) is Unit.PER_STEP

    @property
    def expression(self) -> str:
        """The column or expression that it is computed from."""
        return self.cost or self.name

    @property
    def given(self) -> float | int | str:
        """The limit as it was written."""
        return self.at_most if self.at_most is not None else self.at_least if self.at_least is not None else 0.0

    @property
    def share_of_behavior(self) -> float | None:
        """The factor of a limit given relative to behavior."""
        match = SHARE.match(self.given) if isinstance(self.given, str) else None
        return None if match is None else float(match.group(1)) / 100


class Learn(Section):
    """How to learn; every key has a default."""

    discount: Annotated[float, Field(gt=0, le=1)] = 0.99
    certificate: CertificateKind | None = None  # None: held out where a key says so that makes sense only there
    folds: Annotated[int, Field(ge=2)] = FOLDS  # of a cross-fitted certificate
    functions: Literal["auto", "tabular", "features", "linear", "trees", "neural"] = "auto"
    degree: Annotated[int, Field(ge=0)] = 2  # of the linear class's polynomial
    ridge: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1e-3  # of the linear class
    n_trees: Annotated[int, Field(ge=1)] = 20  # of each action
    min_leaf: Positive = 10.0  # rows in a leaf of a tree, at the least
    hidden: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1)] = [64, 64]  # widths of a network's layers
    conservatism: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0  # makes what is rare dear to a network
    learner: Literal["cutting-plane", "exponentiated-gradient", "online-gradient-descent"] = "cutting-plane"
    bound: Positive | None = None  # on the multipliers; default: far above any price that the costs suggest
    rate: Positive | None = None  # of the gradient learners
    min_count: Annotated[float, Field(ge=0)] | None = None  # evidence that an action needs in a finite state
    min_probability: Annotated[float, Field(ge=0, lt=1)] | None = None  # and elsewhere; None: chosen with the margin
    margin: Literal["auto", "none"] = "auto"  # room under the limits, chosen inside the learning part
    tolerance: Positive = 1e-4
    max_rounds: Annotated[int, Field(ge=1)] = 100
    holdout: Annotated[float, Field(ge=0, lt=1)] = 0.5
    seed: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _own_options(self) -> "Learn":
        for functions, names in OPTIONS.items():
            foreign = [name for name in names if name in self.model_fields_set and functions != self.functions]
            if foreign:
                raise ValueError(
                    f'{", ".join(foreign)} {"is" if len(foreign) == 1 else "are"} for functions = "{functions}", '
                    f'but functions is "{self.functions}": change that, or leave it out'
                )
        return self

    @property
    def held_out_by(self) -> list[str]:
        """The keys that are given and make sense only where episodes are held out."""
        given = [name for name in HOLDOUT_KEYS if name in self.model_fields_set]
        return given if self.functions in BY_FOLDS else ["functions", *given]

    @property
    def closed_form(self) -> bool:
        """Whether the class has closed forms: others iterate, which takes its time."""
        return self.functions in CLOSED_FORMS


def takes_largest_weight(method: str | None) -> bool:
    """Say whether a method asks for the largest weight that an episode can have."""
    found = METHODS.get(method or "")
    return isinstance(found, EpisodeScoreBound) and found.bound in ("bernstein", "betting")


class Certify(Section):
    """How to judge on the held-out part; every key has a default."""

    confidence: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    method: str | None = None  # default: refits of tables in finite states, doubly robust elsewhere
    largest_weight: Positive | None = None  # that an episode can have, of the methods with Bernstein and betting bounds

    @model_validator(mode="after")
    def _known(self) -> "Certify":
        if self.method is not None and self.method not in METHODS:
            raise ValueError(f"no method is called {self.method!r}: choose from {', '.join(METHODS)}")
        if self.largest_weight is not None and not takes_largest_weight(self.method):
            raise ValueError(LARGEST_WEIGHT_OF)
        return self
