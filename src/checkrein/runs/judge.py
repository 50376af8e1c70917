"""Judge a finished run on a log: estimates by every estimator, or a certificate."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from checkrein.base.errors import ArgumentError, DataError
from checkrein.certification import Certificate
from checkrein.certification.bounds import method_of
from checkrein.certification.looks import Looks
from checkrein.certification.sensitivity import sensitivity
from checkrein.certification.survival import Sensitivity
from checkrein.data.copies import Copies
from checkrein.data.dataset import Dataset
from checkrein.data.identity import EpisodeKeys
from checkrein.evaluation import Estimates, evaluate
from checkrein.evaluation.propensities import Method
from checkrein.problem import AtMost, Problem
from checkrein.protocols import Policy
from checkrein.runs.folder import RunFolder
from checkrein.runs.method import method_for
from checkrein.runs.players import light_functions
from checkrein.runs.problem_file import ProblemFile
from checkrein.runs.reading import folder_of, missing, read, settled, with_path
from checkrein.runs.sections import LARGEST_WEIGHT_OF, takes_largest_weight


@dataclass(frozen=True)
class Trial:
    """A run's policy, and the episodes to judge it by."""

    file: ProblemFile
    policy: Policy
    dataset: Dataset  # episodes that did not choose the policy
    episodes: EpisodeKeys  # which they are
    learned: int  # episodes of the log that are left out, because the run learned from them
    copies: Copies | None  # of other episodes, left out before
    own: bool  # whether the log is the run's own, as it was then
    folder: Path  # of the log
    constraints: tuple[AtMost, ...]
    costs: tuple[str | AtMost, ...]  # the objective first
    objective: str
    uncertified: bool = False  # whether the policy is one that did not pass


def open_trial(run: Path, data: str | None, *, single: bool = False) -> Trial:
    """Load a run and read a log the way its own was read; episodes that the run learned from do not count.

    data: a path or glob; None: the path in the run's problem file, from where this is called
    """
    folder = RunFolder.opened(run)
    asked, policy = folder.resolved(), folder.policy(single=single, uncertified=True)
    file = folder.problem_file()
    if data is not None:
        file = with_path(file, data)
    elif gone := missing(file, Path()):
        raise DataError(f"there is no {gone[0]} here, where the run's log should be: pass --data with its path")
    if asked.log is not None and asked.learned is None:
        raise DataError(
            f"{run} does not say which episodes it learned from: an earlier version wrote it. Learn again with "
            "`checkrein fit`, so that they can be told from those that judge"
        )
    reading = read(file, Path(), folder.encoding())
    file = settled(file, reading.dataset)
    episodes = EpisodeKeys.of(reading.dataset, reading.names)
    own, fresh = episodes.digest == asked.log, np.ones(len(episodes), bool)
    if asked.learned is not None:
        fresh = ~asked.learned.seen_in(episodes)
    if not fresh.any():
        known = f"the run learned from all of this log, {fresh.size:,} episodes"
        if asked.cross_fitted:
            known += ", and was judged by them, fold by fold. Only episodes that are new can judge it again"
        raise DataError(f"{known}: judge it on another log, or hold some out")
    costs: tuple[str | AtMost, ...] = (asked.objective, *asked.constraints)
    return Trial(
        file=file,
        policy=policy,
        dataset=reading.dataset if fresh.all() else reading.dataset.of_episodes(fresh),
        episodes=episodes.part(fresh),
        learned=int((~fresh).sum()),
        copies=reading.copies,
        own=own,
        folder=folder_of(file, Path()),
        constraints=asked.constraints,
        costs=costs,
        objective=asked.objective,
        uncertified=folder.uncertified,
    )


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
    trial: Trial,
    *,
    what: str,
    method: str | None = None,
    confidence: float | None = None,
    largest_weight: float | None = None,
) -> tuple[Certificate, list[str]]:
    """Certify the policy, record the look, and return what could not be done on the way.

    method, confidence, largest_weight: in place of those in the run's problem file
    """
    if not trial.constraints:
        raise ArgumentError("the run has no constraints: there is nothing to certify")
    problem = Problem(
        trial.dataset, objective=trial.objective, constraints=trial.constraints, discount=trial.file.learn.discount
    )
    file = trial.file
    if method is not None:
        method_of(method, problem)
    if largest_weight is not None and not takes_largest_weight(method or file.certify.method):
        raise ArgumentError(LARGEST_WEIGHT_OF)
    asked = {"method": method, "largest_weight": largest_weight}
    changes = {name: value for name, value in asked.items() if value is not None}
    file = file.model_copy(update={"certify": file.certify.model_copy(update=changes)})
    return Looks.beside(trial.folder).certify(
        trial.policy,
        problem,
        episodes=trial.episodes,
        copies=trial.copies,
        excluded=trial.learned,
        confidence=file.certify.confidence if confidence is None else confidence,
        method=method_for(file, problem),
        seed=file.learn.seed,
        what=what,
    )


def hidden_factor(trial: Trial, certificate: Certificate) -> Sensitivity:
    """Find what a certificate of the same policy on the same episodes survives; this is no look of its own."""
    found = sensitivity(
        trial.policy,
        trial.dataset,
        constraints=trial.constraints,
        discount=trial.file.learn.discount,
        objective=trial.objective,
        certificate=certificate,
    )
    return found.calling(trial.file.objective.label)
