"""The library is compiled where there is a compiler, without writing to the sources."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest

import seqtrain
from seqtrain.model.engines.native.build import LIBRARY, compile_library

SOURCES = Path(seqtrain.__file__).parent.parent
needs_compiler = pytest.mark.skipif(not shutil.which("c++"), reason="no compiler")


def test_no_compiler_is_no_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr("sysconfig.get_config_var", lambda name: None)
    assert compile_library(tmp_path / LIBRARY) == "no C++ compiler was found"
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@needs_compiler
def test_an_old_compiler_builds_all_but_bfloat16(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old = tmp_path / "old-c++"
    old.write_text('#!/bin/sh\ncase "$*" in *avx512bf16*) exit 1;; esac\nexec c++ "$@"\n')
    old.chmod(0o755)
    monkeypatch.setenv("CXX", str(old))
    (tmp_path / "file").write_text("no folder")
    assert "Not a directory" in compile_library(tmp_path / "file" / LIBRARY)
    assert compile_library(tmp_path / LIBRARY) == ""
    built = (tmp_path / LIBRARY).read_bytes()
    assert b"seqtrain_kernels_portable" in built
    assert b"seqtrain_kernels_bfloat16" not in built


@pytest.mark.slow
@needs_compiler
def test_a_wheel_is_built_without_a_file_written_to_the_sources(tmp_path: Path) -> None:
    wheels = pytest.importorskip("hatchling.builders.wheel", reason="no hatchling")
    tree = tmp_path / "tree"
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(SOURCES / "seqtrain", tree / "seqtrain", ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(SOURCES / name, tree / name)
    before = sorted(tree.rglob("*"))
    (wheel,) = wheels.WheelBuilder(str(tree)).build(
        directory=str(tmp_path / "dist"), versions=["standard"]
    )
    written = [path for path in tree.rglob("*") if "__pycache__" not in path.parts]
    assert sorted(written) == before
    assert f"seqtrain/model/engines/native/{LIBRARY}" in zipfile.ZipFile(wheel).namelist()
