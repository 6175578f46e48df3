"""The cache and the data files are changed, raced for, cut and forged while they are read."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

from seqtrain.config import config_from_mapping
from seqtrain.data import cache
from seqtrain.data.preparation import prepare
from seqtrain.data.store import ARRAYS, SequenceStore
from seqtrain.errors import DataError
from tests.helpers.program import FORKS

LONG_AGO = 1_000_000_000
ROWS = 200
FEW, PATIENCE = 10, 60
"""Loads of whole entries that a race needs at least, of each loader."""
KEYS = [f"{number:064}" for number in range(cache.KEPT_ENTRIES + 4)]
Change = Callable[[Path], None]


def rows(words: str = "ab") -> str:
    return "".join(f"{words[i % 2]} {words[i % 2]}\t{'xy'[i % 2]}\n" for i in range(40))


def append(path: Path) -> None:
    with path.open("a") as file:
        file.write("c c\tx\n")


def rewrite(path: Path) -> None:
    path.write_text(rows("cd"))


def rewrite_and_hide(path: Path) -> None:
    """Rewrite in place, and set the time back: only a time set just before can't be trusted."""
    status = path.stat()
    rewrite(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_text(rows("cd"))
    os.utime(other, (LONG_AGO, LONG_AGO))
    other.rename(path)


def at_first_reading(path: Path, change: Change) -> None:
    """Change a file right before it is read, after its digest was."""

    def watch(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_name == "read_pieces":
            sys.setprofile(None)
            change(path)

    sys.setprofile(watch)


@pytest.mark.parametrize("age", [0, LONG_AGO])
@pytest.mark.parametrize("change", [append, rewrite, rewrite_and_hide, replace])
def test_what_changes_while_it_is_read_is_refused(tmp_path: Path, change: Change, age: int) -> None:
    if (age, change) == (LONG_AGO, rewrite_and_hide):
        pytest.skip("whoever sets a file's time back deceives himself")
    train, folder = tmp_path / "train.tsv", tmp_path / "cache"
    train.write_text("text\tlabel\n" + rows())
    if age:
        os.utime(train, (age, age))
    data = {"train": str(train), "sequence": 0, "label": 1, "header": False}
    at_first_reading(train, change)
    with pytest.raises(DataError, match=r"train\.tsv: was changed while it was read"):
        prepare(config_from_mapping({"data": data}), cache_folder=folder)
    assert not folder.exists()


def test_a_file_that_joins_a_folder_while_it_is_read_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    for name in "xy":
        (folder / f"{name}.txt").write_text("a\nb\n")
    at_first_reading(folder / "z.txt", lambda path: path.write_text("c\n") and None)
    data = {"train": str(folder), "format": "txt"}
    with pytest.raises(DataError, match=r"z\.txt: was changed while it was read"):
        prepare(config_from_mapping({"data": data}), cache_folder=None)


def numbered(number: int) -> dict[str, SequenceStore]:
    """Return stores that hold this number everywhere, some with groups."""
    array = np.full(ROWS, number)
    return {
        split: SequenceStore(
            array.astype(np.int32), np.arange(ROWS + 1), array, array, array if groups else None
        )
        for split, groups in (("train", number % 2 == 0), ("test", False))
    }


def is_numbered(stores: dict[str, SequenceStore], number: int) -> bool:
    """Whether an entry is exactly what was saved."""
    return stores.keys() == {"train", "test"} and all(
        (getattr(store, name) is None) == (getattr(wanted, name) is None)
        and np.array_equal(getattr(store, name), getattr(wanted, name))
        for split, wanted in numbered(number).items()
        for store in [stores[split]]
        for name in ARRAYS
        if getattr(wanted, name) is not None or getattr(store, name) is not None
    )


def save_for_ever(folder: Path) -> None:
    while True:
        for number, key in enumerate(KEYS):
            cache.save(folder, key, numbered(number), number)
            cache.save(folder, KEYS[0], numbered(0), 0)


def load_for(folder: Path, seconds: float, told: Connection) -> None:
    counts = {"whole": 0, "missed": 0, "wrong": 0}
    end = time.monotonic() + seconds
    while time.monotonic() < end or (counts["whole"] <= FEW and time.monotonic() < end + PATIENCE):
        for number, key in ((0, KEYS[0]), *enumerate(KEYS)):
            found = cache.load(folder, key)
            right = found is not None and found[1] == number and is_numbered(found[0], number)
            counts["missed" if found is None else "whole" if right else "wrong"] += 1
    told.send(counts)


@pytest.mark.parametrize("seconds", [0.2, pytest.param(60, marks=pytest.mark.slow)])
def test_loads_race_with_saves_and_eviction(
    disk: Path, figure: Callable[[str], None], seconds: float
) -> None:
    folder = disk / "cache"
    savers = [FORKS.Process(target=save_for_ever, args=(folder,)) for _ in range(2)]
    pipes = [FORKS.Pipe() for _ in range(2)]
    loaders = [FORKS.Process(target=load_for, args=(folder, seconds, b)) for _, b in pipes]
    for process in (*savers, *loaders):
        process.start()
    for _, theirs in pipes:
        theirs.close()  # so that a loader that dies is noticed
    try:
        found = [ours.recv() for ours, _ in pipes]
    finally:
        for process in (*savers, *loaders):
            process.kill()
            process.join()
    total = {name: sum(counts[name] for counts in found) for name in found[0]}
    assert total["wrong"] == 0, total
    assert total["whole"] > 2 * FEW, total
    figure(f"cache: loads against two savers and eviction: {total}")


def test_an_entry_under_another_name_is_none(tmp_path: Path) -> None:
    cache.save(tmp_path, KEYS[7], numbered(7), 7)
    (tmp_path / KEYS[7]).rename(tmp_path / KEYS[1])
    assert cache.load(tmp_path, KEYS[1]) is None
