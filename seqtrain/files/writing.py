"""Files that a kill or a power loss leaves old or new, never half; and one writer at a time."""

import json
import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from io import FileIO
from pathlib import Path
from typing import Any, TypeAlias

from seqtrain.errors import CheckpointError, RunError
from seqtrain.files.reading import path_problems

Content: TypeAlias = bytes | Iterable[bytes | memoryview]
"""What a file is to hold: all at once, or block by block, where it is large."""
LOCK = ".lock"
"""The file in a folder that its owner keeps locked; it holds its process id, and is removed."""
UNTOUCHED = "what stood there before is untouched"


def to_json(value: Any) -> bytes:
    """Return a JSON value as indented UTF-8 text with a final newline; NaN is refused."""
    return (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def blocks_of(content: Content) -> Iterable[bytes | memoryview]:
    """Return what a file is to hold, block by block."""
    return (content,) if isinstance(content, bytes) else content


def write_file(path: Path, content: bytes) -> None:
    """Write a file beside its path, flush it to the disk, and rename it; a link is replaced."""
    with path_problems(path, RunError, UNTOUCHED), replacing(path) as new:
        write_new(new, content)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a free path beside one; what stands there at the end of the block takes its place."""
    new = free_path(path)
    try:
        yield new
        os.replace(new, path)
        sync_folder(path.parent)
    finally:
        remove(new)


def free_path(path: Path) -> Path:
    """Return a path beside one where nothing stands; `is_stray` knows its name."""
    return path.with_name(f".{path.name}-{secrets.randbits(48)}")


def is_stray(name: str) -> bool:
    """Whether only a writer that was killed leaves a file or folder of this name."""
    return re.fullmatch(r"\..+-[0-9]+", name) is not None


def write_new(path: Path, content: Content) -> str:
    """Write a new file, flushed to the disk; return its SHA-256."""
    digest = sha256()
    with open(path, "xb") as file:
        for block in blocks_of(content):
            digest.update(block)
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, where the system can."""
    if os.name != "nt":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove(path: Path) -> bool:
    """Remove a file, a link, or a folder with all in it; return whether it is gone."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    return not os.path.lexists(path)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep all other processes out of this block, for this folder; refuse where one is in it.

    A file system without locks (some NFS) keeps nobody out.
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
    """Lock a file, unless another has, or had just now and removed it."""
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
