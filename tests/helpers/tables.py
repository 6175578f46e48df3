"""Tables with a row per time step: their rows, and files of them in each format."""

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Row = dict[str, Any]

CONFIG = """\
data:
  train: train.csv
  validation: 0.2
  test: test.csv
  id: visit
  order: time
  label: who
  steps: {place: token, mood: {token: true, min_count: 2}, heat: number, since: order}
  static: {country: token, age: number}
batching: {batch_size: 8}
model: {embedding_dim: 6, hidden_size: 5, dropout: 0.2}
training: {max_epochs: 2, patience: null, lr: 0.02, schedule: constant}
"""


def table(count: int, seed: int) -> list[Row]:
    """Return the rows of so many visits, each in the order of its times, of 2 to 5 steps."""
    draw, rows = random.Random(seed), list[Row]()
    for number in range(count):
        who, time = draw.choice(["ann", "bob"]), draw.randrange(1000)
        country, age = draw.choice("xy"), draw.randrange(20, 60)
        for _ in range(draw.randrange(2, 6)):
            place = draw.choice(["cafe", "home", "park", "work"][2 * (who == "bob") :][:3])
            heat = round(draw.gauss(1 if who == "ann" else -1, 1), 3)
            rows.append(
                {"visit": f"v{number}", "time": time, "place": place, "mood": draw.choice("abc"),
                 "heat": heat, "country": country, "age": age, "who": who}
            )  # fmt: skip
            time += draw.randrange(1, 500)
    return rows


def write_rows(path: Path, rows: Iterable[Row]) -> Path:
    """Write rows as the file's ending says."""
    rows = list(rows)
    if path.suffix == ".parquet":
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        mark = "\t" if path.suffix == ".tsv" else ","
        cells = [["" if x is None else str(x) for x in row.values()] for row in rows]
        path.write_text("".join(mark.join(line) + "\n" for line in [list(rows[0]), *cells]))
    return path


def shuffled(rows: list[Row], seed: int = 0) -> list[Row]:
    """Return rows in another order, as where ids come back."""
    return random.Random(seed).sample(rows, len(rows))


def write_table_project(folder: Path) -> None:
    write_rows(folder / "train.csv", table(60, seed=1))
    write_rows(folder / "test.csv", table(30, seed=2))
    (folder / "c.yaml").write_text(CONFIG)
