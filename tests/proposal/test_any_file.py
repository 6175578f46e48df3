"""Whatever a file looks like: `init` says what it can't tell, or writes a config that fit takes."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.api.fit import fit
from seqtrain.config import parse_config
from seqtrain.data.dataset import prepare
from seqtrain.errors import SeqtrainError
from seqtrain.proposal import Wishes, propose

MARKS = ["x,y", 'say "so"', "semi;colon", "tab\there", "|", "view:cart/2", "__label__x", "\u200b"]
OTHERS = ["a", "the", "Cat", "naïve", "東京", "مرحبا", "3.14", "-7", "", " ", "it's", "ACGT"]
WORDS = st.sampled_from([*MARKS, *OTHERS])
TEXTS = (
    st.lists(WORDS, max_size=8).map(" ".join) | st.text(max_size=30) | st.text("ACGT", max_size=60)
)
LABELS = st.sampled_from(
    [
        *(["pos", "neg"], ["0", "1"], ["1.0", "2.0"], ["ja", "no", "null"], ["a b", "c,d"]),
        *(["é", ""], ["same"], ["=1+1", "#x"], ["true", "false"], [str(n) for n in range(12)]),
    ]
)
NAMES = st.sampled_from(
    [
        *(("label", "text"), ("class", "sentence"), ("Y", "X"), ("stars", "body"), ("", "a")),
        *(("a", "a"), ("x:y", "z"), ("1", "2"), ("label", "label"), ("ключ", "текст")),
    ]
)
SHAPES = st.sampled_from(["text", "list", "numbers", "vectors"])


@st.composite
def rows(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Draw labels and texts, each text several times or once."""
    labels = draw(LABELS)
    texts = draw(st.lists(TEXTS, min_size=1, max_size=20))
    count = draw(st.integers(1, 60))
    chosen = draw(
        st.lists(
            st.tuples(st.sampled_from(labels), st.sampled_from(texts)),
            min_size=count,
            max_size=count,
        )
    )
    unlike = draw(st.booleans())
    return [(label, f"{text} {n}" if unlike else text) for n, (label, text) in enumerate(chosen)]


def delimited(draw: st.DrawFn, found: list[tuple[str, str]]) -> tuple[str, str]:
    mark = draw(st.sampled_from([",", ";", "\t", "|"]))
    name = "tsv" if mark == "\t" and draw(st.booleans()) else "csv"
    label_first, extra = draw(st.booleans()), draw(st.booleans())
    table = [list(row if label_first else row[::-1]) for row in found]
    if draw(st.booleans()):
        names = draw(NAMES)
        table.insert(0, list(names if label_first else names[::-1]))
    if extra:
        table = [[*row, str(n)] for n, row in enumerate(table)]
    out = io.StringIO()
    if name == "tsv":
        out.write("".join("\t".join(" ".join(x.split()) for x in row) + "\n" for row in table))
    else:
        end = draw(st.sampled_from(["\n", "\r\n"]))
        csv.writer(out, delimiter=mark, lineterminator=end).writerows(table)
    return f"a.{name}", draw(st.sampled_from(["", "\ufeff", "\n"])) + out.getvalue()


def json_lines(draw: st.DrawFn, found: list[tuple[str, str]]) -> tuple[str, str]:
    label_name, text_name = draw(NAMES)
    nested, shape = draw(st.booleans()), draw(SHAPES)

    def row(label: str, text: str) -> dict[str, Any]:
        shapes: dict[str, Any] = {
            "text": text,
            "list": text.split(),
            "numbers": [float(len(word)) for word in text.split()],
            "vectors": [[float(len(word)), 1.5] for word in text.split()],
        }
        return (
            {"meta": {label_name: label}, "doc": {text_name: shapes[shape]}}
            if nested
            else {label_name: label, text_name: shapes[shape]}
        )

    return "a.jsonl", "".join(json.dumps(row(*each)) + "\n" for each in found)


def fasttext(draw: st.DrawFn, found: list[tuple[str, str]]) -> tuple[str, str]:
    lines = [
        f"__label__{label.replace(' ', '_')} {' '.join(text.split())}\n" for label, text in found
    ]
    return draw(st.sampled_from(["a.txt", "a.ft"])), "".join(lines)


@st.composite
def files(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a file's name and content."""
    make = draw(st.sampled_from([delimited, delimited, json_lines, fasttext]))
    name, content = make(draw, draw(rows()))
    if draw(st.integers(0, 9)) == 0:
        content = content[: draw(st.integers(0, len(content)))]
    return name, content


def check(path: Path) -> None:
    """What is proposed, fit's own reading takes; what isn't, has a reason."""
    text, refused = "", None
    try:
        text = propose([str(path)], Wishes())
    except SeqtrainError as error:
        refused = error
    if refused is None:
        data = prepare(parse_config(text), cache_folder=None)
        assert len(data.splits["train"]) >= 2
    else:
        assert refused.exit_code == 2
        assert all(problem.strip() for problem in refused.problems)


@given(files())
def test_a_config_is_accepted_or_the_reason_is_said(file: tuple[str, str]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / file[0]
        path.write_text(file[1], encoding="utf-8", newline="", errors="surrogatepass")
        check(path)


@given(rows())
def test_a_folder_of_texts(found: list[tuple[str, str]]) -> None:
    with TemporaryDirectory() as folder:
        for n, (label, text) in enumerate(found):
            place = Path(folder) / "docs" / (label.replace("/", "_") or "none")
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{n}.txt").write_text(text, encoding="utf-8", errors="replace")
        check(Path(folder) / "docs")


@given(
    st.integers(1, 3),
    st.lists(st.integers(0, 40), min_size=1, max_size=12),
    st.sampled_from([0.0, 1.0, 1e30, float("nan")]),
)
def test_series(channels: int, lengths: list[int], scale: float) -> None:
    with TemporaryDirectory() as folder:
        values = np.arange(sum(lengths) * channels, dtype=np.float64).reshape(-1, channels)
        labels = np.array([f"c{n % 2}" for n in range(len(lengths))])
        path = Path(folder) / "a.npz"
        np.savez(path, values=values * scale, offsets=np.cumsum([0, *lengths]), labels=labels)
        check(path)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "npz"])
def test_what_is_proposed_trains(tmp_path: Path, kind: str) -> None:
    path, labels = tmp_path / f"a.{kind}", ["x", "y"]
    if kind == "npz":
        values, offsets = np.random.default_rng(0).normal(size=(90, 1)), np.arange(0, 91, 3)
        np.savez(path, values=values, offsets=offsets, labels=np.arange(30) % 2)
    elif kind == "jsonl":
        lines = [{"y": labels[n % 2], "v": [str(n % 7), str(n % 5)]} for n in range(30)]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    else:
        path.write_text("y;t\n" + "".join(f"{labels[n % 2]};some words {n}\n" for n in range(30)))
    config = parse_config(propose([str(path)], Wishes()), overrides=["training.max_epochs=1"])
    assert fit(config, run_dir=tmp_path / "run", cache=False).epochs == 1


def test_rows_without_a_sequence_and_rows_too_few_are_allowed_for(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("label\ttext\n" + "x\tone two\ny\t\n" * 2 + "y\tthree\n")
    text = propose([str(path)], Wishes(label="label"))
    assert "empty: drop" in text
    assert "validation: null" in text
    assert "# 2 rows have no sequence" in text
    values = np.arange(24.0)
    values[5] = np.nan
    np.savez(
        tmp_path / "a.npz", values=values, offsets=np.arange(0, 25, 2), labels=np.arange(12) % 2
    )
    assert "missing: mask" in propose([str(tmp_path / "a.npz")], Wishes())


def test_of_few_series_none_is_held_out_and_of_some_those_are_learned_in_the_end(
    tmp_path: Path,
) -> None:
    def proposed(rows: int, *others: str) -> tuple[Any, bool]:
        offsets, labels = np.arange(0, 8 * rows + 1, 8), np.arange(rows) % 2
        paths = [str(tmp_path / f"{name}.npz") for name in ("train", *others)]
        for seed, path in enumerate(paths):
            values = np.random.default_rng(seed).normal(size=(8 * rows, 1))
            np.savez(path, values=values, offsets=offsets, labels=labels)
        config = parse_config(propose(paths, Wishes()))
        return config.data.validation, config.training.refit

    assert proposed(100) == (None, False)
    assert proposed(101) == (0.2, True)
    assert proposed(399) == (0.2, True)
    assert proposed(400) == (0.2, False)
    assert proposed(40, "validation") == (str(tmp_path / "validation.npz"), False)


def test_few_texts_per_class_are_all_learned_where_init_holds_some_out(tmp_path: Path) -> None:
    def proposed(rows: int, *others: str) -> bool:
        paths = [tmp_path / f"{name}.csv" for name in ("train", *others)]
        for number, path in enumerate(paths):
            ways = [("go", "come")[i % 2] for i in range(rows)]
            lines = [f"{way},{way} to platform {i} {number}" for i, way in enumerate(ways)]
            path.write_text("\n".join(["label,text", *lines]))
        return parse_config(propose([str(path) for path in paths], Wishes())).training.refit

    assert proposed(399)
    assert not proposed(400)
    assert not proposed(100, "validation")
