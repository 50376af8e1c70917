"""What all commands share: the application, the consoles, the exit codes."""

import sys
from typing import Annotated

import typer
from rich.console import Console

from checkrein import __version__
from checkrein.base.errors import Stopped

OK = 0
BAD_INPUT = 2  # something the user can fix: a file, a key, an option
INFEASIBLE = 3  # a result: no supported policy keeps all limits
STOPPED_SHORT = 4  # a result: rounds, bound or numbers ran out before the tolerance was reached
BROKEN, UNPROVEN = 5, 6  # results of certify, and of a cross-fitted fit: a limit is broken; nothing could be shown
INTERRUPTED = 130  # Ctrl-C; of SIGTERM it is 143

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog="Exit codes: 0 done, 2 bad input, 3 infeasible limits, 4 stopped short of the tolerance, "
    "5 a limit is broken, 6 not certified, 7 a claim does not hold, 130 or 143 interrupted.",
)
console = Console(highlight=False)
errors = Console(stderr=True, highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """Print a line as it is: paths and sentences are not broken where the terminal ends."""
    console.print(text, markup=False, soft_wrap=True)


def interrupted(stop: KeyboardInterrupt | Stopped, kept: str = "") -> int:
    """Say in one line that the command was interrupted, and what is kept; return the exit code."""
    sys.stderr.write(f"interrupted{kept and ': '}{kept}\n")
    sys.stderr.flush()
    if not isinstance(stop, Stopped):
        return INTERRUPTED
    stop.told = True
    return stop.code


@app.callback(invoke_without_command=True)
def checkrein(version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False) -> None:
    """Learn a policy from logged decisions: minimise one cost, keep the others under their limits."""
    if version:
        console.print(__version__)
        raise typer.Exit
