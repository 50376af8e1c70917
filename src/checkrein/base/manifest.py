"""The manifest of a finished folder: the SHA-256 of every file in it, by which it is checked before it is read."""

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from checkrein.base.errors import StorageError
from checkrein.base.storage import UNFINISHED, digest_of_file, write_atomically

MANIFEST = "manifest.json"
FORMAT = 1
RESUME = "`checkrein fit --resume`"
AGAIN = "learn it again with `checkrein fit`"


@dataclass(frozen=True)
class Manifest:
    """What a folder holds.

    files: digests by name, relative to the folder
    finished: False while a run there is written anew; `files` are then those of the one before
    writing: the digest of a file that is about to take its place: should that be cut off, either is right
    """

    files: dict[str, str]
    finished: bool = True
    writing: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> "Manifest | None":
        """Return the manifest of a folder; None where there is none."""
        path = folder / MANIFEST
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            files, writing = ({str(name): str(one) for name, one in found[key].items()} for key in ("files", "writing"))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as reason:
            raise StorageError(
                f"{path} is damaged ({reason}): move it away and go on with {RESUME}, or {AGAIN}"
            ) from None
        if found.get("format") != FORMAT:
            raise StorageError(f"{path} has format {found.get('format')!r}, not {FORMAT}: {AGAIN}")
        return cls(files, found.get("finished") is True, writing)

    def write(self, folder: Path) -> None:
        """Write it, whole or not at all."""
        content = {"format": FORMAT, "finished": self.finished, "files": self.files, "writing": self.writing}
        text = json.dumps(content, indent=1, sort_keys=True) + "\n"
        write_atomically(folder / MANIFEST, lambda file: file.write(text.encode()))

    def allows(self, name: str, digest: str) -> bool:
        """Say whether a file is one that belongs there."""
        return digest in (self.files.get(name), self.writing.get(name))


def begin(folder: Path) -> None:
    """Say that a folder is about to be written anew; without a manifest, nothing there counts as finished anyway."""
    there = Manifest.read(folder)
    if there is not None and there.finished:
        replace(there, finished=False).write(folder)


def seal(folder: Path, known: Collection[str]) -> None:
    """Say that a folder is finished, with the files and folders of known names that are in it."""
    Manifest({name: digest_of_file(folder / name) for name in _present(folder, known)}).write(folder)


def require_whole(folder: Path, known: Collection[str], may_lack: Collection[str] = ()) -> None:
    """Raise unless a folder is finished, and holds what its manifest says: no file less, none changed, none more.

    known: names of files and folders that are read; others are nobody's business
    may_lack: those that may be gone
    """
    manifest = Manifest.read(folder)
    if manifest is None:
        raise StorageError(
            f"{folder} holds no finished run: there is no {MANIFEST} in it. If it was interrupted, go on with "
            f"{RESUME}; if an earlier version wrote it, {AGAIN}"
        )
    if not manifest.finished:
        raise StorageError(
            f"{folder} holds no finished run: it was interrupted while it was written again. Go on with {RESUME}"
        )
    there = _present(folder, known)
    missing = sorted(manifest.files.keys() - set(there) - set(may_lack))
    if missing:
        raise StorageError(f"{folder / missing[0]} is missing, which {MANIFEST} lists: restore it, or {AGAIN}")
    for name in there:
        if name not in manifest.files and name not in manifest.writing:
            raise StorageError(
                f"{folder / name} is not listed in {MANIFEST}: it was put there by something else. Move it away"
            )
        if not manifest.allows(name, _digest(folder / name)):
            raise StorageError(
                f"{folder / name} is not the file that {MANIFEST} lists: it was changed or swapped. Restore it, or "
                f"{AGAIN}"
            )


@contextmanager
def joining(path: Path) -> Iterator[Path]:
    """Yield where to write a file that joins a finished folder; cut off at any moment, the folder is still whole.

    Where the folder has no manifest, or is being written anew, that is the file's own place.
    """
    folder, name = path.parent, path.name
    manifest = Manifest.read(folder)
    if manifest is None or not manifest.finished:
        yield path
        return
    draft = path.with_name(f".{name}{UNFINISHED}")
    try:
        yield draft
        digest = digest_of_file(draft)
        files = manifest.files | {old: new for old, new in manifest.writing.items() if _is(folder / old, new)}
        Manifest(files, writing={name: digest}).write(folder)
        draft.replace(path)
        Manifest(files | {name: digest}).write(folder)
    finally:
        draft.unlink(missing_ok=True)


def _present(folder: Path, known: Collection[str]) -> list[str]:
    """Return the files of known names, and all in folders of known names."""
    found = []
    for top in sorted(path for path in folder.iterdir() if path.name in known):
        inside = sorted(top.rglob("*")) if top.is_dir() else [top]
        found += [path.relative_to(folder).as_posix() for path in inside if not path.is_dir() and path.name[0] != "."]
    return found


def _digest(path: Path) -> str:
    if not path.is_file():
        raise StorageError(f"{path} is no file: move it away, and {AGAIN}")
    try:
        return digest_of_file(path)
    except OSError as reason:
        raise StorageError(f"{path} cannot be read: {reason.strerror}") from None


def _is(path: Path, digest: str) -> bool:
    return path.exists() and _digest(path) == digest
