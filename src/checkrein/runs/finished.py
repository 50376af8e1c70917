"""A finished run as the theorems see it: how large its values can be, how many rows and rounds it had, its log."""

import ast
import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from checkrein.base.errors import DataError, StorageError
from checkrein.certification.looks import log_key
from checkrein.data.dataset import Dataset
from checkrein.data.split import split_episodes
from checkrein.game.checkpoint import SETTINGS
from checkrein.policies import members_of, probabilities_of
from checkrein.problem import AtMost, Problem
from checkrein.problem.costs import cost_of, step_range
from checkrein.protocols import Policy
from checkrein.report.model import LEARNED, CostRow, Summary
from checkrein.runs.dimensions import dimension_of
from checkrein.runs.folder import Resolved, RunFolder
from checkrein.runs.players import LOOKAHEAD, functions_of
from checkrein.runs.problem_file import Learn, ProblemFile
from checkrein.runs.reading import missing, read, with_path
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
    folder = RunFolder(path)
    resolved, summary, file = folder.resolved(), folder.summary(), folder.problem_file()
    if data is not None:
        file = with_path(file, data)
    dataset = None
    if data is not None or not missing(file, Path()):
        dataset = read(file, Path(), folder.encoding()).dataset
        if resolved.log is not None and log_key(dataset) != resolved.log:
            raise DataError(f"{file.data.path} is not the log that {path} learned from: pass --data with its path")
    discount = file.learn.discount
    encoding = folder.encoding()
    inputs = None
    if encoding is not None:
        inputs = len(encoding.features if encoding.combinations is None else encoding.combinations)
    problem = None
    if dataset is not None:
        problem = Problem(dataset, objective=resolved.objective, constraints=resolved.constraints, discount=discount)
    logged = None if problem is None else _logged(problem.dataset, file.learn, folder.policy())
    return FinishedRun(
        file=file,
        summary=summary,
        constraints=resolved.constraints if problem is None else tuple(problem.constraints),
        multipliers=_multipliers(path / SETTINGS, len(resolved.constraints)),
        horizon=float(summary.card.longest) if discount == 1 else 1 / (1 - discount),
        step_costs=_step_costs(resolved, summary, problem),
        logged=logged,
        n_inputs=inputs if logged is None else logged.n_inputs,
    )


def _step_costs(resolved: Resolved, summary: Summary, problem: Problem | None) -> tuple[float, ...]:
    """Return the largest |cost| of a step of the objective, then of each constraint: by the data card, or by the log.

    The card knows the costs that were logged, not those of the policy itself.
    """
    card = {cost.cost: max(abs(cost.lowest), abs(cost.highest)) for cost in summary.card.behavior}
    found = [card[resolved.objective]]
    for place, constraint in enumerate(resolved.constraints):
        if constraint.name in card:
            found.append(card[constraint.name])
        elif problem is None:
            raise DataError(
                f"how large {constraint.name} can be is not known without the log, which is not here: pass --data with "
                "its path"
            )
        else:
            cost = cost_of(problem.constraints[place].cost, problem.dataset)
            found.append(max(abs(end) for end in step_range(cost, problem.dataset, None)))
    return tuple(found)


def _logged(dataset: Dataset, learn: Learn, policy: Policy) -> Logged:
    learning, _ = split_episodes(dataset, holdout=learn.holdout, seed=learn.seed)
    transitions = learning.compressed()
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
        name, _, rest = json.loads(path.read_text(encoding="utf-8"))["learner"].partition("(")
        call = ast.parse(f"settings({rest}", mode="eval").body
        settings = {word.arg: ast.literal_eval(word.value) for word in getattr(call, "keywords", [])}
        bound, scales = float(settings["bound"]), settings.get("scales") or (1.0,) * n_constraints
    except (OSError, AttributeError, KeyError, TypeError, ValueError, SyntaxError) as reason:
        raise StorageError(f"{path} does not say within which bound the multipliers lay: {reason}") from None
    return Multipliers(name, bound, tuple(scales))
