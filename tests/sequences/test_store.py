"""Stores return what was put in; arrays beyond memory are kept in an unnamed file."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from seqtrain.errors import RunError
from seqtrain.sequences import store
from seqtrain.sequences.dataset import prepare
from seqtrain.sequences.store import GrowingArray, store_of_items
from seqtrain.sequences.summary import summarize
from tests.helpers.stores import store_of


@pytest.fixture
def little_memory(monkeypatch, tmp_path) -> Path:
    """Arrays go to files of this folder from 256 bytes on."""
    monkeypatch.setattr(store, "IN_MEMORY", 256)
    monkeypatch.setattr(store, "BLOCK", 64)
    monkeypatch.setattr(store, "COMPARED", 50)
    monkeypatch.setattr("seqtrain.sequences.cache.IN_MEMORY", 256)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


@pytest.mark.parametrize("kind", ["text", "features"])
def test_large_data_is_prepared_as_small_data_is(tmp_path, make_config, request, kind):
    draw = np.random.default_rng(0)
    for name, count in (("train", 200), ("test", 50)):
        steps = [draw.integers(0, 40, 1 + row % 9).tolist() for row in range(count)]
        rows = [[[x, -x] for x in s] if kind == "features" else str(s) for s in steps]
        objects = [{"text": x, "label": str(i % 3)} for i, x in enumerate(rows)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, objects)))
    paths = {name: str(tmp_path / f"{name}.jsonl") for name in ("train", "test")}
    config = make_config(**paths, validation=0.3, kind=kind)
    small = prepare(config, cache_folder=None)
    request.getfixturevalue("little_memory")
    fresh, cached = (prepare(config, cache_folder=tmp_path / "cache") for _ in range(2))
    for large in (fresh, cached):
        assert set(small.splits) == set(large.splits) == {"train", "validation", "test"}
        for name, whole in small.splits.items():
            assert isinstance(large.splits[name].values, np.memmap)
            for array, expected in whole.arrays().items():
                found = large.splits[name].arrays()[array]
                np.testing.assert_allclose(found, expected, rtol=1e-6)
        assert large.preprocessing.vocabulary == small.preprocessing.vocabulary
        assert summarize(large) == summarize(small)


def test_no_room_names_what_to_set(little_memory, monkeypatch):
    monkeypatch.setenv("TMPDIR", "/nowhere")
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    array = GrowingArray(np.int32)
    with pytest.raises(RunError, match="TMPDIR"):
        array.append_rows(np.arange(100, dtype=np.int32))


def test_rows_are_indexed_as_those_of_a_list():
    rows = store_of([[2, 3], [4], [5, 6, 7]], labels=[0, 1, 2])
    for index in (-3, -1, np.int64(-2), 0, 2, np.int32(1)):
        values, label = rows[index]
        assert values.tolist() == [[2, 3], [4], [5, 6, 7]][index]
        assert label == [0, 1, 2][index]
    for index in (3, -4, 10**9):
        with pytest.raises(IndexError):
            rows[index]
    with pytest.raises(TypeError):
        rows["1"]  # type: ignore[index]
    assert [label for _, label in rows] == [0, 1, 2]


def test_items_of_several_stores_are_one_store():
    some = [store_of([[2, 3], [4]], labels=[0, 1]), store_of([[5, 6, 7]], labels=[2])]
    joined = store_of_items([some[1][0], some[0][-1]])
    assert joined.values.tolist() == [5, 6, 7, 4]
    assert joined.labels.tolist() == [2, 1]


def test_a_store_is_a_dataset_of_torch():
    code = "import torch; from seqtrain.sequences.store import SequenceStore as S;"
    code += "assert issubclass(S, torch.utils.data.Dataset)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
