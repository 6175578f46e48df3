"""SHA-256 of data files: what a run was trained on, and the key of the cache."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import BinaryIO

from seqtrain.errors import DataError


def digest(path: str) -> str:
    """Return the SHA-256 of a file, or of all files of a folder with their names, in hexadecimal.

    Raises:
        DataError: nothing readable stands there.
    """
    root = Path(path)
    total = hashlib.sha256()
    try:
        if not root.is_dir():
            with open(root, "rb") as file:
                return _digest_of(file)
        for part in sorted(p for p in root.rglob("*") if p.is_file()):
            with open(part, "rb") as file:
                total.update(f"{part.relative_to(root).as_posix()}\0{_digest_of(file)}\n".encode())
    except OSError as error:
        raise DataError(f"{path}: {error.strerror} (tried {root.absolute()})") from None
    return total.hexdigest()


def _digest_of(file: BinaryIO) -> str:
    total = hashlib.sha256()
    while block := file.read(1 << 20):
        total.update(block)
    return total.hexdigest()
