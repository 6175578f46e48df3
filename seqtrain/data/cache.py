"""Data read before, kept under the user's cache folder by content.

An entry is a verified folder named by its key: a file for each array, and `entry.json`, which lists
them. It never changes once it is there. What is loaded is copied while it is verified, so that
nobody can change, cut or remove it afterwards; anything missing or wrong means no entry.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from seqtrain.data.growing import blocks, joined
from seqtrain.data.store import SequenceStore
from seqtrain.errors import SeqtrainError
from seqtrain.files.folder import VerifiedFolder, read_folder, write_folder
from seqtrain.files.strict_json import to_json
from seqtrain.files.writing import Content, is_stray, remove

FORMAT = 10
"""Counts up when what is stored, or how rows are read and encoded, changes."""
KEPT_ENTRIES = 32
ABANDONED_SECONDS = 86400
"""Age at which an entry that was never finished is taken for abandoned."""
ENTRY = "entry.json"
Arrays: TypeAlias = dict[str, npt.NDArray[Any]]
TYPES = ("int32", "int64", "float32")


def default_folder() -> Path | None:
    """Return the cache folder: $SEQTRAIN_CACHE, else the system's place; None without a home."""
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


def content_key(description: Any) -> str:
    """Return the name of the entry for a JSON description of files and preprocessing."""
    text = json.dumps([FORMAT, description], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def load(folder: Path, key: str) -> tuple[dict[str, SequenceStore], Any, Arrays] | None:
    """Return copies of what an entry holds, as `save` takes it; None if absent or damaged.

    Args:
        folder: of the cache.
        key: of the entry.
    """
    try:
        return read_folder(folder / key, partial(_read_entry, key))
    except (OSError, LookupError, TypeError, ValueError, SeqtrainError):
        return None


def _read_entry(key: str, saved: VerifiedFolder) -> tuple[dict[str, SequenceStore], Any, Arrays]:
    entry = saved.read_json(ENTRY)
    if entry["key"] != key:
        raise ValueError("an entry under another's name")
    stores = {
        split: SequenceStore.from_arrays(_read_arrays(saved, f"{split}.", forms))
        for split, forms in entry["stores"].items()
    }
    arrays = _read_arrays(saved, "", entry["arrays"])
    with suppress(OSError):
        os.utime(saved.path)
    return stores, entry["values"], arrays


def _read_arrays(saved: VerifiedFolder, prefix: str, forms: dict[str, Any]) -> Arrays:
    """Copy the arrays whose types and shapes are listed by name."""
    return {name: _read_array(saved, prefix + name, *form) for name, form in forms.items()}


def _read_array(saved: VerifiedFolder, file: str, kind: str, shape: list[int]) -> npt.NDArray[Any]:
    """Copy an array into memory, or, where it is large, into a temporary file without a name."""
    if kind not in TYPES or not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError("no array of a store")

    def parts() -> Iterator[npt.NDArray[Any]]:
        yield np.empty(0, dtype=kind)
        for block in saved.read_blocks(file):
            yield np.frombuffer(block, dtype=kind)

    return joined(parts()).reshape(shape)


def save(
    folder: Path,
    key: str,
    stores: dict[str, SequenceStore],
    values: Any,
    arrays: Arrays | None = None,
) -> None:
    """Write an entry, whole or not at all, in place of a damaged one; where it can't, go without.

    Args:
        folder: of the cache; made where it doesn't exist.
        key: of the entry.
        stores: by name of the split.
        values: JSON values to keep beside them.
        arrays: to keep beside them, by name.
    """
    arrays = arrays or {}
    of_stores = {split: store.arrays() for split, store in stores.items()}
    files: dict[str, Content] = {name: _content(array) for name, array in arrays.items()}
    for split, parts in of_stores.items():
        files |= {f"{split}.{name}": _content(array) for name, array in parts.items()}
    entry = {
        "key": key,
        "stores": {split: _forms(parts) for split, parts in of_stores.items()},
        "arrays": _forms(arrays),
        "values": values,
    }
    files[ENTRY] = to_json(entry)
    with suppress(OSError, SeqtrainError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_folder(folder / key, files, durable=False)
        _forget_oldest(folder)


def _content(array: npt.NDArray[Any]) -> Content:
    return (block.tobytes() for block in blocks(array))


def _forms(arrays: Arrays) -> dict[str, Any]:
    """Return type and shape of each array."""
    return {name: [str(array.dtype), list(array.shape)] for name, array in arrays.items()}


def _forget_oldest(path: Path) -> None:
    """Keep the entries used last, and those that another process is writing now."""
    ages = {entry.name: time.time() - entry.stat().st_mtime for entry in os.scandir(path)}
    entries = sorted((name for name in ages if len(name) == 64), key=ages.__getitem__)
    abandoned = [name for name, age in ages.items() if is_stray(name) and age > ABANDONED_SECONDS]
    for name in entries[KEPT_ENTRIES:] + abandoned:
        remove(path / name)
