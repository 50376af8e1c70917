"""A report of a solution that came from no problem file: nothing of it was held out."""

import importlib.metadata
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from checkrein.evaluation import FQE
from checkrein.evaluation.behavior_value import behavior_value
from checkrein.game import Solution
from checkrein.logs.inspection import data_card
from checkrein.problem import Problem
from checkrein.problem.goals import Goal
from checkrein.report.model import Repeat
from checkrein.report.summary import BEHAVIOR, CITATION, LEARNED, Judged, summary, versions
from checkrein.runs.fit import write_report
from checkrein.runs.folder import RunFolder


def write_solution_report(
    problem: Problem,
    solution: Solution,
    out: Path,
    *,
    goals: Sequence[Goal],
    evaluator: FQE,
    told: tuple[str, str, str],
    seed: int,
) -> Path:
    """Write what the report is made of, and the page.

    goals: the objective's first, each called like its column; told: the title, what the log is, the command
    """
    title, source, command = told
    rng = np.random.default_rng(seed)
    judged = {
        LEARNED: Judged(evaluator(problem, solution.policy, rng=rng), None),
        BEHAVIOR: Judged(behavior_value(problem, evaluator, rng=rng).values, None),
    }
    units = {goal.name: (goal.unit, goals[0].direction.sign if goal is goals[0] else 1.0) for goal in goals}
    found = summary(
        problem,
        solution,
        title=title,
        goals=goals,
        judged=judged,
        card=data_card(problem.dataset, source=source, discount=problem.discount, units=units),
        held_out=None,
        repeat=Repeat(
            command=command,
            problem_file="",
            version=importlib.metadata.version("checkrein"),
            seed=seed,
            dataset=problem.dataset.fingerprint,
            packages=versions(),
            citation=CITATION,
        ),
    )
    folder = RunFolder(out)
    folder.write_summary(found)
    return write_report(folder, found)
