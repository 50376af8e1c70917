"""checkrein evaluate, certify: a finished run, judged on a log."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from checkrein.cli.shared import BROKEN, OK, UNPROVEN, app, console, errors, say

if TYPE_CHECKING:
    from checkrein import Certificate, Estimates
    from checkrein.evaluation.propensities import Method
    from checkrein.problem.goals import Goal
    from checkrein.report.model import CostRow, Summary
    from checkrein.runs.judge import Trial

EXIT = {"pass": OK, "fail": BROKEN, "inconclusive": UNPROVEN}
STYLE = {"pass": "bold green", "fail": "bold red", "inconclusive": "bold yellow"}

Run = Annotated[Path, typer.Argument(help="A run folder that `checkrein fit` wrote.")]
Data = Annotated[
    str | None,
    typer.Option(
        help="A log like the run's own, by default that one; episodes that the run learned from do not count."
    ),
]
Single = Annotated[bool, typer.Option("--single", help="Judge the best single policy, not the mixture.")]


def _propensity_method(name: str | None) -> str | None:
    """Refuse a name that is none before the log is read; the names are looked up here because `--help` need not."""
    if name is not None:
        from checkrein.evaluation.propensities import METHODS

        if name not in METHODS:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(METHODS)}")
    return name


@app.command()
def evaluate(
    run: Run,
    data: Data = None,
    single: Single = False,
    estimators: Annotated[
        str | None, typer.Option(help="Names, with commas between them. Default: all, but for a learned model.")
    ] = None,
    propensities: Annotated[
        str | None,
        typer.Option(
            help="logged, counts, logistic or trees. Default: logged; else counts, or logistic of features.",
            callback=_propensity_method,
        ),
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(help="Where episodes are weighed, value the softmin of greedy policies.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the tables. Default: the run folder.")] = None,
) -> None:
    """Value a run's policy by every estimator, each with its interval, and say where they disagree."""
    from checkrein.runs import judge as judging
    from checkrein.runs.folder import RunFolder

    trial = judging.open_trial(run, data, single=single)
    chosen = None if estimators is None else [name.strip() for name in estimators.split(",")]
    method = cast("Method | None", propensities)
    found = judging.estimate(trial, estimators=chosen, propensities=method, temperature=temperature)
    show_estimates(found)
    calibration = None if found.propensities is None else found.propensities.calibration()
    table = RunFolder(run if out is None else out).write_evaluation(found.table(), calibration)
    if found.propensities is not None:
        say(f"Propensities: {found.propensities.source}.")
    which = "held-out part of the run's own log" if trial.own else "log given"
    clusters = "" if trial.dataset.clusters is None else f" in {trial.dataset.n_units:,} clusters"
    show_left_out(trial)
    say(f"{len(trial.episodes):,} episodes{clusters} of the {which}. Table: {table}")


@app.command()
def certify(
    run: Run,
    data: Data = None,
    single: Single = False,
    method: Annotated[str | None, typer.Option(help="A method of certification. Default: the run's own.")] = None,
    confidence: Annotated[float | None, typer.Option(help="Default: the run's own.")] = None,
    largest_weight: Annotated[
        float | None,
        typer.Option(
            min=1.0,
            help="Of Bernstein and betting bounds: the most that policy / propensity can come to in an episode.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File for the certificate. Default: in the run folder.")] = None,
) -> None:
    """Judge whether a run's policy keeps its limits, on episodes that did not choose it; every look is recorded."""
    from checkrein.base.lock import one_writer
    from checkrein.runs import judge as judging
    from checkrein.runs.fit import write_report
    from checkrein.runs.folder import RunFolder

    folder = RunFolder(run)
    trial = judging.open_trial(run, data, single=single)
    with one_writer(run) if out is None else nullcontext():  # what cannot be written is told before a look is taken
        certificate, trouble = judging.judge(
            trial, what=str(run), method=method, confidence=confidence, largest_weight=largest_weight
        )
        path = folder.certificate_file(own=trial.own, single=single, method=method) if out is None else out
        folder.add_certificate(certificate, path)
    if single:
        show_singles(folder.summary())
    show_left_out(trial)
    show_certificate(certificate, trial.file.objective.goal)
    for line in trouble:
        errors.print(Text("warning: ", style="yellow") + Text(line))
    say(f"Certificate: {path}")
    if out is None and folder.reports:
        say(f"Report: {write_report(folder, folder.summary())}")
    raise typer.Exit(EXIT[certificate.verdict])


def show_left_out(trial: "Trial") -> None:
    """Print what is judged, and how many episodes do not judge it: copies, and those that the run learned from."""
    if trial.uncertified:
        say("The run has no policy that passed: what is judged here is the one that was refused.")
    if trial.copies is not None and len(trial.copies):
        say(f"Of this log, {trial.copies.words()}.")
    if trial.learned:
        fresh = len(trial.episodes)
        say(
            f"The run learned from {trial.learned:,} of these {trial.learned + fresh:,} episodes: "
            f"{fresh:,} are fresh and judge it."
        )


def show_estimates(found: "Estimates") -> None:
    """Print a row per estimator and a column per cost, then who disagrees."""
    table = Table("estimator", *(escape(cost) for cost in found.costs), "effective sample size")
    rows = found.table()
    notes = []
    for name in found.by_name:
        mine = rows.filter(rows["estimator"] == name)
        sure = [found.possible(name, cost) for cost in found.costs]
        cells = [
            _interval(*row) if shown else "-"
            for row, shown in zip(mine.select("value", "low", "high").iter_rows(), sure, strict=True)
        ]
        beyond = [cost for cost, shown in zip(found.costs, sure, strict=True) if not shown]
        notes += [f"{name}: {', '.join(beyond)} would lie beyond all that can be, and is not shown"] if beyond else []
        effective = mine["effective_sample_size"][0]
        table.add_row(name, *cells, "" if effective is None else f"{effective:,.0f}")
        notes += [f"{name}: {mine['note'][0]}"] if mine["note"][0] else []
    console.print(table)
    console.print(Text(f"in brackets, two-sided intervals at {found.confidence:.0%}", style="dim"))
    for note in notes:
        console.print(Text(note, style="dim"), soft_wrap=True)
    for cost, one, other, apart, _, ratio in found.disagreement().iter_rows():
        say(f"{cost}: {one} and {other} are furthest apart, by {apart:.4g}: {ratio:.1f} joint standard errors.")


def show_singles(summary: "Summary") -> None:
    """Print the kinds of single policies that the run compared, and which of them is judged."""
    if summary.singles is None:
        return
    found = summary.singles.found
    table = Table("single policy", *(one.kind for one in found))
    for row in summary.costs:
        estimates = [one.values[row.name] for one in found]
        table.add_row(escape(row.name), *(f"{_number(e.held_out)} ({_number(e.learning)})" for e in estimates))
    table.add_row("price", *(f"({_number(one.price)})" for one in found))
    console.print(table)
    console.print(Text("held-out estimates, in brackets those of the learning part", style="dim"))
    say("".join(f"Judged here: {one.kind}." for one in found if one.chosen))
    for kind, reason in summary.singles.left_out.items():
        console.print(Text(f"{kind}: left out, because {reason}", style="dim"), soft_wrap=True)


def show_certificate(certificate: "Certificate", objective: "Goal | CostRow") -> None:
    """Print the verdict, the bounds behind it, what was shown of the objective, and what would change it."""
    from checkrein.report.improvement import improvement_of

    certificate = certificate.as_shown
    console.print()
    word = Text(f"Certificate: {certificate.verdict}. ", style=STYLE[certificate.verdict])
    console.print(word + Text(certificate.reason), soft_wrap=True)
    table = Table("constraint", "limit", "estimate", "bound", "verdict")
    for c in certificate.constraints:
        cells = [_number(c.estimate), _number(c.bound)]
        table.add_row(escape(c.name), f"{c.words} {c.limit:.4g}", *cells, c.verdict)
    console.print(table)
    for line in dict.fromkeys(certificate.advice):
        say(f"What would change it: {line}.")
    improvement = improvement_of(certificate, objective.name, objective.direction)
    if improvement is not None:
        word = Text(f"Objective: {improvement.verdict}. ", style=STYLE[improvement.like])
        console.print(word + Text(improvement.words), soft_wrap=True)
    for check in certificate.checks:
        if check.ok and check.notable:
            say(f"Noted: {check.words}.")
    spent = f"look {certificate.look} at this log, alpha {certificate.alpha:.2g} of {1 - certificate.confidence:.2g}"
    clusters = "" if certificate.clusters is None else f" in {certificate.clusters:,} clusters"
    judged_by = f"{certificate.episodes:,} episodes{clusters}"
    console.print(Text(f"{certificate.method}, {certificate.guarantee}, {judged_by}; {spent}", style="dim"))


def _interval(value: float, low: float | None, high: float | None) -> str:
    return f"{value:.4g}" if low is None or high is None else f"{value:.4g} [{low:.3g}, {high:.3g}]"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
