"""The library is compiled if there is a compiler. Without one, the installation continues."""

import shutil

import pytest

from seqtrain.engines.native.build import LIBRARY, compile_library


def test_no_compiler_is_no_failure(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr("sysconfig.get_config_var", lambda name: None)
    assert compile_library(tmp_path / LIBRARY).startswith("no C++ compiler")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("c++"), reason="no compiler")
def test_an_old_compiler_builds_all_but_bfloat16(monkeypatch, tmp_path):
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
