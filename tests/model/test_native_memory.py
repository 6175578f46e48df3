"""Native code never touches memory that isn't its own: random sizes and random mistakes.

Run as they are, these tests find wrong numbers and crashes; the slow one runs them, with the native
engine's other tests, under AddressSanitizer.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from seqtrain.model.cells import zero_state
from seqtrain.model.engines.native.build import compile_library
from tests.helpers.examples import examples
from tests.helpers.native_cases import CASES, Case

FUZZ = examples(40)


def scatter(tensor: Tensor) -> Tensor:
    """Return the same numbers, two apart in memory."""
    return torch.stack((tensor, torch.zeros_like(tensor)), -1)[..., 0]


@FUZZ
@given(keys=CASES)
def test_fuzz_scattered_memory(path: str, keys: dict[str, Any]) -> None:
    case = Case(**keys)
    with torch.no_grad():
        _, expected = case.native()
        case.table, case.batch_sizes = scatter(case.table), scatter(case.batch_sizes)
        case.index = None if case.index is None else scatter(case.index)
        case.start = None if case.start is None else scatter(case.start)
        for name, parameter in list(case.encoder.named_parameters()):
            setattr(case.encoder, name, nn.Parameter(scatter(parameter)))
        assert torch.equal(case.native()[1], expected)


def mistakes(case: Case) -> dict[str, Callable[[], object]]:
    """Return what may be wrong with a case that has an index, each as what makes it so."""
    assert case.index is not None
    index, sizes, table, encoder = case.index, case.batch_sizes, case.table, case.encoder
    start = zero_state(encoder, int(sizes[0]), like=table)
    outside = (index.index_fill(0, torch.tensor(len(index) - 1), i) for i in (-1, 150, 2**62))
    wrong: dict[str, list[Tensor]] = {
        "table": [table.T[:, :1], table[:, 0], table[:, :0], torch.cat((table, table), 1)],
        "index": [index.int(), index.double(), index[:-1], torch.cat((index, index)), *outside],
        "batch_sizes": [
            *(sizes.int(), sizes.float(), sizes[:-1], torch.cat((sizes, sizes[-1:])), sizes + 1),
            *(torch.tensor([len(index) + 1, -1]), torch.tensor([len(index), 0])),
        ],
        "start": [
            *(start[:-1], start[:, :-1], start[:, :, :-1], start[..., :-1], start.double()),
            *(torch.cat((start, start)), torch.cat((start, start), 2)),
        ],
    }
    return {
        f"{name} {number}": partial(setattr, case, name, value)
        for name, values in wrong.items()
        for number, value in enumerate(values)
    }


@FUZZ
@given(keys=CASES, data=st.data())
def test_fuzz_mistakes_are_refused(path: str, keys: dict[str, Any], data: st.DataObject) -> None:
    case = Case(**{**keys, "vectors": 150, "input_size": 3})
    changes = mistakes(case)
    changes[data.draw(st.sampled_from(sorted(changes)))]()
    with pytest.raises((TypeError, ValueError)):
        case.native()


@pytest.mark.slow
def test_never_touches_memory_that_is_not_its_own(tmp_path: Path) -> None:
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
        "import sys, pytest, seqtrain.model.engines.native.library as library\n"
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
