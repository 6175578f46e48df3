"""One process per folder: a lock that ends with its owner, however that ends."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from seqtrain.errors import CheckpointError, RunError
from seqtrain.files.directory import Directory
from seqtrain.files.regular import WrongKindError

LOCK = ".lock"
"""The file in the folder that its owner keeps locked, holds its process id, and is removed."""
TRIES = 20
PAUSE = 0.005
"""Seconds between two tries: a process that only looks holds the lock for a moment."""


class FolderLock:
    """While entered, no other process can enter the lock of this folder.

    The lock is the system's, so it ends with the process. A file system without locks (some NFS)
    gives it to everyone.

    Args:
        folder: such as a run directory.

    Raises:
        CheckpointError: on entering, another process holds it; its id is named.
        RunError: on entering, the folder can't be written to.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._directory: Directory
        self._descriptor = -1

    def __enter__(self) -> FolderLock:
        try:
            self._directory = Directory(self.folder)
        except OSError as error:
            raise RunError(f"{self.folder}: {error.strerror}") from None
        try:
            while not self._acquire():
                pass
        except BaseException as error:
            self._directory.__exit__()
            if isinstance(error, OSError):
                raise _refused(self.folder, error) from None
            raise
        return self

    def _acquire(self) -> bool:
        """Lock the file and write our process id; False where its owner removed it meanwhile."""
        descriptor = self._directory.open(LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock_or_refuse(self.folder, descriptor)
            there = self._directory.status_of(LOCK)
            if there is None or not os.path.samestat(os.fstat(descriptor), there):
                os.close(descriptor)
                return False
            try:
                os.ftruncate(descriptor, 0)
                os.write(descriptor, f"{os.getpid()}\n".encode())
            except OSError:
                self._directory.try_to_remove(LOCK)
                raise
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return True

    def __exit__(self, *error: object) -> None:
        self._directory.try_to_remove(LOCK)
        os.close(self._descriptor)
        self._directory.__exit__()


def check_unlocked(folder: Path) -> None:
    """Refuse a folder whose lock a living process holds; nothing is written.

    Raises:
        CheckpointError: as said, or the lock is a link or no file.
        RunError: the lock can't be opened.
    """
    try:
        with Directory(folder) as directory:
            if directory.status_of(LOCK) is None:
                return
            descriptor = directory.open(LOCK)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _refused(folder, error) from None
    try:
        _lock_or_refuse(folder, descriptor, shared=True)
    finally:
        os.close(descriptor)


def _refused(folder: Path, error: OSError) -> CheckpointError | RunError:
    if isinstance(error, WrongKindError):
        return CheckpointError(f"{folder / LOCK}: {error.strerror}; remove it")
    return RunError(f"{folder / LOCK}: {error.strerror}")


def _lock_or_refuse(folder: Path, descriptor: int, *, shared: bool = False) -> None:
    """Lock a file; where another process keeps it locked, name that process."""
    for _ in range(TRIES):
        if _lock(descriptor, shared=shared):
            return
        time.sleep(PAUSE)
    owner = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
    raise CheckpointError(
        f"{folder}: in use by process {owner or '(unknown)'}; "
        "wait until it ends, or choose another --run-dir"
    )


def _lock(descriptor: int, *, shared: bool) -> bool:
    """Lock a file; say whether nobody else has. Where a file system has no locks, nobody has."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
