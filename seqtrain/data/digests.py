"""SHA-256 of data files: what a run was trained on, and the key of the cache."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable

from seqtrain.data.readers.files import file_problem, open_file
from seqtrain.data.readers.txt import list_folder


def digest(path: str) -> str:
    """Return the SHA-256 of a file, or of what is read of a folder in format txt, in hexadecimal.

    Raises:
        DataError: nothing readable stands there, or a pipe or device without an end.
    """
    if os.path.isdir(path):
        return digest_files(path, [file for file, _, _ in list_folder(path)])
    return _digest_of(path)


def digest_files(folder: str, files: Iterable[str]) -> str:
    """Return one SHA-256 of some of a folder's files, with their names, in hexadecimal.

    Raises:
        DataError: one of them can't be read.
    """
    total = hashlib.sha256()
    for file in files:
        name = os.fsencode(os.path.relpath(file, folder)).replace(os.fsencode(os.sep), b"/")
        total.update(b"%b\0%b\n" % (name, _digest_of(file).encode()))
    return total.hexdigest()


def _digest_of(path: str) -> str:
    total = hashlib.sha256()
    try:
        with open_file(path, pipes=False) as file:
            while block := file.read(1 << 20):
                total.update(block)
    except OSError as error:
        raise file_problem(path, error) from None
    return total.hexdigest()
