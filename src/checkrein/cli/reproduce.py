"""checkrein reproduce: a study from nothing, with one command."""

import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from checkrein.cli.progress import Progress
from checkrein.cli.shared import app, console, say

NOT_REPRODUCED = 7  # a result: a claim of the study does not hold


@app.command(epilog=f"Exit code {NOT_REPRODUCED}: a claim does not hold.")
def reproduce(
    name: Annotated[str, typer.Argument(help="The study; without one, they are listed.", show_default=False)] = "",
    quick: Annotated[bool, typer.Option("--quick", help="The same in small, in seconds.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder to write; default: reproduce-NAME.", show_default=False)
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="SETTING=VALUE", help="Another setting of the study; may be repeated."),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the reproduction.")] = False,
) -> None:
    """Run a study from nothing: data, learning, evaluation, figures, one results page; and say what matched."""
    from checkrein import reproduction

    if listed or not name:
        table = Table("study", "about")
        for known, line in reproduction.descriptions().items():
            table.add_row(known, escape(line))
        console.print(table)
        return
    study = reproduction.study_of(name, quick=quick, changes=changes or [])
    folder = out or Path(f"reproduce-{name}")
    asked = [*(["--quick"] if quick else []), *(word for change in changes or [] for word in ("--set", change))]
    command = shlex.join(["checkrein", "reproduce", name, *asked, *(["--out", str(out)] if out else [])])
    progress = Progress(live=console.is_terminal)
    with Live(progress, console=console, refresh_per_second=4):
        done = reproduction.reproduce(study, folder, name=name, command=command, tell=progress.tell)
        progress.tell("")
    table = Table("claim", "wanted", "measured", "holds")
    for claim in done.findings.claims:
        holds = Text("yes", style="green") if claim.holds else Text("NO", style="bold red")
        table.add_row(escape(claim.what), escape(claim.wanted), escape(claim.measured), holds)
    console.print(table)
    say(f"{done.seconds:.1f} s. Page: {folder / reproduction.PAGE}; numbers: {folder / reproduction.RESULTS}")
    raise typer.Exit(0 if done.findings.holds else NOT_REPRODUCED)
