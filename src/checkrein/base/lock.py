"""One writer at a time: a lock on a run folder. The system lets go of it when the process ends, however it ends."""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from checkrein.base.errors import CheckpointError, WriteError
from checkrein.base.storage import UNFINISHED

if sys.platform != "win32":
    import fcntl

LOCK = ".lock"
_ours = threading.local()


@contextmanager
def one_writer(folder: Path) -> Iterator[bool]:
    """Hold a folder, which is made if need be; raise at once where another process, or another thread, holds it.

    Yields whether it was free: who holds it already may take it again, and finishes what is in it.
    What a writer that was killed left behind is removed, and so is the folder if nothing was put into it.
    """
    held: set[Path] = _ours.__dict__.setdefault("held", set())
    key = folder.resolve()
    if key in held:
        yield False
        return
    made = _make(folder)
    try:
        handle = _locked(folder)
        held.add(key)
        try:
            for leftover in folder.rglob(f".*{UNFINISHED}"):
                leftover.unlink(missing_ok=True)
            yield True
        finally:
            held.discard(key)
            with suppress(OSError):
                (folder / LOCK).unlink()  # while it is held: who waits for it notices
            os.close(handle)
    finally:
        for empty in made:
            with suppress(OSError):  # it is not
                empty.rmdir()


def _make(folder: Path) -> list[Path]:
    """Make a folder and those above it; return the ones that are new, the innermost first."""
    new = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise CheckpointError(f"{folder} cannot be a run folder: there is a file in its place") from None
    except OSError as reason:
        raise WriteError(f"{folder} cannot be a run folder: {reason.strerror}") from None
    return new


def _locked(folder: Path) -> int:
    """Return a handle that holds the lock until it is closed."""
    path = folder / LOCK
    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as reason:
            raise WriteError(f"{folder} cannot be written: {reason.strerror}") from None
        try:
            _take(handle)
            if os.fstat(handle).st_ino == path.stat().st_ino:
                os.truncate(handle, 0)
                os.write(handle, f"process {os.getpid()} since {time.strftime('%Y-%m-%d %H:%M:%S')}".encode())
                return handle
        except BlockingIOError:
            who = path.read_text(errors="replace") if path.exists() else ""
            os.close(handle)
            raise CheckpointError(
                f"{folder} is being written by {who or 'another process'}: wait until it is done, or choose another "
                "folder"
            ) from None
        except FileNotFoundError:  # whoever held it has just let go of it, and removed it
            pass
        except OSError:  # of the disk: who we are need not be written there
            return handle
        os.close(handle)


def wait_for(handle: int) -> None:
    """Lock an open file for as long as it stays open, once nobody else has it locked."""
    if sys.platform != "win32":
        with suppress(OSError):  # a disk that knows no locks
            fcntl.flock(handle, fcntl.LOCK_EX)


def _take(handle: int) -> None:
    """Lock a file, or raise BlockingIOError; do nothing where the system or the disk knows no locks."""
    if sys.platform == "win32":
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return
