"""prepare: a problem file and its log, read and split: what is to be learned, and how everything is shown."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from checkrein.base.errors import DataError, ProblemError
from checkrein.data.dataset import Dataset
from checkrein.data.encoding import Encoding
from checkrein.data.split import split_episodes
from checkrein.evaluation import FQE
from checkrein.functions import Linear, Neural, Polynomial, Tabular, Trees
from checkrein.functions.neural import import_networks
from checkrein.logs.card import DataCard
from checkrein.logs.hdf5 import read_hdf5
from checkrein.logs.inspection import data_card
from checkrein.logs.minari import read_minari
from checkrein.logs.table import Columns, Reading, read_table
from checkrein.policies import behavior_policy
from checkrein.problem import AtLeast, AtMost, Problem, Values
from checkrein.protocols import FunctionClass
from checkrein.report.summary import MAXIMISE, Cost
from checkrein.runs.problem_file import MINARI, PER_STEP, Learn, ProblemFile, read_problem_file

FROZEN = 64  # fits after which trees keep their structure, so that values converge
FEW_TREES, EARLY = 10, 8  # and the same of forests that are fitted many times over
STEPS, BATCH = 50, 256  # of gradient descent in each iteration, and the rows of one
THOROUGH, RIDGE = 3, 1.0  # to value policies: times as many steps, and what the last layer is solved for with


@dataclass(frozen=True)
class Prepared:
    """A problem file whose log was read: what is to be learned, and how everything is shown."""

    file: ProblemFile
    text: str
    problem: Problem  # on the part to learn from
    held_out: Problem | None
    costs: tuple[Cost, ...]  # the objective first
    card: DataCard
    dataset: Dataset  # all of it
    folder: Path  # of the log, or of the problem file where the log is no file


def prepare(path: Path, *, strict: bool = False) -> Prepared:
    """Read a problem file and its log; with `strict`, what is odd about the log is an error."""
    file, text = read_problem_file(path)
    learn = file.learn
    functions_of(learn)  # a missing package is told of before a long log is read
    reading = read(file, path.parent)
    dataset = reading.dataset
    learning, held_out = split_episodes(dataset, holdout=learn.holdout, seed=learn.seed)
    limits, costs = _limits(file, learning)
    objective = inside(file)
    problem = Problem(learning, objective=objective, constraints=limits, discount=learn.discount)
    names = [objective, *(c.name for c in file.constraint)]
    shown = {name: (cost.unit, -1.0 if cost.goal == MAXIMISE else 1.0) for name, cost in zip(names, costs, strict=True)}
    said = [*reading.warnings, *_leaks(file)]
    card = data_card(dataset, source=reading.source, discount=learn.discount, units=shown, warnings=said)
    named = [b.model_copy(update={"cost": cost.name}) for b, cost in zip(card.behavior, costs, strict=True)]
    card = card.model_copy(update={"behavior": named})
    if strict and card.warnings:
        raise DataError("the log is odd, and --strict was asked for:\n" + "\n".join(f"  {w}" for w in card.warnings))
    judging = None if held_out is None else replace(problem, dataset=held_out)
    return Prepared(file, text, problem, judging, costs, card, dataset, folder_of(file, path.parent))


def read(file: ProblemFile, folder: Path, encoding: Encoding | None = None) -> Reading:
    """Read the log with the objective and each constraint as costs, in the units that the user speaks of.

    encoding: of an earlier log, whose numbers for states and actions are to be kept
    """
    reading = _read(file, folder, encoding)
    return replace(reading, dataset=_in_user_units(file, reading.dataset))


def _read(file: ProblemFile, folder: Path, encoding: Encoding | None) -> Reading:
    data, expressions = file.data, {inside(file): file.objective.expression}
    expressions |= {c.name: c.cost or c.name for c in file.constraint}
    paths = paths_of(file, folder)
    finite = file.learn.functions == "tabular"
    if data.is_table:
        columns = Columns(
            data.episode or "",
            data.state or [],
            data.action or "",
            expressions,
            data.step,
            data.terminal,
            data.propensity,
            n_actions=data.n_actions,
            finite=finite,
            missing=data.missing,
            encoding=encoding,
        )
        return read_table(paths, columns)
    dataset = _read_arrays(paths[0], expressions, data.n_actions)
    if finite and dataset.n_states is None:
        raise ProblemError(f"{paths[0]} has no finite states: functions = 'tabular' needs them, use another class")
    return Reading(dataset.with_costs({name: dataset.cost(cost) for name, cost in expressions.items()}), paths[0], ())


def _read_arrays(path: str, expressions: Mapping[str, str], n_actions: int | None) -> Dataset:
    """Read a Minari dataset or an HDF5 file, whose costs are `reward`, `cost` and what its infos hold."""
    if path.startswith(MINARI):
        infos = {cost: cost for cost in expressions.values() if cost != "reward"}
        return read_minari(path.removeprefix(MINARI), costs=infos, n_actions=n_actions)
    return read_hdf5(path, n_actions=n_actions)


def paths_of(file: ProblemFile, folder: Path) -> list[str]:
    """Return where the log lies, seen from a folder."""
    paths = [file.data.path] if isinstance(file.data.path, str) else file.data.path
    return [path if path.startswith(MINARI) else str(folder / path) for path in paths]


def folder_of(file: ProblemFile, folder: Path) -> Path:
    """Return the folder of the log, or the given one where it is no file."""
    first = paths_of(file, folder)[0]
    return folder if first.startswith(MINARI) else Path(first).parent


def inside(file: ProblemFile) -> str:
    """Return the name of the objective's cost, which is always minimised."""
    return file.objective.label if file.objective.maximize is None else f"minus {file.objective.label}"


def _in_user_units(file: ProblemFile, dataset: Dataset) -> Dataset:
    """Return the log with costs whose discounted sums are what the user speaks of."""
    factors = {c.name: 1 - file.learn.discount for c in file.constraint if c.unit == PER_STEP}
    if file.objective.maximize is not None:
        factors[inside(file)] = -1.0
    if not factors:
        return dataset
    return dataset.with_costs({name: factors.get(name, 1.0) * dataset.cost(name) for name in dataset.cost_names})


def _limits(file: ProblemFile, learning: Dataset) -> tuple[list[AtMost], tuple[Cost, ...]]:
    """Return the constraints, and how each cost is shown."""
    discount = file.learn.discount
    sums = "expected sum per episode" if discount == 1 else f"expected sum, discounted by {discount}"
    maximised = file.objective.maximize is not None
    shown = [Cost(file.objective.label, MAXIMISE if maximised else "minimise", sums, -1.0 if maximised else 1.0)]
    free = [AtMost(c.name, 0.0) for c in file.constraint]
    logged = Problem(learning, objective=inside(file), constraints=free, discount=discount)
    relative = any(c.share_of_behavior is not None for c in file.constraint)
    behavior = _behavior(file.learn, logged).constraints if relative else np.zeros(len(free))
    limits: list[AtMost] = []
    for limit, done in zip(file.constraint, behavior, strict=True):
        unit = f"average per step, discounted by {discount}" if limit.unit == PER_STEP else sums
        share = limit.share_of_behavior
        value = float(limit.given) if share is None else share * float(done)
        kind = AtMost if limit.at_most is not None else AtLeast
        limits.append(kind(limit.name, value, range=limit.ends))
        source = None if share is None else str(limit.given)
        shown.append(Cost(limit.name, f"{limit.words} {value:.4g}", unit, kind.sign, value, source))
    return limits, tuple(shown)


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


def functions_of(learn: Learn) -> FunctionClass:
    """Return the function class that a problem file asks for."""
    match learn.functions:
        case "tabular":
            return Tabular()
        case "linear":
            return Linear(Polynomial(learn.degree), ridge=learn.ridge)
        case "trees":
            return Trees(learn.n_trees, learn.min_leaf, freeze_after=FROZEN)
        case "neural":
            import_networks('functions = "neural"')
            return Neural(tuple(learn.hidden), steps=STEPS, batch=BATCH)


def light_functions(learn: Learn) -> FunctionClass:
    """Return the class of what is fitted many times over: the problem file's own in closed form, else few trees."""
    if learn.closed_form:
        return functions_of(learn)
    return Trees(min(FEW_TREES, learn.n_trees), learn.min_leaf, freeze_after=EARLY)


def evaluator_of(functions: FunctionClass) -> FQE:
    """Return what values policies; the last layer of a network is solved for."""
    if isinstance(functions, Neural):
        return FQE(replace(functions, steps=THOROUGH * STEPS), last_layer=RIDGE)
    return FQE(functions)
