"""The library is built without writing to the sources, which may be read-only."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest

import seqtrain
from seqtrain.model.engines.native.build import LIBRARY, _put

SOURCES = Path(seqtrain.__file__).parent.parent


def test_a_place_that_cannot_be_written_is_a_problem_in_words(tmp_path: Path) -> None:
    built = tmp_path / "built"
    built.write_bytes(b"library")
    (tmp_path / "file").write_text("no folder")
    assert "Not a directory" in _put(built, tmp_path / "file" / LIBRARY)
    assert _put(built, tmp_path / LIBRARY) == ""
    assert (tmp_path / LIBRARY).read_bytes() == b"library"


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("c++"), reason="no compiler")
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
