"""Another question put to a finished run: what its policies say to it, and what they bring along to the log."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from checkrein.base.errors import DataError, DivergenceError, EndlessPolicyError
from checkrein.costs import StateActionCost
from checkrein.data.dataset import Dataset
from checkrein.evaluation import FQE
from checkrein.game import Solution, Status
from checkrein.game.checkpoint import FEASIBILITY, MAIN, read_settings, recorded_plays
from checkrein.game.loop import Play
from checkrein.game.reuse import Earlier, answer, carry_over
from checkrein.policies import Support
from checkrein.problem import AtMost, Problem, Question, Values
from checkrein.problem.goals import Goal
from checkrein.protocols import Policy
from checkrein.report.model import BEHAVIOR, Summary
from checkrein.runs.folder import Resolved, RunFolder, rows_key
from checkrein.runs.prepare import constraints_of
from checkrein.runs.problem_file import ProblemFile, read_problem_file
from checkrein.runs.questions import earlier_costs, names_of, require_comparable
from checkrein.runs.reading import objective_of
from checkrein.selection.margins import MarginChoice

SAME = 1e-6  # relative: what two evaluations of one policy on one log may differ by, in closed form


@dataclass(frozen=True)
class EarlierRun:
    """A finished run, as far as another question needs it."""

    path: Path
    file: ProblemFile
    resolved: Resolved
    support: Support
    summary: Summary
    settings: dict[str, Any]
    plays: dict[str, list[Play]]  # by phase

    @classmethod
    def read(cls, path: Path) -> "EarlierRun":
        """Read a run folder."""
        folder = RunFolder.opened(path)
        folder.require_game("--from")
        resolved, file, summary = folder.resolved(), folder.problem_file(), folder.summary()
        if resolved.support is None:
            raise DataError(
                f"{path} was written by an earlier version, which did not keep all that another question needs: "
                "learn it again with `checkrein fit`"
            )
        return cls(path, file, resolved, resolved.support, summary, read_settings(path), recorded_plays(path))


@dataclass(frozen=True)
class Asked:
    """A problem file put to a finished run, before any log is read.

    costs: which of the run's each cost is, the objective first
    constraints, goals, solution: None where the log is needed to know them
    why: what the log is needed for, in words; empty: it is not
    """

    run: EarlierRun
    file: ProblemFile
    text: str
    costs: tuple[Earlier | None, ...]
    constraints: tuple[AtMost, ...] | None
    goals: tuple[Goal, ...] | None
    solution: Solution | None
    why: str

    def behavior(self, place: int) -> float | None:
        """Return behavior's value of a cost, in the new unit and the user's signs, where the run knows it."""
        cost = self.costs[place]
        if cost is None:
            return None
        done = self.run.summary.costs[cost.place].values[BEHAVIOR].learning
        return None if done is None else cost.factor * done

    def like(self) -> list[AtMost]:
        """Return constraints on the costs that are asked for, as the run knows them, whatever their limits."""
        found = []
        for limit, cost in zip(self.file.constraint, self.costs[1:], strict=True):
            known = None if cost is None or cost.place == 0 else self.run.resolved.constraints[cost.place - 1]
            if cost is None or known is None or isinstance(known.cost, str):
                found.append(AtMost(limit.name, 0.0))
            elif isinstance(known.cost, StateActionCost):
                found.append(AtMost(known.cost.times(cost.factor), 0.0, name=limit.name))
            else:
                found.append(AtMost(known.cost, 0.0, name=limit.name, range=known.range))
        return found

    def aimed(self, constraints: tuple[AtMost, ...]) -> tuple[AtMost, ...]:
        """Return constraints with the room under their limits that the run left for the same costs."""
        asked, aimed = self.run.resolved.constraints, self.run.resolved.aimed
        if not aimed:
            return constraints
        room = [0.0, *(c.sign * (c.limit - a.limit) for c, a in zip(asked, aimed, strict=True))]
        return tuple(
            c if cost is None else replace(c, limit=c.limit - c.sign * cost.factor * room[cost.place])
            for c, cost in zip(constraints, self.costs[1:], strict=True)
        )

    def margins(self, constraints: tuple[AtMost, ...]) -> MarginChoice | None:
        """Return what to learn with, where the run left room under its limits."""
        if not self.run.resolved.aimed:
            return None
        return MarginChoice(self.run.support, self.aimed(constraints), predicted={}, predicted_to_pass=False)

    def plays(self, evaluate: Callable[[Policy], Values] | None = None) -> list[Play]:
        """Return all that the run found, as plays of the new question."""
        found = self.run.plays
        return [
            *carry_over(found[MAIN], self.costs, evaluate=evaluate),
            *carry_over(found[FEASIBILITY], self.costs, objective_weight=0.0, evaluate=evaluate),
        ]

    def known(self, problem: Problem, evaluator: FQE, tell: Callable[[str], None]) -> list[Play]:
        """Return the same, valued on the log where a cost was not known to the run."""
        seed, numbers = self.file.learn.seed, count(1)

        def evaluate(policy: Policy) -> Values:
            number = next(numbers)
            tell(f"valuing policy {number} of {self.run.path}")
            try:
                return evaluator(problem, policy, rng=np.random.default_rng([seed, number]))
            except (DivergenceError, EndlessPolicyError):
                return Values(float("nan"), np.full(problem.n_constraints, np.nan))

        plays = self.plays(evaluate if None in self.costs else None)
        if self.file.learn.closed_form and plays:
            self._require_same_values(plays[0], evaluate(plays[0].policy))
        return plays

    def require_same_log(self, dataset: Dataset, source: str) -> None:
        """Raise unless a log has the very rows that the run learned from."""
        if rows_key(dataset) != self.run.resolved.rows:
            raise DataError(
                f"{source} is not the log that {self.run.path} learned from: its rows differ. "
                "Learn from it without --from"
            )

    def _require_same_values(self, known: Play, now: Values) -> None:
        """Raise where the log has other costs than the run saw: what it found would be worth something else."""
        pairs = zip(names_of(self.file), self.costs, known.values.row, now.row, strict=True)
        for name, cost, was, found in pairs:
            if cost is not None and abs(was - found) > SAME * (1 + abs(was) + abs(found)):
                raise DataError(
                    f"{name} is {found:.6g} for the first policy of {self.run.path}, which found {was:.6g}: the log "
                    "has changed since. Learn from it without --from"
                )


def ask(problem: Path, run: Path) -> Asked:
    """Put a problem file to a finished run; its policies may answer it, and else the log is needed."""
    file, text = read_problem_file(problem)
    finished = EarlierRun.read(run)
    require_comparable(finished.file, file, run)
    costs = earlier_costs(finished.file, file)
    new = [name for name, cost in zip(names_of(file), costs, strict=True) if cost is None]
    asked = Asked(finished, file, text, costs, None, None, None, "")
    behavior = [asked.behavior(place) for place in range(1, len(costs))]
    pairs = zip(file.constraint, behavior, strict=True)
    relative = [c.name for c, done in pairs if c.share_of_behavior is not None and done is None]
    if new:
        return replace(asked, why=f"{run} has no values of {', '.join(new)}")
    if relative:
        return replace(asked, why=f"{run} has no value of behavior for {', '.join(relative)}")
    if file.data.path != finished.file.data.path:
        return replace(asked, why=f"data.path is not that of {run}, so the logs have to be compared")
    constraints, goals = constraints_of(file, np.array([done or 0.0 for done in behavior]), asked.like())
    question = Question(objective=objective_of(file), constraints=asked.aimed(constraints))
    found = answer(question, asked.plays(), tolerance=file.learn.tolerance)
    why = "" if found.status is Status.CONVERGED else found.explanation.removesuffix(".")
    return replace(asked, constraints=constraints, goals=goals, solution=found, why=why)
