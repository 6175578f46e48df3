"""Atomic writing of files and folders, and locks.

After a kill or a power loss a file or folder is either the old or the new one. A folder has a
manifest with the digest of each of its files.
"""

import json
import os
import re
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from hashlib import sha256
from io import FileIO
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from seqtrain.errors import CheckpointError, RunError
from seqtrain.files.reading import (
    LARGEST_JSON,
    json_of,
    open_regular,
    path_problems,
    read_file,
    read_json,
)

Content: TypeAlias = bytes | Iterable[bytes | memoryview]
"""Content of a file, as a whole, or in blocks if it is large."""
LOCK = ".lock"
"""Name of the file that the owner of a folder keeps locked. It contains the process id."""
UNTOUCHED = "the old content is untouched"
MANIFEST = "manifest.json"
BLOCK = 2**20
"""Bytes of a large file that are read together."""
ATTEMPTS = 10
"""Largest number of attempts to read a folder that a writer may be replacing."""

T = TypeVar("T")


def to_json(value: Any) -> bytes:
    """Return a JSON value as indented UTF-8 text with a final newline. NaN is a ValueError."""
    return (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def blocks_of(content: Content) -> Iterable[bytes | memoryview]:
    """Return the content of a file in blocks."""
    return (content,) if isinstance(content, bytes) else content


def write_file(path: Path, content: bytes) -> None:
    """Write a file under another name, flush it to the disk, and rename it. A link is replaced."""
    with path_problems(path, RunError, UNTOUCHED), replacing(path) as new:
        write_new(new, content)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a free path in the same folder, which replaces `path` at the end of the block."""
    new = free_path(path)
    try:
        yield new
        os.replace(new, path)
        sync_folder(path.parent)
    finally:
        remove(new)


def free_path(path: Path) -> Path:
    """Return an unused path in the same folder. `is_stray` recognizes its name."""
    return path.with_name(f".{path.name}-{secrets.randbits(48)}")


def is_stray(name: str) -> bool:
    """Return True if a file or folder of this name was left by a writer that was killed."""
    return re.fullmatch(r"\..+-[0-9]+", name) is not None


def write_new(path: Path, content: Content) -> str:
    """Write a new file, flush it to the disk, and return its SHA-256."""
    digest = sha256()
    with open(path, "xb") as file:
        for block in blocks_of(content):
            digest.update(block)
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, if the system supports it."""
    if os.name != "nt":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove(path: Path) -> bool:
    """Remove a file, a link, or a folder with its content. Return True if it is gone."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    return not os.path.lexists(path)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder during the block.

    On a file system without locks (some NFS) the lock has no effect.

    Raises:
        CheckpointError: If another process holds the lock.
    """
    path = folder / LOCK
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    with path_problems(path, RunError):
        file = os.fdopen(os.open(path, flags, 0o644), "r+b", buffering=0)
    with file:
        _lock(path, file)
        with suppress(OSError):  # on a full disk the owner has no name
            file.truncate(0)
            file.write(f"{os.getpid()}\n".encode())
        try:
            yield
        finally:
            with suppress(OSError):
                path.unlink()


def _lock(path: Path, file: FileIO) -> None:
    """Lock a file.

    Raises:
        CheckpointError: If another process has locked it, or has just removed it.
    """
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_free = os.path.samestat(os.fstat(file.fileno()), path.lstat())
    except (BlockingIOError, FileNotFoundError):
        is_free = False
    except OSError:  # the file system has no locks
        return
    if not is_free:
        user = f"in use by process {file.read(20).decode(errors='replace').strip() or '(unknown)'}"
        raise CheckpointError(f"{path.parent}: {user}; wait until it ends, or choose another")


def write_folder(target: Path, files: Mapping[str, Content], previous: Path | None = None) -> None:
    """Write a folder of files with a manifest of their SHA-256, in place of the target.

    The new folder is written under another name. Then the old one is renamed to `previous`, or
    removed, and the new one gets its name. If this is interrupted, `complete_folder` finds the
    old folder or the new one. A link is replaced, not followed.

    Raises:
        RunError: If the disk is full or the folder can't be written. The old one is untouched.
    """
    new, old = free_path(target), _old_name(target)
    try:
        with path_problems(target, RunError, UNTOUCHED):
            new.mkdir()
            digests = {name: write_new(new / name, x) for name, x in files.items()}
            write_new(new / MANIFEST, to_json({"sha256": digests}))
            sync_folder(new)
            sync_folder(target.parent)
            _restore(target)
            _clear(old)
            if os.path.lexists(target):
                os.rename(target, old)
                sync_folder(target.parent)
            os.rename(new, target)
            sync_folder(target.parent)
            if previous is not None and os.path.lexists(old):
                _clear(previous)
                os.rename(old, previous)
                sync_folder(target.parent)
            _clear(old)
    finally:
        remove(new)
        with suppress(OSError):
            _restore(target)
            _clear(old)


def _old_name(folder: Path) -> Path:
    return folder.parent / f".{folder.name}-old"


def _clear(path: Path) -> None:
    """Remove a path, or rename it for `remove_strays` if it can't be removed."""
    if not remove(path):
        os.rename(path, free_path(path))


def _restore(target: Path) -> None:
    if complete_folder(target) != target:
        os.rename(complete_folder(target), target)


def complete_folder(folder: Path) -> Path:
    """Return the folder, or the old one if writing was interrupted between the two renames."""
    old = _old_name(folder)
    return old if not os.path.lexists(folder) and os.path.lexists(old) else folder


def remove_strays(path: Path, targets: Sequence[str]) -> None:
    """Remove the leftovers of a writer of these folders that was killed."""
    for name in targets:
        _restore(path / name)
    old = {_old_name(path / name).name for name in targets}
    for name in os.listdir(path):
        if name in old or is_stray(name):
            remove(path / name)


class VerifiedFolder:
    """A folder that `write_folder` wrote, whose files are verified when they are read."""

    def __init__(self, folder: Path) -> None:
        self.path = complete_folder(folder)

    @cached_property
    def digests(self) -> dict[str, Any]:
        """SHA-256 of each file, by name.

        Raises:
            CheckpointError: If there is no manifest.
        """
        values = read_json(self.path / MANIFEST)
        digests = values.get("sha256") if isinstance(values, dict) else None
        if not isinstance(digests, dict):
            raise CheckpointError(f"{self.path / MANIFEST}: no digests in it; expected a manifest")
        return digests

    def read(self, name: str, limit: int = LARGEST_JSON) -> bytes:
        """Return the content of a file of at most `limit` bytes.

        Raises:
            CheckpointError: If the content isn't that of the manifest.
        """
        content = read_file(self.path / name, limit)
        self._check(name, sha256(content).hexdigest())
        return content

    def read_blocks(self, name: str) -> Iterator[bytes]:
        """Yield the content of a large file, which is verified after the last block.

        Raises:
            CheckpointError: As `read`.
        """
        total = sha256()
        path = self.path / name
        with path_problems(path), open(path, "rb", opener=open_regular) as file:
            while block := file.read(BLOCK):
                total.update(block)
                yield block
        self._check(name, total.hexdigest())

    def read_json(self, name: str) -> Any:
        """Return the JSON value of a file.

        Raises:
            CheckpointError: As `read`, or if it isn't JSON.
        """
        return json_of(self.path / name, self.read(name))

    def _check(self, name: str, found: str) -> None:
        expected = self.digests.get(name)
        if not isinstance(expected, str):
            raise CheckpointError(
                f"{self.path / name}: {MANIFEST} has no SHA-256 of it; restore it from a copy"
            )
        if found != expected:
            raise CheckpointError(
                f"{self.path / name}: damaged: its SHA-256 is {found[:12]}…, the manifest says "
                f"{expected[:12]}…; restore it from a copy"
            )


def read_folder(folder: Path, read: Callable[[VerifiedFolder], T]) -> T:
    """Return the result of `read` for a verified folder.

    If the folder is replaced meanwhile, it is read again: all content comes from one writer.

    Raises:
        CheckpointError: As `read` raises it.
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
