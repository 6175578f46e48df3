"""Two paths that change places in one step of the system, where it has one."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

AT_FDCWD = -100
RENAME_EXCHANGE = 2
UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)


def exchange(first: Path, second: Path) -> bool:
    """Exchange two paths of one file system; nobody sees one of them missing.

    Returns:
        False where the system or its file system can't (Linux can, on most); nothing happened then.

    Raises:
        OSError: it can, and failed.
    """
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, TypeError, AttributeError):  # no Linux, or a C library of before 2018
        return False
    paths = os.fsencode(first), os.fsencode(second)
    if renameat2(AT_FDCWD, paths[0], AT_FDCWD, paths[1], RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), str(second))
