"""prepare: a problem file and its log, read and split: what is to be learned, and what is wanted of each cost."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.base.errors import DataError
from checkrein.data.dataset import Dataset
from checkrein.data.split import split_episodes
from checkrein.logs.card import DataCard
from checkrein.logs.inspection import data_card
from checkrein.logs.table import Reading
from checkrein.policies import behavior_policy
from checkrein.problem import AtLeast, AtMost, Problem, Values
from checkrein.problem.goals import Direction, Goal, Unit
from checkrein.runs.players import evaluator_of, functions_of
from checkrein.runs.problem_file import Learn, ProblemFile, read_problem_file
from checkrein.runs.reading import folder_of, objective_of, read


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

    @property
    def objective(self) -> str:
        """The name of the cost that is minimised."""
        return objective_of(self.file)


def prepare(path: Path, *, strict: bool = False) -> Prepared:
    """Read a problem file and its log; with `strict`, what is odd about the log is an error."""
    file, text = read_problem_file(path)
    learn = file.learn
    functions_of(learn)  # a missing package is told of before a long log is read
    reading = read(file, path.parent)
    learning, held_out = split_episodes(reading.dataset, holdout=learn.holdout, seed=learn.seed)
    constraints, goals = _constraints(file, learning)
    problem = Problem(learning, objective=objective_of(file), constraints=constraints, discount=learn.discount)
    card = _card(file, reading, goals)
    if strict and card.warnings:
        raise DataError("the log is odd, and --strict was asked for:\n" + "\n".join(f"  {w}" for w in card.warnings))
    judging = None if held_out is None else replace(problem, dataset=held_out)
    return Prepared(file, text, problem, judging, goals, card, reading.dataset, folder_of(file, path.parent))


def _card(file: ProblemFile, reading: Reading, goals: tuple[Goal, ...]) -> DataCard:
    """Describe the log, its costs by the names and in the signs that the user gave them."""
    names = [objective_of(file), *(limit.name for limit in file.constraint)]
    signs = [goals[0].direction.sign, *(1.0 for _ in file.constraint)]  # only what is maximised was turned around
    units = {name: (goal.unit, sign) for name, goal, sign in zip(names, goals, signs, strict=True)}
    said = [*reading.warnings, *_leaks(file)]
    card = data_card(reading.dataset, source=reading.source, discount=file.learn.discount, units=units, warnings=said)
    named = [b.model_copy(update={"cost": goal.name}) for b, goal in zip(card.behavior, goals, strict=True)]
    return card.model_copy(update={"behavior": named})


def _constraints(file: ProblemFile, learning: Dataset) -> tuple[tuple[AtMost, ...], tuple[Goal, ...]]:
    """Return the constraints, those relative to behavior as numbers, and what is wanted of each cost."""
    free = [AtMost(c.name, 0.0) for c in file.constraint]
    logged = Problem(learning, objective=objective_of(file), constraints=free, discount=file.learn.discount)
    relative = any(c.share_of_behavior is not None for c in file.constraint)
    return constraints_of(file, _behavior(file.learn, logged).constraints if relative else np.zeros(len(free)))


def constraints_of(file: ProblemFile, behavior: FloatArray) -> tuple[tuple[AtMost, ...], tuple[Goal, ...]]:
    """Return the constraints and what is wanted of each cost; behavior: (m,) what limits relative to it are of."""
    maximised = file.objective.maximize is not None
    goals = [Goal(file.objective.label, Direction.MAXIMISE if maximised else Direction.MINIMISE)]
    constraints: list[AtMost] = []
    for limit, done in zip(file.constraint, behavior, strict=True):
        share = limit.share_of_behavior
        value = float(limit.given) if share is None else share * float(done)
        kind = AtMost if limit.at_most is not None else AtLeast
        constraints.append(kind(limit.name, value, range=limit.ends))
        goals.append(Goal.of(constraints[-1], Unit(limit.unit), None if share is None else str(limit.given)))
    return tuple(constraints), tuple(goals)


def _behavior(learn: Learn, problem: Problem) -> Values:
    """Value the logged decisions like any other policy: their estimated probabilities, by the same evaluator.

    A plain mean of the logged sums stops where episodes were cut off, which policies do not.
    """
    policy = behavior_policy(problem.transitions)
    return evaluator_of(functions_of(learn))(problem, policy, rng=np.random.default_rng(learn.seed))


def _leaks(file: ProblemFile) -> list[str]:
    """Warn where a state column is also an outcome or the action: it is not known when the decision is made."""
    state = {file.data.state} if isinstance(file.data.state, str) else set(file.data.state or [])
    outcomes = {file.objective.expression, *(c.cost or c.name for c in file.constraint), file.data.action}
    return [
        f"{name!r} is a state column and also an outcome or the action: is it known when the decision is made?"
        for name in sorted(state & outcomes, key=str)
    ]
