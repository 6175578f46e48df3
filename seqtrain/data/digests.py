"""SHA-256 of data files: what a run was trained on, and the key of the cache."""

from __future__ import annotations

import hashlib
from pathlib import Path

from seqtrain.data.readers.files import display_name, file_problem
from seqtrain.errors import DataError


def digest(path: str) -> str:
    """Return the SHA-256 of a file, or of all files of a folder with their names, in hexadecimal.

    Raises:
        DataError: nothing readable stands there, or a pipe or device without an end.
    """
    root = Path(path)
    try:
        root.stat()
        if root.is_file():
            return _digest_of(root)
        if not root.is_dir():
            raise DataError(f"{display_name(path)}: is a pipe or device; expected a regular file")
        total = hashlib.sha256()
        # What a txt folder holds: files, and folders of files, links followed, dot names left out.
        found = {p for pattern in ("*", "*/*") for p in root.glob(pattern) if p.is_file()}
        for part in sorted(p for p in found if not p.name.startswith(".")):
            total.update(f"{part.relative_to(root).as_posix()}\0{_digest_of(part)}\n".encode())
        return total.hexdigest()
    except (OSError, ValueError) as error:
        raise file_problem(path, error) from None


def _digest_of(path: Path) -> str:
    total = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            total.update(block)
    return total.hexdigest()
