"""Files of any form: `init` reports what isn't clear, or writes a config that fit accepts."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.config import Config, parse_config
from seqtrain.errors import ConfigError, DataError
from seqtrain.proposal import InitOptions, propose
from seqtrain.sequences.dataset import prepare

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
    [("label", "text"), ("Y", "X"), ("stars", "body"), ("", "a"), ("a", "a"), ("x:y", "z")]
)


@st.composite
def rows(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Draw labels and texts, each text several times or once."""
    texts = st.sampled_from(draw(st.lists(TEXTS, min_size=1, max_size=20)))
    chosen = draw(
        st.lists(st.tuples(st.sampled_from(draw(LABELS)), texts), min_size=1, max_size=60)
    )
    unlike = draw(st.booleans())
    return [(label, f"{text} {n}" if unlike else text) for n, (label, text) in enumerate(chosen)]


def delimited(draw: st.DrawFn, found: list[tuple[str, str]]) -> tuple[str, str]:
    mark, step = draw(st.sampled_from(",;\t|")), draw(st.sampled_from([1, -1]))
    table = [list(row[::step]) for row in found]
    if draw(st.booleans()):
        table.insert(0, list(draw(NAMES)[::step]))
    if draw(st.booleans()):
        table = [[*row, str(n)] for n, row in enumerate(table)]
    out = io.StringIO()
    if mark == "\t" and draw(st.booleans()):
        out.write("".join("\t".join(" ".join(x.split()) for x in row) + "\n" for row in table))
        return "a.tsv", out.getvalue()
    end = draw(st.sampled_from(["\n", "\r\n"]))
    csv.writer(out, delimiter=mark, lineterminator=end).writerows(table)
    return "a.csv", draw(st.sampled_from(["", "\ufeff", "\n"])) + out.getvalue()


def json_lines(draw: st.DrawFn, found: list[tuple[str, str]]) -> tuple[str, str]:
    label_name, text_name = draw(NAMES)
    nested, shape = draw(st.booleans()), draw(st.sampled_from(["text", "list", "vectors"]))

    def row(label: str, text: str) -> dict[str, Any]:
        vectors = [[float(len(word)), 1.5] for word in text.split()]
        value = {"text": text, "list": text.split(), "vectors": vectors}[shape]
        if nested:
            return {"meta": {label_name: label}, "doc": {text_name: value}}
        return {label_name: label, text_name: value}

    return "a.jsonl", "".join(json.dumps(row(*each)) + "\n" for each in found)


@st.composite
def files(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a file's name and content."""
    make = draw(st.sampled_from([delimited, delimited, json_lines]))
    name, content = make(draw, draw(rows()))
    if draw(st.integers(0, 9)) == 0:
        content = content[: draw(st.integers(0, len(content)))]
    return name, content


@given(files())
def test_a_config_that_fit_takes_is_written_or_the_reason_is_said(file):
    with TemporaryDirectory() as folder:
        path = Path(folder) / file[0]
        path.write_text(file[1], encoding="utf-8", newline="", errors="surrogatepass")
        try:
            text = propose([str(path)], InitOptions()).text
        except (ConfigError, DataError):
            return
        data = prepare(parse_config(text))
        assert len(data.splits["train"]) >= 2


def write_npz(
    path: Path,
    lengths: list[int],
    channels: int = 1,
    *,
    scale: float = 1.0,
    labels: Sequence[str] = ("c0", "c1"),
) -> str:
    """Write series of normal numbers, whose labels repeat in turn."""
    values = np.random.default_rng(0).normal(size=(sum(lengths), channels)) * scale
    each = np.array([labels[n % len(labels)] for n in range(len(lengths))])
    np.savez(path, values=values, offsets=np.cumsum([0, *lengths]), labels=each)
    return str(path)


def test_rows_without_a_sequence_and_missing_values_are_allowed_for(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("label\ttext\n" + "x\tone two\ny\t\n" * 2 + "y\tthree\n")
    text = propose([str(path)], InitOptions(label="label")).text
    assert "empty: drop" in text
    assert "validation: null" in text
    assert "# 2 rows " in text
    missing = write_npz(tmp_path / "a.npz", [2] * 12, scale=float("nan"))
    assert "missing: mask" in propose([missing], InitOptions()).text


def proposed(*paths: str) -> Config:
    return parse_config(propose(paths, InitOptions()).text)


@pytest.mark.parametrize(("rows", "expected"), [(2999, True), (3000, False)])
def test_few_series_are_read_by_kernels_too(tmp_path, rows, expected):
    for channels in (1, 2):
        path = write_npz(tmp_path / "a.npz", [3] * rows, channels)
        assert proposed(path).model.kernels is expected


def test_of_few_series_none_is_held_out_and_of_some_those_are_learned_in_the_end(tmp_path):
    for rows, validation, refit, patience in (
        (100, None, False, None),
        (101, 0.2, True, None),
        (199, 0.2, True, None),  # fewer than 40 rows say too little
        (200, 0.2, True, "auto"),
        (499, 0.2, False, "auto"),
    ):
        config = proposed(write_npz(tmp_path / "a.npz", [8] * rows))
        assert (config.data.validation, config.training.refit) == (validation, refit)
        assert config.training.patience == patience
    for rows, patience in ((39, None), (50, "auto")):
        other = write_npz(tmp_path / "validation.npz", [8] * rows)
        config = proposed(write_npz(tmp_path / "train.npz", [8] * 140), other)
        assert (config.data.validation, config.training.refit) == (other, False)
        assert config.training.patience == patience


def test_of_many_rows_few_of_which_differ_none_is_held_out_for_that_reason(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("label,text\n" + "yes,that is so\nno,that is wrong\n" * 200)
    text = propose([str(path)], InitOptions()).text
    assert "validation: null" in text
    assert "there are few rows" not in text


def test_lengths_are_those_of_the_texts_that_fit_reads(tmp_path):
    path = tmp_path / "a.csv"
    with path.open("w") as file:
        table = csv.writer(file)
        table.writerow(["y", "talk"])
        for i in range(120):
            turns = [{"role": "user", "content": f"word {i % 7} " * (1 + i % 5)}] * 2
            table.writerow([f"{'stay' if i % 2 else 'go'}", json.dumps(turns)])
    text = propose([str(path)], InitOptions()).text
    train, held = prepare(parse_config(text)).splits.values()
    lengths = np.concatenate([train.lengths, held.lengths])
    assert f"longest {lengths.max()}" in text


@pytest.mark.parametrize("first", ["0,go to platform,7", "label,text,place"])
def test_equal_first_rows_of_files_are_data_if_they_name_no_columns(tmp_path, first):
    rows = [f"{i % 2},{'go' if i % 2 else 'come'} to platform {i},{i}" for i in range(60)]
    for part in "12":
        (tmp_path / f"a-{part}.csv").write_text("\n".join([first, *rows]))
    files = [str(tmp_path / "a-1.csv"), str(tmp_path / "a-2.csv")]
    rows_read = 122 if first[0] == "0" else 120
    assert f"{rows_read} rows, 2 classes" in propose(files, InitOptions()).text


@pytest.mark.parametrize("name", ["eval", "dev", "testing"])
def test_each_word_for_a_split_names_it(tmp_path, name):
    train = write_texts(tmp_path / "train.csv", ["go", "come"] * 60)
    other = write_texts(tmp_path / f"{name}.csv", ["come", "go"] * 50)
    data = proposed(train, other).data
    assert (data.test if name == "testing" else data.validation) == other


def write_texts(path: Path, labels: list[str], gap: str = " ") -> str:
    lines = [f"{label},{label}{gap}to{gap}platform{gap}{i}" for i, label in enumerate(labels)]
    path.write_text("\n".join(["label,text", *lines]))
    return str(path)


@pytest.mark.parametrize(
    ("few", "more", "share", "gap"),
    [(10, 0, 0, " "), (9, 0, 0.4, " "), (9, 19, 0.6, " "), (9, 0, 0.2, "")],
)
def test_uneven_classes_are_adjusted_for(tmp_path, few, more, share, gap):
    others = [f"take{letter}" for letter in "abcdefghijklmnopqrs"[:more]] * few
    path = write_texts(tmp_path / "a.csv", ["come"] * few + ["go"] * 100 + others, gap)
    assert proposed(path).training.logit_adjustment == share


@pytest.mark.parametrize("channels", [1, 3])
def test_uneven_series_and_tables_are_adjusted_for(tmp_path, channels):
    labels = "a" * 20 + "b" * 20 + "c"
    path = write_npz(tmp_path / "a.npz", [4] * 123, channels, labels=labels)
    assert proposed(path).training.logit_adjustment == 0.3
    even = write_npz(tmp_path / "even.npz", [4] * 120, channels, labels="abc")
    assert proposed(even).training.logit_adjustment == 0
    lines = [
        ",".join([f"id{n}", *(str(n * k % 17 + step / 7) for k in range(1, channels + 1)), label])
        for n, label in enumerate(labels * 3)
        for step in range(3)
    ]
    head = ",".join(["id", *"xyz"[:channels], "label"])
    (tmp_path / "table.csv").write_text("\n".join([head, *lines]))
    options = InitOptions(label="label", id="id")
    table = parse_config(propose([str(tmp_path / "table.csv")], options).text)
    assert table.training.logit_adjustment == 0.2


@pytest.mark.parametrize(("few", "share"), [(29, 0.4), (30, 0.0)])
def test_a_class_that_a_threshold_finds_is_not_adjusted_for(tmp_path, few, share):
    path = write_texts(tmp_path / "a.csv", ["come"] * few + ["go"] * 330)
    assert proposed(path).training.logit_adjustment == share


@pytest.mark.parametrize(("gap", "expected"), [(" ", True), (" and so on" * 8 + " ", False)])
def test_short_texts_are_also_spelled(tmp_path, gap, expected):
    config = proposed(write_texts(tmp_path / "a.csv", ["go", "come"] * 100, gap))
    assert config.model.ngrams_spelling == expected


def test_many_texts_are_not_spelled(tmp_path):
    assert not proposed(
        write_texts(tmp_path / "a.csv", ["go", "come"] * 3000)
    ).model.ngrams_spelling


@pytest.mark.parametrize(
    ("classes", "rows", "expected"),
    [(4, 199, True), (4, 200, False), (5, 999, True), (5, 1000, False)],
)
def test_few_texts_per_class_are_all_learned_where_init_holds_some_out(
    tmp_path, classes, rows, expected
):
    labels = ["go", "come", "stay", "turn", "wait"][:classes]
    path = write_texts(tmp_path / "train.csv", labels * rows)
    other = write_texts(tmp_path / "validation.csv", ["go", "come"])
    config, learned = proposed(path), {4: (16, 0.002), 5: (128, 0.0034)}[classes]
    assert (config.batching.batch_size, config.training.lr) == learned
    assert config.training.refit is expected
    assert not proposed(path, other).training.refit


def test_texts_are_learned_in_bfloat16_and_numbers_in_float32(tmp_path):
    texts = write_texts(tmp_path / "a.csv", ["go", "come"] * 20)
    assert proposed(texts).training.precision == "bfloat16"
    lines = [f"{i % 2},{i} {i + 1}.5 {i % 3}" for i in range(40)]
    (tmp_path / "b.csv").write_text("\n".join(["label,series", *lines]))
    assert proposed(str(tmp_path / "b.csv")).training.precision == "float32"
