"""The native engine refuses what it can't read before native code runs; and can be absent."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from seqtrain.model.cells import GRU
from seqtrain.model.engines.interface import DistinctInputs
from seqtrain.model.engines.native import NativeEngine, why_not
from seqtrain.model.engines.native.build import LIBRARY, compile_library
from seqtrain.model.engines.native.library import VARIABLE, find_library
from tests.helpers.native_cases import run_native

needs_library = pytest.mark.skipif(bool(why_not()), reason=why_not())


def packed(batch_sizes: list[int], size: int = 5) -> PackedSequence:
    return PackedSequence(torch.randn(sum(batch_sizes), size), torch.tensor(batch_sizes))


def shared(index: list[int], dtype: torch.dtype = torch.int64) -> DistinctInputs:
    return DistinctInputs(
        torch.randn(3, 5), torch.tensor(index, dtype=dtype), torch.tensor([len(index)])
    )


@needs_library
@pytest.mark.parametrize(
    ("inputs", "start", "error", "says"),
    [
        (packed([2, 1], size=4), None, ValueError, r"\(tokens, 5\)"),
        (PackedSequence(torch.randn(5), torch.tensor([5])), None, ValueError, "shape"),
        (PackedSequence(torch.randn(4, 5), torch.tensor([2, 1])), None, ValueError, "sum is 3"),
        (PackedSequence(torch.randn(3, 5), torch.tensor([1, 2])), None, ValueError, "never grow"),
        (PackedSequence(torch.randn(3, 5), torch.tensor([3, 0])), None, ValueError, "positive"),
        (PackedSequence(torch.randn(1, 5), torch.tensor([3, -2])), None, ValueError, "positive"),
        (PackedSequence(torch.randn(3, 5), torch.tensor([3.0])), None, ValueError, "batch_sizes"),
        (shared([0, 3]), None, ValueError, "0 to 3, must be 0 to 2"),
        (shared([-1, 2]), None, ValueError, "-1 to 2"),
        (shared([0, 1], torch.int32), None, TypeError, "int32"),
        (packed([2, 1]), torch.zeros(1, 1, 3, 6), ValueError, r"must be \(1, 1, 2, 6\)"),
        (packed([2, 1]), torch.zeros(1, 1, 2, 6).double(), TypeError, "float64"),
    ],
)
def test_bad_input_is_refused(
    inputs: PackedSequence | DistinctInputs,
    start: Tensor | None,
    error: type[Exception],
    says: str,
) -> None:
    with pytest.raises(error, match=says):
        run_native(nn.GRU(5, 6), inputs, start)


@needs_library
def test_serves_float32_on_the_cpu_alone() -> None:
    cpu = torch.device("cpu")
    assert not NativeEngine.why_not(GRU, cpu, torch.float32)
    assert (
        NativeEngine.why_not(GRU, cpu, torch.float64) == "native takes float32 alone, not float64"
    )
    assert NativeEngine.why_not(GRU, torch.device("meta"), torch.float32).endswith("for meta")
    with pytest.raises(TypeError, match="float64"):
        run_native(nn.GRU(5, 6).double(), packed([2, 1]))


@pytest.mark.parametrize(("value", "says"), [("off", "switched off"), ("sse", "must be one of")])
def test_the_variable_switches_it_off(
    monkeypatch: pytest.MonkeyPatch, value: str, says: str
) -> None:
    monkeypatch.setenv(VARIABLE, value)
    find_library.cache_clear()
    try:
        assert says in why_not()
        assert says in NativeEngine.why_not(GRU, torch.device("cpu"), torch.float32)
        with pytest.raises(RuntimeError, match=says):
            run_native(nn.GRU(5, 6), packed([2, 1]))
    finally:
        find_library.cache_clear()


@pytest.mark.slow
@pytest.mark.skipif(not any(map(shutil.which, ("c++", "g++", "clang++"))), reason="no compiler")
def test_compiles_where_there_is_a_compiler(tmp_path: Path) -> None:
    assert compile_library(tmp_path / LIBRARY) == ""
    assert (tmp_path / LIBRARY).is_file()


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("c++"), reason="no compiler")
def test_an_old_compiler_builds_all_but_bfloat16(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old = tmp_path / "old-c++"
    old.write_text('#!/bin/sh\ncase "$*" in *avx512bf16*) exit 1;; esac\nexec c++ "$@"\n')
    old.chmod(0o755)
    monkeypatch.setenv("CXX", str(old))
    assert compile_library(tmp_path / LIBRARY) == ""
    built = (tmp_path / LIBRARY).read_bytes()
    assert b"seqtrain_kernels_portable" in built
    assert b"seqtrain_kernels_bfloat16" not in built


def test_no_compiler_is_no_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr("sysconfig.get_config_var", lambda name: None)
    assert compile_library(tmp_path / "library.so") == "no C++ compiler was found"
    assert not list(tmp_path.iterdir())
