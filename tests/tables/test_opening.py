"""Opening, decompression and decoding of files, and refusals before a row is read."""

import gzip
import io
import os
import random
import sys
import threading
import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.errors import DataError
from seqtrain.tables import opening
from seqtrain.tables.blocks import Dialect
from seqtrain.tables.sources import open_source
from tests.helpers.examples import examples
from tests.helpers.packing import ENDINGS, NAMES, needs_zstd, pack
from tests.tables.conftest import rows_of

CONTENT = b"label\ttext\na\tone\nb\ttwo\n"
FORMATS = ["csv", "tsv", "jsonl", "fasttext", "txt", "ts", "arff", "fasta", "npz", "lines"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_compressed_and_byte_order_mark_read_as_the_plain_file(read, ending):
    plain = [row[:3] for row in read(CONTENT, "a.tsv")]
    assert [row[1] for row in plain] == [
        {"label": "a", "text": "one"},
        {"label": "b", "text": "two"},
    ]

    def found(content: bytes, name: str):
        return [row[:3] for row in read(content, name, format="tsv")]

    assert found(b"\xef\xbb\xbf" + CONTENT, "b.tsv") == plain
    assert found(pack(CONTENT, ending), f"c.tsv.{ending.upper()}") == plain
    parts = pack(CONTENT[:15], ending) + pack(b"", ending) + pack(CONTENT[15:], ending)
    assert found(parts, f"d.{ending}") == plain
    if ending == "zst":  # a frame without content
        assert found(b"\x5f\x2a\x4d\x18\x03\0\0\0abc" + parts, f"d.{ending}") == plain


def test_what_is_no_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkdir("folder.csv")
    for path, problem in {
        "a\0b": "a\\x00b: embedded null byte",
        "a\nb.tsv": "a\\nb.tsv: no such file",
        os.fsdecode(b"\xff.tsv"): "\\udcff.tsv: no such file",
        "folder.csv": "folder.csv: holds no file of format tsv",
    }.items():
        with pytest.raises(DataError) as caught:
            list(rows_of(open_source(path, Dialect("tsv"))))
        assert str(caught.value).startswith(problem)


def test_standard_input_and_pipes_are_read_line_by_line(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\ntwo")))
    found = list(rows_of(open_source("-", Dialect("lines"))))
    assert [row.cells["text"] for row in found] == ["one", "two"]
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    answered = threading.Event()

    def write() -> None:
        with open(pipe, "wb", buffering=0) as file:
            file.write(b"text,label\nthree,x\n")
            assert answered.wait(30)
            file.write(b"four,y\n")

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    rows = rows_of(open_source(str(pipe), Dialect("csv")))
    assert next(rows).cells["text"] == "three"  # before the next line is written
    answered.set()
    assert next(rows).cells["text"] == "four"
    writer.join()


@pytest.mark.parametrize("format", ["tsv", "csv"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_compressed_data_cut_anywhere_are_refused(refuse, ending, format):
    packed, name = pack(CONTENT * 20, ending), f"a.{format}.{ending}"
    for size in range(len(packed)):
        (message,) = refuse(packed[:size], name)[-1:]
        assert message.startswith(f"{name}:")
        assert f"{NAMES[ending]} data are cut off" in message or size < 4


@pytest.mark.parametrize("ending", ENDINGS)
def test_damaged_compressed_data_are_refused(read, refuse, ending):
    said = f"the {NAMES[ending]} data are damaged after"
    packed = pack(CONTENT * 20, ending)
    in_check_sum = bytearray(packed)
    in_check_sum[{"gz": -6, "zst": -2}[ending]] ^= 1
    assert said in refuse(bytes(in_check_sum), f"a.tsv.{ending}")[-1]
    assert said in refuse(pack(CONTENT, ending) + b"more", f"a.tsv.{ending}")[-1]
    (message,) = refuse(CONTENT, f"b.tsv.{ending}")
    assert message == f"b.tsv.{ending}: named .{ending}, but the data are not {NAMES[ending]}"
    draw = random.Random(0)
    for _ in range(200):
        damaged = bytearray(packed)
        for _ in range(draw.choice([1, 2, 8])):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        with suppress(DataError):
            read(bytes(damaged), f"a.csv.{ending}")


@needs_zstd
def test_a_window_that_would_fill_the_memory_is_refused(read, refuse):
    frame = b"\x28\xb5\x2f\xfd\x00%c\x19\0\0aa\n"  # one raw block of three bytes
    (row,) = read(frame % ((27 - 10) << 3), "a.zst", format="lines")
    assert row.cells["text"] == "aa"
    (message,) = refuse(frame % ((28 - 10) << 3), "a.zst", format="lines")
    assert message.startswith("a.zst:1: the zstd data need a window over 128 MiB")


@pytest.mark.parametrize("ending", ENDINGS)
def test_bombs_and_overlong_lines_are_refused(refuse, monkeypatch, ending):
    monkeypatch.setattr(opening, "BOMB_FREE_BYTES", 100_000)
    monkeypatch.setattr(opening, "BOMB_RATIO", 500)
    message = refuse(pack(b"\n" * 400_000, ending), f"a.{ending}", format="lines")[-1]
    assert message.endswith(
        f"the {NAMES[ending]} data expand more than 500 times; refused as a bomb"
    )
    monkeypatch.setattr(opening, "LINE_BYTES", 10_000)
    content = b"\n" + b"x" * 9_999 + b"\n" + b"y" * 60_000 + b"\nz"
    assert refuse(content, "a.lines") == ("a.lines:3: the line is longer than 10000 bytes",)


def test_memory_stays_flat_and_rows_before_damage_are_read(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("label\ttext\n" + "a\tsome words\n" * 400_000)
    tracemalloc.start()
    for _ in zip(range(20_000), rows_of(open_source(str(path), Dialect("tsv"))), strict=False):
        pass
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2_000_000
    cut = tmp_path / "a.gz"
    cut.write_bytes(gzip.compress(b"".join(b"%d\n" % i for i in range(50_000)))[:-40])
    first = next(rows_of(open_source(str(cut), Dialect("lines"))))
    assert first.cells["text"] == "0"


@examples(300)
@given(
    content=st.one_of(
        st.binary(max_size=40),
        st.text('"{}[]:,\t\n\r@#_12?ael', max_size=40).map(str.encode),
    ),
    format=st.sampled_from(FORMATS),
)
def test_any_bytes_give_rows_or_a_data_error(content, format, tmp_path):
    path = tmp_path / "a"
    path.write_bytes(content)
    try:
        list(rows_of(open_source(str(path), Dialect(format))))
    except DataError as error:
        assert error.problems  # noqa: PT017
        assert not any("\n" in problem for problem in error.problems)  # noqa: PT017


@pytest.mark.parametrize("size", [1, 3, 7, 40, 1000])
def test_lines_are_the_same_however_many_bytes_are_read_at_once(read, monkeypatch, size):
    content = "first\na\r\n\r\nb\r\r\n\n é\u2028e \n\t\rf\n".encode() * 3 + b"\xff\n\0\r\ng\r\nh\r"
    expected = []
    for line in io.BytesIO(content):
        is_bad = b"\xff" in line or b"\0" in line
        text = line.decode(errors="replace").removesuffix("\n")
        end = text[:-1] if line.endswith(b"\r\n") else text
        expected.append(None if is_bad else end)
    monkeypatch.setattr(opening, "BLOCK_BYTES", size)
    found = read(content, "a.lines", blank_lines=True)
    assert [None if row.problem else row.cells["text"] for row in found] == expected
    assert [row.line for row in found] == list(range(1, len(expected) + 1))


@pytest.mark.parametrize("encoding", ["cp1252", "gbk", "utf-16", "utf-16-le", "utf-16-be"])
def test_other_encodings(read, encoding):
    text = "label\ttext\na\t你好 x\n" if encoding == "gbk" else "label\ttext\na\tthé x\n"
    named = "utf-16" if encoding.startswith("utf-16") else encoding
    for content in (text.encode(encoding), text.encode()):  # what is UTF-8 is read as UTF-8
        (row,) = read(content, "a.tsv", encoding=named)
        assert row.cells["text"] == text[13:-1]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("text\n".encode("utf-16"), "UTF-16 text; set data.encoding"),
        ("text\n".encode("utf-16-le"), "UTF-16 text"),
        (b"PK\x03\x04more", "a zip archive"),
        (b"\x1f\x8bmore", "gzip data; name the file NAME.gz, or pipe it by zcat FILE"),
        (b"PAR1\x15more", "a parquet file; name it NAME.parquet"),
        (b"PK\x03\x04..xl/workbook.xml", "a workbook of Excel; name it NAME.xlsx"),
        (b"PK\x03\x04..labels.npy", "arrays of numpy; name it NAME.npz"),
        (b"%PDF-1.4", "a PDF"),
    ],
)
def test_binary_files_are_named(refuse, content, said):
    assert said in refuse(content, "a.csv")[0]


@pytest.mark.parametrize("sizes", [(3,), (1, 40), (200, 1, 1)])
def test_short_members_of_gzip_do_not_hide_the_delimiter(sizes, read):
    content = b"label;text\n" + b"".join(b"x;one, two, three\n" for _ in range(40))
    parts, start = list[bytes](), 0
    for size in (*sizes, len(content)):
        parts.append(gzip.compress(content[start : start + size]))
        start += size
    found = read(b"".join(parts), "a.csv.gz", "text", "label")
    assert [row.cells["text"] for row in found] == ["one, two, three"] * 40


def test_an_encoding_is_guessed_from_the_lines_that_are_not_utf_8(tmp_path):
    pytest.importorskip("chardet")
    texts = {
        "cp1251": "Сегодня очень хорошая погода, и мы пойдём гулять в парк\n",
        "cp1252": "Der Bär läuft über die grüne Straße und frißt süße Äpfel\n",
        "shift_jis": "今日はとても良い天気なので、公園へ散歩に行きましょう\n",
    }
    for encoding, text in texts.items():
        path = tmp_path / "a.txt"
        path.write_bytes(b"plain\n" + text.encode(encoding) * 20)
        guess = opening.guess_encoding(str(path))
        assert guess is not None
        assert text.encode(encoding).decode(guess) == text


def test_the_digest_is_taken_while_a_file_is_read(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b\n1,2\n" * 1000)
    source = open_source(str(path), Dialect("csv", header=False))
    list(rows_of(source))
    os.chmod(path, 0)
    digest = source.digest()
    os.chmod(path, 0o600)
    assert digest == opening.file_digest(str(path))
    path.write_bytes(b"a,b\n1,3\n")
    assert source.digest() != digest


@pytest.mark.parametrize(
    "text",
    ["es kostet 5 €", "€ 20 and more", "don’t – or “do”", "20 °C ± 1", "wait…", "5 £, § 3 ©"],
)
def test_marks_without_letters_beyond_ascii_are_of_cp1252(tmp_path, text):
    path = tmp_path / "a.txt"
    path.write_bytes(f"plain words\n{text}\n".encode("cp1252") * 9)
    assert opening.guess_encoding(str(path)) == "cp1252"
    for other, letters in (("cp437", "Bär müde schön"), ("cp862", "אבג שלום"), ("cp850", "crème")):
        path.write_bytes(f"plain words\n{letters}\n".encode(other) * 9)
        assert opening.guess_encoding(str(path)) != "cp1252"


@pytest.mark.parametrize("text", ["„Größe“ – 5 € für Bücher", "L’été – à l’école, “ça” coûte 3 €"])
def test_marks_beside_letters_are_of_cp1252(tmp_path, text):
    """And in no encoding of DOS, where they would be letters."""
    path = tmp_path / "a.txt"
    path.write_bytes(f"{text}\n".encode("cp1252") * 30)
    assert opening.guess_encoding(str(path)) in ("cp1252", "windows-1252")
    path.write_bytes("привет мир как дела\n".encode("cp866") * 30)
    assert opening.guess_encoding(str(path)) == "ibm866"
