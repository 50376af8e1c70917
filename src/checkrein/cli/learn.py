"""checkrein example, init, inspect, fit, report: from a log to a policy and a report."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from checkrein.base.errors import DataError
from checkrein.cli.judge import show_certificate
from checkrein.cli.progress import Progress, progress_line
from checkrein.cli.shared import INFEASIBLE, INTERRUPTED, OK, STOPPED_SHORT, app, console, errors, say

if TYPE_CHECKING:
    from checkrein import Round
    from checkrein.logs.card import DataCard
    from checkrein.report.model import Estimate, Summary
    from checkrein.runs.again import Asked

STYLE = {"good": "bold green", "caution": "bold yellow", "bad": "bold red"}

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
) -> None:
    """Learn a policy within the limits, judge it on held-out episodes, and write a report."""
    from checkrein import Status
    from checkrein.runs import fit as fitting
    from checkrein.runs.again import ask
    from checkrein.runs.folder import RunFolder
    from checkrein.runs.prepare import prepare

    if not resume and RunFolder(out).holds_rounds:
        raise DataError(f"{out} holds a run already: pass --resume to take it up, or choose another --out")
    origin = [] if source is None else ["--from", str(source)]
    command = shlex.join(["checkrein", "fit", str(problem), *origin, "--out", str(out)])
    asked = None if source is None else ask(problem, source)
    if asked is not None and not asked.why:
        _show_answer(asked, out, command)
        raise typer.Exit(OK)
    if asked is not None:
        say(f"{asked.why}. The log is needed.")
    prepared = prepare(problem, strict=strict)
    for warning in prepared.card.warnings:
        errors.print(Text("warning: ", style="yellow") + Text(warning))
    try:
        progress = Progress(live=console.is_terminal)
        with Live(progress, console=console, refresh_per_second=10):

            def show(played: "Round") -> None:
                progress.line = progress_line(prepared.goals, played)

            solution, summary = fitting.fit(
                prepared, out, command=command, on_round=show, tell=progress.tell, asked=asked
            )
            progress.tell("")
    except KeyboardInterrupt:
        errors.print(f"interrupted: what was played is kept. Go on with: {command} --resume", markup=False)
        sys.exit(INTERRUPTED)
    show_summary(summary)
    for warning in summary.card.warnings[len(prepared.card.warnings) :]:  # of learning and judging
        errors.print(Text("warning: ", style="yellow") + Text(warning))
    if summary.certificate is not None:
        show_certificate(summary.certificate, summary.costs[0])
    if summary.sensitivity is not None:
        say(summary.sensitivity.explanation)
    say(f"Report: {RunFolder(out).report_file}")
    codes = {Status.CONVERGED: OK, Status.INFEASIBLE: INFEASIBLE}
    raise typer.Exit(codes.get(solution.status, STOPPED_SHORT))


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
    from checkrein.runs.folder import RunFolder

    folder = RunFolder(run)
    say(f"Report: {fitting.write_report(folder, folder.summary())}")


def show_card(card: "DataCard") -> None:
    """Print a data card."""
    from checkrein.report.words import unit_in_words

    facts = Table.grid(padding=(0, 2))
    left = "; ".join(f"{count:,}: {reason}" for reason, count in card.left_out.items()) or "none"
    horizon = "all of an episode" if card.effective_horizon is None else f"about {card.effective_horizon:.0f} steps"
    distinct = "" if card.distinct is None else f", {card.distinct:,} of them distinct"
    clusters = "" if card.clusters is None else f", in {card.clusters:,} clusters of up to {card.largest_cluster:,}"
    for name, value in {
        "log": card.source,
        "rows": f"{card.rows:,}, {card.rows_used:,} used{distinct}",
        "left out": left,
        "episodes": f"{card.episodes:,} of {card.shortest} to {card.longest} steps (median {card.median:g}){clusters}",
        "cut off": f"{card.truncated:,} episodes end without a terminal row",
        "states": card.states,
        "horizon": f"{horizon} (discount {card.discount:g})",
        "propensities": "logged" if card.propensities else "not logged",
    }.items():
        facts.add_row(f"[bold]{name}[/bold]", escape(value))
    console.print(facts)
    actions = Table("action", "decisions", "share", "states without it")
    for use in card.actions:
        lacking = "" if use.states_without is None else f"{use.states_without:,}"
        actions.add_row(escape(use.action), f"{use.count:,.0f}", f"{use.share:.1%}", lacking)
    console.print(actions)
    costs = Table("cost", "behavior", "+-", "one step", "unit")
    for b in card.behavior:
        error = "" if b.standard_error is None else f"{b.standard_error:.2g}"
        unit = unit_in_words(b.unit, card.discount)
        costs.add_row(escape(b.cost), f"{b.value:.4g}", error, f"{b.lowest:g} to {b.highest:g}", unit)
    console.print(costs)
    for warning in card.warnings:
        console.print(Text("warning: ", style="yellow") + Text(warning))


def show_summary(summary: "Summary") -> None:
    """Print the verdict and the table behind it."""
    console.print()
    console.print(Text(summary.verdict, style=STYLE[summary.level]), soft_wrap=True)
    say(summary.explanation)
    table = Table("policy")
    for row in summary.costs:
        table.add_column(escape(row.name), justify="right")
    table.add_row("goal", *(escape(row.goal) for row in summary.costs), end_section=True, style="dim")
    for policy in summary.policies:
        table.add_row(policy, *(_cell(row.values[policy]) for row in summary.costs))
    console.print(table)
    held = "held-out estimates, in brackets those of the learning part"
    judged = any(estimate.held_out is not None for row in summary.costs for estimate in row.values.values())
    which = held if judged else "estimates of the learning part"
    console.print(Text(which, style="dim"))
    for unit in dict.fromkeys(row.unit for row in summary.costs):
        names = ", ".join(row.name for row in summary.costs if row.unit == unit)
        console.print(Text(f"{names}: {unit}", style="dim"))


def _cell(estimate: "Estimate") -> str:
    values = [value for value in (estimate.held_out, estimate.learning) if value is not None]
    shown = [f"{value:.4g}" for value in values]
    return f"{shown[0]} ({shown[1]})" if len(shown) > 1 else "".join(shown)
