"""The command line: the only place that prints.

Commands import what they need when they are called, so that `--help` and typos are answered at once.
"""

import sys

from rich.text import Text

from checkrein.base.errors import CheckreinError, Stopped
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
from checkrein.cli.shared import BAD_INPUT, app, errors, interrupted

ROOM = "use fewer states or actions, fewer rows, or a machine with more of it"

__all__ = ["main"]


def main() -> None:
    """Run a command; what a user can get wrong, or a disk, is one message, not a traceback."""
    try:
        app()
    except CheckreinError as error:
        _refuse(str(error))
    except MemoryError as error:
        _refuse(f"memory ran out ({error}): {ROOM}")
    except OSError as error:
        where = "" if error.filename is None else f"{error.filename}: "
        _refuse(f"{where}{error.strerror or error}")
    except (KeyboardInterrupt, Stopped) as stop:
        sys.exit(interrupted(stop))


def _refuse(words: str) -> None:
    errors.print(Text("error: ", style="bold red") + Text(words))
    sys.exit(BAD_INPUT)
