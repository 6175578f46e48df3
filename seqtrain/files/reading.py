"""Reading files that anybody may have written: regular, no larger than allowed, strict JSON."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, BinaryIO

from seqtrain.errors import CheckpointError, RunError, reading_fault
from seqtrain.files.directory import Directory
from seqtrain.files.strict_json import NotJSONError, parse_json

LARGEST_JSON = 2**28
"""Most bytes of a JSON file that is read."""


def json_of(path: Path, content: bytes) -> Any:
    """Return the JSON value of a file.

    Raises:
        CheckpointError: it isn't JSON.
    """
    try:
        return parse_json(content.decode())
    except (UnicodeDecodeError, NotJSONError) as error:
        raise CheckpointError(f"{path}: not valid JSON ({error})") from None


def read_regular(folder: Directory, name: str, limit: int) -> bytes:
    """Return the content of a regular file in a folder, which anybody may have written.

    Raises:
        CheckpointError: it is missing, another kind of file, or larger than the limit.
        RunError: the machine failed to read it.
    """
    with open_in(folder, name, limit) as file:
        return read_part(file, folder.path / name, limit + 1)


def open_in(folder: Directory, name: str, limit: int) -> BinaryIO:
    """Open a regular file in a folder; raises as `read_regular` does."""
    path = folder.path / name
    try:
        file = os.fdopen(folder.open(name), "rb")
    except OSError as error:
        raise unreadable(path, error) from None
    size = os.fstat(file.fileno()).st_size
    if size > limit:
        file.close()
        raise CheckpointError(f"{path}: found {size:,} bytes; expected at most {limit:,}")
    return file


def read_part(file: BinaryIO, path: Path, size: int) -> bytes:
    """Return the next bytes of an open file; raises as `read_regular` does."""
    try:
        return file.read(size)
    except OSError as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: OSError) -> CheckpointError | RunError:
    """Say why a path can't be opened or read: it is wrong, or the machine failed."""
    wrong = CheckpointError(f"{path}: {error.strerror} (looked for {os.path.abspath(path)})")
    return reading_fault(path, error) or wrong
