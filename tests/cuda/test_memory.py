"""Memory of the device that runs out: one clear line, and what was saved stays valid."""

from pathlib import Path

import pytest
import torch

from seqtrain.errors import RunError
from seqtrain.sequences.batch import memory_errors
from tests.helpers.tiny import Cli, sets

FIT = ("fit", "c.yaml", "--run-dir", "r", "--quiet", "--device", "cuda")


@pytest.mark.parametrize(
    "message",
    [
        "CUDA out of memory. Tried to allocate 2.00 GiB.",
        "CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
    ],
)
def test_each_message_of_torch_is_understood(message, device):
    import numpy as np

    with pytest.raises(RunError, match="memory"), memory_errors(np.array([3, 2]), "a.key"):
        raise RuntimeError(message)


def test_a_batch_that_does_not_fit(project, fake, cli: Cli):
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    cli(*FIT)
    needed = torch.cuda.max_memory_allocated() - before
    saved = {path: path.read_bytes() for path in Path("r").rglob("*.safetensors")}
    fake.limit_memory(torch.cuda.memory_allocated() + needed // 2)
    lines = cli(*FIT[:2], "--run-dir", "other", *FIT[4:], code=3)
    assert "memory" in lines.problems[-1]
    assert "batching.batch_size" in lines.problems[-1]
    assert saved == {path: path.read_bytes() for path in Path("r").rglob("*.safetensors")}


def test_a_model_is_compared_with_the_memory_of_the_gpu(project, fake, cli: Cli):
    fake.limit_memory(torch.cuda.memory_allocated() + 2**20)
    lines = cli(*FIT, *sets("model.hidden_size=512"), code=2)
    assert "model.hidden_size" in lines.err
    assert "GPU" in lines.err
    fake.limit_memory()
    cli(*FIT, *sets("model.hidden_size=64"))
