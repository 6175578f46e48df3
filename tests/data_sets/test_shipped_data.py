"""The data sets that ship with the project fulfil the promises of their READMEs.

What `make.py` prints of them, such as lengths, stands in the READMEs as it is printed.
"""

import csv
import subprocess
import sys
import zipfile
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

DATA = Path(__file__).parents[2] / "data"
ORDERS, _, FIRINGS = SETS = [DATA / name for name in ("orders", "strokes", "firings")]
SPLITS = ("train", "validation", "test")
every_set = pytest.mark.parametrize("folder", SETS, ids=lambda folder: folder.name)


def orders(split: str) -> list[tuple[str, ...]]:
    lines = (ORDERS / f"{split}.tsv").read_bytes().decode().split("\n")
    return [tuple(line.split("\t")) for line in lines[1:-1]]


def firings(split: str) -> dict[str, list[dict[str, str]]]:
    """Return the rows of each firing."""
    found: dict[str, list[dict[str, str]]] = defaultdict(list)
    with open(FIRINGS / f"{split}.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found[row["firing"]].append(row)
    return found


def content(path: Path) -> dict[str, bytes]:
    """Return the bytes of a file, or of the members of an archive, whose times change."""
    if path.suffix != ".npz":
        return {"": path.read_bytes()}
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@every_set
def test_they_are_made_again_byte_for_byte(folder, tmp_path):
    command = [sys.executable, str(folder / "make.py"), "--into", str(tmp_path)]
    made = subprocess.run(command, check=True, capture_output=True, text=True)
    assert {path.stem for path in tmp_path.iterdir()} == {*SPLITS}
    for path in tmp_path.iterdir():
        assert content(path) == content(folder / path.name), path.name
    assert made.stdout in (folder / "README.md").read_text(encoding="utf-8")


def test_bag_of_words_fails_on_orders():
    (classes, texts), (test_classes, test_texts) = (
        zip(*orders(split), strict=True) for split in ("train", "test")
    )
    regression = LogisticRegression(max_iter=2000, tol=0.01)
    model = make_pipeline(CountVectorizer(token_pattern=r"\w+"), regression).fit(texts, classes)
    assert 0.3 < model.score(test_texts, test_classes) <= 0.5


@pytest.mark.parametrize("split", SPLITS)
def test_the_class_of_a_firing_is_what_is_first_done_while_the_kiln_is_hot(split):
    for name, rows in firings(split).items():
        decisive = [row for row in rows if row["action"] in ("vent", "salt", "draw")]
        hot = [row["action"] for row in decisive if int(row["temperature"]) >= 900]
        assert {row["class"] for row in rows} == {(hot or ["none"])[0]}, name
        assert {*Counter(row["action"] for row in decisive).values()} == {2}, name
        assert sorted(rows, key=lambda row: row["time"]) == rows, name


def test_counts_and_quantiles_fail_on_firings():
    def summarize(split: str) -> tuple[list[list[float]], list[str]]:
        rows = list(firings(split).values())
        degrees = [[int(row["temperature"]) for row in each] for each in rows]
        actions = [Counter(row["action"] for row in each) for each in rows]
        names = sorted(set().union(*actions))
        features = [
            [*(float(found[name]) for name in names), *np.quantile(temperatures, np.arange(9) / 8)]
            for found, temperatures in zip(actions, degrees, strict=True)
        ]
        return features, [each[0]["class"] for each in rows]

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    assert model.fit(*summarize("train")).score(*summarize("test")) < 0.4
