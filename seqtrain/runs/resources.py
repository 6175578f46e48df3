"""Memory that training needs, and settings of torch during training."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

from seqtrain.config.schema import Config, ModelConfig
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.store import SequenceStore
from seqtrain.errors import ConfigError, DataError
from seqtrain.model.classifier import new_network

COPIES = 4
"""Copies of the weights in memory: weights, gradients, and the optimizer's two moments."""
STATES_SAVED = 6
"""Vectors of hidden_size, about, that each step, layer and direction keep for backward."""
FLOAT_BYTES = 4
CUBLAS_SETTING = "CUBLAS_WORKSPACE_CONFIG"


def check_model(model: ModelConfig, preprocessing: Preprocessing, device: torch.device) -> None:
    """Raise ConfigError if weights, gradients and moments need more memory than the device has."""
    available = available_memory(device)
    network = new_network(model, preprocessing)
    parameters = sum(weight.numel() for weight in network.parameters())
    needed = parameters * COPIES * FLOAT_BYTES
    if available is None or needed <= available:
        return
    key, lower = "model.hidden_size", "model.hidden_size or model.embedding_dim"
    ngram_weights = len(preprocessing.ngrams or ()) * len(preprocessing.labels)
    if 2 * ngram_weights > parameters:
        key, lower = "model.max_ngrams", "it"
    raise ConfigError(
        f"{key}: {parameters:,} parameters need about {needed:,} bytes ({_gib(needed)}) to train; "
        f"{_owner(device)} has {_gib(available)}; lower {lower}"
    )


def check_longest(config: Config, train: SequenceStore, device: torch.device) -> None:
    """Raise DataError, with its line, if the longest sequence needs more memory than there is."""
    available, model = available_memory(device), config.model
    longest = int(train.lengths.argmax())
    steps = int(train.lengths[longest])
    directions = 2 if model.bidirectional else 1
    states = model.num_layers * directions * model.hidden_size
    kept_steps = min(steps, config.training.bptt or steps)
    needed = kept_steps * FLOAT_BYTES * (model.width + STATES_SAVED * states)
    if available is not None and needed > available:
        raise DataError(
            f"{train.place(longest)}: a sequence of {steps:,} steps needs about {_gib(needed)} to "
            f"train on; {_owner(device)} has {_gib(available)}; set training.bptt or "
            "data.max_length"
        )


def available_memory(device: torch.device) -> int | None:
    """Return the free memory of a GPU, or the machine's memory, in bytes, or None if unknown."""
    if device.type == "cuda":
        free: int = torch.cuda.mem_get_info(device)[0]
        return free
    return physical_memory()


def physical_memory() -> int | None:
    """Return the machine's memory in bytes, or None if the system doesn't report it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def peak_memory(device: torch.device) -> int | None:
    """Return the peak memory of the GPU or the process in bytes, or None if it is unknown."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if sys.platform == "win32":
        return None
    with suppress(OSError, StopIteration):  # ru_maxrss may include a parent process on Linux
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@contextmanager
def deterministic_algorithms(is_on: bool) -> Iterator[None]:
    """Make torch use deterministic algorithms in the block, and restore its settings after it.

    On CUDA, the block must be entered before cuBLAS computes anything.
    """
    if not is_on:
        yield
        return
    mode, workspace = torch.get_deterministic_debug_mode(), os.environ.get(CUBLAS_SETTING)
    os.environ.setdefault(CUBLAS_SETTING, ":4096:8")
    # Unlike torch.use_deterministic_algorithms, this doesn't import the compiler.
    torch.set_deterministic_debug_mode("error")
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(mode)
        if workspace is None:
            os.environ.pop(CUBLAS_SETTING, None)


def _owner(device: torch.device) -> str:
    return "the GPU" if device.type == "cuda" else "this machine"


def _gib(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB"
