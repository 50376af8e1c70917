"""Values on disk without code: registered dataclasses as one .npz of arrays and a JSON tree of the rest.

Writing is atomic: a temporary file beside the target, flushed to the disk, then renamed over it.
"""

import hashlib
import json
import math
import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from checkrein.base.arrays import Array, frozen
from checkrein.base.errors import StorageError, WriteError

T = TypeVar("T")
TREE = "tree.json"
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
NOT_OURS = (OSError, ValueError, EOFError, TypeError, AttributeError, MemoryError, NotImplementedError, RuntimeError)
UNFINISHED = ".tmp"  # what a killed writer leaves behind ends in this
_REGISTERED: dict[str, type] = {}


@runtime_checkable
class Packed(Protocol):
    """A value whose fields are not all numbers, text, arrays or storable: it says what stands for them."""

    def packed(self) -> Mapping[str, object]:
        """Return such fields by name."""
        ...

    @classmethod
    def unpacked(cls, fields: dict[str, Any]) -> object:
        """Make the value of them again."""
        ...


def storable(cls: type[T]) -> type[T]:
    """Let a frozen dataclass be saved and loaded by its name; its fields are numbers, text, arrays or storable.

    One with other fields is `Packed`.
    """
    _REGISTERED[cls.__name__] = cls
    return cls


def save(value: object, path: Path) -> None:
    """Write a storable value to one file, whole or not at all."""
    arrays: dict[str, Array] = {}
    tree = _pack(value, type(value).__name__, arrays)
    text = np.array(json.dumps(tree, sort_keys=True))
    write_atomically(path, lambda file: np.savez(file, allow_pickle=False, **{TREE: text}, **arrays))


def digest_of_file(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest(value: object) -> str:
    """SHA-256 of a storable value: equal ones have the same, arrays and all."""
    arrays: dict[str, Array] = {}
    tree = _pack(value, type(value).__name__, arrays)
    found = hashlib.sha256(json.dumps(tree, sort_keys=True).encode())
    for array in arrays.values():
        found.update(repr((array.dtype.str, array.shape)).encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def load(path: Path) -> Any:
    """Read what `save` wrote; nothing in the file is executed."""
    try:
        with path.open("rb") as file:
            _require_measured(file)
            with np.load(file, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise StorageError(f"{path} does not exist") from None
    except (*NOT_OURS, zipfile.BadZipFile) as reason:
        raise StorageError(f"{path} is not a file that checkrein wrote: {reason}") from None
    if TREE not in arrays:
        raise StorageError(f"{path} holds arrays but no {TREE}: it is not a file that checkrein wrote")
    try:
        return _unpack(json.loads(str(arrays.pop(TREE))), arrays)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as reason:
        if isinstance(reason, StorageError):
            raise
        raise StorageError(f"{path} is damaged: {reason}") from None


def _require_measured(file: IO[bytes]) -> None:
    """Raise unless a file holds what its parts declare: nothing is made larger by reading it."""
    size = file.seek(0, os.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        parts = archive.infolist()
        if sum(part.file_size for part in parts) > size or len({part.filename for part in parts}) < len(parts):
            raise ValueError("its parts overlap, or are packed")
        for part in parts:
            if part.compress_type != zipfile.ZIP_STORED or part.compress_size != part.file_size:
                raise ValueError(f"{part.filename} is packed")
            with archive.open(part) as inside:
                version = np.lib.format.read_magic(inside)
                if version not in HEADERS:
                    raise ValueError(f"{part.filename} has version {version}")
                shape, _, kind = HEADERS[version](inside)
                declared = math.prod(shape) * kind.itemsize
                if kind.hasobject or min(shape, default=0) < 0 or inside.tell() + declared != part.file_size:
                    raise ValueError(f"{part.filename} declares {shape} of {kind} in {part.file_size:,} bytes")
    file.seek(0)


def write_atomically(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Let `write` fill a temporary file, then put it in place of `path` in one step."""
    if path.is_dir():
        raise StorageError(f"{path} cannot be written: it is a folder, move it away")
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=UNFINISHED)
    except OSError as reason:
        raise WriteError(f"{path} cannot be written: {reason.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o666 & ~_umask())  # a temporary file is private, what takes its place need not be
        Path(name).replace(path)
    except BaseException as reason:
        Path(name).unlink(missing_ok=True)
        if isinstance(reason, OSError):
            raise WriteError(f"{path} cannot be written: {reason.strerror or reason}") from None
        raise


def _umask() -> int:
    """Return the process's mask of permissions, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _pack(value: object, place: str, arrays: dict[str, Array]) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case np.bool_() | np.integer() | np.floating():
            return value.item()
        case np.ndarray():
            name = f"array{len(arrays)}"
            arrays[name] = value
            return {"array": name}
        case tuple():
            return [_pack(item, f"{place}[{index}]", arrays) for index, item in enumerate(value)]
    kind = type(value).__name__
    if is_dataclass(value) and _REGISTERED.get(kind) is type(value):
        plain = {f.name: getattr(value, f.name) for f in fields(value)}
        content = value.packed() if isinstance(value, Packed) else plain
        packed = {name: _pack(item, f"{place}.{name}", arrays) for name, item in content.items()}
        return {"type": kind, "fields": packed}
    raise StorageError(
        f"{place} is a {kind}, which cannot be saved: nothing on disk is code. "
        "Write it as a frozen dataclass of numbers and arrays and decorate it with @checkrein.storable"
    )


def _unpack(tree: Any, arrays: dict[str, Array]) -> Any:
    if isinstance(tree, list):
        return tuple(_unpack(item, arrays) for item in tree)
    if not isinstance(tree, dict):
        return tree
    if "array" in tree:
        return frozen(arrays[tree["array"]])
    kind = _REGISTERED.get(tree["type"])
    if kind is None:
        raise StorageError(f"the file holds a {tree['type']!r}, which is not known here: import what defines it first")
    content = {name: _unpack(item, arrays) for name, item in tree["fields"].items()}
    return kind.unpacked(content) if isinstance(kind, Packed) else kind(**content)
