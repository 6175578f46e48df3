"""SHA-256 of data files: what a run was trained on, and the key of the cache."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO

from seqtrain.data.readers.files import file_problem, open_file
from seqtrain.data.readers.txt import list_folder
from seqtrain.errors import DataError
from seqtrain.text import display_name

BLOCK = 2**20
"""Bytes that are read at a time."""
RECENT = 2_000_000_000
"""Nanoseconds within which a second change may leave a file's time as it was: on some file systems
the time counts in steps of two seconds."""


@dataclass(frozen=True)
class Version:
    """One content of a file, and what tells it from the next one without reading it.

    Attributes:
        digest: SHA-256 of the content, in hexadecimal.
        identity: device, number, size and time of the last change.
        settled: whether that change is old enough to tell it from any later one.
    """

    digest: str
    identity: tuple[int, int, int, int]
    settled: bool

    @classmethod
    def read(cls, file: BinaryIO) -> Version:
        """Return the version of an open file, reading all of it."""
        status, total = os.fstat(file.fileno()), hashlib.sha256()
        settled = time.time_ns() - status.st_mtime_ns > RECENT
        while block := file.read(BLOCK):
            total.update(block)
        return cls(total.hexdigest(), _identity(status), settled)

    def is_of(self, status: os.stat_result) -> bool:
        """Whether a file whose status this is has this version, as far as its time tells."""
        return self.identity == _identity(status)


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


@dataclass(frozen=True)
class Digested:
    """A data file, or a folder in format txt, as it was when its SHA-256 was read.

    Attributes:
        path: of it.
        digest: SHA-256 of the file, or of what is read of the folder, in hexadecimal.
        versions: of each file that was read.
    """

    path: str
    digest: str
    versions: dict[str, Version]

    @classmethod
    def read(cls, path: str) -> Digested:
        """Read the SHA-256 of a file or folder.

        Raises:
            DataError: nothing readable stands there, or a pipe or device without an end.
        """
        if not os.path.isdir(path):
            version = _version(path)
            return cls(path, version.digest, {path: version})
        total, versions = hashlib.sha256(), {}
        for file in _files(path):
            versions[file] = _version(file)
            name = os.fsencode(os.path.relpath(file, path)).replace(os.fsencode(os.sep), b"/")
            total.update(b"%b\0%b\n" % (name, versions[file].digest.encode()))
        return cls(path, total.hexdigest(), versions)

    def check_unchanged(self) -> None:
        """Refuse what was changed since; called once all of it was read again.

        Raises:
            DataError: names a file that was changed, added or removed.
        """
        files = _files(self.path) if os.path.isdir(self.path) else [self.path]
        changed = list({*files} ^ {*self.versions})
        changed += [file for file in files if file not in changed and not self._is_as_before(file)]
        if changed:
            raise _changed(min(changed))

    def _is_as_before(self, file: str) -> bool:
        """Whether a file has its content still; read again where its time can't tell."""
        try:
            status = os.stat(file)
        except OSError:
            return False
        before = self.versions[file]
        return before.is_of(status) and (before.settled or _version(file).digest == before.digest)


def digest(path: str) -> str:
    """Return the SHA-256 of a file, or of what is read of a folder in format txt, in hexadecimal.

    Raises:
        DataError: nothing readable stands there, or a pipe or device without an end.
    """
    return Digested.read(path).digest


def check_unchanged(digests: Mapping[str, str]) -> None:
    """Refuse files or folders, by path, whose SHA-256 is another now.

    Raises:
        DataError: names one that was changed.
    """
    for path, before in digests.items():
        if digest(path) != before:
            raise _changed(path)


def _changed(path: str) -> DataError:
    return DataError(
        f"{display_name(path)}: was changed while it was read; "
        "start again once nothing writes to it"
    )


def _files(folder: str) -> list[str]:
    return [file for file, _, _ in list_folder(folder)]


def _version(path: str) -> Version:
    """Read a file's version."""
    try:
        with open_file(path, pipes=False) as file:
            return Version.read(file)
    except OSError as error:
        raise file_problem(path, error) from None
