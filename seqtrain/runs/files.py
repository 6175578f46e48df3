"""Writing files so that a reader sees the old content or the new, never half of one."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from seqtrain.errors import RunError
from seqtrain.runs.exchange import exchange

MANIFEST = "manifest.json"
NO_SPACE = [getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EFBIG") if hasattr(errno, name)]


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file under a temporary name, flush it to the disk, and rename it.

    Raises:
        RunError: the disk is full or the folder can't be written.
    """
    temporary = _temporary(path)
    try:
        _write_to_disk(temporary, content)
        os.replace(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        _remove(temporary)
        raise _not_written(path, error, len(content)) from None


def _temporary(path: Path) -> Path:
    """Return a free name beside a path; one that could not be removed may stand there already."""
    names = (path.with_name(f".{path.name}-{os.getpid()}-{number}") for number in count())
    return next(name for name in names if not os.path.lexists(name))


def is_stray(name: str) -> bool:
    """Whether a name is one that only a writer which was killed leaves behind."""
    return re.fullmatch(r"\..+-[0-9]+", name) is not None


def _not_written(path: Path, error: OSError, size: int) -> RunError:
    """Say why, how many bytes have no place, and that what stood there still does."""
    needed = f" ({size:,} bytes were to be written)" if error.errno in NO_SPACE else ""
    kept = "; the previous one is untouched" if os.path.exists(path) else ""
    return RunError(f"{path}: {error.strerror}{needed}{kept}")


def write_all(write: Callable[[memoryview], int], content: bytes) -> None:
    """Write all of it: what writes to an unbuffered file may take a part at a time."""
    rest = memoryview(content)
    while rest:
        rest = rest[write(rest) :]


def _write_to_disk(path: Path, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to the disk, where the system can."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def to_json(value: Any) -> bytes:
    """Return a JSON value as indented UTF-8 text with a final newline; NaN is refused."""
    return (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def write_folder(
    target: Path, files: dict[str, bytes], previous: Path | None = None
) -> Path | None:
    """Write a folder of files with a manifest of their SHA-256, then put it in the target's place.

    Everything is on the disk before it is put there. At every moment the target is whole, the old
    or the new (where the system can't exchange folders, `complete_folder` finds it).

    Args:
        target: where.
        files: content by name.
        previous: where the target's old folder goes; what stood there is removed, or, where this
            is None, the old folder itself.

    Returns:
        A folder that can't be removed and is left for `remove_strays`, or None.

    Raises:
        RunError: the disk is full or the folder can't be written; the old one is untouched.
    """
    new = _temporary(target)
    try:
        new.mkdir()
        digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
        for name, content in files.items():
            _write_to_disk(new / name, content)
        _write_to_disk(new / MANIFEST, to_json({"sha256": digests}))
        sync_folder(new)
        sync_folder(target.parent)
        _swap(new, target)
        if previous is not None and new.exists():
            _swap(new, previous)
    except OSError as error:
        raise _not_written(target, error, sum(map(len, files.values()))) from None
    finally:
        _remove(new)
    return new if new.exists() else None


def _swap(new: Path, target: Path) -> None:
    """Put a folder in the target's place; the target's own takes its name, where there is one."""
    if not target.exists():
        new.rename(target)
    elif not exchange(new, target):
        old = _aside(target)
        shutil.rmtree(old, ignore_errors=True)
        target.rename(old)
        new.rename(target)
        old.rename(new)
    sync_folder(target.parent)


def complete_folder(folder: Path) -> Path:
    """Return the folder, or the one moved aside if writing stopped between the two renames."""
    return folder if folder.exists() or not _aside(folder).exists() else _aside(folder)


def remove_strays(folder: Path, targets: Sequence[str]) -> list[Path]:
    """Clean up after a writer that was killed: no temporary stays, no whole folder is lost.

    Args:
        folder: whose entries to clean.
        targets: names of the folders that `write_folder` puts there.

    Returns:
        What can't be removed.

    Raises:
        OSError: the folder can't be read, or a whole one not be put in its place.
    """
    asides = [_aside(folder / name) for name in targets]
    for target, old in zip((folder / name for name in targets), asides, strict=True):
        if complete_folder(target) == old:
            old.rename(target)
    strays = asides + [path for path in folder.iterdir() if is_stray(path.name)]
    for path in strays:
        _remove(path)
    return [path for path in strays if os.path.lexists(path)]


def _remove(path: Path) -> None:
    """Remove a file or folder, where there is one and it lets itself be removed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    elif os.path.lexists(path):
        with suppress(OSError):
            path.unlink()


def _aside(target: Path) -> Path:
    return target.with_name(f".{target.name}-old")
