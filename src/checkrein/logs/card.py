"""The data card: what a log holds, before anything is learned from it."""

from pydantic import BaseModel, ConfigDict

from checkrein.problem.goals import Unit


class Behavior(BaseModel):
    """What the logged decisions cost on average, by the problem's discount."""

    model_config = ConfigDict(frozen=True)

    cost: str
    unit: Unit  # of the value and its error
    value: float
    standard_error: float | None  # None: one episode tells nothing of it
    lowest: float  # of a single step
    highest: float


class ActionUse(BaseModel):
    """How often an action was logged, and in how many of the finite states it never was."""

    model_config = ConfigDict(frozen=True)

    action: str
    count: float
    share: float
    states_without: int | None  # None: states are not finite


class DataCard(BaseModel):
    """Everything worth knowing about a log; rows = rows_used + the sum of left_out."""

    model_config = ConfigDict(frozen=True)

    source: str
    rows: int
    rows_used: int
    left_out: dict[str, int]  # reason -> rows
    distinct: int | None  # transitions after merging equal ones; None: states are not finite
    episodes: int
    clusters: int | None = None  # of episodes; None: every episode stands for itself
    largest_cluster: int | None = None  # episodes of the one that has most
    shortest: int  # steps of an episode
    median: float
    longest: int
    truncated: int  # episodes that end without a terminal row
    states: str  # in words: "48 finite states of severity, lactate" or "6 features of ..."
    functions: str = ""  # what was chosen to learn with, and why; empty: an older run
    states_visited_once: int | None
    actions: list[ActionUse]
    behavior: list[Behavior]
    discount: float
    effective_horizon: float | None  # steps, 1 / (1 - discount); None at discount 1, or where the log has a horizon
    horizon: int | None = None  # decisions after which values stop
    inadmissible: int | None = None  # rows in which behavior took an action that may not be chosen; None: all may
    propensities: bool
    warnings: list[str]
