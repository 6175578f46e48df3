"""Writing files so that a reader sees the old content or the new, never half of one."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seqtrain.errors import CheckpointError, RunError

MANIFEST = "manifest.json"
READ_ATTEMPTS = 5
"""Times a folder is read, for a writer may be replacing it."""
PAUSE = 0.01
"""Seconds that each further attempt waits longer."""


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


def write_folder(target: Path, files: dict[str, bytes]) -> None:
    """Write a folder of files with a manifest of their SHA-256, then put it in the target's place.

    The old folder is moved aside before and removed after, so that at every moment a whole one
    exists; `complete_folder` finds it.

    Raises:
        RunError: the disk is full or the folder can't be written; the old one is untouched.
    """
    new = target.with_name(f".{target.name}-{os.getpid()}")
    old = _aside(target)
    try:
        new.mkdir()
        digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
        for name, content in files.items():
            _write_to_disk(new / name, content)
        _write_to_disk(new / MANIFEST, to_json({"sha256": digests}))
        sync_folder(new)
        if target.exists():
            shutil.rmtree(old, ignore_errors=True)
            target.rename(old)
        new.rename(target)
        sync_folder(target.parent)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise RunError(f"{target}: {error.strerror}; the previous one is untouched") from None
    finally:
        shutil.rmtree(new, ignore_errors=True)


def read_folder(
    folder: Path, names: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, bytes]:
    """Return the content of files of a folder that `write_folder` wrote, checked by digest.

    All of them are of one writing, the old or the new, where the folder is replaced meanwhile.

    Raises:
        CheckpointError: a file is missing, or its content isn't what was written.
    """
    for attempt in range(READ_ATTEMPTS):
        time.sleep(attempt * PAUSE)
        try:
            return _read_checked(complete_folder(folder), names, optional)
        except CheckpointError as error:
            problem = error  # damaged, or replaced while it was read
    raise problem


def complete_folder(folder: Path) -> Path:
    """Return the folder, or the one moved aside if writing stopped between the two renames."""
    old = _aside(folder)
    return old if not folder.exists() and old.exists() else folder


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


def parse_json(path: Path, content: bytes) -> Any:
    """Return the JSON value of a file.

    Raises:
        CheckpointError: it isn't JSON.
    """
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: not valid JSON ({error})") from None


def _read_checked(place: Path, names: Sequence[str], optional: Sequence[str]) -> dict[str, bytes]:
    """Read files and compare each with its digest in the manifest."""
    digests = parse_json(place / MANIFEST, _read(place / MANIFEST))
    listed = digests.get("sha256") if isinstance(digests, dict) else None
    if not isinstance(listed, dict):
        raise CheckpointError(f"{place / MANIFEST}: no digests in it; expected a seqtrain manifest")
    contents = {}
    for name in (*names, *(name for name in optional if name in listed)):
        content = _read(place / name)
        found = hashlib.sha256(content).hexdigest()
        if found != listed.get(name):
            raise CheckpointError(
                f"{place / name}: damaged: its SHA-256 is {found[:12]}…, "
                f"the manifest says {str(listed.get(name))[:12]}…; restore it from a copy"
            )
        contents[name] = content
    return contents


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror} (tried {path.absolute()})") from None


def _aside(target: Path) -> Path:
    return target.with_name(f".{target.name}-old")
