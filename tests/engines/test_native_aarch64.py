"""The library for aarch64, cross-compiled and emulated: NEON, and its bfloat16 products."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

import seqtrain.engines.native as native

SOURCES = Path(native.__file__).parent
COMPILER, EMULATOR = "aarch64-linux-gnu-g++", "qemu-aarch64"
SYSTEM = Path("/usr/aarch64-linux-gnu")
CELLS = {"GRU": 0, "LSTM": 1, "RNN": 2}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (shutil.which(COMPILER) and shutil.which(EMULATOR)),
        reason=f"needs {COMPILER} and {EMULATOR} (Debian: g++-aarch64-linux-gnu, qemu-user)",
    ),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with the library and the driver, for aarch64."""
    folder = tmp_path_factory.mktemp("aarch64")
    program = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]); import build; "
        "sys.exit(build.compile_library(Path(sys.argv[2])) or None)"
    )
    environment = {**os.environ, "CXX": COMPILER, "_PYTHON_HOST_PLATFORM": "linux-aarch64"}
    subprocess.run(
        [sys.executable, "-c", program, str(SOURCES), str(folder / "library.so")],
        env=environment,
        check=True,
    )
    driver = Path(__file__).with_name("aarch64_driver.cpp")
    options = ["-std=c++17", "-O1", f"-I{SOURCES}", "-o", str(folder / "driver"), "-ldl"]
    subprocess.run([COMPILER, str(driver), *options], check=True)
    return folder


def emulate(folder: Path, path: str, sizes: list[int], tensors: list[Tensor]) -> list[float]:
    """Run the driver; return what it writes."""
    content = path.encode().ljust(16, b"\0") + torch.tensor(sizes).numpy().tobytes()
    content += b"".join(tensor.detach().contiguous().numpy().tobytes() for tensor in tensors)
    (folder / "in").write_bytes(content)
    arguments = [folder / name for name in ("driver", "library.so", "in", "out")]
    command = [EMULATOR, "-cpu", "max", "-L", SYSTEM, *arguments]
    subprocess.run(list(map(str, command)), check=True, timeout=120)
    return torch.frombuffer(bytearray((folder / "out").read_bytes()), dtype=torch.float32).tolist()


@pytest.mark.parametrize("bfloat16", [False, True])
@pytest.mark.parametrize("direction", [0, 1])
@pytest.mark.parametrize("sizes", [(7, 5, 3), (16, 24, 11), (33, 37, 9)])
@pytest.mark.parametrize("rnn", CELLS)
def test_computes_what_torch_does(built, rnn, sizes, direction, bfloat16):
    torch.manual_seed(0)
    width, hidden, batch = sizes
    lengths = sorted(torch.randint(1, 14, (batch,)).tolist(), reverse=True)
    batch_sizes = torch.tensor([sum(n > t for n in lengths) for t in range(lengths[0])])
    tokens, parts = sum(lengths), 2 if rnn == "LSTM" else 1
    encoder: nn.RNNBase = getattr(nn, rnn)(width, hidden, bidirectional=True)
    weights = encoder.all_weights[direction]
    vectors = torch.randn(tokens // 2 + 1, width, requires_grad=True)
    index = torch.randint(0, len(vectors), (tokens,))
    start = torch.randn(2, 2, batch, hidden, requires_grad=True)  # h and c, two directions
    given = (start[0], start[1]) if parts == 2 else start[0]
    outputs, last = encoder(PackedSequence(vectors[index], batch_sizes), given)
    lasts = last if parts == 2 else (last, torch.zeros_like(last))
    states = outputs.data[:, direction * hidden : (direction + 1) * hidden]
    ends = [part[direction] for part in lasts]
    d_states, *d_ends = (torch.randn_like(tensor) for tensor in (states, *ends))
    loss = (states * d_states).sum() + sum((a * b).sum() for a, b in zip(ends, d_ends, strict=True))
    gradients = torch.autograd.grad(loss, [vectors, *weights, start])
    expected = [states, *ends, *gradients[:-1], *gradients[-1][:, direction]]

    numbers = [CELLS[rnn], int(bfloat16), direction, tokens, len(batch_sizes), batch]
    numbers += [len(vectors), width, hidden]
    tensors = [batch_sizes, index, vectors, *weights, *start[:, direction], d_states, *d_ends]
    found = emulate(built, "neon", numbers, tensors)
    at = 0
    for tensor in (result.detach() for result in expected):
        ours = torch.tensor(found[at : at + tensor.numel()]).view(tensor.shape)
        at += tensor.numel()
        scale = 0.03 if bfloat16 else 2e-5
        torch.testing.assert_close(
            ours, tensor, rtol=0, atol=scale * (1 + float(tensor.abs().max()))
        )
    assert at == len(found)
