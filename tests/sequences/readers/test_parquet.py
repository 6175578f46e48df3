"""Parquet files: the values of jsonl, names of classes, and refusals; other files' way in."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seqtrain.errors import DataError
from seqtrain.sequences.readers import opening, parquet
from tests.helpers.reading import file_source, only_label, read_examples

VALUES: dict[str, list[Any]] = {
    "text": ["a b", "naïve\ncafé", ""],
    "tokens": [["a", "b c"], ["é"], []],
    "features": [[[1.0, 2.5], [None, 1.0]], [[0.0, 3.0]], [[1e30, 2.0]]],
}


def write(path: Path, columns: dict[str, Any], names: list[str] | None = None) -> str:
    """Write columns, and names of the label's classes as Hugging Face's datasets do."""
    table = pa.table(columns)
    if names is not None:
        features = {"label": {"names": names, "_type": "ClassLabel"}}
        told = json.dumps({"info": {"features": features}})
        table = table.replace_schema_metadata({"huggingface": told})
    pq.write_table(table, path, row_group_size=2)
    return str(path)


def read(path: str, kind: str = "text", **options: Any) -> list[tuple[Any, str | None]]:
    given = {"sequence": "s", "label": "label", "kind": kind, **options}
    format = "jsonl" if path.endswith(".jsonl") else "parquet"
    found = read_examples(file_source(path, format, **given))
    return [(example.sequence, only_label(example)) for example in found]


@pytest.mark.parametrize("kind", VALUES)
def test_values_are_those_of_jsonl(tmp_path, kind):
    labels = ["x", "y", "x"]
    path = write(tmp_path / "a.parquet", {"s": VALUES[kind], "label": labels, "other": [1, 2, 3]})
    lines = [{"s": s, "label": y} for s, y in zip(VALUES[kind], labels, strict=True)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found, expected = read(path, kind), read(str(tmp_path / "a.jsonl"), kind)
    assert [label for _, label in found] == labels
    for (sequence, _), (other, _) in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.array(sequence), np.array(other))


def test_numbers_of_classes_have_the_names_that_the_file_gives(tmp_path):
    path = write(tmp_path / "a.parquet", {"s": ["a", "b"], "label": [1, 0]}, ["no", "yes"])
    assert read(path) == [("a", "yes"), ("b", "no")]
    bare = write(tmp_path / "b.parquet", {"s": ["a", "b"], "label": [1, 0]})
    assert read(bare) == [("a", "1"), ("b", "0")]
    hidden = write(tmp_path / "c.parquet", {"s": ["a", "b"], "label": [1, -1]}, ["no", "yes"])
    with pytest.raises(DataError, match=r"c\.parquet:2"):
        read(hidden)


def test_refusals(tmp_path):
    path = write(tmp_path / "a.parquet", {"text": ["a"], "label": ["x"]})
    whole = Path(path).read_bytes()
    (tmp_path / "b.parquet").write_text("not parquet at all")
    (tmp_path / "c.parquet").write_bytes(whole[: len(whole) // 2] + whole[-200:])
    columns = [pa.array(["a"]), pa.array(["b"]), pa.array(["x"])]
    pq.write_table(pa.table(columns, names=["s", "s", "label"]), tmp_path / "d.parquet")
    for name, sequence, said in (
        ("a", "s", "no field 's'"),
        ("a", 0, "format parquet needs a field's name"),
        ("b", "text", "not a sound parquet file"),
        ("c", "text", "not a sound parquet file"),
        ("d", "s", r"d\.parquet: column 's' occurs twice; name each"),
    ):
        with pytest.raises(DataError, match=said):
            read(str(tmp_path / f"{name}.parquet"), sequence=sequence)


def test_a_field_of_a_struct_is_found_as_in_jsonl(tmp_path):
    meta = [{"text": "a", "gold": {"y": "x"}}, {"text": "b", "gold": {"y": "z"}}]
    path = write(tmp_path / "a.parquet", {"meta": meta, "other": [1, 2]})
    found = read(path, sequence="meta.text", label="meta.gold.y")
    assert found == [("a", "x"), ("b", "z")]
    path = write(tmp_path / "b.parquet", {"meta.text": ["whole", "b"], "label": ["x", "y"]})
    assert read(path, sequence="meta.text") == [("whole", "x"), ("b", "y")]


TEXT = "x" * 2000
BOMBS: dict[str, Any] = {
    "text": pa.array([TEXT] * 3000).dictionary_encode(),
    "tokens": [[TEXT] * 1000] * 3,
    "features": [[0.0] * 1_000_000, [1.0]],
}


@pytest.mark.parametrize("kind", BOMBS)
def test_what_expands_far_beyond_the_file_is_refused_as_a_bomb(tmp_path, monkeypatch, kind):
    sequences = BOMBS[kind]
    table = pa.table({"s": sequences, "label": ["x"] * len(sequences)})
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, compression="zstd")
    for module in (opening, parquet):
        monkeypatch.setattr(module, "BOMB_FREE_BYTES", 100_000)
        monkeypatch.setattr(module, "BOMB_RATIO", 100)
    assert path.stat().st_size < 30_000
    rows: list[Any] = []
    source = file_source(str(path), "parquet", kind, sequence="s", label="label")
    with pytest.raises(DataError, match=r"100 times"):
        rows.extend(read_examples(source))
    assert sum(sum(map(len, row.sequence)) for row in rows) < 4_000_000
    monkeypatch.setattr(opening, "BOMB_RATIO", 10**6)
    assert len(read(str(path), kind)) == len(sequences)


def save_to_disk(folder: Path, table: pa.Table, shards: int) -> None:
    """Write what Hugging Face's datasets write: streams of arrow, and what they hold."""
    folder.mkdir(parents=True)
    names, size = [], -(-len(table) // shards)
    for number in range(shards):
        names.append(f"data-{number:05}-of-{shards:05}.arrow")
        with pa.ipc.new_stream(folder / names[-1], table.schema) as writer:
            writer.write_table(table.slice(number * size, size), max_chunksize=2)
    state = {"_data_files": [{"filename": name} for name in names], "_fingerprint": "0"}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text("{}")


def of_labels(rows: int) -> pa.Table:
    features = {"label": {"names": ["down", "up"], "_type": "ClassLabel"}}
    words = [f"{'rise' if i % 2 else 'fall'} n{i}" for i in range(rows)]
    table = pa.table({"text": words, "label": [i % 2 for i in range(rows)]})
    told = json.dumps({"info": {"features": features}})
    return table.replace_schema_metadata({"huggingface": told})


def test_a_folder_of_save_to_disk(tmp_path, monkeypatch, cli):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    save_to_disk(Path("ds/train"), of_labels(30), 2)
    save_to_disk(Path("ds/test"), of_labels(10), 1)
    Path("ds/dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    cli("init", "ds", "-o", "c.yaml", "--set", "training.max_epochs=1")
    config = Path("c.yaml").read_text()
    assert "train: ds/train" in config
    assert "test: ds/test" in config
    ended = cli("fit", "c.yaml", "--run-dir", "r")
    assert json.loads(Path("r/test.json").read_text())["labels"] == ["down", "up"]
    rows = cli("predict", "ds/test", "r", "--format", "jsonl").out.splitlines()
    assert len(rows) == 10
    assert "train" in ended.err
    source = file_source("ds/train", "arrow", sequence="text", label="label")
    read_back = [(row.sequence, row.line) for row in read_examples(source)]
    assert read_back[14:16] == [("fall n14", 15), ("rise n15", 1)]
    before = file_source("ds/train", "arrow").digest()
    save_to_disk(Path("other"), of_labels(29), 2)
    assert file_source("other", "arrow").digest() != before
    told = cli("fit", "c.yaml", "--set", "data.train=ds", code=2)
    assert told.problems == ["seqtrain: ds: holds no file .arrow; give one of these: test, train"]


def test_files_of_arrow(tmp_path):
    table, columns = of_labels(5), {"sequence": "text", "label": "label"}
    for name, write_one in (("a", pa.ipc.new_stream), ("b", pa.ipc.new_file)):
        with write_one(tmp_path / f"{name}.arrow", table.schema) as writer:
            writer.write_table(table)
        rows = list(read_examples(file_source(str(tmp_path / f"{name}.arrow"), "arrow", **columns)))
        assert [(row.sequence, only_label(row)) for row in rows[:2]] == [
            ("fall n0", "down"),
            ("rise n1", "up"),
        ]
    whole = (tmp_path / "a.arrow").read_bytes()
    for content in (whole[:-300], b"ARROW1", b"no arrow at all", b""):
        (tmp_path / "a.arrow").write_bytes(content)
        with pytest.raises(DataError, match=r"a\.arrow: (not a sound arrow file|no rows)"):
            list(read_examples(file_source(str(tmp_path / "a.arrow"), "arrow", **columns)))
