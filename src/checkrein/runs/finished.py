"""A finished run as the theorems see it: how large its values can be, how many rows and rounds it had, its log."""

import ast
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from checkrein.base.errors import DataError, ProblemError, StorageError
from checkrein.data.dataset import Dataset
from checkrein.data.encoding import Encoding
from checkrein.data.identity import EpisodeKeys
from checkrein.game.checkpoint import SETTINGS, read_settings
from checkrein.logs.table import Reading
from checkrein.policies import members_of, probabilities_of
from checkrein.problem import AtMost
from checkrein.protocols import Policy
from checkrein.report.model import LEARNED, CostRow, Summary
from checkrein.runs.dimensions import dimension_of
from checkrein.runs.folder import Resolved, RunFolder
from checkrein.runs.players import LOOKAHEAD, functions_of
from checkrein.runs.problem_file import ProblemFile
from checkrein.runs.reading import missing, read, settled, with_path
from checkrein.runs.sections import Learn
from checkrein.theory import Concentration, logged_concentration

LEFT = 1e-6  # of where an iteration began, once it is at its fixed point


@dataclass(frozen=True)
class Multipliers:
    """Where the learner's multipliers lie: the sum of scales * multipliers is at most the bound."""

    learner: str
    bound: float
    scales: tuple[float, ...]


@dataclass(frozen=True)
class Logged:
    """What the log that was learned from adds, where it is at hand."""

    rows: float  # of the learning part
    n_inputs: int  # finite states, or features
    coefficient: Concentration | None  # None: states are not finite
    of_policy: float | None  # the largest coefficient of first order of the policies found


@dataclass(frozen=True)
class FinishedRun:
    """All of a run that a theorem asks for; values of constraints are divided by their scale.

    horizon: by which the cost of a step is multiplied to bound values: 1 / (1 - discount), or the longest episode
    """

    file: ProblemFile
    summary: Summary
    constraints: tuple[AtMost, ...]
    multipliers: Multipliers
    horizon: float
    step_costs: tuple[float, ...]  # the largest |cost| of a step: of the objective, then of each constraint
    logged: Logged | None
    n_inputs: int | None
    played: int  # rounds
    first_gap: float  # after the first of them
    gap: float  # after the last

    @property
    def learn(self) -> Learn:
        """The settings of the run."""
        return self.file.learn

    @property
    def rows(self) -> float:
        """Of the learning part; without the log, in proportion to its episodes."""
        if self.logged is not None:
            return self.logged.rows
        card = self.summary.card
        return card.rows_used * self.summary.learning_episodes / card.episodes

    @property
    def iterations(self) -> int:
        """K: a network's own, else as many as leave nothing of where the iteration began."""
        whole = math.ceil(math.log(LEFT) / math.log(self.learn.discount))
        return min(LOOKAHEAD, whole) if self.learn.functions == "neural" else whole

    @property
    def dimension(self) -> int | None:
        """The pseudo-dimension of the run's function class; None where the size of its states is not known."""
        if self.n_inputs is None:
            return None
        functions, actions = functions_of(self.learn), len(self.summary.card.actions)
        return dimension_of(functions, n_inputs=self.n_inputs, n_actions=actions, rows=self.rows)

    @property
    def objective_bound(self) -> float:
        """The largest |value| of the objective."""
        return self.step_costs[0] * self.horizon or 1.0

    def constraint_bound(self, place: int) -> float:
        """Return the largest |value| of a constraint: as declared, else as its steps allow."""
        declared = self.constraints[place].range
        if declared is not None:
            return max(abs(end) for end in declared)
        return self.step_costs[1 + place] * self.horizon or 1.0

    def constraint_range(self, place: int) -> float:
        """Return the largest |value - limit| of a constraint."""
        return self.constraint_bound(place) + abs(self.constraints[place].limit)

    def row(self, place: int) -> CostRow:
        """Return what the report says of the objective (0) or of a constraint (1 and on)."""
        return self.summary.costs[place]

    def drift(self, place: int) -> float | None:
        """Return the held-out estimate minus that of the learning part."""
        found = self.row(place).values[LEARNED]
        return None if found.held_out is None or found.learning is None else found.held_out - found.learning


def open_run(path: Path, data: str | None = None) -> FinishedRun:
    """Read a run folder, and the log that it learned from: as given, or where the problem file says, if it is there."""
    folder = RunFolder.opened(path)
    folder.require_game("checkrein bounds run")
    resolved, summary, file = folder.resolved(), folder.summary(), folder.problem_file()
    trace, gap = summary.trace, summary.gap
    if trace is None or gap is None:
        raise ProblemError(f"{path} has no rounds that the theorems could be held against")
    encoding = folder.encoding()
    steps = _step_costs(summary, resolved.constraints, encoding)
    if data is not None:
        file = with_path(file, data)
    dataset = None
    if data is not None or not missing(file, Path()):
        reading = read(file, Path(), encoding)
        file = settled(file, reading.dataset)
        dataset = _learning_part(reading, resolved, f"{file.data.path}", path)
    elif encoding is not None:
        file = file.settled(finite=encoding.combinations is not None, width=len(encoding.columns), by_folds=False)
    discount = file.learn.discount
    inputs = None
    if encoding is not None:
        inputs = len(encoding.features if encoding.combinations is None else encoding.combinations)
    logged = None if dataset is None else _logged(dataset, file.learn, folder.policy())
    return FinishedRun(
        file=file,
        summary=summary,
        constraints=resolved.constraints,
        multipliers=_multipliers(path, len(resolved.constraints)),
        horizon=float(summary.card.longest) if discount == 1 else 1 / (1 - discount),
        step_costs=steps,
        logged=logged,
        n_inputs=inputs if logged is None else logged.n_inputs,
        played=len(trace.round),
        first_gap=trace.gap[0],
        gap=gap,
    )


def _learning_part(reading: Reading, resolved: Resolved, log: str, run: Path) -> Dataset:
    """Return the episodes that a run learned from."""
    if resolved.learned is None:
        return reading.dataset
    episodes = EpisodeKeys.of(reading.dataset, reading.names)
    if episodes.digest != resolved.log:
        raise DataError(f"{log} is not the log that {run} learned from: pass --data with its path")
    return reading.dataset.of_episodes(resolved.learned.seen_in(episodes))


def _step_costs(summary: Summary, constraints: tuple[AtMost, ...], encoding: Encoding | None) -> tuple[float, ...]:
    """Return the largest |cost| of a logged step, the objective's first; raise where a cost is none of single steps."""
    largest = {cost.cost: max(abs(cost.lowest), abs(cost.highest)) for cost in summary.card.behavior}
    names = [summary.costs[0].name, *(c.name for c in constraints)]
    lacking = [name for name in names if name not in largest]
    if lacking or (encoding is not None and encoding.memory is not None):
        which = ", ".join(lacking) or "some"
        raise ProblemError(
            f"the theorems are about costs that the log shows step by step, but {which} rest on the policy itself or "
            "on what happened before: they say nothing of this run"
        )
    return tuple(largest[name] for name in names)


def _logged(dataset: Dataset, learn: Learn, policy: Policy) -> Logged:
    """Measure the part of the log that was learned from."""
    transitions = dataset.compressed()
    transitions = transitions.select(transitions.next_observed | transitions.terminals)
    rows = float(transitions.weights.sum())
    if transitions.n_states is None:
        return Logged(rows, int(np.prod(transitions.states.shape[1:])), None, None)
    if learn.discount == 1:
        return Logged(rows, transitions.n_states, None, None)
    found = [_coefficient(transitions, learn.discount)]
    states = np.arange(transitions.n_states)
    for member, _ in members_of(policy):
        table = probabilities_of(member, states, transitions.n_actions)
        found.append(_coefficient(transitions, learn.discount, table))
    return Logged(rows, transitions.n_states, found[0], max((one.first_order for one in found[1:]), default=None))


def _coefficient(rows: Dataset, discount: float, policy: np.ndarray | None = None) -> Concentration:
    return logged_concentration(
        states=rows.states,
        actions=rows.actions,
        next_states=rows.next_states,
        terminals=rows.terminals,
        weights=rows.weights,
        initial_states=rows.initial_states,
        initial_weights=rows.initial_weights,
        discount=discount,
        policy=policy,
    )


def _multipliers(path: Path, n_constraints: int) -> Multipliers:
    """Read from a run's settings who played the multipliers, and within which bound."""
    try:
        name, _, rest = read_settings(path)["learner"].partition("(")
        call = ast.parse(f"settings({rest}", mode="eval").body
        settings = {word.arg: ast.literal_eval(word.value) for word in getattr(call, "keywords", [])}
        bound, scales = float(settings["bound"]), settings.get("scales") or (1.0,) * n_constraints
    except (AttributeError, KeyError, TypeError, ValueError, SyntaxError) as reason:
        raise StorageError(f"{path / SETTINGS} does not say within which bound the multipliers lay: {reason}") from None
    return Multipliers(name, bound, tuple(scales))
