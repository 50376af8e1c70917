"""fit: from a problem file to a run folder with a policy, its certificate and a report."""

import importlib.metadata
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from checkrein.certification import Certificate
from checkrein.certification.assumptions import assumption_warnings
from checkrein.certification.looks import Looks
from checkrein.certification.sensitivity import quick, sensitivity
from checkrein.certification.survival import Sensitivity
from checkrein.data.encoding import Encoding
from checkrein.game import Derandomised, Round, Solution, single_policies
from checkrein.policies import Support
from checkrein.protocols import Policy
from checkrein.report.model import Repeat, Reused, Summary
from checkrein.report.page import page
from checkrein.report.summary import CITATION, SINGLE_POLICY, Judged, singles_of, summary, versions
from checkrein.runs.again import Asked
from checkrein.runs.comparison import compare, judge
from checkrein.runs.folder import Resolved, RunFolder, rows_key
from checkrein.runs.margins import margins_for
from checkrein.runs.method import method_for, require_declared
from checkrein.runs.players import functions_of, players_for, support_of
from checkrein.runs.prepare import Prepared
from checkrein.runs.problem_file import ProblemFile
from checkrein.selection.margins import MarginChoice


def fit(
    prepared: Prepared,
    out: Path,
    *,
    command: str,
    on_round: Callable[[Round], None] | None = None,
    tell: Callable[[str], None] = lambda _: None,
    asked: Asked | None = None,
) -> tuple[Solution, Summary]:
    """Learn, certify on the held-out part, and write the run folder; an unfinished run there is taken up again.

    Where something is held out, the support rule and room under the limits are chosen inside the learning part.

    tell: told what is under way
    asked: the same problem file put to a finished run, whose policies, support rule and margins are kept
    """
    file, problem, learn = prepared.file, prepared.problem, prepared.file.learn
    if prepared.held_out is not None and problem.constraints:
        require_declared(file, prepared.held_out)
    doubts = [] if prepared.dataset.episodes is None else assumption_warnings(problem)
    trouble = [f"in the episodes that were learned from, {doubt}" for doubt in doubts]
    if asked is None:
        margins = margins_for(prepared, trouble, tell)
    else:
        asked.require_same_log(prepared.dataset, prepared.card.source)
        margins = asked.margins(tuple(problem.constraints))
    aimed = problem if margins is None else replace(problem, constraints=margins.constraints)
    support = support_of(learn) if margins is None else margins.support
    players = players_for(learn, functions_of(learn), aimed, support)

    def played(one: Round) -> None:
        if on_round is not None:
            on_round(one)
        tell(f"round {one.index + 1} of at most {learn.max_rounds}")

    folder = RunFolder(out)
    with folder.writing():
        known = [] if asked is None else asked.known(aimed, players.evaluator, tell)
        tell(f"round 1 of at most {learn.max_rounds}")
        solution = players.play(
            aimed, tolerance=learn.tolerance, max_rounds=learn.max_rounds, on_round=played, checkpoint=out, known=known
        )
        tell("judging")
        singles = single_policies(aimed, solution, evaluator=players.evaluator, seed=learn.seed)
        single = singles.best.policy
        judged = compare(prepared, players, learned=solution.policy, single=single, trouble=trouble)

        def judged_single(one: Derandomised) -> Judged:
            if one.policy is single:
                return judged[SINGLE_POLICY]
            return judge(prepared, one.policy, players.evaluator, trouble)

        tell("certifying")
        certificate = _certify(prepared, solution.policy, what=str(out), trouble=trouble)
        hidden = None if certificate is None else _hidden_factor(prepared, solution.policy, certificate)
        found = summary(
            aimed,
            solution,
            title=title_of(file, prepared.card.source),
            goals=prepared.goals,
            judged=judged,
            card=prepared.card.model_copy(update={"warnings": [*prepared.card.warnings, *dict.fromkeys(trouble)]}),
            held_out=prepared.held_out,
            repeat=repeat_of(file, prepared.text, command, prepared.dataset.fingerprint),
            margins=margins,
            certificate=certificate,
            sensitivity=hidden,
            singles=singles_of(prepared.goals, singles, judged_single),
            reused=None if asked is None else Reused(run=str(asked.run.path), policies=len(known), log_read=True),
        )
        folder.write_policy(single, encoding_of(prepared))
        folder.write_problem(prepared.text, resolved_of(prepared, support, margins))
        if certificate is not None:
            folder.write_certificate(certificate)
        if hidden is not None:
            folder.write_sensitivity(hidden)
        folder.write_summary(found)
        write_report(folder, found)
    return solution, found


def write_report(folder: RunFolder, found: Summary) -> Path:
    """Write the page of a summary, and return where it is."""
    return folder.write_report(page(found, folder.other_certificates()))


def _certify(prepared: Prepared, policy: Policy, *, what: str, trouble: list[str]) -> Certificate | None:
    """Judge a policy on the held-out part; None where there is nothing to judge, or to judge by."""
    if prepared.held_out is None or prepared.judging is None or not prepared.problem.constraints:
        return None
    file, problem = prepared.file, prepared.held_out
    certificate, unrecorded = Looks.beside(prepared.folder).certify(
        policy,
        problem,
        episodes=prepared.judging,
        copies=prepared.copies,
        excluded=0 if prepared.learned is None else len(prepared.learned),
        confidence=file.certify.confidence,
        method=method_for(file, problem),
        seed=file.learn.seed,
        what=what,
    )
    trouble += unrecorded
    return certificate


def _hidden_factor(prepared: Prepared, policy: Policy, certificate: Certificate) -> Sensitivity | None:
    """Find what a pass survives, where that takes seconds; elsewhere the report names the command."""
    problem = prepared.held_out
    if problem is None or certificate.verdict != "pass" or not quick(problem, policy):
        return None
    found = sensitivity(
        policy,
        problem.dataset,
        constraints=problem.constraints,
        discount=problem.discount,
        objective=problem.objective,
        certificate=certificate,
    )
    return found.calling(prepared.goals[0].name)


def encoding_of(prepared: Prepared) -> Encoding | None:
    """Return what numbers stand for, with the past that has joined the policy's states."""
    encoding = prepared.dataset.encoding
    return None if encoding is None else replace(encoding, memory=prepared.problem.dataset.memory)


def resolved_of(prepared: Prepared, support: Support | None, margins: MarginChoice | None) -> Resolved:
    """Return what a problem file came to; support: None where every fold chose its own."""
    return Resolved(
        prepared.objective,
        tuple(prepared.problem.constraints),
        prepared.log,
        rows_key(prepared.dataset),
        support,
        () if margins is None else margins.constraints,
        prepared.learned,
        prepared.cross_fitted,
    )


def title_of(file: ProblemFile, source: str) -> str:
    """Return what a report is called."""
    return file.title or f"{file.objective.label}, learned from {source}"


def repeat_of(file: ProblemFile, text: str, command: str, dataset: str) -> Repeat:
    """Return how to run it again; dataset: the log's fingerprint."""
    return Repeat(
        command=command,
        problem_file=text,
        version=importlib.metadata.version("checkrein"),
        seed=file.learn.seed,
        dataset=dataset,
        packages=versions(),
        citation=CITATION,
    )
