"""Cache of encoded data in the user's cache folder.

An entry is a folder. Its name is a hash of the recipe: all settings and source files on which the
encoded data depends.
"""

import hashlib
import json
import os
import time
from contextlib import suppress
from functools import cache
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from platformdirs import user_cache_path

from seqtrain.errors import SeqtrainError
from seqtrain.files.writing import (
    VerifiedFolder,
    is_stray,
    read_folder,
    remove,
    to_json,
    write_folder,
)
from seqtrain.sequences.store import IN_MEMORY, Array, blocks

PACKAGE = Path(__file__).parents[1]
SOURCES = ("sequences/**/*.py", "files/*.py", "text.py")
"""Patterns of the package's source files that read and encode rows."""
MOST_BYTES = 10 * 2**30
"""Largest size of all entries together, in bytes. The least recently used ones are removed."""
ABANDONED_SECONDS = 86400
"""Age in seconds from which on an unfinished entry counts as abandoned."""
ENTRY = "entry.json"


class Entry(NamedTuple):
    """Content of an entry.

    Attributes:
        values: JSON values by name.
        arrays: Maps the name of a part, such as "train", to its arrays by name.
    """

    values: dict[str, Any]
    arrays: dict[str, dict[str, Array]]


def default_folder() -> Path | None:
    """Return the folder of the cache, or None if the system has no folder for it.

    It is $SEQTRAIN_CACHE if this variable is set, else the user's cache folder.
    """
    chosen = os.environ.get("SEQTRAIN_CACHE")
    folder = Path(chosen) if chosen else user_cache_path("seqtrain", appauthor=False)
    return folder if chosen or folder.is_absolute() else None


def entry_name(recipe: Any) -> str:
    """Return the name of the entry for a recipe.

    The name also depends on `source_digest`, so that another version of the code uses other
    entries.

    Args:
        recipe: JSON value with all settings on which the data depends.
    """
    content = json.dumps([source_digest(), recipe], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


@cache
def source_digest() -> str:
    """Return the SHA-256 of the source files that read and encode rows."""
    total = hashlib.sha256()
    for file in sorted(file for pattern in SOURCES for file in PACKAGE.glob(pattern)):
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        total.update(f"{file.relative_to(PACKAGE).as_posix()} {digest}\n".encode())
    return total.hexdigest()


def load(path: Path) -> Entry | None:
    """Return the entry in a folder, or None if it is absent or damaged.

    Large arrays are memory-mapped.
    """
    try:
        return read_folder(path, _read_entry)
    except (OSError, LookupError, TypeError, ValueError, SeqtrainError):
        return None


def save(path: Path, entry: Entry) -> bool:
    """Write an entry to a folder, completely or not at all. Return True if it was written.

    An entry that is too large isn't written. Nothing is written if the folder isn't writable. If
    the cache becomes too large, its least recently used entries are removed.
    """
    arrays = {f"{part}.{name}": x for part, own in entry.arrays.items() for name, x in own.items()}
    if sum(array.nbytes for array in arrays.values()) > MOST_BYTES:
        return False
    forms = {name: [str(array.dtype), list(array.shape)] for name, array in arrays.items()}
    content = {name: (block.tobytes() for block in blocks(x)) for name, x in arrays.items()}
    description = to_json({"arrays": forms, "values": entry.values})
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_folder(path, {**content, ENTRY: description})
    except (OSError, SeqtrainError):
        return False
    with suppress(OSError):
        _remove_oldest(path.parent)
    return True


def _read_entry(saved: VerifiedFolder) -> Entry:
    description = saved.read_json(ENTRY)
    arrays: dict[str, dict[str, Array]] = {}
    for file, form in description["arrays"].items():
        part, _, name = file.rpartition(".")
        arrays.setdefault(part, {})[name] = _read_array(saved, file, *form)
    with suppress(OSError):
        os.utime(saved.path)
    return Entry(description["values"], arrays)


def _read_array(saved: VerifiedFolder, file: str, kind: str, shape: list[int]) -> Array:
    if prod(shape) * np.dtype(kind).itemsize < IN_MEMORY:
        return np.frombuffer(bytearray().join(saved.read_blocks(file)), kind).reshape(shape)
    for _ in saved.read_blocks(file):  # verifies the digest
        pass
    return np.memmap(saved.path / file, kind, "r", shape=tuple(shape))


def _remove_oldest(folder: Path) -> None:
    """Remove abandoned entries, and the least recently used ones until MOST_BYTES are left.

    Entries that another process may still be writing are kept.
    """
    used = {entry.name: entry.stat().st_mtime for entry in os.scandir(folder)}
    abandoned = time.time() - ABANDONED_SECONDS
    removed = [name for name in used if is_stray(name) and used[name] < abandoned]
    total = 0
    entries = (name for name in used if len(name) == hashlib.sha256().digest_size * 2)
    for name in sorted(entries, key=used.__getitem__, reverse=True):
        total += sum(file.stat().st_size for file in os.scandir(folder / name))
        if total > MOST_BYTES:
            removed.append(name)
    for name in removed:
        remove(folder / name)
