"""One process per folder: a lock that ends with its owner, however that ends."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from seqtrain.errors import CheckpointError, RunError
from seqtrain.files.reading import path_problem

LOCK = ".lock"
"""The file in a folder that its owner keeps locked; it holds its process id, and is removed."""
TRIES = 20
PAUSE = 0.005
"""Seconds between two tries: a process that only asks holds the lock for a moment."""
NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep all other processes out of this block, for this folder.

    The lock is the system's, so it ends with the process. A file system without locks (some NFS)
    gives it to everyone.

    Raises:
        CheckpointError: another process holds it; its id is named.
        RunError: the folder can't be written to.
    """
    path = folder / LOCK
    try:
        descriptor = _acquire(path)
    except OSError as error:
        raise path_problem(path, error, RunError) from None
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(descriptor)


def _acquire(path: Path) -> int:
    """Return the descriptor of the lock's file, which is ours, with our process id in it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | NOFOLLOW, 0o644)
        try:
            _lock(path.parent, descriptor)
            if os.path.exists(path) and os.path.samestat(os.fstat(descriptor), os.lstat(path)):
                _note_owner(path, descriptor)
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # the owner before has removed it meanwhile


def _note_owner(path: Path, descriptor: int) -> None:
    try:
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
    except OSError:
        os.unlink(path)
        raise


def _lock(folder: Path, descriptor: int) -> None:
    if sys.platform == "win32":
        return
    import fcntl

    for _ in range(TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(PAUSE)
        except OSError:  # the file system has no locks
            return
        else:
            return
    owner = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
    raise CheckpointError(
        f"{folder}: in use by process {owner or '(unknown)'}; wait until it ends, or choose another"
    )
