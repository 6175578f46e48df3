"""What a run trains with, what it ran on, and whether that is the same again, and enough."""

import hashlib
import os
import platform
import shutil
import sys
import time
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import Module

import seqtrain
from seqtrain.config.schema import Config, ModelConfig
from seqtrain.data.dataset import PreparedData, held_out_fractions
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.sources import data_sources
from seqtrain.data.store import Array, SequenceStore
from seqtrain.errors import CheckpointError, ConfigError, DataError, RunError
from seqtrain.files.writing import blocks_of
from seqtrain.model.branches.recurrent import recurrent_branch
from seqtrain.model.engines.native.library import vector_path
from seqtrain.runs.checkpoint import COUNTERS, MOMENTS
from seqtrain.runs.destination import nearest_existing
from seqtrain.runs.model_folder import Model, model_files, new_network
from seqtrain.runs.run_directory import CONFIG, RunDirectory, changed_data
from seqtrain.training.distributed import Processes

HELD_OUT = "held_out"
"""Entry of environment.json: of each split that is held out of train's file, which rows it has."""
COPIES = 4
"""Weights, gradients, and the optimizer's two moments."""
STATES_SAVED = 6
"""Vectors of hidden_size that a step, layer and direction keep for the backward pass, about."""
FLOAT_BYTES = 4
CHECKPOINTS = 5
"""Folders that stand at most at one time: best, last, previous and two under way, or pretrained."""


@dataclass(frozen=True)
class Setting:
    """What a run trains with; the config is resolved."""

    config: Config
    data: PreparedData
    device: torch.device
    processes: Processes


def environment(setting: Setting) -> dict[str, Any]:
    """Return versions, device, processes, threads, and digests of data files and held-out rows."""
    data, device, processes = setting.data, setting.device, setting.processes
    return {
        "seqtrain": seqtrain.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": platform.platform(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "native": vector_path(),
        "cpu_count": os.cpu_count(),
        "processes": processes.size,
        **({} if processes.launch is None else {"launch": processes.launch}),
        "threads": torch.get_num_threads(),
        "device": str(device),
        "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else None,
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "data": data.digests,
        **({} if data.vectors is None else {"vectors": asdict(data.vectors.coverage)}),
        HELD_OUT: held_out(setting.config, data),
    }


def held_out(config: Config, data: PreparedData) -> dict[str, str]:
    """Return for each split that is held out of train's file the SHA-256 of its rows' lines."""
    return {
        name: hashlib.sha256(data.splits[name].lines.astype("<i8").tobytes()).hexdigest()
        for name in held_out_fractions(config.data)
    }


def check_same_data(
    run: RunDirectory,
    config: Config,
    data: PreparedData,
    preprocessing: Preprocessing,
    scored: Container[str] = (),
) -> None:
    """Refuse other data than a run's, by their digests, and what would be learned from other rows.

    `scored` are keys of the config whose files may differ.
    """
    recorded, keys = run.environment(), {x.path: key for key, x in data_sources(config)}
    before = recorded["data"]
    learned = {path: x for path, x in data.digests.items() if keys.get(path) not in scored}
    other = changed_data(before, learned)
    other += [f"{path}: the run didn't read it" for path in learned if path not in before]
    gone = [path for path in before if path not in learned and path not in keys]
    other += [f"{path}: the run read it, and nothing names it now" for path in gone]
    if other:
        advice = "restore the file, begin a new run (fit --force), or score another file (--data)"
        raise CheckpointError(*(f"{line}; {advice}" for line in other))
    if data.preprocessing != preprocessing:
        what = "vocabulary, labels or preprocessing aren't those of the run's train"
        raise CheckpointError(f"{run.path}: the {what}; restore it from a copy")
    if HELD_OUT in recorded and recorded[HELD_OUT] != held_out(config, data):
        problem = "holds out other rows than the run did; restore it from a copy"
        raise CheckpointError(f"{run.path / CONFIG}: {problem}")


def peak_memory(device: torch.device) -> int | None:
    """Return the most memory the process, or its GPU, held so far, in bytes."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if sys.platform == "win32":
        return None
    with suppress(OSError, StopIteration):  # there ru_maxrss may be a parent's
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@contextmanager
def deterministic_algorithms(wanted: bool) -> Iterator[None]:
    """Let torch choose what gives equal bits on CUDA too; enter before cuBLAS computes."""
    if not wanted:
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    before = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("error")  # unlike use_deterministic_algorithms, no compiler
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before)


def check_model(model: ModelConfig, preprocessing: Preprocessing, device: torch.device) -> None:
    """Refuse weights that, with the optimizer's state, need more memory than the device has."""
    available = available_memory(device)
    ngrams = len(preprocessing.ngrams or ()) * len(preprocessing.labels)
    network = new_network(model, preprocessing)
    parameters = sum(weight.numel() for weight in network.parameters())
    needed = parameters * COPIES * FLOAT_BYTES
    if available is None or needed <= available:
        return
    key, lower = "model.hidden_size", "model.hidden_size or model.embedding_dim"
    if 2 * ngrams > parameters:
        key, lower = "model.max_ngrams", "it"
    raise ConfigError(
        f"{key}: {parameters:,} parameters need {needed:,} bytes ({_gib(needed)}) to train, about; "
        f"{_owner(device)} has {_gib(available)}; lower {lower}"
    )


def check_longest(config: Config, train: SequenceStore, device: torch.device) -> None:
    """Refuse a longest sequence that needs more memory than the device has; name its line."""
    available, model = available_memory(device), config.model
    longest = int(train.lengths.argmax())
    steps = int(train.lengths[longest])
    states = model.num_layers * (2 if model.bidirectional else 1) * model.hidden_size
    kept = min(steps, config.training.bptt or steps)
    needed = kept * FLOAT_BYTES * (model.width + STATES_SAVED * states)
    if available is not None and needed > available:
        raise DataError(
            f"{train.place(longest)}: a sequence of {steps:,} steps needs about {_gib(needed)} to "
            f"train on; {_owner(device)} has {_gib(available)}; set training.bptt or "
            "data.max_length"
        )


def check_space(folder: Path, model: Model, learning: Module, groups: Array | None) -> None:
    """Refuse a run directory on whose disk a run's folders have no room, about."""
    size = sum(len(block) for x in model_files(model).values() for block in blocks_of(x))
    size += COUNTERS + (MOMENTS + 1) * sum(weight.nbytes for weight in learning.parameters())
    if groups is not None:
        number_and_state = groups.itemsize + recurrent_branch(model.network).zero_state(1).nbytes
        size += (int(groups.max(initial=-1)) + 1) * number_and_state
    needed, free = CHECKPOINTS * size, shutil.disk_usage(nearest_existing(folder)).free
    if free < needed:
        raise RunError(
            f"{folder}: {free:,} bytes are free on its disk; expected {needed:,} for the run's "
            "checkpoints; make room, or choose another --run-dir"
        )


def available_memory(device: torch.device) -> int | None:
    """Return the free memory of a GPU, or the machine's memory, in bytes, or None if unknown."""
    if device.type == "cuda":
        free: int = torch.cuda.mem_get_info(device)[0]
        return free
    return physical_memory()


def _owner(device: torch.device) -> str:
    return "the GPU" if device.type == "cuda" else "this machine"


def physical_memory() -> int | None:
    """Return the machine's memory in bytes, or None where the system doesn't say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _gib(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB"
