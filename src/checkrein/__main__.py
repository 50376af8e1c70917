"""Run the command line, as `checkrein` or as `python -m checkrein`: from here on a signal ends it in one line."""

import atexit
import os
import signal
import sys
from io import TextIOWrapper

from checkrein.base.errors import Stopped

TYPE_CHECKING = False  # as type checkers know it: nothing is imported here that can wait until signals are met

if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM)
IMPORTING = "<frozen importlib._bootstrap>"  # where a package that is half imported may turn our end into its own error
SHOW_CURSOR = b"\x1b[?25h"


class Signals:
    """The first signal raises Stopped, so that what is open is closed; a second one ends, as any before and after does.

    Nothing on the disk depends on being closed: that is what being killed at any moment is tested for.
    """

    def __init__(self) -> None:
        self.stopped: Stopped | None = None
        self.raises = False  # whether there is somebody to catch it

    def install(self) -> None:
        """Take signals, but for those that whoever started us wants ignored."""
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self.meet)
        sys.unraisablehook = self.met_where_nothing_is_raised

    def leave(self) -> None:
        """Take no more of them: all is done, and what Python tidies up last would be ended by them without a word."""
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)

    def meet(self, number: int, frame: "FrameType | None") -> None:
        """Raise, or end the process here and now."""
        again = self.stopped is not None
        self.stopped = self.stopped or Stopped(128 + number)
        if again or not self.raises or _importing(frame):
            self.end(self.stopped)
        raise self.stopped

    def met_where_nothing_is_raised(self, unraisable: "sys.UnraisableHookArgs") -> None:
        """End where Python would swallow it, in a destructor for instance."""
        if isinstance(unraisable.exc_value, Stopped):
            self.end(unraisable.exc_value)
        sys.__unraisablehook__(unraisable)

    def end(self, stopped: Stopped) -> "NoReturn":
        """End the process without another word than the one line."""
        if sys.__stdout__ is not None and sys.__stdout__.isatty():
            os.write(1, SHOW_CURSOR)
        if not stopped.told:
            os.write(2, b"interrupted\n")
        os._exit(stopped.code)


def _importing(frame: "FrameType | None") -> bool:
    while frame is not None:
        if frame.f_code.co_filename == IMPORTING:
            return True
        frame = frame.f_back
    return False


def main() -> None:
    """Run a command."""
    signals = Signals()
    signals.install()
    atexit.register(signals.leave)  # what is registered first is called last
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # what a terminal cannot show is no reason to end
    from checkrein import cli  # noqa: PLC0415  # this takes long, and signals must be met before

    try:
        signals.raises = True
        cli.main()
    finally:
        signals.raises = False
        if signals.stopped is not None:
            try:
                sys.stdout.flush()
            except (OSError, ValueError):  # nobody may be reading any more
                signals.end(signals.stopped)
            signals.end(signals.stopped)  # while Python tidies up, it takes no more signals


if __name__ == "__main__":
    main()
