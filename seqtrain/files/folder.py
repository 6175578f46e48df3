"""Verified folders: replaced whole, with a manifest of digests that each file is checked by."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from seqtrain.errors import CheckpointError, RunError
from seqtrain.files.reading import (
    LARGEST_JSON,
    json_of,
    open_regular,
    path_problems,
    read_file,
    read_json,
)
from seqtrain.files.writing import (
    UNTOUCHED,
    Content,
    free_path,
    is_stray,
    remove,
    sync_folder,
    to_json,
    write_new,
)

MANIFEST = "manifest.json"
BLOCK = 2**20
"""Bytes of a large file that are read at a time."""
ATTEMPTS = 10
"""Times a folder is read, for a writer may be replacing it."""

T = TypeVar("T")


def write_folder(target: Path, files: Mapping[str, Content], previous: Path | None = None) -> None:
    """Write a folder of files with a manifest of their SHA-256, and put it in the target's place.

    It is written beside. Then the old folder is renamed (to `previous`, or removed), and the new
    one takes its name: wherever this stops, `complete_folder` finds the old one or the new. A link
    that stands there is replaced, not followed.

    Raises:
        RunError: the disk is full or the folder can't be written; the old one is untouched.
    """
    new, old = free_path(target), _aside(target)
    try:
        with path_problems(target, RunError, UNTOUCHED):
            new.mkdir()
            digests = {name: write_new(new / name, x) for name, x in files.items()}
            write_new(new / MANIFEST, to_json({"sha256": digests}))
            sync_folder(new)
            sync_folder(target.parent)
            _put_back(target)
            _make_free(old)
            if os.path.lexists(target):
                os.rename(target, old)
                sync_folder(target.parent)
            os.rename(new, target)
            sync_folder(target.parent)
            if previous is not None and os.path.lexists(old):
                _make_free(previous)
                os.rename(old, previous)
                sync_folder(target.parent)
            _make_free(old)
    finally:
        remove(new)
        with suppress(OSError):
            _put_back(target)
            _make_free(old)


def _aside(folder: Path) -> Path:
    return folder.parent / f".{folder.name}-old"


def _make_free(path: Path) -> None:
    """Remove what stands at a path; what can't be removed is renamed, for `remove_strays`."""
    if not remove(path):
        os.rename(path, free_path(path))


def _put_back(target: Path) -> None:
    if complete_folder(target) != target:
        os.rename(complete_folder(target), target)


def complete_folder(folder: Path) -> Path:
    """Return the folder, or the old one where writing stopped between the two renames."""
    old = _aside(folder)
    return old if not os.path.lexists(folder) and os.path.lexists(old) else folder


def remove_strays(path: Path, targets: Sequence[str]) -> None:
    """Clean up in a folder after a writer of these folders was killed there."""
    for name in targets:
        _put_back(path / name)
    old = {_aside(path / name).name for name in targets}
    for name in os.listdir(path):
        if name in old or is_stray(name):
            remove(path / name)


class VerifiedFolder:
    """A folder that `write_folder` wrote, at `path`; its files are checked as they are read."""

    def __init__(self, folder: Path) -> None:
        self.path = complete_folder(folder)

    @cached_property
    def digests(self) -> dict[str, Any]:
        """SHA-256 of each file, by name; CheckpointError where there is no manifest."""
        values = read_json(self.path / MANIFEST)
        digests = values.get("sha256") if isinstance(values, dict) else None
        if not isinstance(digests, dict):
            raise CheckpointError(f"{self.path / MANIFEST}: no digests in it; expected a manifest")
        return digests

    def read(self, name: str, limit: int = LARGEST_JSON) -> bytes:
        """Return the content of a file of `limit` bytes at most; refuse what wasn't written so."""
        content = read_file(self.path / name, limit)
        self._check(name, sha256(content).hexdigest())
        return content

    def read_blocks(self, name: str) -> Iterator[bytes]:
        """Yield the content of a large file; it is sound once all of it has been yielded."""
        total = sha256()
        path = self.path / name
        with path_problems(path), open(path, "rb", opener=open_regular) as file:
            while block := file.read(BLOCK):
                total.update(block)
                yield block
        self._check(name, total.hexdigest())

    def read_json(self, name: str) -> Any:
        """Return the JSON value of a file; raises as `read`, or where it isn't JSON."""
        return json_of(self.path / name, self.read(name))

    def _check(self, name: str, found: str) -> None:
        wanted = self.digests.get(name)
        if not isinstance(wanted, str):
            raise CheckpointError(f"{self.path / name}: no SHA-256 of it in {MANIFEST}")
        if found != wanted:
            raise CheckpointError(
                f"{self.path / name}: damaged: its SHA-256 is {found[:12]}…, the manifest says "
                f"{wanted[:12]}…; restore it from a copy"
            )


def read_folder(folder: Path, read: Callable[[VerifiedFolder], T]) -> T:
    """Return what `read` makes of a verified folder, or raise what it raises.

    All of it is of one writing: where the folder is replaced meanwhile, it is read again.
    """
    for attempt in range(1, ATTEMPTS):
        before = _identity(folder)
        try:
            return read(VerifiedFolder(folder))
        except CheckpointError:
            if _identity(folder) == before:
                raise
        time.sleep(attempt / 100)
    return read(VerifiedFolder(folder))


def _identity(folder: Path) -> tuple[int, int] | None:
    with suppress(OSError):
        status = os.stat(complete_folder(folder))
        return status.st_ino, status.st_ctime_ns
    return None
