"""checkrein frontier: the whole trade-off between the objective and one or two limits."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from checkrein.base.errors import ArgumentError, DataError, Stopped, WriteError
from checkrein.cli.judge import STYLE
from checkrein.cli.progress import Progress
from checkrein.cli.shared import INFEASIBLE, OK, STOPPED_SHORT, app, console, errors, interrupted, say

if TYPE_CHECKING:
    from checkrein.game.sweep import Point
    from checkrein.report.frontier_model import FrontierSummary, ShownPoint


@app.command()
def frontier(
    problem: Annotated[Path, typer.Argument(help="A problem file; `checkrein init LOG` writes a first version.")],
    limit: Annotated[
        list[str], typer.Option("--limit", metavar="NAME", help="The constraint to sweep; twice for a grid of two.")
    ],
    out: Annotated[Path, typer.Option(help="Folder to write frontier.html, .csv and .json to.")],
    points: Annotated[int, typer.Option(min=2, help="How many limits; of a grid, about as many in all.")] = 30,
    start: Annotated[
        list[float] | None,
        typer.Option(
            "--from", help="The smallest limit, once for each --limit. Default: the least any policy reaches."
        ),
    ] = None,
    end: Annotated[
        list[float] | None,
        typer.Option("--to", help="The largest limit, once for each --limit. Default: what is incurred without it."),
    ] = None,
    certify: Annotated[bool, typer.Option(help="Certify every point; all of them are one look.")] = True,
    resume: Annotated[bool, typer.Option("--resume", help="Take up the sweep that is in the folder.")] = False,
) -> None:
    """Sweep one or two limits: the best objective at each, its price, what is certified; as a table and a page."""
    from checkrein.base.lock import one_writer
    from checkrein.runs.folder import FrontierFolder, RunFolder
    from checkrein.runs.frontier import sweep_of, trace_frontier
    from checkrein.runs.prepare import prepare

    swept = _swept(limit, start, end)
    if not resume and RunFolder(out).holds_rounds:
        raise DataError(f"{out} holds a run already: pass --resume to take it up, or choose another --out")
    prepared = prepare(problem, hold_out=True)
    sweep_of(prepared, swept, points)  # what is wrong with the question is told before anything is written
    for warning in prepared.card.warnings:
        errors.print(Text("warning: ", style="yellow") + Text(warning))
    command = _command(problem, out, swept, points, certify=certify)
    progress, done = Progress(live=console.is_terminal), 0

    def show(point: "Point") -> None:
        nonlocal done
        done += 1
        progress.line = f"{done} points, the last at " + ", ".join(f"{n} {point.limits[n]:.4g}" for n in swept)

    try:
        with one_writer(out), Live(progress, console=console, refresh_per_second=10):
            _, summary = trace_frontier(
                prepared,
                out,
                swept=swept,
                points=points,
                command=command,
                certified=certify,
                on_point=show,
                tell=progress.tell,
            )
            progress.tell("")
    except (KeyboardInterrupt, Stopped) as stop:
        sys.exit(interrupted(stop, f"what was played is kept. Go on with: {command} --resume"))
    except WriteError as reason:
        raise WriteError(f"{reason}. What was played is kept: make room, then go on with: {command} --resume") from None
    show_frontier(summary)
    say(f"Page: {FrontierFolder(out).page}; table: {FrontierFolder(out).table}")
    raise typer.Exit(_code(summary))


def show_frontier(summary: "FrontierSummary") -> None:
    """Print what to take away, and every point."""
    console.print()
    for line in summary.sentences:
        say(line)
    table = Table()
    for name in summary.swept:
        table.add_column(f"limit of {escape(name)}", justify="right")
    objective = summary.costs[0].name
    table.add_column(escape(objective), justify="right")
    for name in summary.swept:
        table.add_column(f"price of {escape(name)}", justify="right")
    if summary.confidence is not None:
        table.add_column("certificate")
    for point in summary.points:
        cells = [f"{point.limits[name]:.4g}" for name in summary.swept]
        if point.values:
            cells += [_value(point, objective), *(_price(point, name) for name in summary.swept)]
        else:
            cells += [point.status, *("" for _ in summary.swept)]
        verdict = point.verdict
        judged = [] if summary.confidence is None else [Text(verdict or "", style=STYLE[verdict] if verdict else "")]
        table.add_row(*cells, *judged)
    console.print(table)
    held = "held-out estimates, in brackets those of the learning part"
    console.print(Text(held if summary.held_out_episodes else "estimates of the learning part", style="dim"))


def _value(point: "ShownPoint", name: str) -> str:
    found = point.values[name]
    values = [value for value in (found.held_out, found.learning) if value is not None]
    return f"{values[0]:.4g}" if len(values) == 1 else f"{values[0]:.4g} ({values[1]:.4g})"


def _price(point: "ShownPoint", name: str) -> str:
    price = point.prices[name]
    return f"{price.low:.3g} to {price.high:.3g}" if price.note else f"{price.value:.4g}"


def _swept(
    names: list[str], start: list[float] | None, end: list[float] | None
) -> dict[str, tuple[float, float] | None]:
    if len(set(names)) < len(names):
        raise ArgumentError(f"--limit names {names[0]!r} twice: a grid needs two different constraints")
    if start is None and end is None:
        return dict.fromkeys(names)
    if start is None or end is None or not len(start) == len(end) == len(names):
        raise ArgumentError(
            f"there are {len(names)} --limit, {len(start or [])} --from and {len(end or [])} --to: "
            "give both once for each limit, or neither"
        )
    return dict(zip(names, zip(start, end, strict=True), strict=True))


def _command(
    problem: Path, out: Path, swept: dict[str, tuple[float, float] | None], points: int, *, certify: bool
) -> str:
    words = ["checkrein", "frontier", str(problem)]
    for name, ends in swept.items():
        words += ["--limit", name]
        words += [] if ends is None else ["--from", f"{ends[0]:g}", "--to", f"{ends[1]:g}"]
    words += ["--points", str(points), *([] if certify else ["--no-certify"]), "--out", str(out)]
    return shlex.join(words)


def _code(summary: "FrontierSummary") -> int:
    """Say how it ended: nothing is feasible, a point stopped short, or all is well."""
    if not any(point.values for point in summary.points):
        return INFEASIBLE
    return OK if all(point.status in ("converged", "infeasible") for point in summary.points) else STOPPED_SHORT
