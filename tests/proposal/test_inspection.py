"""Inspection of files by `seqtrain init`: columns, header, delimiter, kind of sequence."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seqtrain.cli.init_commands import default_name
from seqtrain.config import Config, parse_config
from seqtrain.errors import DataError
from seqtrain.proposal import InitOptions, propose
from seqtrain.proposal.family import family_of

WORDS = ["the", "cat", "sat", "on", "a", "mat", "saw", "one", "old", "dog", "near", "our", "house"]
Make = Callable[[random.Random], str]


def sentence(draw: random.Random) -> str:
    return " ".join(draw.choices(WORDS, k=draw.randint(4, 12)))


def labelled(make: Make = sentence, rows: int = 60) -> list[tuple[str, str]]:
    """Return (label, sequence) pairs; the label occurs in the sequence only by chance."""
    draw = random.Random(0)
    return [(("pos", "neg", "so so")[n % 3], make(draw)) for n in range(rows)]


def write(path: Path, lines: list[str]) -> Config:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return parse_config(propose([str(path)], InitOptions()).text)


PAIRS = labelled()
COMMAS = [(label, text.replace("cat", "cat, too")) for label, text in PAIRS]
COLUMNS: dict[str, tuple[list[str], Any, Any]] = {  # lines of a file, its label and its sequence
    "a header": (
        ["id,stars,review", *(f"{n},{label},{text}" for n, (label, text) in enumerate(PAIRS))],
        *("stars", "review"),
    ),
    **{mark: ([mark.join(pair) for pair in COMMAS], 0, 1) for mark in ";\t|"},
    "the label last": ([";".join(pair[::-1]) for pair in COMMAS], 1, 0),
    "Excel": (["sep=;", "text;label", *(f"{y};{x}" for x, y in PAIRS)], "label", "text"),
    "a title and a body": (
        ["label,title,description", *(f"{x},{y},{y} again" for x, y in PAIRS)],
        *("label", ["title", "description"]),
    ),
    "objects within": (
        [json.dumps({"meta": {"class": x, "n": 1}, "doc": {"text": y}}) for x, y in PAIRS],
        *("meta.class", "doc.text"),
    ),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_which_column_is_what(tmp_path, name):
    lines, label, sequence = COLUMNS[name]
    config = write(tmp_path / ("a.jsonl" if lines[0].startswith("{") else "a.csv"), lines)
    assert (config.data.label, config.data.sequence) == (label, sequence)
    assert (config.data.header, config.data.delimiter) == ("auto", "auto")
    assert (config.data.kind, config.data.tokenizer) == ("text", "word")


def dna(draw: random.Random) -> str:
    return "".join(draw.choices("ACGT", k=draw.randint(60, 90)))


def name(draw: random.Random) -> str:
    return "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(3, 9))).title()


def chinese(draw: random.Random) -> str:
    return "".join(draw.choices("的一是不了人我在有他这为之大来以个中上们", k=draw.randint(4, 20)))


def clicks(draw: random.Random) -> str:
    pages = [f"view:{page}/{number}" for page in ("home", "cart") for number in range(3)]
    return " ".join(draw.choices(pages, k=draw.randint(4, 12)))


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (dna, ("text", "char", 16)),
        (name, ("text", "char", 16)),
        (chinese, ("text", "char", 16)),
        (clicks, ("tokens", "word", 16)),
    ],
)
def test_what_a_text_is_made_of(tmp_path, make, expected):
    rows = [f"{label}\t{text}" for label, text in labelled(make)]
    config = write(tmp_path / "a.tsv", ["label\ttext", *rows])
    found = config.data.kind, config.data.tokenizer, config.batching.batch_size
    assert found == expected
    assert (config.model.convolutions is not None) == (make is dna)


@pytest.mark.parametrize(
    "first",
    ["가", "ก", "ក", "က", "བ", "\ua98f", "\u1b05", "\u1bc0", "\U00011305", "\U0001b170", "ｱ"],
)
def test_scripts_without_spaces_between_words_are_characters(first):
    """Hangul, Thai, Khmer, Burmese, Tibetan, Javanese, Balinese, Batak, Grantha, Nüshu, kana."""
    draw = random.Random(0)
    letters = [chr(ord(first) + n) for n in range(7)]
    texts = [" ".join("".join(draw.choices(letters, k=6)) for _ in range(5)) for _ in range(40)]
    assert family_of(texts).name == "characters"


@pytest.mark.parametrize("first", ["अ", "త", "ա", "አ"])
def test_scripts_with_spaces_between_words_can_be_words(first):
    draw = random.Random(0)
    words = ["".join(draw.choices([chr(ord(first) + n) for n in range(5)], k=4)) for _ in range(30)]
    texts = [" ".join(draw.choices(words, k=8)) for _ in range(200)]
    assert family_of(texts).name == "words"


def test_words_that_only_characters_tell_apart(tmp_path):
    """Words never come again, their endings do: as languages whose sentences differ."""
    draw = random.Random(0)

    def words(ending: str) -> str:
        return " ".join("".join(draw.choices("abcdefghij", k=6)) + ending for _ in range(8))

    rows = [f"{end}\t{words(end)}" for _ in range(80) for end in ("ski", "tzu")]
    assert write(tmp_path / "a.tsv", ["label\ttext", *rows]).data.tokenizer == "char"


@pytest.mark.parametrize("share", [0.5, 0.05])
def test_key_words_among_other_words_are_words(tmp_path, share):
    draw = random.Random(0)
    vocabulary = ["".join(draw.choices("abcdefghij", k=draw.randint(3, 8))) for _ in range(300)]
    rows = []
    for _ in range(1200):
        words = draw.choices(vocabulary, k=12)
        label = "yes" if draw.random() < share else "no"
        if label == "yes":
            words.insert(draw.randrange(12), "alarm")
        rows.append(f"{label}\t{' '.join(words)}")
    assert write(tmp_path / "a.tsv", ["label\ttext", *rows]).data.tokenizer == "word"


TWO_LABELS = [f"{label}\t{label}:{n % 5}\t{t}" for n, (label, t) in enumerate(labelled())]


@pytest.mark.parametrize(
    ("file", "lines", "said"),
    [
        ("a.csv", [], "no rows"),
        ("a.csv", ["only one column", "a", "b"], "one column"),
        ("a.csv", ["label,text", *[f"same,{text}" for _, text in labelled()]], "one label"),
        ("a.csv", ["1.5,2.5,3.5,4.5", *["0.5,1.5,2.5,3.5"] * 9], "label="),
        ("a.tsv", ["coarse\tfine\ttext", *TWO_LABELS], r"(?s)label=.*coarse.*label=.*fine"),
        ("a.txt", ["some words", "", "more words"], "no labels: no line has a tab"),
        ("a.txt", ["up\tsome words", "more words"], r"a\.txt:2: no tab"),
    ],
)
def test_what_is_not_clear_is_said(tmp_path, file, lines, said):
    with pytest.raises(DataError, match=said):
        write(tmp_path / file, lines)


def test_labels_of_one_row_each_are_refused(tmp_path):
    rows = tmp_path / "a.csv"
    rows.write_text("text,label\n" + "".join(f"some words {n},{n % 2}\n" for n in range(9)))
    with pytest.raises(DataError, match=r"9 rows.*label="):
        propose([str(rows)], InitOptions(label="text", sequence=["label"]))


def test_folders_of_a_file_and_of_a_folder_per_class(tmp_path):
    one, each = tmp_path / "one", tmp_path / "each"
    for n, label in enumerate(("spam", "ham", "eggs")):
        (each / label).mkdir(parents=True)
        (each / label / "1.txt").write_text("one line\nanother\n")
        (each / label / "2.txt").write_text("one line\n")
        one.mkdir(exist_ok=True)
        (one / f"{n}.txt").write_text("one line\n")
    with pytest.raises(DataError, match="each file is a class"):
        propose([str(one)], InitOptions())
    for n in range(3):
        (one / f"{n}.txt").write_text("one line\n" * 2)
    assert "3 classes: a file each" in propose([str(one)], InitOptions()).text
    assert "6 rows, 3 classes: a folder each" in propose([str(each)], InitOptions()).text


def test_a_folder_of_numbered_files_is_a_class_and_no_data(tmp_path):
    (tmp_path / "walk").mkdir()
    for n in range(11):
        path = tmp_path / "walk" / f"{n:03d}.txt"
        path.write_text("one line\n" * 3)
    said = r"one file per class, 000, 001 and 9 more; did you mean its parent\?"
    with pytest.raises(DataError, match=said):
        propose([str(tmp_path / "walk")], InitOptions())
    for path in (tmp_path / "walk").iterdir():
        path.rename(path.with_stem(f"run_{path.stem}"))
    doubts = propose([str(tmp_path / "walk")], InitOptions()).warnings
    assert "give its parent" in doubts[0]


def test_files_that_belong_together(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number, labels in enumerate(["ab", "bc"]):
        rows = "".join(f"{labels[i % 2]},text of row {i} w{i}\n" for i in range(40))
        Path(f"part-{number}.csv").write_text("label,text\n" + rows)
    Path("dev-1.csv").write_text("label,text\nc,some text\na,other text\n")
    listed = propose(["part-0.csv", "part-1.csv", "dev-1.csv"], InitOptions()).text
    config = parse_config(listed, "listed")
    assert config.data.train == ["part-0.csv", "part-1.csv"]
    assert config.data.validation == "dev-1.csv"
    assert "80 rows, 3 classes" in listed
    config = parse_config(propose(["part-*.csv"], InitOptions()).text, "pattern")
    assert (config.data.train, config.data.label) == ("part-*.csv", "label")
    with pytest.raises(DataError, match=r"^train: "):
        propose(["q*.csv"], InitOptions())
    with pytest.raises(DataError, match=r"'part-0\.csv'.*'other\.csv'"):
        propose(["part-0.csv", "other.csv"], InitOptions())


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ("some/reviews-*.csv.gz", "reviews"),
        ("reviews.csv", "reviews"),
        ("reviews[0-9]?.csv", "reviews"),
        ("some/reviews_[abc].csv", "reviews"),
        ("reviews/*.csv", "reviews"),
        ("some/reviews/*/**/*.csv.gz", "reviews"),
        ("reviews/", "reviews"),
        ("*/*.csv", "config"),
        ("../*", "config"),
    ],
)
def test_the_config_is_named_after_the_data(data, name):
    assert default_name(data) == f"{name}.yaml"
