"""Memory: what training needs, what a device offers, and the peak of a run."""

import os
import sys
from contextlib import suppress
from pathlib import Path

import torch

from seqtrain.config.schema import Config, ModelConfig
from seqtrain.errors import ConfigError, DataError
from seqtrain.model.branches.ngrams import MOST_PENALIZED_ROWS
from seqtrain.model.network import new_network
from seqtrain.sequences.dataset import PreparedData
from seqtrain.sequences.store import SequenceStore

COPIES = 4
"""Copies of the weights in memory: weights, gradients, and the optimizer's two moments."""
SOLVER_COPIES = 10
"""Copies of the weights of n-grams that Newton's method keeps at once."""
BOOSTING_BYTES = 64
"""Bytes for each row and class that boosting of trees needs: targets, logits and derivatives."""
STATES_SAVED = 6
"""Approximate number of hidden vectors that backward needs per step, layer and direction."""
FLOAT_BYTES = 4


def check_memory(config: Config, data: PreparedData, device: torch.device) -> None:
    """Check that training fits into the memory, as far as it is known.

    Args:
        config: The config.
        data: Encoded splits, and the preprocessing that decides how many weights there are.
        device: Device that trains.

    Raises:
        ConfigError: If the weights or their solvers need more than there is.
        DataError: If the states of the longest sequence of train do.
    """
    _check_weights(config.model, data, device)
    _check_longest(config, data.splits["train"], device)
    rows = len(data.splits["train"])
    classes = len(data.preprocessing.labels)
    lack = _shortage(rows * classes * BOOSTING_BYTES, torch.device("cpu"))
    if config.model.trees and lack:
        raise ConfigError(
            f"model.trees: {rows:,} rows of {classes:,} classes need {lack}; set model.trees: false"
        )


def _check_weights(model: ModelConfig, data: PreparedData, device: torch.device) -> None:
    """Raise ConfigError unless weights, gradients and the optimizer's moments have room.

    The weights of n-grams need memory for their solver, which the number of rows decides.
    """
    fitted = data.preprocessing
    network = new_network(model, fitted)  # without kernels, which aren't parameters
    parameters = sum(weight.numel() for weight in network.parameters())
    lack = _shortage(parameters * COPIES * FLOAT_BYTES, device)
    if lack:
        raise ConfigError(
            f"model.hidden_size: {parameters:,} parameters need {lack}; lower model.hidden_size "
            "or model.embedding_dim"
        )
    weights = len(fitted.ngrams or ()) * len(fitted.labels)
    is_penalized = len(data.splits["train"]) <= MOST_PENALIZED_ROWS
    copies = SOLVER_COPIES if is_penalized else COPIES
    lack = _shortage(weights * copies * FLOAT_BYTES, device)
    if lack:
        raise ConfigError(f"model.max_ngrams: {weights:,} parameters need {lack}; lower it")


def _check_longest(config: Config, train: SequenceStore, device: torch.device) -> None:
    """Raise DataError unless the states of the longest sequence have room.

    With training.bptt, only the states of that many time steps are kept.
    """
    model = config.model
    longest = int(train.lengths.argmax())
    steps = int(train.lengths[longest])
    directions = 2 if model.bidirectional else 1
    states = model.num_layers * directions * model.hidden_size
    kept = min(steps, config.training.bptt or steps)
    lack = _shortage(kept * FLOAT_BYTES * (model.width + STATES_SAVED * states), device)
    if lack:
        raise DataError(
            f"{train.place(longest)}: a sequence of {steps:,} steps needs {lack}; set "
            "training.bptt or data.max_length"
        )


def _shortage(needed: int, device: torch.device) -> str:
    """Return what is needed and what there is, or "" if it is enough or unknown."""
    available = physical_memory()
    owner = "this machine"
    if device.type == "cuda":
        available = torch.cuda.mem_get_info(device)[0]
        owner = "the GPU"
    if available is None or needed <= available:
        return ""
    sizes = [f"{size / 2**30:,.1f} GiB" for size in (needed, available)]
    return f"about {needed:,} bytes ({sizes[0]}) to train; {owner} has {sizes[1]}"


def physical_memory() -> int | None:
    """Return the machine's memory in bytes, or None if the system doesn't report it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def peak_memory(device: torch.device) -> int | None:
    """Return the most memory in use since the process started, in bytes, or None if unknown.

    On CUDA it is what torch allocated on the GPU. On other devices it is the memory of the process.
    """
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if sys.platform == "win32":
        return None
    with suppress(OSError, StopIteration):  # ru_maxrss may include a parent process on Linux
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if sys.platform == "darwin":
        return peak
    return peak * 1024
