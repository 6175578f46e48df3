"""Two paths that change places in one step of the system, where it has one."""

from __future__ import annotations

import ctypes
import errno
import os

AT_FDCWD = -100
RENAME_EXCHANGE = 2
UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)


def exchange(first: str, second: str, at: int | None = None) -> bool:
    """Exchange two paths of one file system; nobody sees one of them missing.

    Args:
        first: a path, or a name in a folder.
        second: the other.
        at: descriptor of that folder.

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
    place = AT_FDCWD if at is None else at
    if renameat2(place, paths[0], place, paths[1], RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), second)
