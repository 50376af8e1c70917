"""fit: from a problem file to a run folder with a policy and a report."""

import importlib.metadata
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bridle import storage
from bridle.best_response import FQI
from bridle.certification import split_episodes
from bridle.dataset import Dataset
from bridle.deploy import best_member
from bridle.deploy.deployed import ENCODING, SINGLE
from bridle.errors import DataError, DivergenceError, EndlessPolicyError, ProblemError
from bridle.evaluation import FQE
from bridle.functions import Linear, Polynomial, Tabular
from bridle.game import Round, Solution, solve
from bridle.logs.card import DataCard
from bridle.logs.hdf5 import read_hdf5
from bridle.logs.inspection import data_card
from bridle.logs.minari import read_minari
from bridle.logs.table import Columns, Reading, read_table
from bridle.online import CuttingPlane, ExponentiatedGradient, OnlineGradientDescent
from bridle.policies import save_policy
from bridle.problem import AtLeast, AtMost, Problem, Values
from bridle.problem_file import MINARI, PER_STEP, Learn, ProblemFile, read_problem_file
from bridle.protocols import FunctionClass, OnlineLearner, Policy
from bridle.report.model import Repeat, Summary
from bridle.report.page import page
from bridle.report.summary import (
    BEHAVIOUR,
    CITATION,
    LEARNED,
    MAXIMISE,
    SINGLE_POLICY,
    UNCONSTRAINED,
    Cost,
    Judged,
    summary,
    versions,
)
from bridle.support import Support, behaviour_policy

PROBLEM, SUMMARY, REPORT = "problem.toml", "summary.json", "report.html"
CAREFUL = 0.02  # the share of its bound by which gradient descent answers a usual violation: more makes it swing
GENEROUS = 100.0  # times the price at which a constraint's usual variation outweighs the objective's


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


def prepare(path: Path, *, strict: bool = False) -> Prepared:
    """Read a problem file and its log; with `strict`, what is odd about the log is an error."""
    file, text = read_problem_file(path)
    learn = file.learn
    reading = _read(file, path.parent)
    dataset = _in_user_units(file, reading.dataset)
    learning, held_out = split_episodes(dataset, holdout=learn.holdout, seed=learn.seed)
    limits, costs = _limits(file, learning)
    objective = _inside(file)
    problem = Problem(learning, objective=objective, constraints=limits, discount=learn.discount)
    inside = [objective, *(c.name for c in file.constraint)]
    shown = {
        name: (cost.unit, -1.0 if cost.goal == MAXIMISE else 1.0) for name, cost in zip(inside, costs, strict=True)
    }
    said = [*reading.warnings, *_leaks(file)]
    card = data_card(dataset, source=reading.source, discount=learn.discount, units=shown, warnings=said)
    named = [b.model_copy(update={"cost": cost.name}) for b, cost in zip(card.behaviour, costs, strict=True)]
    card = card.model_copy(update={"behaviour": named})
    if strict and card.warnings:
        raise DataError("the log is odd, and --strict was asked for:\n" + "\n".join(f"  {w}" for w in card.warnings))
    judging = None if held_out is None else replace(problem, dataset=held_out)
    return Prepared(file, text, problem, judging, costs, card, dataset)


def fit(
    prepared: Prepared, out: Path, *, command: str, on_round: Callable[[Round], None] | None = None
) -> tuple[Solution, Summary]:
    """Learn, judge on the held-out part, and write the run folder; an unfinished run there is taken up again."""
    learn, problem = prepared.file.learn, prepared.problem
    functions, support = _functions(learn), Support(learn.min_count, learn.min_probability)
    respond, evaluate = FQI(functions, support=support), FQE(functions)
    solution = solve(
        problem,
        best_response=respond,
        evaluator=evaluate,
        learner=_learner(learn, problem),
        tolerance=learn.tolerance,
        max_rounds=learn.max_rounds,
        seed=learn.seed,
        on_round=on_round,
        checkpoint=out,
    )
    rng = np.random.default_rng(learn.seed)
    free = respond(problem, np.zeros(problem.n_constraints), rng=rng)

    trouble: list[str] = []

    def value(where: Problem | None, policy: Policy) -> Values | None:
        try:
            return None if where is None else evaluate(where, policy, rng=rng)
        except (DivergenceError, EndlessPolicyError) as reason:
            trouble.append(f"a policy could not be valued on one part of the log: {reason}")
            return None

    def judge(policy: Policy) -> Judged:
        return Judged(value(problem, policy), value(prepared.held_out, policy))

    single = best_member(problem, solution).policy
    judged = {
        LEARNED: judge(solution.policy),
        BEHAVIOUR: judge(behaviour_policy(problem.transitions)),
        UNCONSTRAINED: judge(free),
        SINGLE_POLICY: judge(single),
    }
    repeat = Repeat(
        command=command,
        problem_file=prepared.text,
        version=importlib.metadata.version("bridle"),
        seed=learn.seed,
        dataset=prepared.dataset.fingerprint,
        packages=versions(),
        citation=CITATION,
    )
    found = summary(
        problem,
        solution,
        title=prepared.file.title or f"{prepared.file.objective.label}, learned from {prepared.card.source}",
        costs=prepared.costs,
        judged=judged,
        card=prepared.card.model_copy(update={"warnings": [*prepared.card.warnings, *dict.fromkeys(trouble)]}),
        held_out_episodes=0 if prepared.held_out is None else prepared.held_out.dataset.first_rows().size,
        repeat=repeat,
    )
    if prepared.dataset.encoding is not None:
        storage.save(prepared.dataset.encoding, out / ENCODING)
    save_policy(single, out / SINGLE)
    _write(out / PROBLEM, prepared.text)
    _write(out / SUMMARY, found.model_dump_json(indent=1) + "\n")
    write_report(out, found)
    return solution, found


def write_report(out: Path, found: Summary) -> Path:
    """Write the page of a summary."""
    _write(out / REPORT, page(found))
    return out / REPORT


def read_summary(run: Path) -> Summary:
    """Return the summary of a finished run."""
    path = run / SUMMARY
    if not path.exists():
        raise DataError(f"{run} holds no finished run: there is no {SUMMARY} in it")
    try:
        return Summary.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except ValueError as reason:
        raise DataError(f"{path} is damaged: {str(reason).splitlines()[0]}") from None


def _write(path: Path, text: str) -> None:
    storage.write_atomically(path, lambda file: file.write(text.encode()))


def _read(file: ProblemFile, folder: Path) -> Reading:
    """Read the log with the objective and each constraint as costs."""
    data, expressions = file.data, {_inside(file): file.objective.expression}
    expressions |= {c.name: c.cost or c.name for c in file.constraint}
    paths = _paths(file, folder)
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
        )
        return read_table(paths, columns)
    dataset = _read_arrays(paths[0], expressions, data.n_actions)
    if finite and dataset.n_states is None:
        raise ProblemError(f"{paths[0]} has no finite states: functions = 'tabular' needs them, use 'linear'")
    return Reading(dataset.with_costs({name: dataset.cost(cost) for name, cost in expressions.items()}), paths[0], ())


def _read_arrays(path: str, expressions: Mapping[str, str], n_actions: int | None) -> Dataset:
    """Read a Minari dataset or an HDF5 file, whose costs are `reward`, `cost` and what its infos hold."""
    if path.startswith(MINARI):
        infos = {cost: cost for cost in expressions.values() if cost != "reward"}
        return read_minari(path.removeprefix(MINARI), costs=infos, n_actions=n_actions)
    return read_hdf5(path, n_actions=n_actions)


def _paths(file: ProblemFile, folder: Path) -> list[str]:
    paths = [file.data.path] if isinstance(file.data.path, str) else file.data.path
    return [path if path.startswith(MINARI) else str(folder / path) for path in paths]


def _inside(file: ProblemFile) -> str:
    """Return the name of the objective's cost, which is always minimised."""
    return file.objective.label if file.objective.maximize is None else f"minus {file.objective.label}"


def _in_user_units(file: ProblemFile, dataset: Dataset) -> Dataset:
    """Return the log with costs whose discounted sums are what the user speaks of."""
    factors = {c.name: 1 - file.learn.discount for c in file.constraint if c.unit == PER_STEP}
    if file.objective.maximize is not None:
        factors[_inside(file)] = -1.0
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
    logged = Problem(learning, objective=_inside(file), constraints=free, discount=discount)
    relative = any(c.share_of_behaviour is not None for c in file.constraint)
    behaviour = _behaviour(file.learn, logged).constraints if relative else np.zeros(len(free))
    limits: list[AtMost] = []
    for limit, done in zip(file.constraint, behaviour, strict=True):
        unit = f"average per step, discounted by {discount}" if limit.unit == PER_STEP else sums
        share = limit.share_of_behaviour
        value = float(limit.given) if share is None else share * float(done)
        kind = AtMost if limit.at_most is not None else AtLeast
        limits.append(kind(limit.name, value))
        source = None if share is None else str(limit.given)
        shown.append(Cost(limit.name, f"{limit.words} {value:.4g}", unit, kind.sign, value, source))
    return limits, tuple(shown)


def _behaviour(learn: Learn, problem: Problem) -> Values:
    """Value the logged decisions like any other policy: their estimated probabilities, by the same evaluator.

    A plain mean of the logged sums stops where episodes were cut off, which policies do not.
    """
    policy = behaviour_policy(problem.transitions)
    return FQE(_functions(learn))(problem, policy, rng=np.random.default_rng(learn.seed))


def _leaks(file: ProblemFile) -> list[str]:
    """Warn where a state column is also an outcome or the action: it is not known when the decision is made."""
    state = {file.data.state} if isinstance(file.data.state, str) else set(file.data.state or [])
    outcomes = {file.objective.expression, *(c.cost or c.name for c in file.constraint), file.data.action}
    return [
        f"{name!r} is a state column and also an outcome or the action: is it known when the decision is made?"
        for name in sorted(state & outcomes, key=str)
    ]


def _functions(learn: Learn) -> FunctionClass:
    return Tabular() if learn.functions == "tabular" else Linear(Polynomial(learn.degree), ridge=learn.ridge)


def _learner(learn: Learn, problem: Problem) -> OnlineLearner[Any]:
    """Return the learner; its bound defaults to far above any price that the costs' variation suggests."""
    spread = _spread(problem)
    if learn.learner == "cutting-plane":
        scales = tuple((spread[1:] / spread[0]).tolist()) if learn.bound is None else None
        return CuttingPlane(learn.bound or GENEROUS, scales=scales)
    prices = spread[0] / spread[1:]
    bound = learn.bound or 10.0 * float(prices.max(initial=1e-300))
    rate = learn.rate or 1.0 / float(spread[1:].max(initial=1e-300))
    if learn.learner == "exponentiated-gradient":
        return ExponentiatedGradient(bound, rate)
    return OnlineGradientDescent(bound, learn.rate or CAREFUL * bound / float(np.linalg.norm(spread[1:]) or 1.0))


def _spread(problem: Problem) -> np.ndarray:
    """(1 + m,) how much the sums of the logged episodes vary; one where they do not."""
    names: Sequence[str] = [problem.objective or "", *(c.cost for c in problem.constraints)]
    places = [problem.dataset.cost_names.index(name) for name in names]
    spread = problem.dataset.returns(problem.discount)[:, places].std(axis=0)
    return np.where(spread > 0, spread, 1.0)
