"""prepare: a problem file and its log, read and split: what is to be learned, and what is wanted of each cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.base.errors import DataError
from checkrein.costs import StateActionCost
from checkrein.data.copies import Copies
from checkrein.data.dataset import Dataset
from checkrein.data.identity import EpisodeKeys
from checkrein.data.split import split_episodes
from checkrein.evaluation.behavior_value import behavior_value
from checkrein.logs.card import DataCard
from checkrein.logs.inspection import data_card
from checkrein.logs.table import Reading
from checkrein.problem import AtLeast, AtMost, Problem
from checkrein.problem.goals import Goal, Unit
from checkrein.protocols import Cost
from checkrein.runs.changes import changed
from checkrein.runs.players import evaluator_of, functions_of
from checkrein.runs.problem_file import ProblemFile, parse_problem, read_problem_file
from checkrein.runs.reading import by_folds, cost_of, folder_of, objective_of, read, settled


@dataclass(frozen=True)
class Prepared:
    """A problem file whose log was read: what is to be learned, and what is wanted of each cost."""

    file: ProblemFile
    text: str
    problem: Problem  # on the part to learn from
    held_out: Problem | None
    goals: tuple[Goal, ...]  # the objective first
    card: DataCard
    dataset: Dataset  # all of it
    folder: Path  # of the log, or of the problem file where the log is no file
    learned: EpisodeKeys | None  # the episodes to learn from; None where episodes are not known
    judging: EpisodeKeys | None  # those held out
    copies: Copies | None  # of other episodes, left out of all of these
    cross_fitted: bool = False  # whether all episodes learn and all judge, none both for the same policy

    @property
    def log(self) -> str | None:
        """The key of the log, in whatever order it stands; None where episodes are not known."""
        if self.learned is None:
            return None
        return (self.learned if self.judging is None else self.learned.joined(self.judging)).digest

    @property
    def unjudged(self) -> "Prepared":
        """The same with nothing to judge by: for a run that explores."""
        return replace(self, held_out=None)

    @property
    def objective(self) -> str:
        """The name of the cost that is minimised."""
        return objective_of(self.file)


def prepare(path: Path, *, strict: bool = False, hold_out: bool = False, settings: Sequence[str] = ()) -> Prepared:
    """Read a problem file and its log; with `strict`, what is odd about the log is an error.

    settings: like "learn.discount=0.95", in place of what the file says
    hold_out: whether episodes are to be held out even where the problem file would have all learn and judge
    """
    file, text = read_problem_file(path)
    if settings:
        text = changed(text, path, settings)
        file = parse_problem(text, path)
    return prepare_problem(file, text, path.parent, strict=strict, hold_out=hold_out)


def prepare_problem(
    file: ProblemFile,
    text: str,
    folder: Path,
    *,
    table: object | None = None,
    strict: bool = False,
    hold_out: bool = False,
) -> Prepared:
    """Read the log of a problem as `prepare` does.

    folder: that the log's path is seen from, and that looks at it are recorded in where it is no file
    table: the log itself, where it lies in memory
    """
    file = file.holding_out() if hold_out else file
    functions_of(file.learn)  # a missing package is told of before a long log is read
    reading = read(file, folder, table=table)
    cross_fitted, file = by_folds(file, reading.dataset), settled(file, reading.dataset)
    learn = file.learn
    learning, held_out = reading.dataset, None
    if not cross_fitted:
        learning, held_out = split_episodes(reading.dataset, holdout=learn.holdout, seed=learn.seed)
    known = reading.known.get(objective_of(file))
    objective = objective_of(file) if known is None else replace(known, name=objective_of(file))
    constraints, goals = _constraints(file, learning, objective, reading.known)
    admissible = None if reading.admitted is None else reading.admitted.actions
    problem = Problem(
        learning, objective=objective, constraints=constraints, discount=learn.discount, admissible=admissible
    )
    card = _card(file, reading, goals)
    if strict and card.warnings:
        raise DataError("the log is odd, and --strict was asked for:\n" + "\n".join(f"  {w}" for w in card.warnings))
    judging = None if held_out is None else replace(problem, dataset=held_out)
    folder, names = folder if table is not None else folder_of(file, folder), reading.names
    learned = None if learning.episodes is None else EpisodeKeys.of(learning, names)
    judged = None if held_out is None else EpisodeKeys.of(held_out, names)
    return Prepared(
        file,
        text,
        problem,
        judging,
        goals,
        card,
        reading.dataset,
        folder,
        learned,
        judged,
        reading.copies,
        cross_fitted,
    )


def _card(file: ProblemFile, reading: Reading, goals: tuple[Goal, ...]) -> DataCard:
    """Describe the log, its costs by the names and in the signs that the user gave them."""
    logged = [goal for goal, limit in zip(goals[1:], file.constraint, strict=True) if limit.kind.logged]
    named = {objective_of(file): goals[0]} | {goal.name: goal for goal in logged}
    turned = goals[0].direction.sign  # only what is maximised was turned around
    units = {name: (goal.unit, turned if goal is goals[0] else 1.0) for name, goal in named.items()}
    said = [*reading.warnings, *_leaks(file)]
    card = data_card(
        reading.dataset,
        source=reading.source,
        discount=file.learn.discount,
        units=units,
        warnings=said,
        copied=reading.copied_rows,
        beyond=reading.beyond,
        inadmissible=None if reading.admitted is None else int((~reading.admitted.rows).sum()),
    )
    behavior = [b.model_copy(update={"cost": named[b.cost].name}) for b in card.behavior]
    chosen = reading.why or f'functions = "{file.learn.functions}", as the problem file says'
    return card.model_copy(update={"behavior": behavior, "functions": chosen})


def _constraints(
    file: ProblemFile, learning: Dataset, objective: str | Cost, known: Mapping[str, StateActionCost]
) -> tuple[tuple[AtMost, ...], tuple[Goal, ...]]:
    """Return the constraints, those relative to behavior as numbers, and what is wanted of each cost."""
    free = [AtMost(cost_of(c, known), 0.0, name=c.name) for c in file.constraint]
    logged = Problem(learning, objective=objective, constraints=free, discount=file.learn.discount)
    relative = any(c.share_of_behavior is not None for c in file.constraint)
    if not relative:
        return constraints_of(file, np.zeros(len(free)), logged.constraints)
    rng = np.random.default_rng(file.learn.seed)
    behavior = behavior_value(logged, evaluator_of(functions_of(file.learn)), rng=rng).values
    return constraints_of(file, behavior.constraints, logged.constraints)


def constraints_of(
    file: ProblemFile, behavior: FloatArray, like: Sequence[AtMost]
) -> tuple[tuple[AtMost, ...], tuple[Goal, ...]]:
    """Return the constraints and what is wanted of each cost.

    behavior: (m,) what limits relative to it are of; like: constraints on the same costs, whatever their limits
    """
    goals = [file.objective.goal]
    constraints: list[AtMost] = []
    for limit, stated, done in zip(file.constraint, like, behavior, strict=True):
        share = limit.share_of_behavior
        value = float(limit.given) if share is None else share * float(done)
        kind = AtMost if limit.at_most is not None else AtLeast
        constraints.append(kind(stated.cost, value, name=limit.name, range=limit.ends or stated.range))
        goals.append(Goal.of(constraints[-1], Unit(limit.unit), None if share is None else str(limit.given)))
    return tuple(constraints), tuple(goals)


def _leaks(file: ProblemFile) -> list[str]:
    """Warn where a state column is also an outcome or the action: it is not known when the decision is made."""
    state = {file.data.state} if isinstance(file.data.state, str) else set(file.data.state or [])
    limited = {c.expression for c in file.constraint if c.kind.logged}
    outcomes = {file.objective.expression, *limited, file.data.action}
    return [
        f"{name!r} is a state column and also an outcome or the action: is it known when the decision is made?"
        for name in sorted(state & outcomes, key=str)
    ]
