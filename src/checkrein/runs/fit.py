"""fit: from a problem file to a run folder with a policy, its certificate and a report."""

import importlib.metadata
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from checkrein.certification import Certificate
from checkrein.certification.looks import FILE, Looks, log_key
from checkrein.game import Round, Solution, best_member
from checkrein.protocols import Policy
from checkrein.report.model import Repeat, Summary
from checkrein.report.page import page
from checkrein.report.summary import CITATION, summary, versions
from checkrein.runs.comparison import compare
from checkrein.runs.folder import Resolved, RunFolder
from checkrein.runs.margins import margins_for
from checkrein.runs.method import method_for
from checkrein.runs.players import functions_of, players_for, support_of
from checkrein.runs.prepare import Prepared


def fit(
    prepared: Prepared,
    out: Path,
    *,
    command: str,
    on_round: Callable[[Round], None] | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> tuple[Solution, Summary]:
    """Learn, certify on the held-out part, and write the run folder; an unfinished run there is taken up again.

    Where something is held out, the support rule and room under the limits are chosen inside the learning part.

    tell: told what is under way
    """
    file, problem, learn = prepared.file, prepared.problem, prepared.file.learn
    trouble: list[str] = []
    margins = margins_for(prepared, trouble, tell)
    aimed = problem if margins is None else replace(problem, constraints=margins.constraints)
    support = support_of(learn) if margins is None else margins.support
    players = players_for(learn, functions_of(learn), aimed, support)

    def played(one: Round) -> None:
        if on_round is not None:
            on_round(one)
        tell(f"round {one.index + 1}")

    tell("learning")
    solution = players.play(
        aimed, tolerance=learn.tolerance, max_rounds=learn.max_rounds, on_round=played, checkpoint=out
    )
    tell("judging")
    single = best_member(aimed, solution).policy
    judged = compare(prepared, players, learned=solution.policy, single=single, trouble=trouble)
    tell("certifying")
    certificate = _certify(prepared, solution.policy, what=str(out), trouble=trouble)
    found = summary(
        aimed,
        solution,
        title=file.title or f"{file.objective.label}, learned from {prepared.card.source}",
        goals=prepared.goals,
        judged=judged,
        card=prepared.card.model_copy(update={"warnings": [*prepared.card.warnings, *dict.fromkeys(trouble)]}),
        held_out_episodes=0 if prepared.held_out is None else prepared.held_out.dataset.first_rows().size,
        repeat=repeat_of(prepared, command),
        margins=margins,
        certificate=certificate,
    )
    folder = RunFolder(out)
    folder.write_policy(single, prepared.dataset.encoding)
    folder.write_problem(prepared.text, _resolved(prepared))
    if certificate is not None:
        folder.write_certificate(certificate)
    folder.write_summary(found)
    write_report(folder, found)
    return solution, found


def write_report(folder: RunFolder, found: Summary) -> Path:
    """Write the page of a summary, and return where it is."""
    return folder.write_report(page(found))


def _certify(prepared: Prepared, policy: Policy, *, what: str, trouble: list[str]) -> Certificate | None:
    """Judge a policy on the held-out part; None where there is nothing to judge, or to judge by."""
    if prepared.held_out is None or not prepared.problem.constraints:
        return None
    file, problem = prepared.file, prepared.held_out
    certificate, unrecorded = Looks(prepared.folder / FILE).certify(
        policy,
        problem,
        log=log_key(prepared.dataset),
        confidence=file.certify.confidence,
        method=method_for(file, problem),
        seed=file.learn.seed,
        what=what,
    )
    trouble += unrecorded
    return certificate


def _resolved(prepared: Prepared) -> Resolved:
    log = None if prepared.dataset.episodes is None else log_key(prepared.dataset)
    return Resolved(prepared.objective, tuple(prepared.problem.constraints), log)


def repeat_of(prepared: Prepared, command: str) -> Repeat:
    """Return how to run it again and how to cite it."""
    return Repeat(
        command=command,
        problem_file=prepared.text,
        version=importlib.metadata.version("checkrein"),
        seed=prepared.file.learn.seed,
        dataset=prepared.dataset.fingerprint,
        packages=versions(),
        citation=CITATION,
    )
