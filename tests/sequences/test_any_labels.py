"""Random sets of labels in every format and way of writing them: always the sets as given."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqtrain.config import config_from_mapping
from seqtrain.sequences.dataset import prepare
from tests.helpers.examples import seeds
from tests.helpers.reading import file_source, read_rows, schema_of, table_given
from tests.helpers.tasks import write_table

POOL = ("yes", "no", "may be", "1", "0.5", "[x]", "é,y", 'q"q', "#x", "a;b", "NA", "true", "{}",
        "it's", "-", "a|b", "2024-01-31", "0,5", "\\n", "%")  # fmt: skip
SEPARATORS = ("|", ";", ",", "||", " / ", "\t")
ENDINGS = ("csv", "tsv", "jsonl", "json", "parquet", "xlsx", "arff")
MARKS = {True: ("1", "true", "yes", "TRUE", "1.0", " 1 "), False: ("0", "false", "No", "", "0.0")}
Labels = tuple[str, ...]


def random_rows(draw: random.Random, avoided: str = "") -> list[Labels]:
    """Return the labels of each row, sorted; none of them contains any character of a text."""
    pool = [x for x in POOL if not {*avoided} & {*x}]
    own = draw.sample(pool, min(len(pool), draw.randint(2, 6)))
    rows = [tuple(sorted(draw.sample(own, draw.randint(0, 3) % (len(own) + 1)))) for _ in range(12)]
    return [*rows, tuple(sorted(own)), (own[0],), (), (own[1],)]


def by_separator(draw: random.Random, rows: list[Labels], mark: str) -> list[dict[str, Any]]:
    gap = draw.choice(["", "", " "])
    return [{"s": f"w{i}", "l": f"{gap}{mark}{gap}".join(row)} for i, row in enumerate(rows)]


def by_list(draw: random.Random, rows: list[Labels], ending: str) -> list[dict[str, Any]]:
    """Return rows with lists of labels, which are JSON in files of text."""
    own = [draw.sample(row, len(row)) + [*row[:1]] * draw.randint(0, 1) for row in rows]
    if ending not in ("jsonl", "json", "parquet"):
        form: dict[str, Any] = {"ensure_ascii": draw.random() < 0.5}
        return [{"s": f"w{i}", "l": json.dumps(row, **form)} for i, row in enumerate(own)]
    return [{"s": f"w{i}", "l": row} for i, row in enumerate(own)]


def by_columns(draw: random.Random, rows: list[Labels], ending: str) -> list[dict[str, Any]]:
    """Return rows with a column of marks for each label."""
    names = sorted({label for row in rows for label in row})
    found = []
    for i, row in enumerate(rows):
        marks: dict[str, Any] = {x: draw.choice(MARKS[x in row]) for x in names}
        if ending in ("jsonl", "json"):
            marks = {x: draw.choice([x in row, int(x in row)]) for x in names}
        if ending == "parquet":
            marks = {x: x in row for x in names}
        found.append({"s": f"w{i}", **marks})
    return found


def need(ending: str) -> None:
    """Skip the test if the package for a format isn't installed."""
    package = {"parquet": "pyarrow", "xlsx": "openpyxl"}.get(ending)
    if package is not None:
        pytest.importorskip(package)


def check(path: Path, rows: list[Labels], where: Any, **schema: Any) -> None:
    """Compare what is read, and what a config's data hold, with the labels that were given."""
    form = path.suffix[1:].replace("json", "jsonl").replace("jsonll", "jsonl")
    found = list(read_rows(file_source(str(path), form, sequence="s", **schema)))
    assert [x.problem for x in found] == [None] * len(found), where
    assert [x.labels for x in found] == rows, where
    own = {"label": schema.pop("one_hot", None) or schema.get("label")}
    data = {"train": str(path), "sequence": "s", "kind": "tokens", "format": form, **schema, **own}
    prepared = prepare(config_from_mapping({"data": data}))
    classes = prepared.preprocessing.labels
    assert [*classes] == sorted({label for row in rows for label in row}), where
    marks = prepared.splits["train"].labels
    assert marks.dtype == np.int8
    decoded = [tuple(x for x, yes in zip(classes, row, strict=True) if yes == 1) for row in marks]
    assert decoded == rows, where


@pytest.mark.parametrize("ending", ENDINGS)
def test_labels_are_joined_by_a_separator(ending, tmp_path):
    need(ending)
    for seed in seeds(3):
        draw = random.Random(seed)
        mark = draw.choice([x for x in SEPARATORS if x != "\t" or ending not in ("tsv", "xlsx")])
        # A text that begins with [ or { may be a list, so it isn't one of joined labels.
        rows = random_rows(draw, mark.strip() + "[{")
        write_table(tmp_path / f"a.{ending}", by_separator(draw, rows, mark), draw)
        check(tmp_path / f"a.{ending}", rows, (seed, mark), label="l", label_separator=mark)


@pytest.mark.parametrize("ending", ENDINGS)
def test_labels_are_lists(ending, tmp_path):
    need(ending)
    for seed in seeds(3):
        draw = random.Random(seed)
        rows = random_rows(draw)
        write_table(tmp_path / f"a.{ending}", by_list(draw, rows, ending), draw)
        check(tmp_path / f"a.{ending}", rows, seed, label="l")


@pytest.mark.parametrize("ending", ENDINGS)
def test_labels_have_a_column_each(ending, tmp_path):
    need(ending)
    for seed in seeds(3):
        draw = random.Random(seed)
        rows = random_rows(draw)
        write_table(tmp_path / f"a.{ending}", by_columns(draw, rows, ending), draw)
        names = sorted({label for row in rows for label in row})
        check(tmp_path / f"a.{ending}", rows, seed, one_hot=draw.sample(names, len(names)))


def test_labels_begin_the_lines_of_fasttext(tmp_path):
    for seed in seeds(3):
        draw = random.Random(seed)
        rows = random_rows(draw, " \t")
        lines = [
            " ".join([*(f"__label__{x}" for x in draw.sample(row, len(row))), f"w{i}"])
            for i, row in enumerate(rows)
        ]
        (tmp_path / "a.ft").write_text("\n".join(lines) + "\n")
        source = file_source(str(tmp_path / "a.ft"), "fasttext", label_separator=" ")
        assert [x.labels for x in read_rows(source)] == rows, seed


FORMS: dict[str, Callable[[Labels], Any]] = {
    "lists": list,
    "tuples": tuple,
    "arrays": lambda row: np.array(row, dtype=object),
    "texts": lambda row: np.array(row, dtype=str),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("library", ["dict", "records", "pandas", "polars", "pyarrow"])
def test_tables_in_memory_hold_lists(library, form):
    for seed in seeds(3):
        rows = random_rows(random.Random(seed))
        make = list if library in ("polars", "pyarrow") else FORMS[form]
        columns = {"s": [f"w{i}" for i in range(len(rows))], "l": [make(row) for row in rows]}
        data: Any = columns
        if library == "records":
            data = [{"s": s, "l": own} for s, own in zip(*columns.values(), strict=True)]
        elif library == "pyarrow":
            data = pytest.importorskip("pyarrow").table(columns)
        elif library != "dict":
            data = pytest.importorskip(library).DataFrame(columns)
        found = list(read_rows(table_given(data, schema_of(sequence="s", label="l"))))
        assert [x.labels for x in found] == rows, seed
