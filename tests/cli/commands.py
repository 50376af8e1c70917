"""Run commands in this process, as a user would, and keep what they print."""

import contextlib
import io
import sys
from typing import NamedTuple
from unittest import mock

import checkrein.cli


class Done(NamedTuple):
    code: int
    out: str
    err: str


def checkrein_command(*arguments) -> Done:
    out, err = io.StringIO(), io.StringIO()
    called = mock.patch.object(sys, "argv", ["checkrein", *map(str, arguments)])
    with called, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            checkrein.cli.main()
            code = 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return Done(code, out.getvalue(), err.getvalue())
