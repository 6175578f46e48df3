"""Devices: choosing one by name."""

import torch

from seqtrain.errors import ConfigError


def available_devices() -> list[str]:
    """Return the names of the available devices, cpu first."""
    cuda = [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    return ["cpu", *cuda, *["mps"] * torch.backends.mps.is_available()]


def select_device(name: str) -> torch.device:
    """Return the device of a name; auto is the first GPU, else the CPU.

    Raises:
        ConfigError: If there is no such device here.
    """
    present = available_devices()
    if name == "auto":
        return torch.device("cuda" if "cuda:0" in present else present[-1])
    wanted = "cuda:0" if name == "cuda" else name
    if wanted not in present:
        raise ConfigError(f"device {name}: not found; this machine has {', '.join(present)}")
    return torch.device(name)
