"""Native code never touches memory that isn't its own: random sizes and random mistakes.

Run as they are, these tests find wrong numbers and crashes; the slow one runs them, with the native
engine's other tests, under AddressSanitizer.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from torch import Tensor, nn

from seqtrain.engines.native.build import compile_library
from tests.helpers.examples import examples
from tests.helpers.native_cases import CASES, Case

FUZZ = examples(40)


def scatter(tensor: Tensor) -> Tensor:
    """Return the same numbers, two apart in memory."""
    return torch.stack((tensor, torch.zeros_like(tensor)), -1)[..., 0]


@FUZZ
@given(keys=CASES)
def test_fuzz_scattered_memory(path, keys):
    case = Case(**keys)
    with torch.no_grad():
        _, expected = case.native()
        case.table, case.batch_sizes = scatter(case.table), scatter(case.batch_sizes)
        case.index = None if case.index is None else scatter(case.index)
        case.start = None if case.start is None else scatter(case.start)
        for name, parameter in list(case.encoder.named_parameters()):
            setattr(case.encoder, name, nn.Parameter(scatter(parameter)))
        assert torch.equal(case.native()[1], expected)


@pytest.mark.slow
def test_never_touches_memory_that_is_not_its_own(tmp_path):
    runtimes = [
        subprocess.run(
            ["c++", f"-print-file-name={name}"], capture_output=True, text=True, check=False
        ).stdout.strip()
        for name in ("libasan.so", "libstdc++.so")
    ]
    if not Path(runtimes[0]).is_absolute():
        pytest.skip("this compiler has no AddressSanitizer")
    library = tmp_path / "library.so"
    assert compile_library(library, ["-fsanitize=address", "-O1", "-g"]) == ""
    program = (
        "import sys, pytest, seqtrain.engines.native.library as library\n"
        "library.LIBRARY = sys.argv[1]\n"
        "sys.exit(pytest.main([*sys.argv[2:], '-q', '-x', '-p', 'no:cacheprovider']))"
    )
    here = Path(__file__).parent
    chosen = "fuzz or torchs or bfloat16 or awkward or threads or update or refused or operations"
    files = ["-k", chosen, *map(str, sorted(here.glob("test_native*.py")))]
    preloaded = {"LD_PRELOAD": " ".join(runtimes), "ASAN_OPTIONS": "detect_leaks=0"}
    run = subprocess.run(
        [sys.executable, "-c", program, str(library), *files],
        env={**os.environ, **preloaded},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
