"""Random, damaged tables through `init`, `data` and `fit`: done, or refused in words."""

import random
from pathlib import Path

import pytest

from tests.helpers.examples import seeds
from tests.helpers.step_tables import cells_of, random_table
from tests.helpers.tasks import random_task, write_table
from tests.helpers.tiny import ended_in, run_in
from tests.sequences import test_any_labels as labels
from tests.sequences.test_any_step_files import random_files, write

ENDINGS = ("csv", "tsv", "jsonl", "json", "parquet", "xlsx", "arff")
PACKAGES = {".parquet": "pyarrow", ".xlsx": "openpyxl"}
SMALL = ("training.max_epochs=1", "model.hidden_size=4", "model.embedding_dim=4",
         "model.max_ngrams=50")  # fmt: skip


def many_ids(draw: random.Random, seed: int) -> list[dict[str, str]]:
    """Return a step table of enough ids, some of whose columns are left out."""
    rows = []
    for number in range(draw.choice([3, 12, 40])):
        own = random_table(seed % 7 + 7 * number)[1]
        rows += cells_of([row._replace(who=f"{number} {row.who}") for row in own])
    names = draw.sample([*rows[0]], draw.randint(3, len(rows[0])))
    return [{name: row[name] for name in names} for row in rows]


def random_file(seed: int, folder: Path) -> tuple[str, list[str]]:
    """Write a table of any kind; return its name, and options that may help to read it."""
    draw = random.Random(seed)
    ending, given = draw.choice(ENDINGS), ["--label", "l"]
    if ending in ("csv", "tsv", "xlsx") and draw.random() < 0.8:
        given.append("--header")
    path = folder / f"a.{ending}"
    kind = draw.choice(["steps", "steps", "damaged", "task", "labels"])
    if kind == "steps":
        table = many_ids(draw, seed)
        for option, name in (("--id", "who"), ("--order", "at")):
            given += [option, name] if name in table[0] and draw.random() < 0.7 else []
        given = given if "l" in table[0] else ["--label", "land"]
        write_table(path, table, draw)
    elif kind == "damaged":
        file = random_files(seed, folder, ending)[0]
        write(file, draw)
        return file.path.name, [*given, "--id", "who"]
    elif kind == "task":
        task = random_task(seed)
        task.write(folder, ending)
        (folder / "c.yaml").unlink()
        names = [*task.classes] if task.marks else ["l"]
        given = [word for name in names for word in ("--label", name)] + given[2:]
        return f"train.{ending}", given
    else:
        rows = labels.random_rows(draw, "[,")
        form = draw.choice(["list", "columns", "separator"])
        if form == "columns":
            table = labels.by_columns(draw, rows, ending)
            given = [x for name in [*table[0]][1:] for x in ("--label", name)] + given[2:]
        elif form == "list":
            table = labels.by_list(draw, rows, ending)
        else:
            table = labels.by_separator(draw, rows, ",")
        write_table(path, table * 4, draw)
    return path.name, given if draw.random() < 0.9 else []


@pytest.mark.parametrize("seed", seeds(3))
def test_init_proposes_what_can_be_trained_or_says_why_not(seed, tmp_path):
    name, given = random_file(seed, tmp_path)
    package = PACKAGES.get(Path(name).suffix)
    if package is not None:
        pytest.importorskip(package)
    ended = ended_in(tmp_path, "init", name, "--output", "c.yaml", *given)
    assert ended.code in (0, 2), ended.err
    assert "Traceback" not in ended.err
    if ended.code:
        lines = ended.err.splitlines()
        assert all(len(line) < 400 and ": ;" not in line for line in lines), ended.err
        return
    ended = ended_in(tmp_path, "data", "c.yaml")
    assert ended.code in (0, 2), ended.err
    sets = [word for each in SMALL for word in ("--set", each)]
    ended = ended_in(tmp_path, "fit", "c.yaml", "--run-dir", "run", "--quiet", *sets)
    assert ended.code in (0, 2), ended.err
    if ended.code == 0:
        run_in(tmp_path, "predict", name, "run", "--bad-rows", "blank", "-o", "p.csv")
