"""Data encoded before, kept under the user's cache folder in verified folders named by recipe."""

import hashlib
import json
import os
import sys
import time
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from seqtrain.data.store import IN_MEMORY, Array, blocks
from seqtrain.errors import SeqtrainError
from seqtrain.files.writing import (
    VerifiedFolder,
    is_stray,
    read_folder,
    remove,
    to_json,
    write_folder,
)

FORMAT = 21
"""Counts up when what is stored, or how rows are read and encoded, changes."""
KEPT_ENTRIES = 32
ABANDONED_SECONDS = 86400
"""Age at which an entry that was never finished is taken for abandoned."""
ENTRY = "entry.json"


class Entry(NamedTuple):
    """What an entry holds: JSON values by name, and arrays by part and name."""

    values: dict[str, Any]
    arrays: dict[str, dict[str, Array]]


def default_folder() -> Path | None:
    """Return the cache folder: $SEQTRAIN_CACHE, else the system's own; None without a home."""
    chosen = os.environ.get("SEQTRAIN_CACHE")
    if chosen:
        return Path(chosen)
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "seqtrain"


def entry_name(recipe: Any) -> str:
    """Return the name of the entry for a recipe, a JSON value."""
    return hashlib.sha256(json.dumps([FORMAT, recipe], sort_keys=True).encode()).hexdigest()


def load(path: Path) -> Entry | None:
    """Return what an entry holds, large arrays mapped from its files; None: absent or damaged."""
    try:
        return read_folder(path, _read_entry)
    except (OSError, LookupError, TypeError, ValueError, SeqtrainError):
        return None


def save(path: Path, entry: Entry) -> bool:
    """Write an entry, whole or not at all, in place of another; return whether it could be."""
    arrays = {f"{part}.{name}": x for part, own in entry.arrays.items() for name, x in own.items()}
    forms = {name: [str(array.dtype), list(array.shape)] for name, array in arrays.items()}
    content = {name: (block.tobytes() for block in blocks(x)) for name, x in arrays.items()}
    listed = to_json({"arrays": forms, "values": entry.values})
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_folder(path, {**content, ENTRY: listed})
    except (OSError, SeqtrainError):
        return False
    with suppress(OSError):
        _forget_oldest(path.parent)
    return True


def _read_entry(saved: VerifiedFolder) -> Entry:
    listed = saved.read_json(ENTRY)
    arrays: dict[str, dict[str, Array]] = {}
    for file, form in listed["arrays"].items():
        part, _, name = file.rpartition(".")
        arrays.setdefault(part, {})[name] = _read_array(saved, file, *form)
    with suppress(OSError):
        os.utime(saved.path)
    return Entry(listed["values"], arrays)


def _read_array(saved: VerifiedFolder, file: str, kind: str, shape: list[int]) -> Array:
    if prod(shape) * np.dtype(kind).itemsize < IN_MEMORY:
        return np.frombuffer(bytearray().join(saved.read_blocks(file)), kind).reshape(shape)
    for _ in saved.read_blocks(file):
        pass
    return np.memmap(saved.path / file, kind, "r", shape=tuple(shape))


def _forget_oldest(path: Path) -> None:
    """Keep the entries used last, and those that another process is writing now."""
    used = {entry.name: entry.stat().st_mtime for entry in os.scandir(path)}
    entries = sorted((name for name in used if len(name) == 64), key=used.__getitem__)
    abandoned = time.time() - ABANDONED_SECONDS
    strays = [name for name in used if is_stray(name) and used[name] < abandoned]
    for name in entries[:-KEPT_ENTRIES] + strays:
        remove(path / name)
