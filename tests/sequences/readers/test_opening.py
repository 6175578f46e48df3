"""Opening, decompression and decoding of files, and refusals before a row is read."""

import gzip
import io
import os
import re
import sys
import tempfile
import threading
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.errors import DataError
from seqtrain.sequences.examples import Example, RowProblems
from seqtrain.sequences.read_options import FileFormat, Schema
from seqtrain.sequences.readers import opening, row_source
from tests.helpers.examples import examples
from tests.helpers.packing import ENDINGS, NAMES, needs_zstd, pack
from tests.helpers.reading import damaged_copies, file_source, only_label, read_examples
from tests.sequences.readers.conftest import seen

TSV: dict[str, Any] = {"format": "tsv", "sequence": "text", "label": "label"}
LINES: dict[str, Any] = {"format": "lines", "labelled": False}
CONTENT = b"label\ttext\na\tone\nb\ttwo\n"


@pytest.mark.parametrize("ending", ENDINGS)
def test_compressed_and_byte_order_mark_read_as_the_plain_file(read, ending):
    plain = read(CONTENT, "a.tsv", **TSV)
    assert seen(plain) == [("one", "a", 2), ("two", "b", 3)]
    assert read(b"\xef\xbb\xbf" + CONTENT, "b.tsv", **TSV) == plain
    assert read(pack(CONTENT, ending), f"c.tsv.{ending.upper()}", **TSV) == plain
    parts = pack(CONTENT[:15], ending) + pack(b"", ending) + pack(CONTENT[15:], ending)
    assert read(parts, f"d.{ending}", **TSV) == plain
    if ending == "zst":  # a frame without content
        assert read(b"\x5f\x2a\x4d\x18\x03\0\0\0abc" + parts, f"d.{ending}", **TSV) == plain


def test_what_is_no_regular_file_is_refused_without_a_hang(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    for path, problem in {
        "pipe": "pipe: is a pipe; expected a regular file",
        "a\0b": "a\\x00b: embedded null byte",
        "-": "stdin: can't be read here; give a file",
        "a\nb.tsv": "a\\nb.tsv: no such file",
        os.fsdecode(b"\xff.tsv"): "\\udcff.tsv: no such file",
    }.items():
        with pytest.raises(DataError) as caught:
            list(read_examples(file_source(path, **TSV)))
        assert str(caught.value).startswith(problem)


def test_prediction_reads_standard_input_and_pipes(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\ntwo")))
    rows = list(read_examples(file_source("-", "lines"), labelled=False))
    assert [row.sequence for row in rows] == ["one", "two"]
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"three\n",), daemon=True)
    writer.start()
    (row,) = read_examples(file_source(str(pipe), "lines"), labelled=False)
    writer.join()
    assert row.sequence == "three"


@pytest.mark.parametrize("format", ["tsv", "csv"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_compressed_data_cut_anywhere_are_refused(refuse, ending, format):
    packed, name = pack(CONTENT * 20, ending), f"a.{format}.{ending}"
    for size in range(len(packed)):
        (message,) = refuse(packed[:size], name, **TSV | {"format": format})[-1:]
        assert message.startswith(f"{name}:")
        assert f"{NAMES[ending]} data are cut off" in message or size < 4


@pytest.mark.parametrize("ending", ENDINGS)
def test_damaged_compressed_data_are_refused(read, refuse, ending):
    said = f"the {NAMES[ending]} data are damaged after"
    packed = pack(CONTENT * 20, ending)
    in_check_sum = bytearray(packed)
    in_check_sum[{"gz": -6, "zst": -2}[ending]] ^= 1
    (message,) = refuse(bytes(in_check_sum), f"a.{ending}", **TSV | {"header": True})
    assert said in message
    assert said in refuse(pack(CONTENT, ending) + b"more", f"a.{ending}", **TSV)[-1]
    assert refuse(CONTENT, f"b.tsv.{ending}", **TSV) == (
        f"b.tsv.{ending}: named .{ending}, but the data are not {NAMES[ending]}",
    )
    for damaged in damaged_copies(packed):
        with suppress(DataError):
            read(damaged, f"a.csv.{ending}", **TSV | {"format": "csv"})


@needs_zstd
def test_a_window_that_would_fill_the_memory_is_refused(read, refuse):
    frame = b"\x28\xb5\x2f\xfd\x00%c\x19\0\0aa\n"  # one raw block of three bytes
    (row,) = read(frame % ((27 - 10) << 3), "a.zst", **LINES)
    assert row.sequence == "aa"
    (message,) = refuse(frame % ((28 - 10) << 3), "a.zst", **TSV)
    assert message.startswith("a.zst:1: the zstd data need a window over 128 MiB")


@pytest.mark.parametrize("ending", ENDINGS)
def test_bombs_and_overlong_lines_are_refused(refuse, monkeypatch, ending):
    monkeypatch.setattr(opening, "BOMB_FREE_BYTES", 100_000)
    monkeypatch.setattr(opening, "BOMB_RATIO", 500)
    message = refuse(pack(b"\n" * 400_000, ending), f"a.{ending}", **LINES)[-1]
    assert message.endswith(
        f"the {NAMES[ending]} data expand more than 500 times; refused as a bomb"
    )
    monkeypatch.setattr(row_source, "LINE_BYTES", 10_000)
    content = b"\n" + b"x" * 9_999 + b"\n" + b"y" * 60_000 + b"\nz"
    assert refuse(content, "a", **LINES) == ("a:3: the line is longer than 10000 bytes",)
    assert refuse(content[10_001:], "a", **LINES) == ("a:1: the line is longer than 10000 bytes",)


def test_memory_stays_flat_and_rows_before_damage_are_read(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("label\ttext\n" + "a\tsome words\n" * 400_000)
    assert path.stat().st_size > 5_000_000
    tracemalloc.start()
    for _ in zip(range(20_000), read_examples(file_source(str(path), **TSV)), strict=False):
        pass
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1_000_000
    cut = tmp_path / "a.gz"
    cut.write_bytes(gzip.compress(b"".join(b"%d\n" % i for i in range(50_000)))[:-40])
    assert next(read_examples(file_source(str(cut), "lines"), labelled=False)).sequence == "0"


@examples(300)
@given(
    content=st.one_of(
        st.binary(max_size=40),
        st.text('"{}[]:,\t\n\r@#_12?ael', max_size=40).map(str.encode),
    ),
    format=st.sampled_from(["csv", "tsv", "jsonl", "fasttext", "txt", "ts", "npz", "lines"]),
    kind=st.sampled_from(["text", "tokens", "features"]),
    labelled=st.booleans(),
)
def test_any_bytes_give_rows_or_a_data_error(content, format, kind, labelled):
    sequence, label = ("a", "e") if format == "jsonl" else (0, 1)
    rows: list[Example] = []
    problems: tuple[str, ...] = ()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a"
        path.write_bytes(content)
        source = file_source(str(path), format, kind, sequence=sequence, label=label)
        try:
            rows = list(read_examples(source, labelled=labelled))
        except DataError as error:
            problems = error.problems
    assert all(only_label(row) for row in rows) or not labelled
    assert rows or problems or not labelled
    assert not any("\n" in problem for problem in problems)


def lenient_lines(stream: io.BytesIO) -> row_source.RowSource:
    """Return an open file of lines, whose undecodable lines are bad rows."""
    return row_source.RowSource("a", FileFormat("lines"), Schema(), bad_rows="blank", stream=stream)


@pytest.mark.parametrize("size", [1, 3, 7, 40, 1000])
@pytest.mark.parametrize("ends", [False, True])
def test_lines_are_the_same_however_many_bytes_are_read_at_once(monkeypatch, size, ends):
    content = "first\na\r\n\r\nb\r\r\n\n é\u2028e \n\t\rf\n".encode() * 3 + b"\xff\n\0\r\ng\r\nh\r"
    expected: list[str | None] = []
    for line in io.BytesIO(content):
        text = None if b"\xff" in line or b"\0" in line else line.decode()
        expected.append(text if ends or text is None else re.sub(r"\r?\n\Z", "", text))
    monkeypatch.setattr(row_source, "BLOCK_BYTES", size)
    source = lenient_lines(io.BytesIO(content))
    every = (line for block in source.blocks() for line in block)
    lines = every if ends else (line for _, line in source.lines())
    assert [None if row_source.UNDECODABLE.search(line) else line for line in lines] == expected


@pytest.mark.parametrize("encoding", ["cp1252", "gbk", "utf-16", "utf-16-le"])
def test_other_encodings(read, encoding):
    text = "label\ttext\na\t你好 x\n" if encoding == "gbk" else "label\ttext\na\tthé x\n"
    named = "utf-16" if encoding == "utf-16-le" else encoding
    keys = {"format": "tsv", "sequence": "text", "label": "label", "encoding": named}
    for content in (text.encode(encoding), text.encode()):  # what is UTF-8 is read as UTF-8
        assert [x.sequence for x in read(content, "a.tsv", **keys)] == [text[13:-1]]


class SlowReader(io.BytesIO):
    """A stream whose reads return one byte each."""

    def read1(self, size: int | None = -1) -> bytes:
        return super().read1(1)


def test_a_byte_order_mark_is_dropped_however_few_bytes_come_at_first():
    for content, expected in ((b"\xef\xbb\xbfone\n", "one"), (b"\xef\xbb\n", None)):
        source = lenient_lines(SlowReader(content))
        (line,) = (text for _, text in source.lines())
        assert (None if row_source.UNDECODABLE.search(line) else line) == expected


@pytest.mark.parametrize("sizes", [(3,), (1, 40), (200, 1, 1)])
def test_short_members_of_gzip_do_not_hide_the_delimiter(sizes, tmp_path):
    content = b"label;text\n" + b"".join(b"x;one, two, three\n" for _ in range(40))
    parts, start = list[bytes](), 0
    for size in (*sizes, len(content)):
        parts.append(gzip.compress(content[start : start + size]))
        start += size
    path = tmp_path / "a.csv.gz"
    path.write_bytes(b"".join(parts))
    rows = list(read_examples(file_source(str(path), "csv", sequence="text", label="label")))
    assert [x.sequence for x in rows] == ["one, two, three"] * 40


def test_a_problem_of_many_rows_is_shown_once_with_its_lines():
    problems = RowProblems("a.csv")
    for line in (9, 4, 7):
        problems.add(line, "no label")
    problems.add(5, "no text")
    with pytest.raises(DataError) as refused:
        problems.raise_if_any()
    # Every line is named, and no row is left to count.
    first, second = refused.value.problems
    assert first.startswith("a.csv:4: no label")
    assert "7" in first
    assert "9" in first
    assert second == "a.csv:5: no text"
