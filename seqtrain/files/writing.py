"""Atomic writing of files and folders, and locks.

After a kill or a power loss, a file or folder is either the old one or the new one. If the old
folder has another name then, `complete_folder` finds it. A folder has a manifest with the SHA-256
of each of its files.
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
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from io import FileIO
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import StringConstraints

from seqtrain.errors import CheckpointError, RunError
from seqtrain.files.reading import LARGEST_JSON, json_of, open_regular, path_problems, read_file
from seqtrain.files.saved import SavedObject


@dataclass(frozen=True)
class StoredFile:
    """A file whose content another file gets.

    Attributes:
        path: Path of the file.
        is_final: True if the file never changes. Then both can be one file with two names.
    """

    path: Path
    is_final: bool

    def blocks(self) -> Iterator[bytes]:
        """Yield the content of the file in blocks."""
        with open(self.path, "rb", opener=open_regular) as file:
            while block := file.read(READ_AT_ONCE):
                yield block


Content: TypeAlias = bytes | Iterable[bytes | memoryview] | StoredFile
"""Content of a file: bytes, an iterable of blocks if the file is large, or another file."""
LOCK = ".lock"
"""Name of the file that the owner of a folder keeps locked. It contains the process id."""
UNTOUCHED = "the old content is untouched"
MANIFEST = "manifest.json"
READ_AT_ONCE = 2**20
"""Bytes of a large file that are read together."""
ATTEMPTS = 10
"""Largest number of times that `read_folder` reads a folder while other processes replace it."""

Value = TypeVar("Value")


RelativeName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^\w[\w.-]*(/\w[\w.-]*)*$")]
"""Name of a file within a folder. No part begins with a dot, so that none leads out of it."""


class Manifest(SavedObject):
    """Digests of a folder's files.

    Attributes:
        sha256: Maps the name of each file to its SHA-256 in hexadecimal digits.
    """

    sha256: dict[RelativeName, str]


def to_json(value: Any) -> bytes:
    """Return a JSON value as indented UTF-8 text with a final newline.

    Raises:
        ValueError: If the value contains NaN or infinity.
        TypeError: If the value contains an object that JSON lacks.
    """
    return (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def blocks_of(content: Content) -> Iterable[bytes | memoryview]:
    """Return the content of a file as blocks. Bytes are one block."""
    if isinstance(content, StoredFile):
        return content.blocks()
    if isinstance(content, bytes):
        return (content,)
    return content


def write_file(path: Path, content: bytes) -> None:
    """Write a file atomically: if writing is interrupted, the old file is unchanged.

    A symbolic link is replaced by the file, not followed.

    Raises:
        RunError: If the file can't be written.
    """
    with path_problems(path, RunError, UNTOUCHED), replacing(path) as new:
        write_new(new, content)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield an unused path next to `path`, where the `with` block writes a file.

    The block must flush the file to the disk, as `write_new` does. After the block, the file is
    renamed to `path`. If the block raises, the new file is removed, and `path` is unchanged.
    """
    new = free_path(path)
    try:
        yield new
        os.replace(new, path)
        sync_folder(path.parent)
    finally:
        remove(new)


def free_path(path: Path) -> Path:
    """Return an unused path, with a random name, in the folder of `path`.

    `is_stray` recognizes the name.
    """
    return path.with_name(f".{path.name}-{secrets.randbits(48)}")


def is_stray(name: str) -> bool:
    """Return True if a name has the form that `free_path` gives to an unfinished file or folder."""
    return re.fullmatch(r"\..+-[0-9]+", name) is not None


def write_new(path: Path, content: Content) -> str:
    """Write a new file, flush it to the disk, and return its SHA-256 in hexadecimal digits.

    Raises:
        OSError: If the file exists or can't be written. A part of the file may be left.
    """
    digest = sha256()
    if isinstance(content, StoredFile) and content.is_final:
        with suppress(OSError):  # not all file systems have links: then the file is copied
            os.link(content.path, path)
            for part in content.blocks():
                digest.update(part)
            return digest.hexdigest()
    with open(path, "xb") as file:
        for block in blocks_of(content):
            digest.update(block)
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def sync_folder(folder: Path) -> None:
    """Flush the directory entries of a folder to the disk. On Windows nothing is done."""
    if os.name != "nt":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove(path: Path) -> bool:
    """Remove a file, a link, or a folder with its content, if possible.

    Return True if the path doesn't exist afterwards.
    """
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    return not os.path.lexists(path)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder during the block.

    The lock is the file `LOCK`, which is removed after the block. On Windows, and on a file system
    without locks (some NFS), the lock has no effect.

    Raises:
        CheckpointError: If this process or another one already holds the lock.
        RunError: If the file `LOCK` can't be opened.
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
    """Lock an open file without waiting.

    On Windows, and on a file system without locks, nothing is done.

    Args:
        path: Path of the file.
        file: The open file.

    Raises:
        CheckpointError: If another process has locked the file, or has just removed it.
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
        raise CheckpointError(
            f"{path.parent}: in use by process "
            f"{file.read(20).decode(errors='replace').strip() or '(unknown)'}; wait until it "
            "ends, or choose another"
        )


def write_folder(target: Path, files: Mapping[str, Content], previous: Path | None = None) -> None:
    """Replace a folder atomically by a new one, with a manifest of the SHA-256 of its files.

    The new folder is written under another name and then renamed to `target`. After an
    interruption, `complete_folder` returns the path of a complete folder, old or new. A symbolic
    link is replaced, not followed.

    Args:
        target: Path of the folder, which may exist.
        files: Maps the name of each file to its content.
        previous: Path to which the old folder is renamed, or None to remove it. An older folder at
            this path is removed first.

    Raises:
        RunError: If the disk is full or the folder can't be written. The target is then the old
            folder. If only the last step fails, the move to `previous`, it is the new folder.
    """
    new = free_path(target)
    old = _old_name(target)
    try:
        with path_problems(target, RunError, UNTOUCHED):
            new.mkdir()
            for name in files:
                (new / name).parent.mkdir(exist_ok=True)
            digests = {name: write_new(new / name, x) for name, x in files.items()}
            write_new(new / MANIFEST, Manifest(sha256=digests).to_json())
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
    """Remove a path. If that fails, rename it so that `remove_strays` removes it later."""
    if not remove(path):
        os.rename(path, free_path(path))


def _restore(target: Path) -> None:
    if complete_folder(target) != target:
        os.rename(complete_folder(target), target)


def complete_folder(folder: Path) -> Path:
    """Return the path at which a folder of `write_folder` is complete.

    Normally, it is `folder`. If writing was interrupted between the two renames, it is the path of
    the old version. If no version exists, neither does the path.
    """
    old = _old_name(folder)
    if not os.path.lexists(folder) and os.path.lexists(old):
        return old
    return folder


def remove_strays(path: Path, targets: Sequence[str]) -> None:
    """Remove the unfinished files and folders that a killed process left directly in a folder.

    An interrupted `write_folder` is undone: the old version of the folder gets its name again.

    Args:
        path: Folder that contains the targets. Everything in it whose name `is_stray` recognizes is
            removed, if possible.
        targets: Names of the folders that `write_folder` writes.
    """
    for name in targets:
        _restore(path / name)
    old = {_old_name(path / name).name for name in targets}
    for name in os.listdir(path):
        if name in old or is_stray(name):
            remove(path / name)


class VerifiedFolder:
    """A folder that `write_folder` wrote. Each file is verified when it is read.

    Args:
        folder: Path of the folder.

    Attributes:
        path: Path at which the folder is complete; see `complete_folder`.
    """

    def __init__(self, folder: Path) -> None:
        self.path = complete_folder(folder)

    @cached_property
    def digests(self) -> dict[str, str]:
        """SHA-256 of each file, by the name of the file, from the manifest, which is read once.

        Raises:
            CheckpointError: If the manifest is missing or has no digests.
            RunError: If the machine fails while reading.
        """
        return Manifest.read(self.path / MANIFEST).sha256

    def read(self, name: str, limit: int = LARGEST_JSON) -> bytes:
        """Return the content of a file.

        Args:
            name: Name of the file in the folder.
            limit: Largest allowed size in bytes.

        Raises:
            CheckpointError: If the file is missing, is larger than `limit`, or doesn't match its
                SHA-256 in the manifest, or if the manifest isn't valid.
            RunError: If the machine fails while reading.
        """
        path = self.path / name
        content = read_file(path, limit)
        found = sha256(content).hexdigest()
        expected = self.digests.get(name)
        if expected is None:
            raise CheckpointError(
                f"{path}: {MANIFEST} has no SHA-256 of it; restore it from a copy"
            )
        if found != expected:
            raise CheckpointError(
                f"{path}: damaged: its SHA-256 is {found[:12]}…, the manifest says "
                f"{expected[:12]}…; restore it from a copy"
            )
        return content

    def read_json(self, name: str) -> Any:
        """Return the JSON value of a file in the folder.

        Raises:
            CheckpointError: If `read` raises it, or `parse_json` refuses the content.
            RunError: If the machine fails while reading.
        """
        return json_of(self.path / name, self.read(name))


def read_folder(folder: Path, read: Callable[[VerifiedFolder], Value]) -> Value:
    """Call `read` with a verified folder and return its result.

    Another process may replace the folder meanwhile, so that `read` raises CheckpointError. Then
    `read` is called again, at most `ATTEMPTS` times in all. The result never mixes two versions of
    the folder, because files of another version don't match the manifest.

    Args:
        folder: Path of the folder.
        read: Function that reads files of the folder. It must be able to run several times.

    Raises:
        CheckpointError: If `read` raises it although the folder wasn't replaced, or if the last
            attempt fails.
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
