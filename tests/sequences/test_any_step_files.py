"""Random step tables in several damaged files: ids with a bad row are bad, the others whole."""

import csv
import random
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from seqtrain.config import config_from_mapping
from seqtrain.errors import DataError
from seqtrain.sequences.dataset import PreparedData, prepare
from tests.helpers.examples import seeds
from tests.helpers.reading import file_source, read_rows
from tests.helpers.step_tables import (
    LAST_DAY,
    SCHEMA,
    Step,
    assert_equal,
    cells_of,
    content,
    expected,
    random_table,
)
from tests.helpers.tasks import write_table

CELLS: dict[str, dict[str, str]] = {
    "number": {"heat": "hot"},
    "large": {"heat": "1e39"},
    "infinite": {"heat": "-inf"},
    "order": {"at": "soon"},
    "blank order": {"at": ""},
    "label": {"l": "another"},
    "row feature": {"land": "elsewhere"},
    "number of the row": {"age": "4"},
    "blank id": {"who": ""},
}
"""Damages of cells of a row."""
EQUAL = ("l", "land", "age")
"""Columns whose cells are equal in all rows of an id."""
RAGGED = {"csv": ("short", "long"), "tsv": ("short", "long"), "arff": ("short", "long"),
          "jsonl": ("cut",)}  # fmt: skip
"""Damages of a line by the ending of the file. A line that is cut has no id."""
PACKAGES = {"parquet": "pyarrow", "xlsx": "openpyxl"}


class File(NamedTuple):
    """A file: its type of the order, the rows of its table, and the damage of some by row."""

    path: Path
    kind: str
    rows: list[Step]
    damage: dict[int, str]

    def table(self) -> list[dict[str, Any]]:
        """Return the rows with their damaged cells."""
        rows = enumerate(cells_of(self.rows))
        return [row | CELLS.get(self.damage.get(number, ""), {}) for number, row in rows]

    def owners(self) -> list[str]:
        """Return the id to which each row belongs. A cut row belongs to its neighbour's."""
        found: list[str | None] = []
        for number, row in enumerate(self.table()):
            before = found[-1] if found else None
            found.append(before if self.damage.get(number) == "cut" else row["who"])
        first = next(x for x in found if x is not None)
        return [first if x is None else x for x in found]

    def bad_ids(self) -> set[str]:
        """Return the ids that can't be used."""
        owners, cells = self.owners(), dict[tuple[str, str], set[str]]()
        soft = ("label", "row feature", "number of the row")
        bad = {owners[i] for i, kind in self.damage.items() if kind not in soft} | {""}
        for name, row in zip(owners, self.table(), strict=True):
            for column in EQUAL:
                cells.setdefault((name, column), set()).add(row[column])
        return bad | {name for (name, _), found in cells.items() if len(found) > 1}

    def without_labels(self) -> "File":
        """Return the file without the damage of its labels."""
        return self._replace(damage={i: x for i, x in self.damage.items() if x != "label"})

    def good(self, bad: set[str]) -> list[tuple[Any, ...]]:
        """Return what is read of the ids that aren't bad."""
        values = {"l": "label", "land": "land", "age": "age"}
        rows = [
            row._replace(**{values[x]: cells[x] for x in EQUAL})
            for row, cells in zip(self.rows, self.table(), strict=True)
        ]
        owners = self.owners()
        return expected(
            self.kind, [x for x, who in zip(rows, owners, strict=True) if who not in bad]
        )


def random_files(seed: int, folder: Path, ending: str) -> list[File]:
    """Return damaged files of a table, each with two good ids. Some ids are in two files."""
    draw = random.Random(seed)
    kind, rows = random_table(seed)
    count = draw.randint(1, 3)
    home = {row.who: draw.randrange(count) for row in rows}
    parts: list[list[Step]] = [[] for _ in range(count)]
    for row in rows:
        parts[(home[row.who] + (draw.random() < 0.06)) % count].append(row)
    kinds, files, share = (
        (*CELLS, *RAGGED.get(ending, ())),
        list[File](),
        draw.choice([0, 0.05, 0.2]),
    )
    for number, part in enumerate(parts):
        sample = next((row for row in rows if row.moment == LAST_DAY), rows[0])
        whole = [sample._replace(who=f"good {number}{x}", label=x) for x in "xy"]
        part = [*part, *whole] if draw.random() < 0.5 else [*whole, *part]
        damage = {
            i: draw.choice(kinds)
            for i, row in enumerate(part)
            if not row.who.startswith("good") and draw.random() < share
        }
        files.append(File(folder / f"{number}.{ending}", kind, part, damage))
    return files


def write(file: File, draw: random.Random) -> None:
    """Write a file with its damage."""
    table = file.table()
    if file.path.suffix == ".parquet" and len({type(row["at"]) for row in table}) > 1:
        table = [row | {"at": str(row["at"])} for row in table]
    write_table(file.path, table, draw, row_group_size=3)
    ending = file.path.suffix[1:]
    ragged = {number: x for number, x in file.damage.items() if x not in CELLS}
    if ragged:
        lines = file.path.read_bytes().decode().splitlines(keepends=True)
        first = len(lines) - len(file.rows)
        for number, kind in ragged.items():
            lines[first + number] = ragged_line(lines[first + number], kind, ending)
        file.path.write_bytes("".join(lines).encode())


def ragged_line(line: str, kind: str, ending: str) -> str:
    """Return a line with more or fewer fields, or cut within a field."""
    text = line.rstrip("\r\n")
    end, quote = line[len(text) :], "'" if ending == "arff" else '"'
    if kind == "cut":
        return text[: len(text) // 2] + end
    mark = "\t" if ending == "tsv" else ","
    if ending == "csv" and len(next(csv.reader([text], delimiter=";"))) == len(Step._fields) - 1:
        mark = ";"
    if kind == "long":
        return f"{text}{mark}{quote}x{quote}{end}"
    return text[: text.rindex(mark + (quote if text.endswith(quote) else ""))] + end


def prepared(files: list[File], bad_rows: str) -> PreparedData:
    schema = {key: value for key, value in SCHEMA.items() if key != "kind"}
    form = {"format": "jsonl"} if files[0].path.suffix == ".json" else {}
    data: dict[str, Any] = {"bad_rows": bad_rows, "missing": "mask", **schema, **form}
    data["train"] = [str(file.path) for file in files]
    return prepare(config_from_mapping({"data": data}))


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "json", "parquet", "xlsx", "arff"])
def test_ids_with_a_bad_row_are_left_out_and_others_are_whole(ending, tmp_path):
    if ending in PACKAGES:
        pytest.importorskip(PACKAGES[ending])
    for seed in seeds(7):
        files, draw = random_files(seed, tmp_path, ending), random.Random(seed)
        for file in files:
            write(file, draw)
        check_each(files, seed)
        check_all(files, seed)


def check_each(files: list[File], seed: int) -> None:
    """Each file is read as if it were the only one, with its labels and without."""
    for file in files:
        form = "jsonl" if file.path.suffix == ".json" else file.path.suffix[1:]
        names, bad = file.owners(), file.bad_ids()
        for bad_rows, is_labelled in (("drop", True), ("blank", False)):
            source = file_source(str(file.path), form, bad_rows=bad_rows, **SCHEMA)
            found = list(read_rows(source, labelled=is_labelled))
            assert [x.id or "" for x in found] == [*dict.fromkeys(names)], seed
            wrong = {x.id or "" for x in found if x.problem is not None}
            expected_wrong = bad if is_labelled else file.without_labels().bad_ids()
            assert wrong == expected_wrong & {*names}, (seed, [x.problem for x in found])
            good = [content(x) for x in found if (x.id or "") not in bad]
            wanted = file.good(bad)
            if not is_labelled:
                wanted = [(name, None, *others) for name, _, *others in wanted]
            assert_equal(good, wanted, (seed, file.path, bad_rows))


def check_all(files: list[File], seed: int) -> None:
    """All files together are the training data."""
    places = Counter(name for file in files for name in {*file.owners()})
    bad = {name for name, count in places.items() if count > 1}.union(*(x.bad_ids() for x in files))
    wanted = [row for file in files for row in file.good(bad)]
    if bad & places.keys():
        with pytest.raises(DataError):
            prepared(files, "error")
    data = prepared(files, "drop")
    train, report = data.splits["train"], data.reports["train"]
    labels = [data.preprocessing.labels[number] for number in train.labels]
    assert labels == [label for _, (label,), *_ in wanted], seed
    assert train.lengths.tolist() == [len(numbers) for *_, numbers, _ in wanted], seed
    in_files = sum(len({*file.owners()} & bad) for file in files)
    assert (report.rows, report.unreadable) == (len(wanted), in_files), seed
