"""Random damaged step tables through `predict`: a row for each id, a label for each good one."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import seqtrain
from tests.helpers.examples import seeds
from tests.helpers.exported import by_script
from tests.helpers.program import conversing
from tests.helpers.step_tables import KINDS, SCHEMA, Step, cells_of, random_table
from tests.helpers.tasks import write_table
from tests.helpers.tiny import ended_in, run_in, tsv_rows
from tests.sequences.test_any_step_files import RAGGED, File, random_files, write

ENDINGS = ("csv", "tsv", "jsonl", "json", "parquet", "xlsx", "arff")
PACKAGES = {"parquet": "pyarrow", "xlsx": "openpyxl"}
Runs = Callable[[str], Path]


def train(folder: Path, kind: str) -> None:
    """Train a run on tables whose order has one type."""
    rows: list[Step] = []
    for number in range(12):
        own = random_table(KINDS.index(kind) + number * len(KINDS))[1]
        rows += [row._replace(who=f"{number} {row.who}") for row in own]
    write_table(folder / "train.csv", cells_of(rows), random.Random(0))
    keys = {key: value for key, value in SCHEMA.items() if key != "kind"}
    config = {
        "data": {"train": "train.csv", "missing": "mask", **keys},
        "batching": {"batch_size": 4},
        "model": {"embedding_dim": 4, "hidden_size": 4},
        "training": {"max_epochs": 1, "lr": 0.05},
    }
    (folder / "c.yaml").write_text(json.dumps(config))
    run_in(folder, "fit", "c.yaml", "--run-dir", "run", "--quiet")
    run_in(folder, "export", "run", "port")


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Runs:
    """A function that returns the folder with `run`, for a type of the order."""
    made: dict[str, Path] = {}

    def of(kind: str) -> Path:
        if kind not in made:
            made[kind] = tmp_path_factory.mktemp("trained")
            train(made[kind], kind)
        return made[kind]

    return of


@pytest.mark.parametrize("seed", seeds(3))
def test_each_id_has_a_row_and_each_good_one_its_label(seed, runs, tmp_path):
    draw = random.Random(seed)
    ending = draw.choice(ENDINGS)
    if ending in PACKAGES:
        pytest.importorskip(PACKAGES[ending])
    file = random_files(seed, tmp_path, ending)[0]
    run = str(runs(file.kind) / "run")
    write(file, draw)
    words = ["--bad-rows", "blank", "--format", "jsonl", "--keep", "who"]
    ended = run_in(tmp_path, "predict", str(file.path), run, *words)
    found = [json.loads(line) for line in ended.out.splitlines()]
    names, bad = [*dict.fromkeys(file.owners())], file.without_labels().bad_ids()
    assert len(found) == len(names), (found, names)
    for name, row in zip(names, found, strict=True):
        assert (row["label"] is None) == (name in bad), (name, row)
        if name not in bad:
            assert row["who"] == name
    unanswered = len(bad & {*names})
    assert (f"{unanswered} " in ended.err) or not unanswered
    good = [x for x, who in zip(file.table(), file.owners(), strict=True) if who not in bad]
    predicted = seqtrain.load(run).predict(good)
    rows = [row for name, row in zip(names, found, strict=True) if name not in bad]
    assert [row["label"] for row in rows] == [each.label for each in predicted]
    shares = [[row["probabilities"][x] for x in predicted.classes] for row in rows]
    np.testing.assert_allclose(shares, predicted.probabilities, rtol=0, atol=2e-6)
    check_stream(file, runs(file.kind), draw, tmp_path)
    check_export(file, runs(file.kind), tmp_path)


def check_export(file: File, folder: Path, out: Path) -> None:
    """The exported script writes the ids and labels of `predict`, and refuses the same rows."""
    found = by_script(folder / "port", str(file.path))
    expected = ended_in(out, "predict", str(file.path), str(folder / "run"), "--keep", "who")
    assert (
        found.code
        == expected.code
        == (2 if file.without_labels().bad_ids() & {*file.owners()} else 0)
    )
    rows, others = tsv_rows(found.out), tsv_rows(expected.out)
    assert [(row["who"], row["label"]) for row in rows] == [(x["who"], x["label"]) for x in others]
    shares = [[float(row["probability"]) for row in each] for each in (rows, others)]
    np.testing.assert_allclose(*shares, rtol=0, atol=1e-5)
    if found.code:
        assert found.err.splitlines()[-1].partition(": ")[2] in expected.err


def check_stream(file: File, folder: Path, draw: random.Random, out: Path) -> None:
    """Rows on standard input whose ids follow one another get the rows of the file."""
    if file.path.suffix not in (".csv", ".jsonl") or any(x in RAGGED for x in file.damage.values()):
        return
    rows = sorted(file.table(), key=lambda row: row["who"])
    path = out / f"sorted{file.path.suffix}"
    write_table(path, rows, draw)
    words = ["predict", str(path), str(folder / "run"), "--bad-rows", "blank", "--format", "jsonl"]
    expected = run_in(out, *words).out
    words[1] = "-"
    words += ["--input-format", path.suffix[1:]]
    with conversing(out, *words) as (running, stdin, stdout):
        stdin.write(path.read_bytes())
        stdin.close()
        found = stdout.read().decode()
        assert running.end() == 0, running.err
    assert_rows_agree(found.splitlines(), expected.splitlines())


def assert_rows_agree(found: list[str], expected: list[str]) -> None:
    """Rows of JSON agree if their numbers are equal but for the rounding of other batches."""
    shares: list[list[float]] = [[], []]
    rows: list[list[dict[str, object]]] = [[], []]
    for lines, own, numbers in zip((found, expected), rows, shares, strict=True):
        for row in map(json.loads, lines):
            numbers += [row.pop("probability") or 0.0, *(row.pop("probabilities") or {}).values()]
            own.append(row)
    assert rows[0] == rows[1]
    np.testing.assert_allclose(*shares, rtol=0, atol=2e-6)
