"""The command line: the only place that prints.

Commands import what they need when they are called, so that `--help` and typos are answered at once.
"""

import sys

from rich.text import Text

from checkrein.base.errors import CheckreinError
from checkrein.cli import (  # noqa: F401  (importing a module adds its commands)
    bounds,
    compare,
    demo,
    deploy,
    frontier,
    judge,
    learn,
    reproduce,
    sensitivity,
)
from checkrein.cli.shared import BAD_INPUT, INTERRUPTED, app, errors

ROOM = "use fewer states or actions, fewer rows, or a machine with more of it"

__all__ = ["main"]


def main() -> None:
    """Run a command; what a user can get wrong is one message, not a traceback."""
    try:
        app()
    except CheckreinError as error:
        errors.print(Text("error: ", style="bold red") + Text(str(error)))
        sys.exit(BAD_INPUT)
    except MemoryError as error:
        errors.print(Text("error: ", style="bold red") + Text(f"memory ran out ({error}): {ROOM}"))
        sys.exit(BAD_INPUT)
    except KeyboardInterrupt:
        errors.print("interrupted")
        sys.exit(INTERRUPTED)
