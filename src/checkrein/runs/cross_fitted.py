"""fit_cross_fitted: from a problem file to a run folder where all episodes learn and all judge, fold by fold."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.base.errors import ArgumentError, DivergenceError, EndlessPolicyError, ProblemError, Stopped
from checkrein.certification.assumptions import assumption_warnings
from checkrein.certification.certificate import Certificate
from checkrein.certification.certify import certificate_of
from checkrein.certification.diagnostics import copies_check, enough_episodes
from checkrein.certification.intervals import Interval
from checkrein.certification.looks import Looks, claim_key
from checkrein.data.identity import EpisodeKeys
from checkrein.evaluation.behavior_value import behavior_value
from checkrein.policies import MixturePolicy, behavior_policy
from checkrein.problem import Values
from checkrein.report.model import Summary
from checkrein.report.sequence import Told, explored_summary, sequence_summary
from checkrein.report.summary import versions
from checkrein.runs.fit import encoding_of, repeat_of, resolved_of, title_of, write_report
from checkrein.runs.folder import RunFolder
from checkrein.runs.players import evaluator_of, functions_of
from checkrein.runs.prepare import Prepared
from checkrein.selection.exploring import explore
from checkrein.selection.fixed_sequence import Candidate, CertifiedPolicy, learn_certified
from checkrein.selection.judging import METHOD

Tell = Callable[[str], None]


def fit_cross_fitted(
    prepared: Prepared,
    out: Path,
    *,
    command: str,
    tell: Tell = lambda _: None,
    on_candidate: Callable[[Candidate], None] = lambda _: None,
) -> tuple[CertifiedPolicy, Summary]:
    """Learn and judge candidates from near behavior to bold, and write the run folder.

    All candidates are one look, which is charged to all episodes; the same problem file on the same log is the same
    look again.

    tell: told what is under way; on_candidate: called with each candidate, once its limits are judged
    """
    file, problem, keys = prepared.file, prepared.problem, _keys(prepared)
    looks, claim = Looks.beside(prepared.folder), _claim(prepared)
    number = looks.number(keys, claim)
    judged: list[Candidate] = []

    def count(one: Candidate) -> None:
        judged.append(one)
        on_candidate(one)

    trouble: list[str] = []
    try:
        found = learn_certified(
            problem,
            folds=file.learn.folds,
            confidence=file.certify.confidence,
            look=number,
            seed=file.learn.seed,
            tell=tell,
            on_candidate=count,
        )
    except (KeyboardInterrupt, Stopped):
        if judged:  # and perhaps read
            looks.record(keys, claim, verdict="interrupted", what=str(out))
        raise
    certificate = _certificate(prepared, found, number)
    if judged:
        trouble += looks.record(keys, claim, verdict=certificate.verdict, what=str(out))
    behavior, errors = _behavior(prepared, trouble)
    told = _told(prepared, command, trouble)
    summary = sequence_summary(problem, found, behavior=behavior, errors=errors, certificate=certificate, told=told)
    shown = found.passed or next(iter(found.candidates[-1:]), None)
    policy = None if shown is None else shown.policy
    _write(prepared, out, policy, summary, certificate, certified=found.passed is not None)
    return found, summary


def explore_cross_fitted(prepared: Prepared, out: Path, *, command: str, tell: Tell = lambda _: None) -> Summary:
    """Learn the same candidates from all episodes at once, estimate them by these, and write the run folder: no look.

    What is kept, as a policy that is not certified, aims at the limits themselves.
    """
    trouble = [f"in the log, {doubt}" for doubt in assumption_warnings(prepared.problem)]
    found = explore(prepared.problem, seed=prepared.file.learn.seed, tell=tell)
    behavior, errors = _behavior(prepared, trouble)
    told = _told(prepared, command, trouble)
    summary = explored_summary(prepared.problem, found, behavior=behavior, errors=errors, told=told)
    _write(prepared, out, found[-1].policy if found else None, summary, None, certified=False)
    return summary


def _keys(prepared: Prepared) -> EpisodeKeys:
    if prepared.learned is None:
        raise ArgumentError('the log has no episodes to make folds of: set certificate = "holdout" in [learn]')
    return prepared.learned


def _claim(prepared: Prepared) -> str:
    """SHA-256 of all that the candidates follow from: their policies need not be known before."""
    file, problem = prepared.file, prepared.problem
    settings: tuple[object, ...] = (
        prepared.objective,
        problem.discount,
        file.learn.folds,
        file.learn.functions,
        sorted(versions().items()),
    )
    settings = settings if file.data.admissible is None else (*settings, file.data.admissible)
    source = hashlib.sha256(repr((prepared.dataset.fingerprint, settings)).encode()).hexdigest()
    return claim_key(source, problem.constraints, file.certify.confidence, METHOD, file.learn.seed)


def _certificate(prepared: Prepared, found: CertifiedPolicy, look: int) -> Certificate:
    """Return the certificate of what is deployed or was refused, with the decision and what was left out before."""
    certificate = found.certificate or _of_nothing(prepared, found, look)
    return certificate.model_copy(
        update={
            "decision": "behavior goes on" if found.passed is None else "deploy",
            "checks": [*copies_check(prepared.copies), *certificate.checks],
        }
    )


def _of_nothing(prepared: Prepared, found: CertifiedPolicy, look: int) -> Certificate:
    """Return a certificate where no policy could be tried; it spends nothing."""
    problem, file = prepared.problem, prepared.file
    unknown = Interval(*(np.full(problem.n_constraints, np.nan) for _ in Interval._fields))
    made = certificate_of(
        behavior_policy(problem.transitions),
        problem,
        unknown,
        [enough_episodes(problem)],
        method=METHOD,
        guarantee="heuristic",
        confidence=file.certify.confidence,
        look=look,
        seed=file.learn.seed,
    )
    return made.model_copy(
        update={"verdict": "inconclusive", "reason": found.explanation, "advice": [], "alpha": 0.0, "policy": ""}
    )


def _behavior(prepared: Prepared, trouble: list[str]) -> tuple[Values | None, FloatArray | None]:
    """Value who wrote the log by what was logged."""
    learn = prepared.file.learn
    try:
        value = behavior_value(
            prepared.problem, evaluator_of(functions_of(learn)), rng=np.random.default_rng(learn.seed)
        )
    except (DivergenceError, EndlessPolicyError, ProblemError) as reason:
        trouble.append(f"behavior could not be valued: {reason}")
        return None, None
    return value.values, value.standard_errors


def _told(prepared: Prepared, command: str, trouble: list[str]) -> Told:
    warnings = [*prepared.card.warnings, *dict.fromkeys(trouble)]
    return Told(
        title=title_of(prepared.file, prepared.card.source),
        goals=prepared.goals,
        card=prepared.card.model_copy(update={"warnings": warnings}),
        repeat=repeat_of(prepared.file, prepared.text, command, prepared.dataset.fingerprint),
        folds=prepared.file.learn.folds,
        log=prepared.dataset,
    )


def _write(
    prepared: Prepared,
    out: Path,
    policy: MixturePolicy | None,
    summary: Summary,
    certificate: Certificate | None,
    *,
    certified: bool,
) -> None:
    folder = RunFolder(out)
    with folder.writing():
        folder.write_judged_policy(policy, encoding_of(prepared), certified=certified)
        folder.write_problem(prepared.text, resolved_of(prepared, None, None))
        if certificate is not None:
            folder.write_certificate(certificate)
        folder.write_summary(summary)
        write_report(folder, summary)
