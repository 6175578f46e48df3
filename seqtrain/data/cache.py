"""Data read before, kept under the user's cache folder by content, and memory-mapped."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from seqtrain.data.store import SequenceStore

FORMAT = 1
"""Counts up when what is stored, or how rows are read and encoded, changes."""
KEPT_ENTRIES = 32
ARRAYS = ("values", "offsets", "labels", "lines")


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


def load(folder: Path, key: str) -> tuple[dict[str, SequenceStore], Any] | None:
    """Return the stores, memory-mapped, and the JSON values of an entry, or None."""
    entry = folder / key
    try:
        values = json.loads((entry / "entry.json").read_text(encoding="utf-8"))
        stores = {
            split: SequenceStore(
                *(np.load(entry / f"{split}.{name}.npy", mmap_mode="r") for name in ARRAYS)
            )
            for split in values["splits"]
        }
        os.utime(entry)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return stores, values["values"]


def save(folder: Path, key: str, stores: dict[str, SequenceStore], values: Any) -> bool:
    """Write an entry, whole or not at all; say whether it could be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".new-", dir=folder))
    except OSError:
        return False
    try:
        for split, store in stores.items():
            for name in ARRAYS:
                np.save(temporary / f"{split}.{name}.npy", getattr(store, name))
        entry = {"splits": list(stores), "values": values}
        (temporary / "entry.json").write_text(json.dumps(entry), encoding="utf-8")
        temporary.rename(folder / key)
    except OSError:
        shutil.rmtree(temporary, ignore_errors=True)
        return (folder / key).exists()
    _forget_oldest(folder)
    return True


def _forget_oldest(folder: Path) -> None:
    """Keep the entries used last."""
    entries = [path for path in folder.iterdir() if len(path.name) == 64]
    entries.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for path in entries[KEPT_ENTRIES:]:
        shutil.rmtree(path, ignore_errors=True)
