"""Time that `init` takes, samples of large files, and lines about what takes long."""

import gzip
import os
import random
import subprocess
import sys
import time
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from seqtrain.config import parse_config
from seqtrain.proposal import InitOptions, propose, sampling
from seqtrain.proposal.columns import ColumnProfile, profile_blocks
from seqtrain.proposal.naive_bayes import (
    character_ngrams,
    naive_bayes_error,
    token_ngrams,
    word_ngrams,
)
from seqtrain.proposal.reading_progress import ReadingProgress
from seqtrain.proposal.tables import find_columns
from seqtrain.sequences.readers import parquet


def seconds(path: Path) -> float:
    began = time.process_time()
    propose([str(path)], InitOptions())
    return time.process_time() - began


def test_time_is_linear_in_the_columns(tmp_path):
    """Four times as many columns take about four times as long, not sixteen times."""
    draw, taken = random.Random(0), []
    for width in (150, 600):
        names = [
            f"c{'abcdefghij'[i % 10]}{'klmnopqrst'[i // 10 % 10]}x{i // 100}" for i in range(width)
        ]
        names = [name.replace("x", "uvwxyz"[i % 6]) for i, name in enumerate(names)]
        lines = [",".join(["case", *names, "label"])]
        for row in range(240):
            cells = [draw.choice("abc") if i % 3 else "xyz"[row // 6 % 3] for i in range(width)]
            lines.append(",".join([f"p{row // 6}", *cells, "ab"[row // 6 % 2]]))
        path = tmp_path / f"{width}.csv"
        path.write_text("\n".join(lines) + "\n")
        taken.append(seconds(path))
    assert taken[1] < 9 * taken[0]


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_a_large_file_is_looked_at_in_blocks_spread_over_it(tmp_path, monkeypatch, ending):
    """The file is sorted by label, so that its beginning has one label only."""
    monkeypatch.setattr(sampling, "MOST_ROWS", 2000)
    lines = ["label,text", *(f'{"abcd"[i // 5000]},"some words, {i}"' for i in range(20_000))]
    content = ("\n".join(lines) + "\n").encode()
    path = tmp_path / f"a.{ending}"
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    proposal = propose([str(path)], InitOptions())
    config = parse_config(proposal.text)
    assert any("of 20,001 lines" in line for line in proposal.uses)
    assert "4 classes" in proposal.text
    assert (config.data.train, config.data.label) == (str(path), "label")
    assert config.data.validation == 0.1
    about = int(proposal.text.partition("# about ")[2].partition(" rows")[0].replace(",", ""))
    assert abs(about - 20_000) < 500
    monkeypatch.setattr(sampling, "MOST_ROWS", 20_000)
    assert not any("lines" in line for line in propose([str(path)], InitOptions()).uses)


def write_rows(path: Path, rows: list[tuple[str, str]]) -> str:
    """Write labelled texts in the form that the name of the path tells, and return the path."""
    if path.suffix == ".parquet":
        arrow, writer = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        labels, texts = zip(*rows, strict=True)
        writer.write_table(arrow.table({"label": labels, "text": texts}), path, row_group_size=300)
    elif path.suffix == ".npz":
        series = np.array([[len(text) / 3, *range(7)] for _, text in rows], dtype=np.float32)
        np.savez(path, X=series, y=np.array([label for label, _ in rows]))
    else:
        for number, (label, text) in enumerate(rows):
            folder = path / label
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{number}.txt").write_text(text)
    return str(path)


@pytest.mark.parametrize("name", ["a.parquet", "a.npz", "folder"])
def test_inputs_of_a_known_number_of_rows_are_sampled_by_rows(tmp_path, monkeypatch, name):
    """The rows are sorted by label, so that a sample of their beginning has one label only."""
    monkeypatch.setattr(sampling, "MOST_ROWS", 1000)
    monkeypatch.setattr(parquet, "ROWS", 5)
    total = 1600
    path = write_rows(
        tmp_path / name, [("abcd"[4 * i // total], f"some words {i}") for i in range(total)]
    )
    proposal = propose([path], InitOptions())
    (note,) = [line for line in proposal.uses if line.startswith("looked at")]
    read = int(note.split()[2].replace(",", ""))
    assert f"of {total:,} rows" in note
    assert 900 <= read <= 1100
    assert "4 classes" in proposal.text
    assert f"# about {total:,} rows" in proposal.text
    monkeypatch.setattr(sampling, "MOST_ROWS", total)
    assert not any("looked at" in line for line in propose([path], InitOptions()).uses)


def test_long_steps_are_reported():
    lines: list[str] = []
    progress = ReadingProgress(lines.append)
    progress.step("reading a.csv")
    for number in progress.rows(range(4000)):
        if number == 2000:
            time.sleep(1.1)
    assert lines == ["reading a.csv: 2,048 rows so far"]


def test_init_does_not_import_torch(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("label,text\n" + "".join(f"{'ab'[i % 2]},some words {i}\n" for i in range(60)))
    script = (
        "import sys; from seqtrain.proposal import InitOptions, propose;"
        f"propose([{str(path)!r}], InitOptions()); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, env=dict(os.environ))


def slow_naive_bayes_error(rows: list[tuple[list[str], str]]) -> float:
    """Return the error of multinomial naive Bayes, computed feature by feature."""
    learned = [row for number, row in enumerate(rows) if number % 4]
    known = {feature for features, _ in learned for feature in features}
    wrong = []
    for features, label in rows[::4]:
        scores = {}
        for name in dict.fromkeys(name for _, name in learned):
            own = [feature for found, other in learned for feature in found if other == name]
            total = len(own) + 0.1 * len(known)
            prior = np.log(sum(other == name for _, other in learned))
            scores[name] = prior + sum(
                np.log((own.count(feature) + 0.1) / total)
                for feature in features
                if feature in known
            )
        if label in scores:
            wrong.append(max(scores, key=scores.__getitem__) != label)
    return float(np.mean(wrong))


def test_naive_bayes_in_arrays_equals_its_definition():
    draw = random.Random(0)
    texts = [
        "".join(draw.choices("abc d", weights=[1 + i % 2, 1, 1, 1, 1], k=12)) for i in range(60)
    ]
    labels = ["xyz"[i % 2 + (i % 5 == 0)] for i in range(60)]
    words = [text.split() for text in texts]
    pairs = [[*w, *pairwise(w)] for w in words]
    assert naive_bayes_error(token_ngrams(words, 2), labels) == pytest.approx(
        slow_naive_bayes_error([*zip(pairs, labels, strict=True)])  # type: ignore[list-item]
    )
    assert naive_bayes_error(word_ngrams(texts), labels) == naive_bayes_error(
        token_ngrams(words, 2), labels
    )
    grams = [[t[i : i + n] for n in (1, 2, 3) for i in range(len(t) - n + 1)] for t in texts]
    assert naive_bayes_error(character_ngrams(texts, 3), labels) == pytest.approx(
        slow_naive_bayes_error([*zip(grams, labels, strict=True)])
    )


def test_the_cells_of_all_blocks_are_kept():
    (profile,) = profile_blocks({"n": [*range(at, at + 1000)]} for at in range(0, 10_000, 1000))
    assert profile.cells == [str(number) for number in range(10_000)]


CELLS = [
    "",
    " ",
    "NA",
    "3",
    " 4",
    "2.50",
    "1e3",
    "-7",
    "nan",
    "12345678901234567",
    "word",
    "Ökonom",
]
CELLS += [
    "a longer text",
    "a text with a blank end ",
    "two\nlines of text",
    "2024-03-01",
    "€3",
    "0,5",
]
CELLS += ["y" * 81, "[1, 2, 3]", '["a", "b"]', "٣", "1_000", "café au lait", "9:30", "PT12M30.5S"]


@pytest.mark.parametrize("seed", range(8))
def test_a_block_of_cells_counts_as_its_cells_one_by_one(seed):
    """Cells that are plainly texts, and numbers, are counted together where a block has many."""
    draw = random.Random(seed)
    numbers = [f"{draw.choice(['', '-', ' '])}{draw.random() * 99:.{i % 3}f}" for i in range(60)]
    pools = [numbers, [*numbers, *CELLS], CELLS, [*numbers, ""], [f"name {i}" for i in range(60)]]
    cells = draw.choices(pools[seed % len(pools)], k=300)
    block, single = ColumnProfile("a"), ColumnProfile("a")
    block.add(cells)
    for cell in cells:
        single.add([cell])
    assert block.roughness == pytest.approx(single.roughness)
    block.roughness = single.roughness
    assert asdict(block) == asdict(single)


@pytest.mark.parametrize("label", ["a", "", "[1]", " "])
def test_rows_are_counted_by_columns_as_by_the_reader(tmp_path, label):
    path = tmp_path / "a.csv"
    rows = [f"{'ab'[i % 2]},some words {i}, and {i % 7}" for i in range(50)]
    rows[7:9] = [f"{label},a text,more", "b, , "]
    path.write_text("\n".join(["label,text,more", *rows]) + "\n")
    options = InitOptions(label=["label"], sequence=["text", "more"])
    found = find_columns(str(path), "csv", "utf-8", options, ReadingProgress())
    by_columns, by_reader = found.count_columns(), found.count_files([str(path)], ReadingProgress())
    assert by_columns == (None if label == "[1]" else by_reader)
