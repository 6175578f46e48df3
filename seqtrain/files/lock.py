"""One process per folder: a lock that ends with its owner, however that ends."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from seqtrain.errors import CheckpointError, RunError
from seqtrain.files.reading import path_problem

LOCK = ".lock"
"""The file in a folder that its owner keeps locked; it holds its process id, and is removed."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep all other processes out of this block, for this folder; refuse where one is in it.

    A file system without locks (some NFS) keeps nobody out.
    """
    path = folder / LOCK
    try:
        descriptor = _acquire(path)
    except OSError as error:
        raise path_problem(path, error, RunError) from None
    with suppress(OSError):  # on a full disk the owner has no name
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(descriptor)


def _acquire(path: Path) -> int:
    """Return the descriptor of the file, locked, unless its owner removed it meanwhile."""
    while True:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(path, flags, 0o644)
        try:
            _lock(path.parent, descriptor)
            if path.exists() and os.path.samestat(os.fstat(descriptor), path.lstat()):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _lock(folder: Path, descriptor: int) -> None:
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
        user = f"in use by process {owner or '(unknown)'}"
        raise CheckpointError(f"{folder}: {user}; wait until it ends, or choose another") from None
    except OSError:  # the file system has no locks
        return
