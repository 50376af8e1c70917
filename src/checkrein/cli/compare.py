"""checkrein compare, runs: finished runs side by side."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from checkrein.cli.shared import app, console, errors, say
from checkrein.cli.show import STYLE

if TYPE_CHECKING:
    from checkrein.report.side_by_side_model import ComparedCost, SideBySide


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(help="Two or more run folders that `checkrein fit` wrote.")],
    data: Annotated[
        str | None, typer.Option(help="A log to compare decisions on. Default: that of the first run, if it is there.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("compare.html"),
) -> None:
    """Put runs side by side: limits, objective, certificate, and what differs in settings and decisions."""
    from checkrein.base.storage import write_atomically
    from checkrein.report.side_by_side import side_by_side_page
    from checkrein.runs.side_by_side import side_by_side

    found = side_by_side(runs, data)
    show_side_by_side(found)
    page = side_by_side_page(found)
    write_atomically(out, lambda file: file.write(page.encode()))
    say(f"Page: {out}")


@app.command("runs")
def list_runs(
    folder: Annotated[Path, typer.Argument(help="A folder with run folders in it, at any depth.")] = Path(),
) -> None:
    """List the runs in a folder, the newest last."""
    from checkrein.base.errors import CheckreinError
    from checkrein.runs.side_by_side import compared_run, runs_in

    found = runs_in(folder)
    table = Table("run", "finished", "objective", "limits", "may act")
    for path in found:
        try:
            run = compared_run(path)
        except CheckreinError as reason:
            errors.print(Text("warning: ", style="yellow") + Text(f"{path}: {reason}"))
            continue
        name, objective = next(iter(run.costs.items()))
        learned, behavior = (_number(value, objective) for value in (objective.learned, objective.behavior))
        found_of = f"{objective.goal} {name}: {learned}, behavior {behavior}"
        cells = [str(path.relative_to(folder)), run.finished, found_of, run.verdict or "not judged"]
        table.add_row(*map(escape, cells), "yes" if run.deploys else "no", style=None if run.deploys else "dim")
    console.print(table)
    say(f"{len(found)} run{'s' * (len(found) != 1)} in {folder}")


def show_side_by_side(found: "SideBySide") -> None:
    """Print a table with a column for each run, then what differs."""
    table = Table("", *(escape(run.name) for run in found.runs))
    for name in found.costs:
        table.add_row(escape(name), *(_cost(run.costs.get(name)) for run in found.runs))
    table.add_section()
    table.add_row("certificate", *(run.verdict or "none" for run in found.runs))
    table.add_row("method", *(run.method or "-" for run in found.runs))
    table.add_row("judged by", *(f"{run.episodes:,} episodes" for run in found.runs))
    table.add_row("policy", *("may act" if run.deploys else "behavior goes on" for run in found.runs))
    console.print(table)
    for run in found.runs:
        console.print(Text(f"{run.name}: ", style="bold") + Text(run.headline, style=STYLE[run.level]), soft_wrap=True)
    if found.units_differ:
        say(found.units_differ)
    if not found.same_log:
        say("The runs did not learn from the same log.")
    if found.settings:
        settings = Table("setting that differs", *(escape(run.name) for run in found.runs))
        for one in found.settings:
            settings.add_row(escape(one.key), *map(escape, one.values))
        console.print(settings)
    _show_decisions(found)


def _show_decisions(found: "SideBySide") -> None:
    """Print how alike the policies decide, and in which states they do not."""
    if found.decisions is None:
        say(f"Decisions are not compared: {found.undecided}")
        return
    first = found.runs[0].name
    for run, share in list(zip(found.runs, found.decisions.alike[0], strict=True))[1:]:
        say(f"{run.name} decides like {first} in {share:.1%} of {found.decisions.rows:,} logged states.")
    if found.decisions.states:
        table = Table("state", "of the log", *(escape(run.name) for run in found.runs))
        for state in found.decisions.states:
            table.add_row(escape(state.state), f"{state.share:.1%}", *map(escape, state.usual))
        console.print(table)


def _cost(cost: "ComparedCost | None") -> str:
    """Return a cell: the estimate beside behavior's, the goal and what was shown."""
    if cost is None:
        return "-"
    bound = "" if cost.bound is None else f", bound {_number(cost.bound, cost)}"
    said = "" if cost.verdict is None else f" ({cost.verdict})"
    return escape(f"{_number(cost.learned, cost)}{bound}, {cost.goal}{said}; behavior {_number(cost.behavior, cost)}")


def _number(value: float | None, cost: "ComparedCost") -> str:
    if value is None:
        return "-"
    return f"{100 * value:.3g}%" if cost.share else f"{value:.4g}"
