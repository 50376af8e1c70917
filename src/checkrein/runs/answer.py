"""A run folder for a question that the policies of another run answered: no log is read."""

from pathlib import Path

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.base.errors import ArgumentError
from checkrein.game import Solution, best_member
from checkrein.game.checkpoint import MAIN, Checkpoint, settings_of
from checkrein.logs.card import DataCard
from checkrein.problem import AtMost, Question, Values
from checkrein.problem.goals import Goal
from checkrein.report.model import Reused, Summary
from checkrein.report.summary import BEHAVIOR, LEARNED, SINGLE_POLICY, UNCONSTRAINED, Judged, summary_of
from checkrein.runs.again import Asked
from checkrein.runs.fit import repeat_of, title_of, write_report
from checkrein.runs.folder import Resolved, RunFolder
from checkrein.runs.reading import objective_of


def write_answer(asked: Asked, out: Path, *, command: str) -> tuple[Solution, Summary]:
    """Write the run folder of a question that needed no log; it can be judged, exported and asked again like any."""
    solution, constraints, goals, run = asked.solution, asked.constraints, asked.goals, asked.run
    if solution is None or constraints is None or goals is None or asked.why:
        raise ArgumentError(f"the log is needed: {asked.why}")
    question = Question(objective=objective_of(asked.file), constraints=asked.aimed(constraints))
    single = best_member(question, solution)
    single_values = next(played.values for played in solution.rounds if played.policy is single.policy)
    behavior = _behavior(asked, goals)
    free = next((p.values for p in solution.rounds if p.answers and not p.multipliers.any()), None)
    judged = {
        LEARNED: Judged(solution.rounds[-1].mixture, None),
        BEHAVIOR: Judged(behavior, None),
        **({} if free is None else {UNCONSTRAINED: Judged(free, None)}),
        SINGLE_POLICY: Judged(single_values, None),
    }
    found = summary_of(
        question,
        solution,
        title=title_of(asked.file, run.summary.card.source),
        goals=goals,
        judged=judged,
        card=_card(asked, goals),
        learning_episodes=run.summary.learning_episodes,
        held_out_episodes=run.summary.held_out_episodes,
        repeat=repeat_of(asked.file, asked.text, command, run.summary.repeat.dataset),
        margins=asked.margins(constraints),
        certificate=None,
        reused=Reused(run=str(run.path), policies=len(solution.rounds), log_read=False),
        differences=None,
    )
    found = found.model_copy(update={"explanation": f"{found.explanation} {_advice(found, out)}"})
    folder = RunFolder(out)
    with folder.writing():
        _record(asked, question, solution, out)
        folder.write_policy(single.policy, RunFolder(run.path).encoding())
        folder.write_problem(asked.text, _resolved(asked, constraints))
        folder.write_summary(found)
        write_report(folder, found)
    return solution, found


def _record(asked: Asked, question: Question, solution: Solution, out: Path) -> None:
    """Record the policies as a game that stopped before its first round, as if `solve` had been given them."""
    old = asked.run.settings
    kept = {name: old[name] for name in old if name != "known"}
    own = settings_of(question, str(old.get("dataset")), asked.file.learn.discount, {"known": len(solution.rounds)})
    record = Checkpoint(out, kept | own)
    for played in solution.rounds[len(record.recorded[MAIN]) :]:
        record.append(MAIN, played)
    record.finish(solution)


def _resolved(asked: Asked, constraints: tuple[AtMost, ...]) -> Resolved:
    old = asked.run.resolved
    aimed = asked.aimed(constraints) if old.aimed else ()
    return Resolved(objective_of(asked.file), constraints, old.log, old.rows, old.support, aimed, old.learned)


def _behavior(asked: Asked, goals: tuple[Goal, ...]) -> Values | None:
    """Return behavior's values, inside signs, as the earlier run has them; None where it lacks one."""
    done = [asked.behavior(place) for place in range(len(goals))]
    known = [goal.direction.sign * value for goal, value in zip(goals, done, strict=True) if value is not None]
    if len(known) < len(goals):
        return None
    values: FloatArray = np.array(known)
    return Values(float(values[0]), values[1:])


def _card(asked: Asked, goals: tuple[Goal, ...]) -> DataCard:
    """Return the data card of the log with the costs that are asked for now."""
    card = asked.run.summary.card
    by_name = {row.cost: row for row in card.behavior}
    rows = []
    for goal, cost in zip(goals, asked.costs, strict=True):
        if cost is not None:
            old = by_name.get(asked.run.summary.costs[cost.place].name)
            if old is None:
                continue  # a cost of the policy: the log has none
            scaled = {name: cost.factor * getattr(old, name) for name in ("value", "lowest", "highest")}
            error = None if old.standard_error is None else cost.factor * old.standard_error
            rows.append(old.model_copy(update={"cost": goal.name, "unit": goal.unit, "standard_error": error} | scaled))
    return card.model_copy(update={"behavior": rows})


def _advice(found: Summary, out: Path) -> str:
    """Say what has not been judged yet, and how to."""
    if found.held_out_episodes == 0 or len(found.costs) == 1:
        return "Nothing was judged on held-out episodes."
    return f"Nothing was judged on held-out episodes yet: `checkrein certify {out}` does that."
