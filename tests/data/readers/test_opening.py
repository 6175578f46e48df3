"""What is opened, decompressed and decoded, and what is refused before a row is read."""

from __future__ import annotations

import gzip
import io
import os
import random
import re
import sys
import tempfile
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.data.examples import BadRow, Example, RowProblems
from seqtrain.data.readers import ReadOptions, opening, read_examples
from seqtrain.errors import ConfigError, DataError
from tests.helpers.examples import examples
from tests.helpers.packing import ENDINGS, NAMES, needs_zstd, pack

Read = Callable[..., list[Any]]
Refuse = Callable[..., tuple[str, ...]]

TSV: dict[str, Any] = {"format": "tsv", "sequence": "text", "label": "label"}
CONTENT = b"label\ttext\na\tone\nb\ttwo\n"


def complaint(path: Path | str, *, labelled: bool = True) -> str:
    with pytest.raises(DataError) as caught:
        list(read_examples(str(path), ReadOptions(**TSV), labelled=labelled))
    (message,) = caught.value.problems
    return message


@pytest.mark.parametrize("ending", ENDINGS)
def test_compressed_and_byte_order_mark_read_as_the_plain_file(read: Read, ending: str) -> None:
    plain = read(CONTENT, "a.tsv", **TSV)
    assert [(row.sequence, row.label, row.line) for row in plain] == [
        ("one", "a", 2),
        ("two", "b", 3),
    ]
    assert read(b"\xef\xbb\xbf" + CONTENT, "b.tsv", **TSV) == plain
    assert read(pack(CONTENT, ending), f"c.tsv.{ending.upper()}", **TSV) == plain
    parts = pack(CONTENT[:15], ending) + pack(b"", ending) + pack(CONTENT[15:], ending)
    assert read(parts, f"d.{ending}", **TSV) == plain


@needs_zstd
def test_frames_without_content_are_skipped(read: Read) -> None:
    skipped = b"\x5f\x2a\x4d\x18\x03\0\0\0abc"
    assert read(skipped + pack(CONTENT, "zst"), "a.zst", **TSV) == read(CONTENT, "a.tsv", **TSV)


def test_missing_file_tells_the_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert complaint("no.tsv") == f"no.tsv: no such file (looked for {tmp_path}/no.tsv)"


def test_no_regular_file_is_refused_without_a_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    assert complaint(tmp_path).endswith("is a folder; expected a regular file")
    assert complaint(tmp_path / "pipe").endswith("is a pipe; expected a regular file")
    assert complaint("/dev/zero", labelled=False).endswith(
        "is a device or socket; expected a regular file"
    )
    assert "symbolic links" in complaint(tmp_path / "loop")
    assert "null" in complaint("a\0b")
    assert complaint("-") == "stdin: can't be read here; give a file"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_file(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").touch(mode=0o000)
    assert complaint(tmp_path / "a.tsv").endswith("Permission denied")


def test_prediction_reads_standard_input_and_pipes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\ntwo")))
    rows = list(read_examples("-", ReadOptions("lines"), labelled=False))
    assert [row.sequence for row in rows] == ["one", "two"]
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(
        target=(tmp_path / "pipe").write_bytes, args=(b"three\n",), daemon=True
    )
    writer.start()
    (row,) = read_examples(str(tmp_path / "pipe"), ReadOptions("lines"), labelled=False)
    writer.join()
    assert row.sequence == "three"


def test_names_of_files_are_shown_on_one_line(tmp_path: Path) -> None:
    assert "a\\nb.tsv: no such file" in complaint(tmp_path / "a\nb.tsv")
    assert "\\udcff" in complaint(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.tsv"))


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (
            gzip.compress(CONTENT, mtime=0),
            "1: expected UTF-8 text, found gzip data; name it NAME.gz",
        ),
        (b"\x28\xb5\x2f\xfdrest", "1: expected UTF-8 text, found zstd data; name it NAME.zst"),
        (b"PK\x03\x04rest", "1: expected UTF-8 text, found a zip archive (or npz, xlsx)"),
        (
            CONTENT.decode().encode("utf-16"),
            "1: expected UTF-8 text, found UTF-16 text; save it as UTF-8",
        ),
        (
            CONTENT.decode().encode("utf-16-le"),
            "1: expected UTF-8 text, found UTF-16 text; save it as UTF-8",
        ),
        (b"\0" * 9, "1: byte 1 is NUL; expected UTF-8 text, found binary data"),
        (CONTENT + b"c\tth\0ree\n", "4: byte 5 is NUL; expected UTF-8 text, found binary data"),
        (CONTENT + b"c\tth\xe9\n", "4: byte 5 is not UTF-8 (0xe9); save the file as UTF-8"),
    ],
)
def test_what_is_no_utf_8_text_is_named(refuse: Refuse, content: bytes, found: str) -> None:
    assert refuse(content, "a.tsv", **TSV) == (f"a.tsv:{found}",)


def test_empty_files_are_refused_except_in_prediction(read: Read, refuse: Refuse) -> None:
    for content in (b"", b"\xef\xbb\xbf", b"label\ttext\n"):
        assert refuse(content, "a.tsv", **TSV) == (
            "a.tsv: no rows; expected one labelled sequence per row",
        )
        assert read(content, "a.tsv", **TSV, labelled=False) == []
    assert read(b"\xef\xbb\xbf", "a.txt", format="lines", labelled=False) == []


@pytest.mark.parametrize("format", ["tsv", "csv"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_compressed_data_cut_anywhere_are_refused(refuse: Refuse, ending: str, format: str) -> None:
    packed, name = pack(CONTENT * 20, ending), f"a.{format}.{ending}"
    for size in range(len(packed)):
        (message,) = refuse(packed[:size], name, **TSV | {"format": format})[-1:]
        assert message.startswith(f"{name}:")
        assert f"the {NAMES[ending]} data are cut off after" in message or size < 4


@pytest.mark.parametrize("ending", ENDINGS)
def test_damaged_compressed_data_are_refused(refuse: Refuse, ending: str) -> None:
    said = f"the {NAMES[ending]} data are damaged after"
    packed = bytearray(pack(CONTENT * 20, ending))
    packed[{"gz": -6, "zst": -2}[ending]] ^= 1  # in the check sum
    (message,) = refuse(bytes(packed), f"a.{ending}", **TSV | {"header": True})
    assert said in message
    (message,) = refuse(pack(CONTENT, ending) + b"more", f"a.{ending}", **TSV)[-1:]
    assert said in message
    (message,) = refuse(CONTENT, f"b.tsv.{ending}", **TSV)
    assert message == f"b.tsv.{ending}: named .{ending}, but the data are not {NAMES[ending]}"


@pytest.mark.parametrize("ending", ENDINGS)
def test_damage_never_escapes_as_another_error(read: Read, ending: str) -> None:
    packed, draw = pack(CONTENT * 20, ending), random.Random(0)
    for _ in range(300):
        damaged = bytearray(packed)
        for _ in range(draw.choice([1, 2, 8])):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        with suppress(DataError):
            read(bytes(damaged), f"a.csv.{ending}", **TSV | {"format": "csv"})


@needs_zstd
def test_a_window_that_would_fill_the_memory_is_refused(read: Read, refuse: Refuse) -> None:
    frame = b"\x28\xb5\x2f\xfd\x00%c\x19\0\0aa\n"  # one raw block of three bytes
    (row,) = read(frame % ((27 - 10) << 3), "a.zst", format="lines", labelled=False)
    assert row.sequence == "aa"
    (message,) = refuse(frame % ((28 - 10) << 3), "a.zst", **TSV)
    assert message.startswith("a.zst:1: the zstd data need a window over 128 MiB")


def test_without_the_package_the_message_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.tsv.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    for name in ("compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError, match=r"pip install 'seqtrain\[zstd\]'"):
        list(read_examples(str(tmp_path / "a.tsv.zst"), ReadOptions(**TSV)))


def test_rows_before_the_cut_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"".join(b"%d\n" % i for i in range(50_000)))[:-40])
    rows = read_examples(str(path), ReadOptions("lines"), labelled=False)
    assert next(rows).sequence == "0"


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_bomb_is_refused(refuse: Refuse, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    monkeypatch.setattr(opening, "BOMB_FREE_BYTES", 100_000)
    monkeypatch.setattr(opening, "BOMB_RATIO", 500)
    bomb = pack(b"\n" * 400_000, ending)
    message = refuse(bomb, f"a.{ending}", format="lines", labelled=False)[-1]
    assert message.endswith(
        f"the {NAMES[ending]} data expand more than 500 times; refused as a bomb"
    )


def test_overlong_line_is_refused(refuse: Refuse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "LINE_BYTES", 10_000)
    content = b"x" * 9_999 + b"\n" + b"y" * 10_001
    message = refuse(b"\n" + content, "a.txt", format="lines", labelled=False)
    assert message == ("a.txt:3: the line is longer than 10000 bytes",)


def test_memory_stays_flat(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("label\ttext\n" + "a\tsome words\n" * 400_000)

    def peak(rows: Iterator[object]) -> int:
        tracemalloc.start()
        for _ in zip(range(20_000), rows, strict=False):
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert path.stat().st_size > 5_000_000
    assert peak(read_examples(str(path), ReadOptions(**TSV))) < 1_000_000


def test_the_first_five_problems_and_the_total() -> None:
    problems = RowProblems("a.tsv")
    problems.raise_if_any()
    for line in range(1, 8):
        problems.add(line, "bad")
    with pytest.raises(DataError) as caught:
        problems.raise_if_any()
    assert caught.value.problems == (
        *(f"a.tsv:{line}: bad" for line in range(1, 6)),
        "a.tsv: 7 rows can't be used (2 not shown)",
    )


def test_a_long_path_gives_way_to_the_problem() -> None:
    deep = f"/{'folder/' * 40}"
    for name, shown in (("a.csv", "/folder/a.csv"), ("x" * 250, "x" * 57)):
        problems = RowProblems(deep + name)
        problems.add(7, "p" * 90)
        with pytest.raises(DataError) as caught:
            problems.fail(8, "q" * 90)
        for line, ending in zip(
            caught.value.problems, (f"{shown}:8: {'q' * 90}", f"{shown}:7: {'p' * 90}"), strict=True
        ):
            assert line.startswith("…")
            assert line.endswith(ending)
            assert len(line) < 200


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
def test_any_bytes_give_rows_or_a_data_error(
    content: bytes, format: str, kind: str, labelled: bool
) -> None:
    column = "a" if format == "jsonl" else 0
    options = ReadOptions(format, kind, sequence=column, label="e" if format == "jsonl" else 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a"
        path.write_bytes(content)
        rows: list[Example] = []
        problems: tuple[str, ...] = ()
        try:
            rows = list(read_examples(str(path), options, labelled=labelled))
        except DataError as error:
            problems = error.problems
    assert all(row.label for row in rows) or not labelled
    assert rows or problems or not labelled
    assert not any("\n" in problem for problem in problems)


@pytest.mark.parametrize("size", [1, 3, 7, 40, 1000])
@pytest.mark.parametrize("keep_ends", [False, True])
def test_lines_are_the_same_however_many_bytes_are_read_at_once(
    monkeypatch: pytest.MonkeyPatch, size: int, keep_ends: bool
) -> None:
    content = "first\na\r\n\r\nb\r\r\n\n é\u2028e \n\t\rf\n".encode() * 3 + b"\xff\n\0\r\ng\r\nh\r"
    expected: list[str | None] = []
    for line in io.BytesIO(content):
        text = None if b"\xff" in line or b"\0" in line else line.decode()
        expected.append(text if keep_ends or text is None else re.sub(r"\r?\n\Z", "", text))
    monkeypatch.setattr(opening, "BLOCK_BYTES", size)
    options = ReadOptions("lines", bad_rows="blank")
    source = opening.RowSource(io.BytesIO(content), options, RowProblems("a.txt"))
    lines = [line for block in source.blocks(keep_ends=keep_ends) for line in block]
    assert [None if isinstance(line, BadRow) else line for line in lines] == expected
