"""checkrein example, init, inspect, fit, report: from a log to a policy and a report."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.live import Live
from rich.text import Text

from checkrein.base.errors import ArgumentError, DataError, Stopped, WriteError
from checkrein.cli.judge import show_certificate
from checkrein.cli.progress import Progress, candidate_line, progress_line
from checkrein.cli.shared import (
    BROKEN,
    INFEASIBLE,
    OK,
    STOPPED_SHORT,
    UNPROVEN,
    app,
    console,
    errors,
    interrupted,
    say,
)
from checkrein.cli.show import show_card, show_summary

if TYPE_CHECKING:
    from checkrein import Round
    from checkrein.logs.card import DataCard
    from checkrein.report.model import Summary
    from checkrein.runs.again import Asked
    from checkrein.runs.prepare import Prepared
    from checkrein.selection.fixed_sequence import Candidate

ProblemPath = Annotated[Path, typer.Argument(help="A problem file; `checkrein init LOG` writes a first version.")]
Strict = Annotated[bool, typer.Option("--strict", help="Treat what is odd about the log as an error.")]


@app.command()
def example(
    out: Annotated[Path, typer.Option(help="Folder to write icu.csv and icu.toml to.")] = Path(),
    patients: Annotated[int, typer.Option(min=20, help="How many patients to log.")] = 20_000,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Write an intensive-care log, made up but realistic, and a problem file for it."""
    from checkrein_studies import icu

    table, problem = icu.write(out, patients=patients, seed=seed)
    say(f"Wrote {table} and {problem}. Next: checkrein inspect {problem}")


@app.command()
def init(
    logs: Annotated[list[str], typer.Argument(help="A .csv or .parquet file, several, or a glob in quotes.")],
    out: Annotated[Path, typer.Option(help="The problem file to write.")] = Path("problem.toml"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite it if it exists.")] = False,
) -> None:
    """Write a commented first version of a problem file from a log's columns."""
    from checkrein.base.storage import write_atomically
    from checkrein.logs.first_version import first_version

    if out.exists() and not force:
        raise DataError(f"{out} exists already: choose another --out, or pass --force to overwrite it")
    text = first_version(logs, out.parent)
    write_atomically(out, lambda file: file.write(text.encode()))
    say(f"Wrote {out}. Read it, correct it, then: checkrein inspect {out}")


@app.command()
def inspect(problem: ProblemPath, strict: Strict = False) -> None:
    """Show the data card of a log, before anything is learned."""
    from checkrein.runs.prepare import prepare

    show_card(prepare(problem, strict=strict).card)


@app.command()
def fit(
    problem: ProblemPath,
    out: Annotated[Path, typer.Option(help="Run folder to write.")],
    resume: Annotated[bool, typer.Option("--resume", help="Take up the run that is in the folder.")] = False,
    strict: Strict = False,
    source: Annotated[
        Path | None,
        typer.Option("--from", help="A finished run on the same log: its policies are kept for this other question."),
    ] = None,
    explore: Annotated[
        bool, typer.Option("--explore", help="Learn and estimate, but judge nothing: this costs no look.")
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="In place of the file's own: learn.discount=0.95, say."),
    ] = None,
    max_memory: Annotated[
        str | None,
        typer.Option("--max-memory", help="Refuse a run that needs more, such as 8GB; by default, what is free."),
    ] = None,
) -> None:
    """Learn a policy within the limits, judge it by episodes that had no part in it, and write a report."""
    from checkrein.base.lock import one_writer
    from checkrein.base.memory import memory_of
    from checkrein.runs.folder import RunFolder

    most = None if max_memory is None else memory_of(max_memory)
    if source is not None and settings:
        raise ArgumentError("--set does not go with --from: write the other question into a problem file of its own")
    origin = [] if source is None else ["--from", str(source)]
    mode = [*(["--explore"] if explore else []), *(part for one in settings or [] for part in ("--set", one))]
    command = shlex.join(["checkrein", "fit", str(problem), *origin, *mode, "--out", str(out)])
    with one_writer(out):
        if not resume and RunFolder(out).holds_run:
            raise DataError(f"{out} holds a run already: pass --resume to take it up, or choose another --out")
        raise typer.Exit(_fit(problem, out, command, source, most, settings or [], strict=strict, explore=explore))


def _fit(
    problem: Path,
    out: Path,
    command: str,
    source: Path | None,
    most: float | None,
    settings: list[str],
    *,
    strict: bool,
    explore: bool,
) -> int:
    """Answer from an earlier run, or learn; return the exit code."""
    from checkrein.runs.again import ask
    from checkrein.runs.folder import RunFolder
    from checkrein.runs.needs import require_room
    from checkrein.runs.prepare import prepare

    asked = None if source is None else ask(problem, source)
    if asked is not None and not asked.why:
        _show_answer(asked, out, command)
        return OK
    if asked is not None:
        say(f"{asked.why}. The log is needed.")
    prepared = prepare(problem, strict=strict, settings=settings)
    for warning in prepared.card.warnings:
        errors.print(Text("warning: ", style="yellow") + Text(warning))
    say(" ".join(filter(None, [f"Learning with {prepared.card.functions}.", require_room(prepared, most)])))
    if prepared.cross_fitted:
        RunFolder(out).require_no_rounds()
        return _fit_cross_fitted(prepared, out, command, explore=explore)
    return _fit_holding_out(prepared.unjudged if explore else prepared, out, command, asked)


def _fit_cross_fitted(prepared: "Prepared", out: Path, command: str, *, explore: bool) -> int:
    """Let all episodes learn and judge; return the exit code."""
    from checkrein.report.model import CERTIFIED, EXPLORED
    from checkrein.report.model import INFEASIBLE as NOTHING_MEETS_THE_LIMITS
    from checkrein.runs.cross_fitted import explore_cross_fitted, fit_cross_fitted

    progress = Progress(live=console.is_terminal)
    tried: list[Candidate] = []

    def show(candidate: "Candidate") -> None:
        tried.append(candidate)
        progress.line = candidate_line(len(tried), candidate)

    try:
        with Live(progress, console=console, refresh_per_second=10):
            if explore:
                summary = explore_cross_fitted(prepared, out, command=command, tell=progress.tell)
            else:
                _, summary = fit_cross_fitted(prepared, out, command=command, tell=progress.tell, on_candidate=show)
            progress.tell("")
    except (KeyboardInterrupt, Stopped) as stop:
        return interrupted(stop, f"nothing was kept. Begin anew with: {command}")
    except WriteError as reason:
        raise WriteError(f"{reason}. Nothing was kept: make room, then begin anew: {command} --resume") from None
    _show_found(summary, prepared.card, out)
    if summary.status in (CERTIFIED, EXPLORED):
        return OK
    broken = summary.certificate is not None and summary.certificate.verdict == "fail"
    return INFEASIBLE if summary.status == NOTHING_MEETS_THE_LIMITS else BROKEN if broken else UNPROVEN


def _fit_holding_out(prepared: "Prepared", out: Path, command: str, asked: "Asked | None") -> int:
    """Learn from one part and judge by the other; return the exit code."""
    from checkrein import Status
    from checkrein.runs import fit as fitting

    progress = Progress(live=console.is_terminal)

    def show(played: "Round") -> None:
        progress.line = progress_line(prepared.goals, played)

    try:
        with Live(progress, console=console, refresh_per_second=10):
            solution, summary = fitting.fit(
                prepared, out, command=command, on_round=show, tell=progress.tell, asked=asked
            )
            progress.tell("")
    except (KeyboardInterrupt, Stopped) as stop:
        return interrupted(stop, _kept(out, command))
    except WriteError as reason:
        raise WriteError(f"{reason}. What was played is kept: make room, then go on with: {command} --resume") from None
    _show_found(summary, prepared.card, out)
    codes = {Status.CONVERGED: OK, Status.INFEASIBLE: INFEASIBLE}
    return codes.get(solution.status, STOPPED_SHORT)


def _kept(out: Path, command: str) -> str:
    """Say what a run with a held-out part left behind: nothing, while its margins are chosen."""
    from checkrein.runs.folder import RunFolder

    if RunFolder(out).holds_rounds:
        return f"what was played is kept. Go on with: {command} --resume"
    return f"nothing was played yet, and nothing kept. Begin anew with: {command}"


def _show_found(summary: "Summary", before: "DataCard", out: Path) -> None:
    """Print what a run found, with the warnings that learning and judging added to those of the log."""
    from checkrein.runs.folder import RunFolder

    show_summary(summary)
    for warning in summary.card.warnings[len(before.warnings) :]:
        errors.print(Text("warning: ", style="yellow") + Text(warning))
    if summary.certificate is not None:
        show_certificate(summary.certificate, summary.costs[0])
    if summary.sensitivity is not None:
        say(summary.sensitivity.explanation)
    say(f"Report: {RunFolder(out).report_file}")


def _show_answer(asked: "Asked", out: Path, command: str) -> None:
    """Write and show what the policies of a finished run say to another question."""
    from checkrein.runs.answer import write_answer
    from checkrein.runs.folder import RunFolder

    _, summary = write_answer(asked, out, command=command)
    show_summary(summary)
    say(f"Report: {RunFolder(out).report_file}")


@app.command()
def report(run: Annotated[Path, typer.Argument(help="A run folder that `checkrein fit` wrote.")]) -> None:
    """Make the report of a finished run again."""
    from checkrein.runs import fit as fitting
    from checkrein.runs.folder import REPORT, RunFolder

    folder = RunFolder.opened(run, but=REPORT)
    say(f"Report: {fitting.write_report(folder, folder.summary())}")
