"""What stands on disk: missing, strange, too large or wrongly encoded files."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from seqtrain.config import load_config, resolve_format
from seqtrain.errors import ConfigError

GOOD = b"data: {train: a.csv, sequence: s, label: l}\n"


def only_problem(path: str | Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    (problem,) = caught.value.problems
    return problem


def test_file_is_read_and_named_as_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cfg.yaml").write_bytes(GOOD)
    assert load_config("cfg.yaml", ["seed=3"]).seed == 3
    assert load_config(tmp_path / "cfg.yaml").data.label == "l"
    Path("cfg.yaml").write_bytes(b"sed: 1\n" + GOOD)
    assert only_problem("cfg.yaml") == "cfg.yaml:1:1: sed: unknown key; did you mean seed?"


def test_missing_file_names_the_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    expected = f"{tmp_path}/cfg.yaml: no such file; expected a YAML file"
    assert only_problem("cfg.yaml") == expected


def test_directory_loop_long_name_and_nul(tmp_path: Path) -> None:
    assert f"{tmp_path}: is a folder" in only_problem(tmp_path)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert "symbolic links" in only_problem(tmp_path / "loop")
    assert "File name too long" in only_problem("x" * 300)
    assert "a path can't hold NUL" in only_problem("x\0y")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_file(tmp_path: Path) -> None:
    (tmp_path / "cfg.yaml").touch(mode=0)
    assert "Permission denied" in only_problem(tmp_path / "cfg.yaml")


def test_pipe_and_device_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    answers: list[str] = []
    paths = (tmp_path / "pipe", Path("/dev/zero"))
    ask = threading.Thread(target=lambda: answers.extend(map(only_problem, paths)), daemon=True)
    ask.start()
    ask.join(5)
    assert answers == [
        f"{path}: is {kind}; expected a YAML file"
        for path, kind in zip(paths, ("a pipe", "a device or socket"), strict=True)
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (GOOD.decode().encode("utf-16"), "UTF-16 at byte 0; save the file as UTF-8"),
        (GOOD.decode().encode("utf-16-be"), "NUL at byte 0; save the file as UTF-8 text"),
        (GOOD + b"# \x00", f"NUL at byte {len(GOOD) + 2}; save the file as UTF-8 text"),
        (GOOD + b"# \xe9t\xe9", f"byte 0xE9 at byte {len(GOOD) + 2} isn't UTF-8; save the file as"),
        (b"\xef\xbb\xbf# \xff", "byte 0xFF at byte 5 isn't UTF-8; save the file as UTF-8"),
        (GOOD + b"#" * 2**20, "larger than 1 MiB; expected a YAML file of a few lines"),
    ],
)
def test_content_that_cannot_be_read(tmp_path: Path, content: bytes, expected: str) -> None:
    (tmp_path / "cfg.yaml").write_bytes(content)
    assert only_problem(tmp_path / "cfg.yaml").startswith(f"{tmp_path}/cfg.yaml: {expected}")


def test_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "cfg.yaml").write_bytes(b"\xef\xbb\xbf" + GOOD)
    assert load_config(tmp_path / "cfg.yaml").data.train == "a.csv"


@pytest.mark.parametrize(
    ("path", "format"),
    [
        ("a/b.csv", "csv"),
        ("b.TSV.GZ", "tsv"),
        ("b.jsonl", "jsonl"),
        ("b.ndjson.gz", "jsonl"),
        ("b.csv.zst", "csv"),
        ("b.ft", "fasttext"),
        ("b.fasttext", "fasttext"),
        ("b.txt", "txt"),
        ("b.ts", "ts"),
        ("b.npz", "npz"),
        ("b", None),
        ("b.gz", None),
        ("csv", None),
        ("x" * 5000, None),
    ],
)
def test_format_goes_by_the_ending(path: str, format: str | None) -> None:
    assert resolve_format(path, "auto") == format
    assert resolve_format(path, "csv") == "csv"


def test_folder_is_txt(tmp_path: Path) -> None:
    assert resolve_format(str(tmp_path), "auto") == "txt"


def test_import_is_light() -> None:
    program = "import sys, seqtrain.config; print(*{'torch', 'numpy'} & set(sys.modules))"
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == ""
