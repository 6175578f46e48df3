"""SHA-256 of data files: what a run was trained on, and the key of the cache."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass

from seqtrain.data.readers.files import file_problem, open_file
from seqtrain.data.readers.txt import list_folder
from seqtrain.errors import DataError
from seqtrain.files.digests import Version
from seqtrain.text import display_name


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
