"""Data read before, kept under the user's cache folder by content, and memory-mapped.

An entry is a folder named by its key: `content/` with the arrays and `entry.json`, and a file
`sha256` with the digest of that folder, so that a damaged entry is read anew and not trusted.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from seqtrain.data.digests import digest_files
from seqtrain.data.store import SequenceStore
from seqtrain.errors import SeqtrainError

FORMAT = 5
"""Counts up when what is stored, or how rows are read and encoded, changes."""
KEPT_ENTRIES = 32
ABANDONED_SECONDS = 86400
"""Age at which an entry that was never finished is taken for abandoned."""
UNFINISHED = ".new-"
ARRAYS = ("values", "offsets", "labels", "lines", "groups")
"""Of a store; groups are there only where data.group is."""


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
    """Return the stores, memory-mapped, and the JSON values of an entry; None if absent or damaged.

    Args:
        folder: of the cache.
        key: of the entry.
    """
    content = folder / key / "content"
    try:
        if (folder / key / "sha256").read_text(encoding="ascii") != _digest(content):
            return None
        entry = json.loads((content / "entry.json").read_text(encoding="utf-8"))
        stores = {
            split: SequenceStore(
                *(
                    np.load(path, mmap_mode="r")
                    for name in ARRAYS
                    if (path := content / f"{split}.{name}.npy").exists()
                )
            )
            for split in entry["splits"]
        }
    except (OSError, ValueError, SeqtrainError):
        return None
    with suppress(OSError):
        os.utime(folder / key)
    return stores, entry["values"]


def save(folder: Path, key: str, stores: dict[str, SequenceStore], values: Any) -> None:
    """Write an entry, whole or not at all, in place of a damaged one; where it can't, go without.

    Args:
        folder: of the cache; made where it doesn't exist.
        key: of the entry.
        stores: by name of the split.
        values: JSON values to keep beside them.
    """
    temporary: Path | None = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=folder))
        content = temporary / "content"
        content.mkdir()
        for split, store in stores.items():
            for name in ARRAYS:
                if (array := getattr(store, name)) is not None:
                    np.save(content / f"{split}.{name}.npy", array)
        entry = json.dumps({"splits": list(stores), "values": values})
        (content / "entry.json").write_text(entry, encoding="utf-8")
        (temporary / "sha256").write_text(_digest(content), encoding="ascii")
        shutil.rmtree(folder / key, ignore_errors=True)
        temporary.rename(folder / key)
        _forget_oldest(folder)
    except (OSError, SeqtrainError):
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _digest(content: Path) -> str:
    return digest_files(str(content), sorted(map(str, content.iterdir())))


def _forget_oldest(folder: Path) -> None:
    """Keep the entries used last, and those that another process is writing now."""
    ages = {path: time.time() - path.stat().st_mtime for path in folder.iterdir()}
    entries = sorted((path for path in ages if len(path.name) == 64), key=ages.__getitem__)
    abandoned = [
        path
        for path, age in ages.items()
        if path.name.startswith(UNFINISHED) and age > ABANDONED_SECONDS
    ]
    for path in entries[KEPT_ENTRIES:] + abandoned:
        shutil.rmtree(path, ignore_errors=True)
