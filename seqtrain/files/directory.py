"""A folder held open: a name in it means this folder, whatever becomes of its path meanwhile."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from itertools import count
from pathlib import Path

from seqtrain.files.exchange import exchange
from seqtrain.files.regular import AT_ONCE, NEW_FILE, NOFOLLOW, open_regular, status_of, wrong_kind

HELD = os.open in os.supports_dir_fd and hasattr(os, "O_DIRECTORY")
"""Whether the system opens names relative to a folder's descriptor (Windows doesn't)."""


class Directory:
    """An open folder, for a `with` statement; names are of files and folders right in it.

    Nothing in it is reached through a link. Where the system has no descriptors of folders, names
    are joined to the path.

    Args:
        path: of the folder; links on the way to it are followed.
        follow: whether it may be a link itself.
        within: an open folder that holds it; the path's last name is its name there.

    Raises:
        WrongKindError: it is a file or, unless followed, a link.
        OSError: it is missing or can't be read.
    """

    def __init__(self, path: Path, *, follow: bool = True, within: Directory | None = None) -> None:
        self.path = path
        self._at: int | None = None
        at = within._at if within is not None else None
        place = path if at is None else path.name
        found = status_of(place, at=at, follow=follow)
        if found is not None and not stat.S_ISDIR(found.st_mode):
            raise wrong_kind(path, found.st_mode, "folder")
        if HELD:
            flags = os.O_RDONLY | os.O_DIRECTORY | AT_ONCE | (0 if follow else NOFOLLOW)
            self._at = os.open(place, flags, dir_fd=at)
        else:
            os.listdir(place)  # raises as opening would

    def __enter__(self) -> Directory:
        return self

    def __exit__(self, *error: object) -> None:
        if self._at is not None:
            os.close(self._at)

    def _place(self, name: str) -> str:
        return name if self._at is not None else str(self.path / name)

    @property
    def status(self) -> os.stat_result:
        """What `os.stat` says of the folder."""
        return os.stat(self.path if self._at is None else self._at)

    def status_of(self, name: str) -> os.stat_result | None:
        """Return what `os.lstat` says of a name; None where nothing stands there."""
        return status_of(self._place(name), at=self._at)

    def names(self) -> list[str]:
        """Return the names in it, in no order."""
        return os.listdir(self.path if self._at is None else self._at)

    def folder(self, name: str) -> Directory:
        """Open a folder in it.

        Raises:
            OSError: as `Directory` does.
        """
        return Directory(self.path / name, follow=False, within=self)

    def open(self, name: str, flags: int = os.O_RDONLY, mode: int = NEW_FILE) -> int:
        """Return a descriptor of a regular file in it, as `open_regular` does."""
        return open_regular(self._place(name), flags, at=self._at, mode=mode)

    def make_temporary_folder(self, name: str, mode: int = 0o777) -> str:
        """Make an empty folder under a free name beside a name; return its name."""
        for number in count():
            temporary = _temporary(name, number)
            with suppress(FileExistsError):
                os.mkdir(self._place(temporary), mode, dir_fd=self._at)
                break
        return temporary

    def make_temporary_file(self, name: str) -> tuple[str, int]:
        """Make an empty file under a free name beside a name; return its name and descriptor."""
        for number in count():
            temporary = _temporary(name, number)
            with suppress(FileExistsError):
                descriptor = self.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
                break
        return temporary, descriptor

    def rename(self, old: str, new: str) -> None:
        """Rename what stands in it; a file takes the place of a file."""
        os.replace(self._place(old), self._place(new), src_dir_fd=self._at, dst_dir_fd=self._at)

    def exchange(self, first: str, second: str) -> bool:
        """Let two names change places; as `exchange` does."""
        return exchange(self._place(first), self._place(second), self._at)

    def remove(self, name: str) -> None:
        """Remove a file, a link, or a folder with what is in it, where there is one.

        Raises:
            OSError: it can't be removed.
        """
        found = self.status_of(name)
        if found is None:
            return
        if stat.S_ISDIR(found.st_mode):
            with self.folder(name) as inner:
                for each in inner.names():
                    inner.remove(each)
            os.rmdir(self._place(name), dir_fd=self._at)
        else:
            os.unlink(self._place(name), dir_fd=self._at)

    def try_to_remove(self, name: str) -> bool:
        """Remove as `remove` does, where it lets itself be removed; return whether it is gone."""
        with suppress(OSError, RecursionError):
            self.remove(name)
        return self.status_of(name) is None

    def touch(self) -> None:
        """Set its time of modification to now."""
        os.utime(self.path if self._at is None else self._at)

    def sync(self) -> None:
        """Flush its names to the disk, where the system can."""
        if self._at is not None:
            os.fsync(self._at)


def _temporary(name: str, number: int) -> str:
    return f".{name}-{os.getpid()}-{number}"


def is_stray(name: str) -> bool:
    """Whether a name is one that only a writer which was killed leaves behind."""
    return re.fullmatch(r"\..+-[0-9]+", name) is not None
