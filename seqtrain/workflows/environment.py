"""What a run ran on: versions, device, threads, memory, and the data files' digests."""

from __future__ import annotations

import os
import platform
import sys
import time
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

import seqtrain
from seqtrain.data.preparation import PreparedData
from seqtrain.model.engines.native import vector_path
from seqtrain.processes.place import Place


def environment(data: PreparedData, device: torch.device, place: Place) -> dict[str, Any]:
    """Return versions, device, processes, threads, and the digest of each data file."""
    return {
        "seqtrain": seqtrain.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": platform.platform(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "native": vector_path(),
        "cpu_count": os.cpu_count(),
        "processes": place.size,
        **({} if place.launch is None else {"launch": place.launch}),
        "threads": torch.get_num_threads(),
        "device": str(device),
        "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else None,
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "data": data.digests,
        **({} if data.vectors is None else {"vectors": asdict(data.vectors.coverage)}),
    }


def peak_memory(device: torch.device) -> int | None:
    """Return the most memory the process held so far, in bytes (on CUDA: on the device)."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if sys.platform == "win32":
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
