"""Data that another process offers is the data that it read, and one mapping of one file."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqtrain.config import Config
from seqtrain.data.handover import offered, take
from seqtrain.data.preparation import prepare

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

Write = Callable[[str, str | list[tuple[str, str]]], str]
MakeConfig = Callable[..., Config]
ROWS = [(f"word{i} again", "xy"[i % 2]) for i in range(20)]


@pytest.fixture
def config(make_config: MakeConfig, write: Write) -> Config:
    """Return one whose data has all that may be kept: unknown words, n-grams, several files."""
    files = [write("a.tsv", ROWS), write("b.tsv", ROWS[:5])]
    test = write("test.tsv", [("word1 other", "x"), ("word2 again", "z")])
    config = make_config(train=files, test=test, validation=0.2, min_count=2)
    parts = {"subwords": [3, 5], "ngrams": [1, 2], "max_ngrams": 4}
    return config.model_copy(update={"model": config.model.model_copy(update=parts)})


def test_what_is_taken_is_what_was_offered(config: Config) -> None:
    data = prepare(config, cache_folder=None)
    with offered(data) as offer:
        taken = take(offer, config)
    assert taken is not None
    assert replace(taken, splits={}) == replace(data, splits={})
    assert list(taken.splits) == list(data.splits)
    maps: set[Any] = set()
    for name, store in data.splits.items():
        assert store.files == taken.splits[name].files
        arrays = taken.splits[name].arrays()
        assert arrays.keys() == store.arrays().keys() >= {"spellings", "word_buckets"}
        for key, array in store.arrays().items():
            assert arrays[key].dtype == array.dtype
            assert np.array_equal(arrays[key], array)
            while isinstance(arrays[key], np.ndarray):
                arrays[key] = arrays[key].base
            maps.add(id(arrays[key].obj))
    assert len(maps) == 1


def test_an_offer_that_is_over_or_of_another_file_is_none(config: Config) -> None:
    with offered(prepare(config, cache_folder=None)) as offer:
        assert take({**offer, "identity": [0, *offer["identity"][1:]]}, config) is None
    assert take(offer, config) is None
    assert take(None, config) is None


@pytest.mark.parametrize("room", [0, 1000, 6000])
def test_where_there_is_no_room_nothing_is_offered_or_left_open(config: Config, room: int) -> None:
    data = prepare(config, cache_folder=None)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = os.listdir("/proc/self/fd")
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        with offered(data) as offer:
            assert offer is None
            assert os.listdir("/proc/self/fd") == before
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_pipe_in_its_place_is_not_waited_for(config: Config, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with offered(prepare(config, cache_folder=None)) as offer:
        assert take({**offer, "place": str(tmp_path / "pipe")}, config) is None
