"""Judge a finished run on a log: estimates by every estimator, or a certificate."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from checkrein.base.errors import ArgumentError, DataError
from checkrein.certification import Certificate
from checkrein.certification.bounds import method_of
from checkrein.certification.looks import FILE, Looks, log_key
from checkrein.data.dataset import Dataset
from checkrein.data.split import split_episodes
from checkrein.evaluation import Estimates, evaluate
from checkrein.evaluation.propensities import Method
from checkrein.problem import AtMost, Problem
from checkrein.protocols import Policy
from checkrein.runs.folder import RunFolder
from checkrein.runs.method import method_for
from checkrein.runs.players import light_functions
from checkrein.runs.problem_file import ProblemFile
from checkrein.runs.reading import folder_of, missing, read, with_path


@dataclass(frozen=True)
class Trial:
    """A run's policy, and the episodes to judge it by."""

    file: ProblemFile
    policy: Policy
    dataset: Dataset  # episodes that did not choose the policy
    log: str  # which log they are of
    own: bool  # whether that is the one that was learned from, of which only the held-out part is used
    folder: Path  # of the log
    constraints: tuple[AtMost, ...]
    costs: tuple[str | AtMost, ...]  # the objective first


def open_trial(run: Path, data: str | None, *, single: bool = False) -> Trial:
    """Load a run and read a log the way its own was read; of its own log, only what was held out counts.

    data: a path or glob; None: the path in the run's problem file, from where this is called
    """
    folder = RunFolder(run)
    asked, policy, file = folder.resolved(), folder.policy(single=single), folder.problem_file()
    if data is not None:
        file = with_path(file, data)
    elif gone := missing(file, Path()):
        raise DataError(f"there is no {gone[0]} here, where the run's log should be: pass --data with its path")
    dataset = read(file, Path(), folder.encoding()).dataset
    key = log_key(dataset)
    own = key == asked.log
    if own:
        _, held_out = split_episodes(dataset, holdout=file.learn.holdout, seed=file.learn.seed)
        if held_out is None:
            raise DataError("the run learned from all of this log: judge it on another one, or hold episodes out")
        dataset = held_out
    costs: tuple[str | AtMost, ...] = (asked.objective, *asked.constraints)
    return Trial(file, policy, dataset, key, own, folder_of(file, Path()), asked.constraints, costs)


def estimate(
    trial: Trial,
    *,
    estimators: Sequence[str] | None = None,
    propensities: Method | None = None,
    temperature: float | None = None,
) -> Estimates:
    """Value the policy by every estimator."""
    return evaluate(
        trial.policy,
        trial.dataset,
        costs=trial.costs,
        discount=trial.file.learn.discount,
        estimators=estimators,
        functions=light_functions(trial.file.learn),
        seed=trial.file.learn.seed,
        propensities=propensities,
        temperature=temperature,
        confidence=trial.file.certify.confidence,
    )


def judge(
    trial: Trial, *, what: str, method: str | None = None, confidence: float | None = None
) -> tuple[Certificate, list[str]]:
    """Certify the policy, record the look, and return what could not be done on the way."""
    if not trial.constraints:
        raise ArgumentError("the run has no constraints: there is nothing to certify")
    problem = Problem(trial.dataset, objective=None, constraints=trial.constraints, discount=trial.file.learn.discount)
    file = trial.file
    if method is not None:
        method_of(method, problem)
        file = file.model_copy(update={"certify": file.certify.model_copy(update={"method": method})})
    return Looks(trial.folder / FILE).certify(
        trial.policy,
        problem,
        log=trial.log,
        confidence=file.certify.confidence if confidence is None else confidence,
        method=method_for(file, problem),
        seed=file.learn.seed,
        what=what,
    )
