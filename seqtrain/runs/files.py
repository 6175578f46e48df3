"""Writing files so that a reader sees the old content or the new, never half of one."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seqtrain.errors import RunError
from seqtrain.runs.exchange import exchange

MANIFEST = "manifest.json"


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file under a temporary name, flush it to the disk, and rename it.

    Raises:
        RunError: the disk is full or the folder can't be written.
    """
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        _write_to_disk(temporary, content)
        os.replace(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise RunError(f"{path}: {error.strerror}; the previous file is untouched") from None


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


def write_folder(target: Path, files: dict[str, bytes], previous: Path | None = None) -> None:
    """Write a folder of files with a manifest of their SHA-256, then put it in the target's place.

    Everything is on the disk before it is put there. At every moment the target is whole, the old
    or the new (where the system can't exchange folders, `complete_folder` finds it).

    Args:
        target: where.
        files: content by name.
        previous: where the target's old folder goes; what stood there is removed, or, where this
            is None, the old folder itself.

    Raises:
        RunError: the disk is full or the folder can't be written; the old one is untouched.
    """
    new = target.with_name(f".{target.name}-{os.getpid()}")
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
        raise RunError(f"{target}: {error.strerror}; the previous one is untouched") from None
    finally:
        shutil.rmtree(new, ignore_errors=True)


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


def remove_strays(folder: Path, targets: Sequence[str]) -> None:
    """Clean up after a writer that was killed: no temporary stays, no whole folder is lost.

    Args:
        folder: whose entries to clean.
        targets: names of the folders that `write_folder` puts there.

    Raises:
        OSError: the folder can't be changed.
    """
    for target in (folder / name for name in targets):
        old = _aside(target)
        if complete_folder(target) == old:
            old.rename(target)
        shutil.rmtree(old, ignore_errors=True)
    for path in folder.iterdir():
        if re.fullmatch(r"\..+-[0-9]+", path.name):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def _aside(target: Path) -> Path:
    return target.with_name(f".{target.name}-old")
