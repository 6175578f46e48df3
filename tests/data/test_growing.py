"""Arrays beyond memory: the same values, in a file that nobody else sees."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqtrain.config import Config
from seqtrain.data import growing
from seqtrain.data.growing import GrowingArray, blocks, joined
from seqtrain.data.preparation import prepare
from seqtrain.data.summary import summarize
from seqtrain.errors import RunError
from tests.helpers.stores import StoreBuilder


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Arrays go to files of this folder from 256 bytes on."""
    monkeypatch.setattr(growing, "IN_MEMORY", 256)
    monkeypatch.setattr(growing, "BLOCK", 64)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


@pytest.mark.parametrize("shape", [(), (3,)])
@pytest.mark.parametrize("count", [0, 1, 50, 51, 1000])
def test_what_was_appended_comes_back(
    little_memory: Path, shape: tuple[int, ...], count: int
) -> None:
    values = np.random.default_rng(0).integers(0, 99, (count, *shape)).astype(np.float32)
    array = GrowingArray(np.float32, shape)
    for part in np.array_split(values, 7):
        array.append(part)
    built = array.build()
    np.testing.assert_array_equal(built, values)
    assert isinstance(built, np.memmap) == (values.nbytes >= 256)
    np.testing.assert_array_equal(joined(blocks(values)), values)
    assert max(block.nbytes for block in blocks(values)) <= 64
    assert list(little_memory.iterdir()) == []


@pytest.mark.parametrize("kind", ["text", "features"])
def test_large_data_is_prepared_as_small_data_is(
    tmp_path: Path, make_config: Callable[..., Config], request: pytest.FixtureRequest, kind: str
) -> None:
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
    large = prepare(config, cache_folder=None)
    assert set(small.splits) == set(large.splits) == {"train", "validation", "test"}
    for name, store in small.splits.items():
        assert isinstance(large.splits[name].values, np.memmap)
        for array in ("values", "offsets", "labels", "lines"):
            expected = getattr(store, array)
            np.testing.assert_allclose(getattr(large.splits[name], array), expected, rtol=1e-6)
    assert large.preprocessing.vocabulary == small.preprocessing.vocabulary
    assert summarize(large) == summarize(small)


@pytest.mark.parametrize("channels", [0, 3])
def test_a_selection_of_many_rows_is_gathered_in_parts(
    little_memory: Path, monkeypatch: pytest.MonkeyPatch, channels: int
) -> None:
    builder = StoreBuilder(channels)
    for row in range(60):
        steps = np.arange(row, row + 4)
        if channels:
            builder.add_features(np.stack([steps] * channels, 1), row % 3, row)
        else:
            builder.add_ids(steps, row % 3, row)
    store = builder.build()
    rows = np.arange(59, -1, -2)
    expected = store.__getitems__(rows)
    parts: list[int] = []

    class Noting(GrowingArray):
        def append(self, steps: Any) -> None:
            parts.append(steps.nbytes)
            super().append(steps)

    monkeypatch.setattr("seqtrain.data.store.GrowingArray", Noting)
    chosen = store.selection(rows)
    for array in ("values", "offsets", "labels", "lines"):
        np.testing.assert_array_equal(getattr(chosen, array), getattr(expected, array))
    assert max(parts) <= 64 + 4 * store.values[:1].nbytes


def test_no_room_names_what_to_set(little_memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/nowhere")
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    array = GrowingArray(np.int32)
    with pytest.raises(RunError, match=r"a temporary file for encoded data: .*; set TMPDIR to"):
        array.append(np.arange(100, dtype=np.int32))
