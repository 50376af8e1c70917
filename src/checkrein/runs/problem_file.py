"""problem.toml: what to learn from which log, checked key by key."""

import difflib
import re
import tomllib
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from checkrein.base.errors import ProblemError
from checkrein.certification import METHODS
from checkrein.certification.bounds import BootstrapFQE
from checkrein.logs.formats import located
from checkrein.problem.goals import Direction, Goal, Unit

SHARE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*%\s*of\s+behaviou?r\s*$")
CLOSED_FORMS = ("tabular", "linear")  # classes whose fits are quick and can be refitted many times over
OPTIONS = {"linear": ("degree", "ridge"), "trees": ("n_trees", "min_leaf"), "neural": ("hidden",)}  # of each class
NO_REFITS = (
    'the method "{method}" refits many times over, but functions = "{functions}" has no closed form: leave the method '
    'out, or choose one that weighs, like "dr-studentised"'
)
UNION = {"str", "int", "float", "list[str]"}  # how pydantic names the arms of a choice of types

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

    @model_validator(mode="after")
    def _columns(self) -> "Data":
        lacking = [name for name in ("episode", "state", "action") if getattr(self, name) is None]
        if self.is_table and lacking:
            raise ValueError(f"{', '.join(lacking)} must name columns of the log")
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
    functions: Literal["tabular", "linear", "trees", "neural"] = "tabular"
    degree: Annotated[int, Field(ge=0)] = 1  # of the linear class's polynomial
    ridge: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1e-3  # of the linear class
    n_trees: Annotated[int, Field(ge=1)] = 20  # of each action
    min_leaf: Positive = 10.0  # rows in a leaf of a tree, at the least
    hidden: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1)] = [64, 64]  # widths of a network's layers
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
    def closed_form(self) -> bool:
        """Whether the class has closed forms: others iterate, which takes its time."""
        return self.functions in CLOSED_FORMS


class Certify(Section):
    """How to judge on the held-out part; every key has a default."""

    confidence: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    method: str | None = None  # default: refits of tables in finite states, doubly robust elsewhere

    @model_validator(mode="after")
    def _known(self) -> "Certify":
        if self.method is not None and self.method not in METHODS:
            raise ValueError(f"no method is called {self.method!r}: choose from {', '.join(METHODS)}")
        return self


class ProblemFile(Section):
    """A whole problem."""

    title: str | None = None
    data: Data
    objective: Objective
    constraint: list[Limit] = []
    learn: Learn = Learn()
    certify: Certify = Certify()

    @model_validator(mode="after")
    def _names(self) -> "ProblemFile":
        names = [self.objective.label, *(limit.name for limit in self.constraint)]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"{twice!r} names two things: give each constraint, and the objective, a name of its own")
        per_step = next((c.name for c in self.constraint if c.per_step and self.learn.discount == 1), None)
        if per_step is not None:
            raise ValueError(f'constraint {per_step!r}: unit = "per step" needs a discount below 1')
        if not self.learn.closed_form and isinstance(METHODS.get(self.certify.method or ""), BootstrapFQE):
            raise ValueError(NO_REFITS.format(method=self.certify.method, functions=self.learn.functions))
        return self


def read_problem_file(path: Path) -> tuple[ProblemFile, str]:
    """Return a problem and the text it was written in; every mistake is named with its key and what was expected."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ProblemError(f"{path} does not exist: `checkrein init LOG` writes a first version") from None
    except (OSError, UnicodeDecodeError) as reason:
        raise ProblemError(f"{path} cannot be read: {reason}") from None
    return parse_problem(text, path), text


def parse_problem(text: str, path: Path) -> ProblemFile:
    """Check the text of a problem file."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as reason:
        raise ProblemError(f"{path} is not valid TOML: {reason}") from None
    try:
        return ProblemFile.model_validate(content)
    except ValidationError as mistakes:
        lines = list(dict.fromkeys(_in_words(dict(mistake)) for mistake in mistakes.errors()))
        raise ProblemError("\n".join([f"{path} has {len(lines)} mistake{'s' * (len(lines) > 1)}:", *lines])) from None


def _in_words(mistake: dict[str, Any]) -> str:
    place = [_counted(part) for part in mistake["loc"] if str(part) not in UNION]
    key = ".".join(place) or "the file"
    if mistake["type"] == "missing":
        return f"  {key}: is missing"
    if mistake["type"] == "extra_forbidden":
        return f"  {key}: is not a known key{_closest(place)}"
    if place == ["constraint"] and mistake["type"] == "list_type":
        return "  constraint: write [[constraint]], with two brackets: there may be several"
    message = mistake["msg"].removeprefix("Value error, ")
    if len(place) < len(mistake["loc"]):
        message = "should be text, a number or a list of texts, as the key asks for"
    given = mistake["input"]
    shown = "" if isinstance(given, dict) else f" (it is {given!r})"
    return f"  {key}: {message[0].lower()}{message[1:]}{shown}"


def _counted(part: int | str) -> str:
    """Return a part of a key's place; constraints are counted from 1, as people do."""
    return str(part + 1) if isinstance(part, int) else part


def _closest(place: list[str]) -> str:
    sections: dict[str, type[Section]] = {
        "data": Data,
        "objective": Objective,
        "constraint": Limit,
        "learn": Learn,
        "certify": Certify,
    }
    section = ProblemFile if len(place) == 1 else sections.get(place[0], ProblemFile)
    near = difflib.get_close_matches(place[-1], list(section.model_fields), n=1)
    return f", did you mean {near[0]}?" if near else f": there are {', '.join(section.model_fields)}"
