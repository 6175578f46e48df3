"""Rows that are time steps become sequences: the rows of one id, in their order."""

import random
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqtrain.config import parse_config
from seqtrain.errors import DataError
from seqtrain.sequences.dataset import prepare
from seqtrain.sequences.examples import Example
from tests.helpers.reading import (
    Given,
    completed,
    file_source,
    only_label,
    read_examples,
    read_rows,
    schema_of,
    table_given,
)
from tests.helpers.tables import Row, write_rows

STEPS = {"place": "token", "heat": "number", "since": "order"}
COLUMNS = {"kind": "steps", "id": "id", "label": "l", "order": "t", "steps": STEPS}


def source_at(path: Path, **keys: Any) -> Given:
    return file_source(str(path), **{"format": path.suffix[1:], **COLUMNS, **keys})


def read(path: Path, *, labelled: bool = True, **keys: Any) -> list[Example]:
    return list(read_rows(source_at(path, **keys), labelled=labelled))


def content(example: Example) -> tuple[Any, ...]:
    assert example.problem is None
    steps, facts = example.sequence, example.static
    beside = (
        None if facts is None else (tuple(map(tuple, facts.token_texts())), facts.numbers.tolist())
    )
    columns = tuple(map(tuple, steps.token_texts()))
    return example.id, only_label(example), columns, steps.numbers.tolist(), beside


def steps_of(*rows: tuple[Any, ...]) -> list[Row]:
    return [dict(zip(("id", "t", "place", "heat", "l"), row, strict=True)) for row in rows]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_ids_are_equal_by_value_and_shown_as_first_written(tmp_path: Path, ending: str) -> None:
    ids = ["4.0", " 7 ", "4", "07", "7", "TRUE", "true"]
    rows = steps_of(*((id, time, "x", 1.0, "a") for time, id in enumerate(ids)))
    found = read(write_rows(tmp_path / f"a.{ending}", rows))
    sizes = {x.id: len(x.sequence) for x in found}
    assert sizes == {"4.0": 2, "7": 2, "07": 1, "TRUE": 2}


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_missing_cells_are_unknown_tokens_and_missing_numbers(ending: str, tmp_path: Path) -> None:
    rows = steps_of(("i", 1, None, 1.5, "x"), ("i", 2, "a", None, "x"))
    (found,) = read(write_rows(tmp_path / f"a.{ending}", rows))
    steps = found.sequence
    assert steps.token_texts()[0] == ["<unk>", "a"]
    assert np.array_equal(steps.numbers, [[1.5, 0], [np.nan, 1]], equal_nan=True)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_token_is_the_same_in_every_format(ending: str, tmp_path: Path) -> None:
    """As text pandas writes True, and 2.0 where a number is missing in the column."""
    kinds: list[list[Any]] = [[True, False], [2.0, 3.0], [2, 3], ["007", "1.10"]]
    expected = [["true", "false"], ["2", "3"], ["2", "3"], ["007", "1.10"]]
    for cells, tokens in zip(kinds, expected, strict=True):
        rows = steps_of(*(("i", n, cell, 1, "x") for n, cell in enumerate(cells)))
        (found,) = read(write_rows(tmp_path / f"a.{ending}", rows))
        assert found.sequence.token_texts()[0] == tokens


@pytest.mark.parametrize(
    ("times", "order_type"), [((1, 2), "number"), ((datetime.min, datetime.max), "date")]
)
def test_decimals_are_numbers_and_times_dates(times: Any, order_type: str, tmp_path: Path) -> None:
    heats = (Decimal("-0.037"), Decimal("2.000"))
    rows = steps_of(*((1, time, "a", x, "x") for time, x in zip(times, heats, strict=True)))
    (found,) = read(path := write_rows(tmp_path / "a.parquet", rows))
    assert found.sequence.numbers[:, 0].tolist() == pytest.approx([-0.037, 2])
    assert completed(source_at(path)).order_type == order_type


def test_ids_are_texts_whatever_their_type_in_json(tmp_path: Path) -> None:
    rows = steps_of(*((x, 1, "a", 1, x is True or 1) for x in (1, "1", 1.0, -1, -2, True, 1)))
    found = read(write_rows(tmp_path / "a.jsonl", rows), static={"l": "token"})
    assert [x.id for x in found] == ["1", "-1", "-2", "true"]
    assert [x.static and x.static.token_texts() for x in found] == [[["1"]]] * 3 + [[["true"]]]


@pytest.mark.parametrize("quoted", [False, True])
def test_a_bad_row_makes_its_id_bad_and_a_blank_line_is_skipped(
    quoted: bool, tmp_path: Path
) -> None:
    mark = '"' if quoted else ""
    lines = ["id,t,place,heat,l", f"i,1,{mark}a{mark},1,x", "i,2,,2,x", "i,3,b", "i,4,c,4,x", ""]
    lines += ["j,1,d,5,y", ""]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    found = read(tmp_path / "a.csv")
    assert [(x.id, x.line, x.problem) for x in found] == [
        ("i", 4, "expected 5 fields as in the first row, found 3"),
        ("j", 7, None),
    ]
    assert content(found[1])[2:4] == ((("d",),), [[5, 0]])


def test_one_row_of_an_id_has_its_label_and_blanks_around_ids_count_not(tmp_path: Path) -> None:
    rows = steps_of(("i", 1, "a", 1, "x"), (" i ", 2, "b", 1, None), ("j", 1, "c", 1, ""))
    one, other = read(write_rows(tmp_path / "a.csv", rows))
    assert (only_label(one), len(one.sequence)) == ("x", 2)
    assert (other.line, other.problem) == (4, "the label is blank")


def test_any_row_of_an_id_can_have_its_labels(tmp_path: Path) -> None:
    rows = steps_of(("i", 1, "a", 1, ""), ("i", 2, "b", 1, "y|x"), ("j", 1, "c", 1, ""))
    found = read(write_rows(tmp_path / "a.csv", rows), label_separator="|")
    assert [[*x.labels] for x in found] == [["x", "y"], []]


def test_bad_cells_are_named_in_the_order_of_their_lines(tmp_path: Path) -> None:
    rows = [("i", 1, "a", 1, "x"), ("j", 1, "a", "hot", "x"), ("i", 2, "a", [1], "x")]
    rows += [("k", 1, "a", 1, None), ("j", 2, "a", 1, "x"), ("i", 3, "a", 1, "x")]
    path = write_rows(tmp_path / "a.jsonl", steps_of(*rows))
    with pytest.raises(DataError) as caught:
        list(read_examples(source_at(path)))
    assert [problem.removeprefix(f"{path}:")[0] for problem in caught.value.problems] == [*"234"]


def test_labels_that_change_within_an_id_play_no_part_in_prediction(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,place,l\na,p,x\na,q,y\n")
    schema: dict[str, Any] = {"id": "id", "steps": {"place": "token"}, "label": "l"}
    source = file_source(str(tmp_path / "a.csv"), "csv", "steps", **schema)
    (labelled,), (unlabelled,) = read_rows(source), read_rows(source, labelled=False)
    assert labelled.problem is not None
    assert unlabelled.sequence.token_texts()[0] == ["p", "q"]


SMALL: dict[str, Any] = {
    "kind": "steps", "id": "id", "label": "l",
    "steps": {"place": "token"}, "static": {"land": "token"},
}  # fmt: skip


@pytest.mark.parametrize("column", ["id", "place", "land"])
@pytest.mark.parametrize("cell", [["p"], {"p": 1}, b"\xff"])
def test_a_cell_that_is_no_text_and_no_number_is_a_bad_row(cell: Any, column: str) -> None:
    rows = [{"id": x, "place": "p", "land": "q", "l": x} for x in "abc"]
    rows[1] |= {column: cell}
    found = [*read_rows(table_given(rows, schema_of(**SMALL)))]
    assert [x.id for x in found if x.problem is None] == ["a", "c"]
    assert all(f"{column}: " in x.problem for x in found if x.problem is not None)


@pytest.mark.parametrize("library", ["dict", "pandas", "polars", "pyarrow", "parquet"])
def test_bytes_are_read_as_text(library: str, tmp_path: Path) -> None:
    table: Any = {name: ["é".encode()] for name in ("id", "place", "land", "l")}
    if library in ("pyarrow", "parquet"):
        table = pytest.importorskip("pyarrow").table(table)
    elif library != "dict":
        table = pytest.importorskip(library).DataFrame(table)
    source: Any = None
    if library == "parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "a.parquet")
        source = file_source(str(tmp_path / "a.parquet"), "parquet", **SMALL)
    (found,) = read_rows(source or table_given(table, schema_of(**SMALL)))
    assert (found.id, found.labels, found.problem) == ("é", ("é",), None)
    assert [x.token_texts()[0] for x in (found.sequence, found.static)] == [["é"], ["é"]]


@pytest.mark.parametrize("shape", ["in order", "shuffled"])
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_an_id_in_several_columns_is_that_of_a_column_that_joins_them(
    tmp_path: Path, ending: str, shape: str
) -> None:
    """A list of one column is this column. Blanks and cells with commas are told apart."""
    draw = random.Random(f"{ending} {shape}")
    owners, numbers = ["a", "ab", "a b", "7.0"], [0, 1, 2, 30]
    if ending != "csv":  # which is written here without quotes
        owners += ["a,0", 'q"']
    rows = []
    for owner in owners:
        for number in numbers:
            label = draw.choice("uv")
            for t in range(draw.randint(1, 4)):
                whole = f"{owner}|{number}"
                own = {"whole": whole, "who": owner, "nr": number, "t": t, "l": label}
                rows.append({**own, "place": draw.choice("xyz"), "heat": draw.random()})
    if shape == "shuffled":
        draw.shuffle(rows)
    path = write_rows(tmp_path / f"a.{ending}", rows)
    expected = [content(x)[1:] for x in read(path, id="whole")]
    assert [content(x)[1:] for x in read(path, id=("who", "nr"))] == expected
    assert [content(x)[1:] for x in read(path, id=("whole",))] == expected
    found = [x.id for x in read(path, id=("nr", "who"))]
    assert len(set(found)) == len(owners) * len(numbers)
    windows = {"window": {"steps": 2, "label": "last"}}
    expected = [content(x)[1:] for x in read(path, id="whole", **windows)]
    assert [content(x)[1:] for x in read(path, id=("who", "nr"), **windows)] == expected


def test_an_id_that_is_blank_in_one_of_its_columns_is_refused(tmp_path: Path) -> None:
    rows = steps_of(("a", 0, "x", 1.0, "u"), ("", 1, "x", 1.0, "u"), ("b", 0, "x", 1.0, "v"))
    rows = [{**row, "nr": nr} for row, nr in zip(rows, ["1", "1", " "], strict=True)]
    found = read(write_rows(tmp_path / "a.csv", rows), id=("id", "nr"))
    problems = [x.problem for x in found]
    assert problems[0] is None
    assert all("blank" in str(problem) for problem in problems[1:])


def test_row_features_and_weights_beside_the_columns_of_a_series(tmp_path):
    """A row feature is no time step, and a weight has the decimal mark of the file."""
    lines = [f"{'uv'[i % 2]};{30 + i};0,5;1,0;2,5;{i}" for i in range(20)]
    path = tmp_path / "a.csv"
    path.write_text("label;age;weight;t0;t1;t2\n" + "\n".join(lines) + "\n")
    config = parse_config(
        f"data: {{train: {path}, kind: features, label: label, static: {{age: number}}, "
        "weight: weight, decimal: ','}\n"
    )
    train = prepare(config).splits["train"]
    assert set(train.lengths.tolist()) == {3}
    assert train.weights is not None
    assert train.weights.tolist() == [0.5] * 20
