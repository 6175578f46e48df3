"""What `seqtrain init` sees in a file: columns, header, delimiter, kind of sequence."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from seqtrain.errors import DataError
from seqtrain.proposal import Wishes, propose
from seqtrain.proposal.contents import Facts, inspect

WORDS = [
    *("the", "cat", "sat", "on", "a", "mat", "and", "saw", "one", "old", "dog", "near", "our"),
    *("house", "by", "night"),
]
Make = Callable[[random.Random], str]


def sentence(draw: random.Random) -> str:
    return " ".join(draw.choices(WORDS, k=draw.randint(4, 12)))


def labelled(make: Make = sentence, rows: int = 60) -> list[tuple[str, str]]:
    """Return (label, sequence) pairs, the label repeated in the sequence by chance alone."""
    draw = random.Random(0)
    return [(("pos", "neg", "so so")[n % 3], make(draw)) for n in range(rows)]


def write(path: Path, lines: list[str]) -> Facts:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return inspect([str(path)], Wishes())


def test_csv_with_header(tmp_path: Path) -> None:
    rows = [f"{n},{label},{text}" for n, (label, text) in enumerate(labelled())]
    facts = write(tmp_path / "a.csv", ["id,stars,review", *rows])
    assert (facts.reading.label, facts.reading.sequence) == ("stars", "review")
    assert facts.reading.header == "auto"
    assert facts.rows == 60
    assert facts.family == "words"


@pytest.mark.parametrize("label_first", [True, False])
@pytest.mark.parametrize(("mark", "name"), [(";", "semicolon"), ("\t", "tab"), ("|", "pipe")])
def test_csv_without_header_by_other_marks(
    tmp_path: Path, mark: str, name: str, label_first: bool
) -> None:
    pairs = [(label, text.replace("cat", "cat, too")) for label, text in labelled()]
    rows = [mark.join(pair if label_first else pair[::-1]) for pair in pairs]
    facts = write(tmp_path / "a.csv", rows)
    assert facts.reading.delimiter == name
    assert facts.reading.header == "auto"
    assert facts.rows == 60
    assert (facts.reading.label, facts.reading.sequence) == ((0, 1) if label_first else (1, 0))


def test_excel_says_what_separates(tmp_path: Path) -> None:
    rows = [f"{text};{label}" for label, text in labelled()]
    facts = write(tmp_path / "a.csv", ["sep=;", "text;label", *rows])
    assert (facts.reading.label, facts.reading.sequence) == ("label", "text")
    assert facts.rows == 60


def test_title_and_body_are_joined(tmp_path: Path) -> None:
    rows = [f"{label},{text},{text} again" for label, text in labelled()]
    facts = write(tmp_path / "a.csv", ["label,title,description", *rows])
    assert facts.reading.sequence == ["title", "description"]


def test_two_possible_labels_are_asked_for(tmp_path: Path) -> None:
    rows = [f"{label}\t{label}:{n % 5}\t{t}" for n, (label, t) in enumerate(labelled())]
    with pytest.raises(DataError, match=r"coarse.*fine.*--label COLUMN"):
        write(tmp_path / "a.tsv", ["coarse\tfine\ttext", *rows])


def test_nested_json(tmp_path: Path) -> None:
    rows = [
        json.dumps({"meta": {"class": label, "n": n}, "doc": {"text": text}})
        for n, (label, text) in enumerate(labelled())
    ]
    facts = write(tmp_path / "a.jsonl", rows)
    assert (facts.reading.label, facts.reading.sequence) == ("meta.class", "doc.text")


def test_json_lists(tmp_path: Path) -> None:
    symbols = [json.dumps({"y": y, "events": t.split()}) for y, t in labelled()]
    assert write(tmp_path / "a.jsonl", symbols).family == "symbols"
    vectors = [json.dumps({"y": y, "v": [[1.0, 2.0]] * len(t)}) for y, t in labelled()]
    facts = write(tmp_path / "b.jsonl", vectors)
    assert (facts.family, facts.channels) == ("channels", 2)
    numbers = [json.dumps({"y": y, "v": [1.5] * len(t)}) for y, t in labelled()]
    assert write(tmp_path / "c.jsonl", numbers).family == "series"


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
    [(dna, "alphabet"), (name, "characters"), (chinese, "characters"), (clicks, "symbols")],
)
def test_what_a_text_is_made_of(tmp_path: Path, make: Make, expected: str) -> None:
    rows = [f"{label}\t{text}" for label, text in labelled(make)]
    assert write(tmp_path / "a.tsv", ["label\ttext", *rows]).family == expected


def test_words_that_only_characters_tell_apart(tmp_path: Path) -> None:
    """Words never come again, their endings do: as languages whose sentences differ."""
    draw = random.Random(0)

    def word(ending: str) -> str:
        return "".join(draw.choices("abcdefghijklmnop", k=6)) + ending

    rows = [
        f"{e}\t{' '.join(word(e) for _ in range(8))}" for _ in range(80) for e in ("ski", "tzu")
    ]
    assert write(tmp_path / "a.tsv", ["label\ttext", *rows]).family == "characters"


def test_folder_and_fasttext(tmp_path: Path) -> None:
    for n, (label, text) in enumerate(labelled()):
        (tmp_path / "docs" / label).mkdir(parents=True, exist_ok=True)
        (tmp_path / "docs" / label / f"{n}.txt").write_text(text)
    assert inspect([str(tmp_path / "docs")], Wishes()).rows == 60
    lines = [f"__label__{label.replace(' ', '_')} {text}" for label, text in labelled()]
    assert write(tmp_path / "a.txt", lines).reading.format == "fasttext"


def test_npz_of_symbols_and_of_vectors(tmp_path: Path) -> None:
    offsets, labels = np.arange(0, 101, 10), np.arange(10) % 2
    for values, expected in ((np.arange(100) % 7, "symbols"), (np.ones((100, 3)) / 3, "channels")):
        np.savez(tmp_path / "a.npz", values=values, offsets=offsets, labels=labels)
        assert inspect([str(tmp_path / "a.npz")], Wishes()).family == expected


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "no rows"),
        (["only one column", "a", "b"], "one column"),
        (["label,text", *[f"same,{text}" for _, text in labelled()]], "--label"),
        (["1.5,2.5,3.5,4.5", *["0.5,1.5,2.5,3.5"] * 9], "--label"),
    ],
)
def test_what_cannot_be_told_is_said(tmp_path: Path, lines: list[str], said: str) -> None:
    with pytest.raises(DataError, match=said):
        write(tmp_path / "a.csv", lines)


def test_a_text_without_labels_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no labels: no line has a tab") as refused:
        write(tmp_path / "a.txt", ["some words", "", "more words"])
    assert len(refused.value.problems) == 1
    with pytest.raises(DataError, match=r"a\.txt:2: no tab"):
        write(tmp_path / "a.txt", ["up\tsome words", "more words"])


def test_labels_of_one_row_each_are_refused(tmp_path: Path) -> None:
    rows = tmp_path / "a.csv"
    rows.write_text("text,label\n" + "".join(f"some words {n},{n % 2}\n" for n in range(9)))
    with pytest.raises(DataError, match=r"each of 9 rows has a label of its own.*--label names"):
        propose([str(rows)], Wishes(label="text", sequence=["label"]))
    folder = tmp_path / "documents"
    folder.mkdir()
    for n in range(3):
        (folder / f"{n}.txt").write_text("one line\n")
    with pytest.raises(DataError, match="each file is a class here; give each class a folder"):
        propose([str(folder)], Wishes())
    for n in range(3):
        (folder / f"{n}.txt").write_text("one line\n" * 2)
    assert "3 classes: a file each, a row per line" in propose([str(folder)], Wishes())


def test_of_a_folder_per_class_each_file_is_a_row(tmp_path: Path) -> None:
    for name in ("spam", "ham"):
        (tmp_path / name).mkdir()
        for n in range(4):
            (tmp_path / name / f"{n}.txt").write_text(f"one line\nanother {n}\n")
    assert "8 rows, 2 classes: a folder each, a row per file" in propose([str(tmp_path)], Wishes())
