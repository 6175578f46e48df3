"""Random tasks of classification: data of every kind in every format, and settings of a run."""

import csv
import io
import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]
ENDINGS = ("csv", "tsv", "jsonl", "json", "parquet", "xlsx", "arff")
KINDS = ("text", "tokens", "features", "steps")
WORDS = ("the", "a", "some", "and", "then", "éa", "we", "20", "x-y", "don't")
PLACES = ("home", "Café", "a b", "x,y", 'say "so"', "0")
NAMES = ("yes", "no", "may be", "1", "é,y", 'q"q', "#x")
UNKNOWN = ("never seen", "nor this")


@dataclass
class Task:
    """A task: its rows, how they are written, and the settings of a run.

    Attributes:
        seed: Seed of all choices.
        kind: Kind of the sequences.
        classes: The labels that train has.
        multi_label: True if a row has any number of labels.
        rare: True if one of two classes has an eighth of train.
        ending: Ending of the files.
        lists: True if several labels are a JSON list instead of joined by "|".
        marks: True if several labels have a column each, which marks them.
        settings: Lines of the config after the section data.
        data: Keys of the section data beyond the files.
        splits: Rows of the file of each split: sequences, facts and labels.
    """

    seed: int
    kind: str
    classes: tuple[str, ...]
    multi_label: bool
    rare: bool
    ending: str
    lists: bool
    marks: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    splits: dict[str, list[Row]] = field(default_factory=dict)

    def labels(self, split: str) -> list[tuple[str, ...]]:
        """Return the labels of each row of a split."""
        return [row["labels"] for row in self.splits[split]]

    def config(self) -> str:
        """Return the config; JSON is YAML."""
        files = {name: f"{name}.{self.ending}" for name in self.splits}
        return json.dumps({"data": files | self.data, **self.settings}, ensure_ascii=False)

    def write(self, folder: Path, ending: str | None = None) -> None:
        """Write the files of all splits, and c.yaml."""
        for name, rows in self.splits.items():
            path = folder / f"{name}.{ending or self.ending}"
            write_table(path, self.table(rows, path.suffix), random.Random(self.seed))
        (folder / "c.yaml").write_text(self.config())

    def table(self, rows: list[Row], suffix: str) -> list[Row]:
        """Return the rows of a file: a step table has one for each time step."""
        return [self.written(row, suffix) for row in rows] if self.kind != "steps" else [
            {"who": row["id"], "at": at, **step, **row["facts"], **self.label_cell(row, suffix)}
            for row in rows
            for at, step in enumerate(row["s"])
        ]  # fmt: skip

    def written(self, row: Row, suffix: str) -> Row:
        value = row["s"]
        if suffix not in (".jsonl", ".json", ".parquet"):
            value = json.dumps(value) if self.kind == "features" else value
            value = " ".join(value) if self.kind == "tokens" else value
        return {"s": value, **row["facts"], **self.label_cell(row, suffix)}

    def label_cell(self, row: Row, suffix: str) -> Row:
        labels = row["labels"]
        if self.marks:
            yes, no = [("1", "0"), ("true", ""), ("yes", "no")][self.seed % 3]
            yes, no = (True, False) if suffix in (".jsonl", ".json", ".parquet") else (yes, no)
            return {label: yes if label in labels else no for label in self.classes}
        if not self.multi_label:
            return {"l": labels[0]}
        if suffix in (".jsonl", ".json", ".parquet") and self.lists:
            return {"l": list(labels)}
        return {"l": json.dumps(labels) if self.lists else "|".join(labels)}


def random_task(seed: int) -> Task:
    """Return a task that a run of a second can learn in part."""
    draw = random.Random(seed)
    multi_label = draw.random() < 0.5
    rare = not multi_label and draw.random() < 0.5
    classes = tuple(sorted(draw.sample(NAMES, 2 if rare else draw.randint(2, 4))))
    kind = draw.choice(KINDS)
    task = Task(seed, kind, classes, multi_label, rare, draw.choice(ENDINGS), draw.random() < 0.5)
    task.marks = multi_label and seed % 4 == 2
    for name, count in (("train", 160), ("test", 50)) + (("validation", 60),) * draw.choice((0, 1)):
        task.splits[name] = [_row(task, draw, number, name) for number in range(count)]
    task.data = _data_keys(task, draw)
    if "validation" not in task.splits:
        task.data["validation"] = draw.choice([0.3, 0.4])
    task.settings = _settings(task, draw)
    return task


def _row(task: Task, draw: random.Random, number: int, split: str) -> Row:
    """Return a row whose sequence hints at its labels."""
    if task.multi_label:
        labels = tuple(x for x in task.classes if draw.random() < 0.35)
    elif task.rare:
        labels = (task.classes[draw.random() < 0.13],)
    else:
        labels = (draw.choice(task.classes),)
    hints = [task.classes.index(x) for x in labels]
    if split != "train" and draw.random() < 0.04 and not task.marks:
        extra = draw.choice(UNKNOWN)
        labels = (*labels, extra) if task.multi_label else (extra,)
    length = draw.randint(1, 6)
    row: Row = {"labels": labels, "id": f"{split[0]}{number}", "facts": {}}
    if task.kind in ("text", "tokens"):
        words = draw.choices(WORDS, k=length) + [f"w{x}" for x in hints if draw.random() < 0.8]
        draw.shuffle(words)
        row["s"] = " ".join(words) if task.kind == "text" else words
    elif task.kind == "features":
        values = np.array([[draw.gauss(0, 1), draw.gauss(5, 3)] for _ in range(length)])
        for x in hints:
            values[:, x % 2] += (-1) ** (x // 2) * 1.5
        row["s"] = values.round(3).tolist()
    else:
        row["s"] = []
        for _ in range(length):
            place = draw.choice([*PLACES, *(f"p{x}" for x in hints)])
            heat = draw.gauss(100 * PLACES.index(place) if place in PLACES else -50, 3)
            heat += sum(4 * (x + 1) for x in hints)
            row["s"].append({"place": place, "heat": round(heat, 2)})
    if task.seed % 3 == 0:
        row["facts"] = {"land": draw.choice(PLACES), "age": draw.randint(1, 90)}
    return row


def _data_keys(task: Task, draw: random.Random) -> dict[str, Any]:
    keys: dict[str, Any] = {"label": "l"}
    if task.kind == "steps":
        number: Any = draw.choice(["number", {"number": True, "by": "place"}])
        keys |= {"id": "who", "order": "at", "steps": {"place": "token", "heat": number}}
        keys["number_bins"] = draw.choice([None, None, 2, 7])
    else:
        keys |= {"sequence": "s", "kind": task.kind}
    if task.seed % 3 == 0:
        keys["static"] = {"land": "token", "age": "number"}
    if task.marks:
        keys["label"] = [*task.classes]
    elif task.multi_label and not task.lists:
        keys["label_separator"] = "|"
    if task.ending == "json":
        keys["format"] = "jsonl"
    return keys


def _settings(task: Task, draw: random.Random) -> dict[str, Any]:
    model: dict[str, Any] = {
        "embedding_dim": 4,
        "hidden_size": 4,
        "dropout": draw.choice([0.0, 0.3]),
        "embedding_dropout": 0.0,
        "pooling": draw.choice(["last", "mean", "max", ["last", "attention"]]),
        "bidirectional": draw.random() < 0.3,
    }
    if task.kind != "text" and draw.random() < 0.4:
        model["trees"] = True
    if task.kind == "features" and not task.data.get("static") and draw.random() < 0.3:
        model["kernels"] = True
    if task.kind in ("text", "tokens") and draw.random() < 0.4:
        model["ngrams"] = [1, 2]
    if task.kind == "steps" and draw.random() < 0.3:
        model["ngrams"] = {"place": [1, 2]}
    training: dict[str, Any] = {
        "max_epochs": draw.choice([2, 5]),
        "lr": draw.choice([0.003, 0.03]),
        "patience": draw.choice(["auto", 1, None]),
        "min_delta": draw.choice(["auto", 0, 0.05]),
        "monitor": draw.choice(["accuracy", "macro_f1", "loss", "micro_f1", "cohen_kappa"]),
        "calibration": draw.choice(["temperature", "temperature", "none"]),
        "thresholds": draw.choice(["class", "class", "one", "none"]),
        "refit": draw.random() < 0.2,
        "class_weights": draw.choice([None, None, "balanced"]),
    }
    if not task.multi_label:
        training["logit_adjustment"] = draw.choice([0.0, 0.0, 0.3])
        training["label_smoothing"] = draw.choice([0.0, 0.1])
        if training["thresholds"] == "one":
            training["thresholds"] = "class"
    return {
        "seed": task.seed,
        "batching": {"batch_size": draw.choice([8, 16])},
        "model": model,
        "training": training,
    }


def write_table(
    path: Path, table: list[Row], draw: random.Random, *, row_group_size: int = 30
) -> None:
    """Write a table as the ending of the path says, with quotes where they are needed.

    `row_group_size` is the number of rows in each group of a parquet file.
    """
    names = [*table[0]]
    texts = [[str(cell) for cell in row.values()] for row in table]
    if path.suffix == ".jsonl":
        lines = [json.dumps(row, ensure_ascii=draw.random() < 0.5) for row in table]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    elif path.suffix == ".json":
        path.write_text(json.dumps(table), encoding="utf-8")
    elif path.suffix == ".parquet":
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(
            pyarrow.Table.from_pylist(table), path, row_group_size=row_group_size
        )
    elif path.suffix == ".xlsx":
        import openpyxl

        book = openpyxl.Workbook()
        for line in [names, *texts]:
            book.active.append([cell or None for cell in line])
        book.save(path)
    elif path.suffix == ".arff":
        quoted = [
            ["'" + x.replace("\\", "\\\\").replace("'", "\\'") + "'" for x in row]
            for row in [names, *texts]
        ]
        lines = ["@relation r", *(f"@attribute {name} string" for name in quoted[0]), "@data"]
        lines += map(",".join, quoted[1:])
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    else:
        out, is_tsv = io.StringIO(), path.suffix == ".tsv"
        quoting = csv.QUOTE_ALL if is_tsv else draw.choice([csv.QUOTE_ALL, csv.QUOTE_MINIMAL])
        mark, end = "\t" if is_tsv else draw.choice(",;"), draw.choice(["\n", "\r\n"])
        writer = csv.writer(out, delimiter=mark, quoting=quoting, lineterminator=end)
        writer.writerows([names, *texts])
        path.write_bytes(out.getvalue().encode())
