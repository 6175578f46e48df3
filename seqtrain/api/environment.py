"""What a run trains with, and what it ran on: versions, device, threads, digests of its data."""

import hashlib
import os
import platform
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import seqtrain
from seqtrain.config.schema import Config
from seqtrain.data.dataset import PreparedData, held_out_fractions
from seqtrain.errors import CheckpointError
from seqtrain.model.engines.native.library import vector_path
from seqtrain.runs.destination import CONFIG
from seqtrain.training.distributed import Processes

HELD_OUT = "held_out"
"""Entry of environment.json: of each split that is held out of train's file, which rows it has."""


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


def check_held_out(
    config: Config, data: PreparedData, recorded: Mapping[str, Any], run: Path
) -> None:
    """Refuse a config that holds out other rows than the run did, which learned from some."""
    if HELD_OUT in recorded and recorded[HELD_OUT] != held_out(config, data):
        problem = "holds out other rows than the run did; restore it from a copy"
        raise CheckpointError(f"{run / CONFIG}: {problem}")


def peak_memory(device: torch.device) -> int | None:
    """Return the most memory the process, or its GPU, held so far, in bytes."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if sys.platform == "win32":
        return None
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
