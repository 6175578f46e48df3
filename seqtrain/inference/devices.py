"""Choosing the device: what was asked for, or an error that lists what there is."""

from __future__ import annotations

import torch

from seqtrain.errors import ConfigError


def available_devices() -> list[str]:
    """Return the names of the devices present, cpu first."""
    cuda = [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    return ["cpu", *cuda, *(["mps"] if torch.backends.mps.is_available() else [])]


def select_device(name: str) -> torch.device:
    """Return the device of a name; auto is the first GPU, else the CPU.

    Raises:
        ConfigError: there is no such device here; never a silent CPU.
    """
    present = available_devices()
    if name == "auto":
        return torch.device("cuda" if "cuda:0" in present else present[-1])
    wanted = "cuda:0" if name == "cuda" else name
    if wanted not in present:
        raise ConfigError(f"device {name}: not here; this machine has {', '.join(present)}")
    return torch.device(name)
