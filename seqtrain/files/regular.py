"""Opening regular files alone: links, pipes, devices and folders are refused without waiting."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
AT_ONCE = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))
"""Flags of every opening: a pipe or a terminal that takes a file's place can't hold us."""
NEW_FILE = 0o666
"""Permissions of a new file, less the user's umask."""
KINDS = {
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
}


class WrongKindError(OSError):
    """Something else stands where a regular file, or a folder, is expected.

    Attributes:
        found: what, such as `a link`.
    """

    found = ""


def wrong_kind(path: str | Path, mode: int, expected: str) -> WrongKindError:
    """Return the error that names what stands at a path.

    Args:
        path: for the error.
        mode: of what stands there, as `os.stat` returns it.
        expected: `regular file` or `folder`.
    """
    found = KINDS.get(stat.S_IFMT(mode), "a device or socket")
    error = WrongKindError(errno.EINVAL, f"is {found}; expected a {expected}", str(path))
    error.found = found
    return error


def status_of(
    path: str | Path, *, at: int | None = None, follow: bool = False
) -> os.stat_result | None:
    """Return what `os.stat` says of a path; None where nothing stands there.

    Args:
        path: a path, or a name in a folder.
        at: descriptor of that folder.
        follow: whether a link stands for what it leads to.
    """
    try:
        return os.stat(path, dir_fd=at, follow_symlinks=follow)
    except (FileNotFoundError, NotADirectoryError):
        return None


def open_regular(
    path: str | Path,
    flags: int = os.O_RDONLY,
    *,
    at: int | None = None,
    follow: bool = False,
    mode: int = NEW_FILE,
) -> int:
    """Return a descriptor of a regular file, as `os.open` does.

    What stands there is looked at before it is opened, for opening a device may do something, and
    after, for something else may have taken its place. To empty the file, truncate it afterwards.

    Args:
        path: a path, or a name in a folder.
        flags: of `os.open`.
        at: descriptor of that folder.
        follow: whether a link stands for what it leads to; only for paths that the user named.
        mode: permissions, where the flags make a new file.

    Raises:
        WrongKindError: a link, pipe, device or folder stands there.
        OSError: the system's other refusals.
    """
    found = status_of(path, at=at, follow=follow)
    if found is not None and not stat.S_ISREG(found.st_mode) and not flags & os.O_EXCL:
        raise wrong_kind(path, found.st_mode, "regular file")
    flags |= AT_ONCE | (0 if follow else NOFOLLOW)
    descriptor = os.open(path, flags, mode, dir_fd=at)
    opened = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(opened):
        os.close(descriptor)
        raise wrong_kind(path, opened, "regular file")
    return descriptor
