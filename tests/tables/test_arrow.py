"""Parquet and Arrow files, and what Hugging Face's datasets write."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqtrain.errors import DataError
from seqtrain.tables import arrow, opening
from seqtrain.tables.blocks import Dialect, Selection
from seqtrain.tables.sources import open_source
from tests.tables.conftest import Row, rows_of, select

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

VALUES: dict[str, list[Any]] = {
    "text": ["a b", "naïve\ncafé", "", None],
    "tokens": [["a", "b c"], ["é"], [], None],
    "integers": [[1, 2], [], [3], [4, 5, 6]],
    "features": [[[1.0, 2.5], [None, 1.0]], [[0.0, 3.0]], [[1e30, 2.0]], []],
    "number": [1.5, None, 2.0, -1e30],
    "integer": [1, None, 2**53 + 1, 4],
    "truth": [True, False, None, True],
    "object": [
        {"a": 1, "b": {"c": "x"}},
        {"a": 2, "b": {"c": "y"}},
        {"a": 3, "b": {"c": "z"}},
        None,
    ],
}


def read(path: Path, selection: Selection | None = None, format: str = "parquet") -> list[Row]:
    return list(rows_of(open_source(str(path), Dialect(format)), selection))


def plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return None if value != value else value


def write(path: Path, columns: dict[str, Any], names: list[str] | None = None) -> Path:
    """Write columns, and names of the label's classes as Hugging Face's datasets do."""
    table = pa.table(columns)
    if names is not None:
        features = {"label": {"names": names, "_type": "ClassLabel"}}
        told = json.dumps({"info": {"features": features}})
        table = table.replace_schema_metadata({"huggingface": told})
    pq.write_table(table, path, row_group_size=2)
    return path


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("form", ["parquet", "file", "stream"])
def test_values_are_those_of_json(tmp_path, kind, form):
    table = pa.table({"s": VALUES[kind], "other": [1, 2, 3, 4]})
    path = tmp_path / "a"
    if form == "parquet":
        pq.write_table(table, path, row_group_size=3)
    else:
        opened = pa.ipc.new_file if form == "file" else pa.ipc.new_stream
        with opened(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
    found = read(path, select("s"), "parquet" if form == "parquet" else "arrow")
    assert [plain(row.cells["s"]) for row in found] == VALUES[kind]
    assert [row.line for row in found] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("values", "type", "expected"),
    [
        ([0, 86_400], "timestamp[s]", ["1970-01-01", "1970-01-02"]),
        ([1, None], "timestamp[ns, tz=UTC]", ["1970-01-01T00:00:00.000000001+00:00", None]),
        ([1, 2], "date32[day]", ["1970-01-02", "1970-01-03"]),
        ([61, 0], "time32[s]", ["00:01:01", "00:00:00"]),
        ([1500, -1], "duration[ms]", ["PT1.500000000S", "-PT0.001000000S"]),
        ([b"text", None], "binary", ["text", None]),
        (["x", "y"], "string_view", ["x", "y"]),
    ],
)
def test_types_become_the_texts_of_csv(tmp_path, values, type, expected):
    kinds = {
        "timestamp[s]": pa.timestamp("s"), "timestamp[ns, tz=UTC]": pa.timestamp("ns", "UTC"),
        "date32[day]": pa.date32(), "time32[s]": pa.time32("s"), "duration[ms]": pa.duration("ms"),
        "binary": pa.binary(), "string_view": pa.string_view(),
    }  # fmt: skip
    table = pa.table({"s": pa.array(values, kinds[type])})
    with pa.ipc.new_stream(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table)
    found = read(tmp_path / "a.arrow", format="arrow")
    assert [row.cells["s"] for row in found] == expected


def test_dictionaries_are_codes(tmp_path):
    table = pa.table({"s": pa.array(["b", "a", None, "b"]).dictionary_encode()})
    pq.write_table(table, tmp_path / "a.parquet")
    assert [row.cells["s"] for row in read(tmp_path / "a.parquet")] == ["b", "a", None, "b"]


def test_numbers_of_classes_have_the_names_that_the_file_gives(tmp_path):
    columns = {"s": ["a", "b", "c"], "label": [1, 0, -1]}
    named = write(tmp_path / "a.parquet", columns, ["no", "yes"])
    assert [row.cells["label"] for row in read(named)] == ["yes", "no", None]
    bare = write(tmp_path / "b.parquet", columns)
    assert [row.cells["label"] for row in read(bare)] == [1, 0, -1]


def test_a_field_of_a_struct_is_found_as_in_json(tmp_path):
    meta = [{"text": "a", "gold": {"y": "x"}}, {"text": "b", "gold": {"y": "z"}}]
    path = write(tmp_path / "a.parquet", {"meta": meta, "other": [1, 2], "other.x": [5, 6]})
    found = read(path, select("meta.text", "meta.gold.y", "other.x", optional=("meta.no",)))
    assert [list(row.cells.values()) for row in found] == [["a", "x", 5], ["b", "z", 6]]


def test_refusals(tmp_path):
    path = write(tmp_path / "a.parquet", {"text": ["a"] * 9, "label": ["x"] * 9})
    whole = path.read_bytes()
    (tmp_path / "b.parquet").write_text("not parquet at all")
    (tmp_path / "c.parquet").write_bytes(whole[: len(whole) // 2] + whole[-200:])
    (tmp_path / "e.parquet").write_bytes(b"")
    twice = [pa.array(["a"]), pa.array(["b"])]
    pq.write_table(pa.table(twice, names=["s", "s"]), tmp_path / "d.parquet")
    for name, column, said in (
        ("a", "tex", "no column 'tex'; found 'text', 'label'; did you mean 'text'"),
        ("a", "text.x", "no column 'text.x'"),
        ("b", "text", "not a sound parquet file"),
        ("c", "text", "not a sound parquet file"),
        ("d", "s", r"d\.parquet: column 's' occurs twice"),
        ("e", "s", "not a sound parquet file"),
    ):
        with pytest.raises(DataError, match=said):
            read(tmp_path / f"{name}.parquet", select(column))


def test_damage_never_escapes_as_another_error(tmp_path):
    path = write(tmp_path / "a.parquet", {"s": ["a", "b"] * 20, "n": [[1.0]] * 40})
    whole, draw = path.read_bytes(), np.random.default_rng(0)
    for _ in range(200):
        damaged = bytearray(whole)
        for place in draw.integers(0, len(whole), 4):
            damaged[place] = draw.integers(256)
        path.write_bytes(damaged)
        try:
            read(path)
        except DataError as error:
            assert "a.parquet" in error.problems[0]  # noqa: PT017


TEXT = "x" * 2000
BOMBS: dict[str, Any] = {
    "text": [TEXT] * 3000,
    "dictionary": "dictionary",
    "tokens": [[TEXT] * 1000] * 3,
    "features": [[0.0] * 1_000_000, [1.0]],
}


@pytest.mark.parametrize("kind", BOMBS)
def test_what_expands_far_beyond_the_file_is_refused_as_a_bomb(tmp_path, monkeypatch, kind):
    cells = BOMBS[kind]
    if kind == "dictionary":
        cells = pa.array([TEXT] * 3000).dictionary_encode()
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"s": cells}), path, compression="zstd")
    assert path.stat().st_size < 30_000
    for module in (opening, arrow):
        monkeypatch.setattr(module, "BOMB_FREE_BYTES", 100_000)
        monkeypatch.setattr(module, "BOMB_RATIO", 100)
    with pytest.raises(DataError, match="100 times"):
        read(path)
    for module in (opening, arrow):
        monkeypatch.setattr(module, "BOMB_RATIO", 10**6)
    assert len(read(path)) == len(cells)


def test_a_folder_of_save_to_disk(tmp_path):
    folder = tmp_path / "ds/train"
    folder.mkdir(parents=True)
    features = {"label": {"names": ["down", "up"], "_type": "ClassLabel"}}
    table = pa.table({"text": [f"n{i}" for i in range(30)], "label": [i % 2 for i in range(30)]})
    told = json.dumps({"info": {"features": features}})
    table = table.replace_schema_metadata({"huggingface": told})
    for number in range(2):
        with pa.ipc.new_stream(
            folder / f"data-0000{number}-of-00002.arrow", table.schema
        ) as writer:
            writer.write_table(table.slice(number * 15, 15), max_chunksize=4)
    (folder / "state.json").write_text("{}")
    found = read(folder, select("text", "label"), "arrow")
    assert [(row.line, *row.cells.values()) for row in found[14:16]] == [
        (15, "n14", "down"),
        (1, "n15", "up"),
    ]
    assert str(found[0].file).endswith("data-00000-of-00002.arrow")
    with pytest.raises(DataError, match=r"holds no file .arrow; give one of these: train"):
        read(tmp_path / "ds", format="arrow")
