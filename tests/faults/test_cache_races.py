"""The cache and the data files are changed, raced for and evicted while they are read."""

import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

from seqtrain.config import config_from_mapping
from seqtrain.errors import DataError
from seqtrain.sequences import cache
from seqtrain.sequences.dataset import prepare
from tests.helpers.program import FORKS

ROWS = 200
FEW, PATIENCE = 10, 60
"""Loads of whole entries that a race needs at least, of each loader."""
KEYS = [f"{number:064}" for number in range(12)]
ROOM = 40_000
"""Bytes of the cache, which about eight of the entries fill."""


def append(path: Path) -> None:
    with path.open("a") as file:
        file.write("c c\tx\n")


def rewrite(path: Path) -> None:
    path.write_text("text\tlabel\n" + "c d\tx\nd c\ty\n" * 20)


@pytest.mark.parametrize("change", [append, rewrite])
def test_what_changes_while_it_is_read_is_refused(tmp_path, change):
    train, folder = tmp_path / "train.tsv", tmp_path / "cache"
    train.write_text("text\tlabel\n" + "a b\tx\nb a\ty\n" * 20)
    time.sleep(0.01)  # a step of the file system's clock

    def watch(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_name == "read_delimited":
            sys.setprofile(None)
            change(train)

    sys.setprofile(watch)
    data = {"train": str(train), "sequence": "text", "label": "label"}
    with pytest.raises(DataError, match=r"train\.tsv: was changed"):
        prepare(config_from_mapping({"data": data}), cache_folder=folder)
    assert not folder.exists()


def numbered(number: int) -> cache.Entry:
    """Return an entry that holds this number everywhere, and one array more where it is even."""
    names = ("values", "labels", *(["groups"] if number % 2 == 0 else []))
    arrays = {name: np.full(ROWS, number) for name in names}
    return cache.Entry({"number": number}, {"train": arrays})


def is_numbered(found: cache.Entry, number: int) -> bool:
    """Return True if an entry is exactly what was saved."""
    each = (found.arrays["train"], numbered(number).arrays["train"])
    arrays = [{name: x.tolist() for name, x in own.items()} for own in each]
    return arrays[0] == arrays[1] and found.values == {"number": number}


def save_for_ever(folder: Path) -> None:
    """Save entries in a small cache, which evicts the oldest ones."""
    cache.MOST_BYTES = ROOM
    while True:
        for number, key in enumerate(KEYS):
            cache.save(folder / key, numbered(number))
            cache.save(folder / KEYS[0], numbered(0))


def load_for(folder: Path, seconds: float, told: Connection) -> None:
    counts = {"whole": 0, "missed": 0, "wrong": 0}
    end = time.monotonic() + seconds
    while time.monotonic() < end or (counts["whole"] <= FEW and time.monotonic() < end + PATIENCE):
        for number, key in ((0, KEYS[0]), *enumerate(KEYS)):
            found = cache.load(folder / key)
            right = found is not None and is_numbered(found, number)
            counts["missed" if found is None else "whole" if right else "wrong"] += 1
    told.send(counts)


@pytest.mark.parametrize("seconds", [0.2, pytest.param(60, marks=pytest.mark.slow)])
def test_loads_race_with_saves_and_eviction(disk, seconds):
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
