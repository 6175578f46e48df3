"""Damaged rows of tables whose rows are time steps: their ids are bad, and no others."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqtrain.sequences.readers import read_rows
from tests.helpers.reading import file_source

KEYS: dict[str, Any] = {
    "kind": "steps",
    "id": "id",
    "label": "l",
    "order": "t",
    "steps": {"place": "token", "heat": "number"},
}
CELLS = {"good": "1.5", "missing": "", "bad": "hot"}
RAGGED = ("short", "long")


class Row(NamedTuple):
    """A row of a table: its id, its time, and the kind of its damage."""

    id: str
    time: int
    kind: str


ROWS = st.lists(
    st.builds(
        Row,
        st.sampled_from("abcd"),
        st.integers(0, 9),
        st.sampled_from(["good"] * 6 + ["missing", "bad", *RAGGED]),
    ),
    min_size=1,
    max_size=14,
)


def written(row: Row, number: int, format: str) -> str:
    cells = [row.id, str(row.time), f"p{number}", CELLS.get(row.kind, "1"), f"label {row.id}"]
    if format == "jsonl":
        named = dict(zip(["id", "t", "place", "heat", "l"], cells, strict=True))
        if row.kind == "short":
            del named["heat"], named["l"]
        return json.dumps(named) if row.kind != "long" else json.dumps(named)[:-5]
    cells = cells[:3] if row.kind == "short" else [*cells, "x"] if row.kind == "long" else cells
    return {"csv": ",", "tsv": "\t"}[format].join(cells)


def owners(rows: Sequence[Row], format: str) -> list[str]:
    """Return the id to which each row belongs. A row without an id has that of the row before."""
    found: list[str | None] = []
    for row in rows:
        is_unknown = format == "jsonl" and row.kind == "long"
        found.append((found[-1] if found else None) if is_unknown else row.id)
    first = next((each for each in found if each is not None), None)
    return [str(each or first or "") for each in found]


@pytest.mark.parametrize("format", ["csv", "tsv", "jsonl"])
@settings(deadline=None)
@given(rows=ROWS, is_sorted=st.booleans())
def test_ids_with_a_damaged_row_are_bad_and_the_others_are_whole(
    format, rows, is_sorted, tmp_path_factory
):
    if is_sorted:
        rows = sorted(rows, key=lambda row: row.id)
    path: Path = tmp_path_factory.mktemp("a") / f"a.{format}"
    lines = [written(row, number, format) for number, row in enumerate(rows)]
    head = {"csv": "id,t,place,heat,l", "tsv": "id\tt\tplace\theat\tl", "jsonl": ""}[format]
    path.write_text("\n".join([*([head] if head else []), *lines, ""]))
    ids = owners(rows, format)
    for bad_rows in ("drop", "blank"):
        source = file_source(str(path), format, bad_rows=bad_rows, **KEYS)
        found = list(read_rows(source, labelled=bad_rows == "drop"))
        assert [x.id or "" for x in found] == [*dict.fromkeys(ids)]
        for example in found:
            own = [i for i, name in enumerate(ids) if name == (example.id or "")]
            is_bad = any(rows[i].kind in ("bad", *RAGGED) for i in own)
            assert (example.problem is not None) == is_bad
            if not is_bad:
                order = sorted(own, key=lambda i: rows[i].time)
                assert [*example.sequence.tokens[0]] == [f"p{i}" for i in order]
                assert example.labels == (f"label {example.id}",)


@pytest.mark.parametrize("kinds", [["good", "short", "good"], ["short", "good", "short"]])
def test_an_id_that_only_damaged_rows_interrupt_is_one_sequence(kinds, tmp_path):
    rows = [Row(name, 0, kind) for name, kind in zip("aba", kinds, strict=True)]
    lines = [written(row, number, "csv") for number, row in enumerate(rows)]
    (tmp_path / "a.csv").write_text("\n".join(["id,t,place,heat,l", *lines, ""]))
    source = file_source(str(tmp_path / "a.csv"), "csv", bad_rows="drop", **KEYS)
    found = {x.id: x.problem is None for x in read_rows(source)}
    assert found == {"a": kinds[0] == "good", "b": kinds[1] == "good"}
    assert len(list(read_rows(source))) == 2


def test_many_ids_are_the_same_however_their_rows_are_mixed(tmp_path):
    draw = random.Random(1)
    rows = [Row(f"i{n % 97}", n, "good") for n in range(2000)]
    contents = []
    for mixed in (False, True):
        own = draw.sample(rows, len(rows)) if mixed else sorted(rows, key=lambda row: row.id)
        lines = [written(row, row.time, "csv") for row in own]
        path = tmp_path / f"{mixed}.csv"
        path.write_text("\n".join(["id,t,place,heat,l", *lines, ""]))
        found = read_rows(file_source(str(path), "csv", **KEYS))
        contents.append({x.id: [*x.sequence.tokens[0]] for x in found})
    assert contents[0] == contents[1]
    assert len(contents[0]) == 97
