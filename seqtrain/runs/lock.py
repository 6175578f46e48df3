"""One process a run directory: a lock that ends with its owner, however that ends."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from seqtrain.errors import CheckpointError, RunError

LOCK = ".lock"
"""The file in a run directory that its owner keeps locked, holds its process id, and is removed."""

OWNER_TRIES = 100


class RunLock:
    """While entered, no other process can enter the lock of this directory.

    Args:
        folder: the run directory.

    Raises:
        CheckpointError: on entering, another process holds it; its id is named.
        RunError: on entering, the directory can't be written to.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._descriptor = -1

    def __enter__(self) -> RunLock:
        try:
            while not self._acquire():
                pass
        except OSError as error:
            raise RunError(f"{self.folder / LOCK}: {error.strerror}") from None
        return self

    def _acquire(self) -> bool:
        """Lock the file and write our process id; False where its owner removed it meanwhile."""
        path = self.folder / LOCK
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        if not _lock(self._descriptor):
            raise self._in_use()
        if not _is_at(self._descriptor, path):
            os.close(self._descriptor)
            return False
        try:
            os.truncate(self._descriptor, 0)
            os.write(self._descriptor, f"{os.getpid()}\n".encode())
        except OSError:
            self._release()
            raise
        return True

    def __exit__(self, *error: object) -> None:
        self._release()

    def _release(self) -> None:
        (self.folder / LOCK).unlink(missing_ok=True)
        os.close(self._descriptor)

    def _in_use(self) -> CheckpointError:
        owner = ""
        for _ in range(OWNER_TRIES):
            owner = os.pread(self._descriptor, 20, 0).decode(errors="replace").strip()
            if owner:
                break
            time.sleep(0.01)  # it has locked the file and is about to write its number
        os.close(self._descriptor)
        return CheckpointError(
            f"{self.folder}: in use by process {owner or '(unknown)'}; "
            "wait until it ends, or choose another --run-dir"
        )


def check_unlocked(folder: Path) -> None:
    """Refuse a directory whose lock a living process holds.

    Raises:
        CheckpointError: as said.
    """
    if (folder / LOCK).exists():
        with RunLock(folder):
            pass


def _lock(descriptor: int) -> bool:
    """Lock a file; say whether nobody else has. Where a file system has no locks, nobody has."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
