"""The data sets that ship with the project hold what their READMEs promise."""

import csv
import re
import subprocess
import sys
import zipfile
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

DATA = Path(__file__).parents[2] / "data"
ORDERS, STROKES, FIRINGS = DATA / "orders", DATA / "strokes", DATA / "firings"
SPLITS = ("train", "validation", "test")


def orders(split: str) -> list[tuple[str, ...]]:
    lines = (ORDERS / f"{split}.tsv").read_bytes().decode().split("\n")
    return [tuple(line.split("\t")) for line in lines[1:-1]]


def words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", text.lower()))


def strokes(split: str) -> tuple[list[npt.NDArray[np.float32]], list[str]]:
    with np.load(STROKES / f"{split}.npz", allow_pickle=False) as arrays:
        pieces = np.split(arrays["values"], arrays["offsets"][1:-1])
        return pieces, arrays["labels"].tolist()


def firings(split: str) -> dict[str, list[dict[str, str]]]:
    """Return the rows of each firing."""
    found: dict[str, list[dict[str, str]]] = defaultdict(list)
    with open(FIRINGS / f"{split}.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found[row["firing"]].append(row)
    return found


def make(folder: Path, into: Path) -> str:
    command = [sys.executable, str(folder / "make.py"), "--into", str(into)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_orders_files_are_plain_tab_separated_text() -> None:
    for split in SPLITS:
        content = (ORDERS / f"{split}.tsv").read_bytes()
        assert content.startswith(b"label\ttext\n")
        assert content.endswith(b"\n")
        assert b"\r" not in content
        assert b'"' not in content
        assert all(len(row) == 2 and all(row) for row in orders(split))


@pytest.mark.parametrize(("split", "per_class"), [("train", 400), ("validation", 50), ("test", 50)])
def test_orders_classes_are_twelve_and_of_one_size(split: str, per_class: int) -> None:
    counts = Counter(label for label, _ in orders(split))
    assert set(counts) == {label for label, _ in orders("train")}
    assert len(counts) == 12
    assert set(counts.values()) == {per_class}


def test_no_order_stands_twice_in_any_split() -> None:
    seen = Counter(words(text) for split in SPLITS for _, text in orders(split))
    assert seen.most_common(1)[0][1] == 1


@pytest.mark.parametrize("split", SPLITS)
def test_every_order_has_a_twin_of_the_same_words_and_another_class(split: str) -> None:
    labels_of_bag: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for label, text in orders(split):
        labels_of_bag[tuple(sorted(words(text)))][label] += 1
    for bag, labels in labels_of_bag.items():
        assert max(labels.values()) * 2 == labels.total(), bag


@pytest.mark.parametrize("features", [CountVectorizer, TfidfVectorizer])
def test_bag_of_words_fails_on_orders(features: type[CountVectorizer]) -> None:
    (labels, texts), (test_labels, test_texts) = (
        zip(*orders(split), strict=True) for split in ("train", "test")
    )
    model = make_pipeline(
        features(token_pattern=r"\w+"), LogisticRegression(max_iter=2000, tol=0.01)
    )
    accuracy = model.fit(texts, labels).score(test_texts, test_labels)
    assert 0.3 < accuracy <= 0.5


def test_orders_are_from_3_to_60_words_long() -> None:
    lengths = [len(words(text)) for split in SPLITS for _, text in orders(split)]
    assert (min(lengths), max(lengths)) == (3, 60)
    assert np.median(lengths) < 20
    assert np.mean(np.array(lengths) > 40) > 0.05


def test_orders_are_made_again_byte_for_byte(tmp_path: Path) -> None:
    printed = make(ORDERS, tmp_path)
    for split in SPLITS:
        name = f"{split}.tsv"
        assert (tmp_path / name).read_bytes() == (ORDERS / name).read_bytes(), name
    assert printed in (ORDERS / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("split", SPLITS)
def test_strokes_are_finite_points_and_pressures_of_8_to_400_steps(split: str) -> None:
    pieces, _ = strokes(split)
    assert {(piece.dtype.name, piece.shape[1]) for piece in pieces} == {("float32", 3)}
    values = np.concatenate(pieces)
    assert np.isfinite(values).all()
    assert np.abs(values[:, :2]).max() < 3
    assert 0 <= values[:, 2].min() < values[:, 2].max() <= 1
    lengths = [len(piece) for piece in pieces]
    assert 8 <= min(lengths) < 10
    assert 390 < max(lengths) <= 400


@pytest.mark.parametrize(("split", "per_class"), [("train", 150), ("validation", 25), ("test", 25)])
def test_strokes_classes_are_eight_and_of_one_size(split: str, per_class: int) -> None:
    counts = Counter(strokes(split)[1])
    assert set(counts) == set(strokes("train")[1])
    assert len(counts) == 8
    assert set(counts.values()) == {per_class}


def test_no_stroke_stands_twice_in_any_split() -> None:
    seen = Counter(piece.tobytes() for split in SPLITS for piece in strokes(split)[0])
    assert seen.most_common(1)[0][1] == 1


def test_circles_turn_the_way_their_class_says() -> None:
    turns = {"circle_clockwise": -1, "circle_anticlockwise": 1}
    for piece, label in zip(*strokes("train"), strict=True):
        if label in turns:
            x, y = (piece[:, :2] - piece[:, :2].mean(axis=0)).T
            enclosed = np.sum(x[:-1] * y[1:] - x[1:] * y[:-1])
            assert np.sign(enclosed) == turns[label], label


def test_spirals_run_the_way_their_class_says() -> None:
    for piece, label in zip(*strokes("train"), strict=True):
        if label.startswith("spiral"):
            fifth = len(piece) // 5 + 1
            centre = piece[-fifth:, :2] if label == "spiral_inward" else piece[:fifth, :2]
            rim = piece[:fifth, :2] if label == "spiral_inward" else piece[-fifth:, :2]
            middle = centre.mean(axis=0)
            inner = np.linalg.norm(centre - middle, axis=1).mean()
            outer = np.linalg.norm(rim - middle, axis=1).mean()
            assert inner < outer, len(piece)


def test_strokes_are_made_again_to_the_last_number(tmp_path: Path) -> None:
    printed = make(STROKES, tmp_path)
    for split in SPLITS:
        name = f"{split}.npz"
        with zipfile.ZipFile(tmp_path / name) as made, zipfile.ZipFile(STROKES / name) as shipped:
            assert (
                made.namelist()
                == shipped.namelist()
                == [
                    "values.npy",
                    "offsets.npy",
                    "labels.npy",
                ]
            )
            for member in made.namelist():
                assert made.read(member) == shipped.read(member), (name, member)
    assert printed in (STROKES / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("split", "per_class"), [("train", 150), ("validation", 30), ("test", 50)])
def test_the_class_of_a_firing_is_what_is_first_done_while_the_kiln_is_hot(
    split: str, per_class: int
) -> None:
    classes = Counter(rows[0]["class"] for rows in firings(split).values())
    assert classes == dict.fromkeys(("vent", "salt", "draw", "none"), per_class)
    for name, rows in firings(split).items():
        decisive = [row for row in rows if row["action"] in classes]
        hot = [row["action"] for row in decisive if int(row["temperature"]) >= 900]
        assert {row["class"] for row in rows} == {(hot or ["none"])[0]}, name
        assert {*Counter(row["action"] for row in decisive).values()} == {2}, name
        assert sorted(rows, key=lambda row: row["time"]) == rows, name


def test_counts_and_quantiles_fail_on_firings() -> None:
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


def test_firings_are_made_again_byte_for_byte(tmp_path: Path) -> None:
    printed = make(FIRINGS, tmp_path)
    for split in SPLITS:
        assert (tmp_path / f"{split}.csv").read_bytes() == (FIRINGS / f"{split}.csv").read_bytes()
    assert printed in (FIRINGS / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("folder", [ORDERS, STROKES, FIRINGS], ids=lambda folder: folder.name)
def test_readme_names_every_class(folder: Path) -> None:
    of_firings = [rows[0]["class"] for rows in firings("train").values()]
    labels = {
        ORDERS: [label for label, _ in orders("train")],
        STROKES: strokes("train")[1],
        FIRINGS: of_firings,
    }[folder]
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert [label for label in set(labels) if f"`{label}`" not in readme] == []


def test_data_sets_stay_small() -> None:
    files = [
        file for folder in (ORDERS, STROKES, FIRINGS) for file in folder.iterdir() if file.is_file()
    ]
    assert sum(file.stat().st_size for file in files) < 3_000_000
